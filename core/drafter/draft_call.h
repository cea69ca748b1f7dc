// Calls to a drafter for several sequences at once: their rows, ragged, in one observe or one propose.
#pragma once

#include <span>
#include <vector>

#include "core/drafter/drafter.h"

namespace aerie {

// Committed rows of each sequence, in order.
class ObserveCall {
 public:
  void begin(Drafter& drafter);
  int32_t rows() const { return static_cast<int32_t>(token_.size()); }
  // Rows of this sequence follow; `kv` may be null, `features` (its rows, taps * H) absent. target: its KV, for a drafter that reads that.
  void sequence(int32_t seq, const KvSequence* kv, const kernels::Tensor& features, const KvSequence* target);
  // position: among its rows. The token is the text's `at`th.
  void row(int32_t token, int64_t position, int64_t at);
  Status record(Plan& plan);

 private:
  Drafter* drafter_ = nullptr;
  bool has_kv_ = false;
  RowsBuilder attention_, target_;
  std::vector<int32_t> token_, position_, last_, root_, sequence_;
  std::vector<const KvSequence*> targets_;  // of the sequences, if they are wanted, and where their newest token is
  std::vector<int64_t> newest_;
  std::vector<kernels::Tensor> features_;
};

// Nodes of one depth, whose children are wanted.
class ProposeCall {
 public:
  void begin(Drafter& drafter, int32_t level, int32_t width, bool want_logits);
  int32_t rows() const { return static_cast<int32_t>(token_.size()); }
  // Rows of this sequence follow; its candidates come to `out`. target: as in ObserveCall, and the root is the text's `root`th token.
  void sequence(int32_t seq, const KvSequence* kv, Candidates* out, const KvSequence* target, int64_t root);
  // committed: what the drafter's KV holds of the sequence; tail: slots of the node's ancestors and its own, or of the root's block.
  void row(int32_t token, int64_t position, int32_t node, int32_t parent, int64_t committed,
           std::span<const int32_t> tail);
  void key(const kernels::DrawKey& key);  // levels a row; temperature 0: no shared noise
  Status record(Plan& plan);
  // For a device that draws the tree itself: candidates stay where they are, and so that it can be told where to write
  // which nodes the rows are, rows may reach the plan earlier than what is made of them.
  void keep_on_device() { stay_ = true; }
  void stage(Plan& plan);
  kernels::TreeDraftRows blank_rows(int32_t first) const;  // once staged: where rows from `first` on are told
  const Candidates& candidates() const { return shares_.size() == 1 ? *shares_[0].out : all_; }
  // Once the plan has run: to every sequence its own.
  void deliver();
  void forget(const Candidates* out);  // nobody waits for these any more

 private:
  struct Share {
    Candidates* out;
    int32_t first, n;
  };
  bool in_blocks() const { return has_kv_ && level_ == 0 && drafter_->resources().block_rows > 0; }

  Drafter* drafter_ = nullptr;
  int32_t level_ = 0, width_ = 0, current_ = 0;
  bool want_logits_ = false;
  bool has_kv_ = false, reads_target_ = false, noise_ = false;
  int64_t root_ = 0;
  RowsBuilder attention_, target_;
  std::vector<int32_t> token_, position_, node_, parent_, sequence_;
  std::vector<kernels::DrawKey> keys_;
  std::vector<Share> shares_;
  Candidates all_;  // filled when several share the call
  bool stay_ = false, staged_ = false;
  aerie_attention staged_attention_;
  aerie_draft_rows staged_rows_{};
  aerie_candidates out_{};
};

}  // namespace aerie
