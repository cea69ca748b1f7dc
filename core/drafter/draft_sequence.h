// DraftSequence: one session's side of a drafter: which tokens it has seen, its KV, and the nodes it
// was fed in the running cycle.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/drafter/draft_call.h"
#include "core/tree/draft_tree.h"

namespace aerie {

// How candidates are ranked in this cycle.
struct DraftDraw {
  bool shared_noise = false;   // rank with the target's own dice
  float temperature = 0;
  uint64_t seed = 0, stream = 0;
  bool want_logits = false;    // sampled-draft rule
};

// Not thread-safe; belongs to one session.
class DraftSequence {
 public:
  // target: the KV of the text that it follows, which outlives it; a drafter that reads the target's wants one.
  static Result<std::unique_ptr<DraftSequence>> create(std::shared_ptr<Drafter> drafter, int64_t max_context,
                                                       const KvSequence* target = nullptr);
  ~DraftSequence();
  DraftSequence(const DraftSequence&) = delete;
  DraftSequence& operator=(const DraftSequence&) = delete;

  Drafter& drafter() { return *drafter_; }
  // Tokens [0, observed()) have been seen. A drafter with features never sees token 0 alone: its
  // first row pairs feature 0 with token 1.
  int64_t observed() const { return observed_; }
  // Its state agrees with a text of `n` tokens: it may be asked for children of token n - 1.
  bool ready(int64_t n) const { return observed_ == n && n > first_; }

  // Add rows for tokens [begin, end), begin at most observed(); features (end - begin, taps * H), absent for drafters
  // without. Takes effect with observed_to(end), once the plan has run.
  Status observe(ObserveCall* call, std::span<const int32_t> text, int64_t begin, int64_t end, const kernels::Tensor& features);
  // The same in a call of its own.
  Status observe(Plan& plan, std::span<const int32_t> text, int64_t end, const kernels::Tensor& features);
  void observed_to(int64_t end) { observed_ = end; }
  // Forget what follows the first n tokens, so that row n - 1 is shown again.
  Status rollback(int64_t n);
  // Its sequence begins, if it has not. Otherwise whatever it is shown or asked first begins it.
  Status begin();
  // Forget everything (after a failure) and, later, see the text from token `from` on only: an earlier context that it
  // has missed costs acceptance, not exactness.
  Status restart(int64_t from = 0);
  void start_over(int64_t from = 0) noexcept;  // the same, but it has yet to begin

  const KvSequence* kv() const { return kv_.get(); }  // null: it keeps none
  // Tokens [begin, end) of those it has seen, of which it knows what its KV holds, and nothing more.
  struct Seen {
    int64_t begin = 0, end = 0;
    int64_t rows() const { return end - begin; }
  };
  Seen nothing() const { return {least_, least_}; }
  // What of the first n tokens a sequence can be taken up after. Nothing of a drafter that keeps something of its own.
  Seen resumable(int64_t n) const;
  // A sequence that has observed nothing: as if it had observed these, once their rows are in kv(). The newest of them
  // cannot be asked about before another is shown.
  Status resume(const Seen& seen);
  // What can be kept for texts that begin alike.
  DraftRows rows() const;
  // observed() after restore() from so many kept pages of the target's: at most text_size - 1, since the newest row is
  // always shown.
  int64_t after(const Prefix::Draft& kept, int64_t target_pages, int64_t text_size) const;
  void restore(const Prefix::Draft& kept, int64_t observed);
  // Be where the other sequence of the same drafter is; the newest row of a text of `text_size` tokens is shown again.
  Status take_over(const DraftSequence& other, int64_t text_size);

  // A cycle begins: only the root (the last observed token) is fed.
  void begin_cycle(int64_t text_size);
  // Children a drafter can give where so many are wanted.
  int32_t width(int32_t wanted) const;
  // Add a request for children of `frontier` (tree nodes of one depth, parents already fed).
  Status propose(ProposeCall* call, const DraftTree& tree, std::span<const int32_t> frontier, const DraftDraw& draw);
  // The same in a call of its own.
  Status propose(Plan& plan, const DraftTree& tree, std::span<const int32_t> frontier, int32_t width,
                 const DraftDraw& draw);
  // For a device that draws the tree itself: rows for `n` nodes of one depth, of which it is only known that they are
  // rows `first`, first + 1, ... of all that are fed in this cycle; the root is row 0. Node ids are node_base() + row.
  Status propose_blank(ProposeCall* call, int32_t root_token, int32_t level, int32_t n, int32_t first, const DraftDraw& draw);
  // The device has drawn this node, and fed it as such a row.
  void was_fed(int32_t node, int32_t row) {
    fed_[static_cast<size_t>(node)] = row;
    n_fed_ = std::max(n_fed_, row + 1);
  }
  int32_t node_base() const { return seq_ * kMaxFedNodes; }
  // Where such rows have their keys and values; out: null without a KV.
  Status stage_slots(Plan& plan, int32_t n, const int32_t** out);
  // What it brought, once the plan has run. Fails when it is nonsense.
  Status check_candidates(int32_t vocab_used) const;
  const Candidates& candidates() const { return candidates_; }
  // HOST_TOKENS drafters answer at once, straight into the tree.
  Status propose_host(std::span<const int32_t> text, int32_t width, int32_t max_depth, DraftTree* tree);

  // Rows to verify beside the tree (extension extra_rows), at most `capacity`; empty for most drafters. parent: -1 or
  // a smaller index.
  Status extra_rows(int32_t capacity, std::vector<int32_t>* token, std::vector<int32_t>* parent);
  // What the target picked after each of them.
  Status chosen(std::span<const int32_t> choice);

 private:
  DraftSequence(std::shared_ptr<Drafter> drafter, int64_t max_context, const KvSequence* target);
  Status forget_from(int64_t row);
  bool has_block() const { return drafter_->resources().block_rows > 0; }
  void block_slots();
  void add_keys(ProposeCall* call, int32_t level, const DraftDraw& draw) const;

  std::shared_ptr<Drafter> drafter_;
  const KvSequence* target_;  // null: it does not look
  int32_t seq_ = -1;       // not taken yet
  int64_t least_;          // first token that makes a row: 1 with features, else 0
  int64_t first_;          // the one that this sequence begins with
  int64_t observed_ = 0;
  bool begun_ = false;     // in the plugin
  int64_t text_size_ = 0;
  std::unique_ptr<KvSequence> kv_;  // null: the drafter keeps none
  std::vector<int32_t> fed_;        // tree node -> node id in this cycle, -1 not fed
  int32_t n_fed_ = 1;
  std::vector<int32_t> tail_, slots_;
  Candidates candidates_;
  ObserveCall own_observe_;
  ProposeCall own_propose_;
  std::vector<int32_t> host_token_, host_parent_, host_node_;
  std::vector<float> host_confidence_;
};

}  // namespace aerie
