// DeviceDraft: the tree of a cycle that the device draws by itself. Draft passes, the tree's growth between them, the
// choice of nodes and the target's pass over them are one plan (kernels/tree_ops.h); the host learns of the tree when
// that has run. Which candidates become nodes, and which of these are chosen, is what the policy would have said.
#pragma once

#include <span>
#include <vector>

#include "core/drafter/draft_sequence.h"
#include "core/policy/tree_layout.h"
#include "core/session/walks.h"

namespace aerie {

class DeviceDraft {
 public:
  // A cycle with such a tree, over a text of so many tokens. one_pass: the drafter answers all levels at once. False: it is no tree
  // for the device.
  bool begin(const TreeShape& shape, bool one_pass, int64_t text_size);
  void end() {
    shape_.levels = 0;
    place_of_.clear();
  }
  bool on() const { return shape_.levels > 0; }
  int32_t levels() const { return shape_.levels; }
  int32_t passes() const { return one_pass_ ? 1 : shape_.levels; }
  int32_t passes_run() const;  // once the plan has: of those, the ones that the tree had a node for
  int32_t width() const { return shape_.width; }
  bool weighs() const { return shape_.weighing != nullptr; }
  int32_t verified() const { return layout_.verified; }  // rows of the target's pass, the root included

  // Recording, in this order: what each draft pass asks; once all that is staged, each pass' own ops with expand()
  // behind them; select() before the target's pass; download() in the end.
  Status start(Plan& plan, DraftSequence& sequence);
  int32_t draft_rows(int32_t level) const { return layout_.rows[static_cast<size_t>(level)]; }
  Status ask(int32_t root_token, int32_t level, ProposeCall* call, const DraftDraw& draw);
  // wanted: set by it where the next level has a node to draft from.
  void expand(Plan& plan, int32_t level, int32_t vocab_used, int32_t* wanted);
  void select(Plan& plan, const Rows& rows, int32_t first_row, int32_t tail, const StagedWalks& walks) const;
  void download(Plan& plan);

  // What it came to, once the plan has run: the nodes chosen, which are added to the tree unless they are there, and how many
  // there were to choose from.
  Status take(DraftTree* tree, std::vector<int32_t>* selected) const;
  int32_t proposed() const;

  // The host asks a policy its questions when all has run, and finds the answers here: of a tree that was drawn ahead of
  // them, in a plan of its own, download_all() in the end; of one that weighs, for the policy to learn from.
  void download_all(Plan& plan);
  Status land();
  bool has(const DraftTree& tree, std::span<const int32_t> frontier) const;
  int32_t answer(DraftTree* tree, std::span<const int32_t> frontier);  // how many children that are
  // What a drafter said that answers all levels at once, by level.
  std::span<const int32_t> all_tokens() const { return host_token_; }
  std::span<const float> all_logps() const { return host_logp_; }

 private:
  struct Asked {
    const ProposeCall* call;
    int32_t first;  // its first row of the call
  };
  TreeShape shape_;
  bool one_pass_ = false;
  TreeLayout layout_;
  std::vector<Asked> asked_;
  DraftSequence* sequence_ = nullptr;
  // Of the plan.
  kernels::TreePlace* place_ = nullptr;
  kernels::TreeOut* out_ = nullptr;
  int32_t* frontier_ = nullptr;
  const int32_t* fed_slots_ = nullptr;
  const kernels::Beliefs* beliefs_ = nullptr;
  const kernels::GainByBest* gain_by_best_ = nullptr;
  struct Lists {
    const int32_t* token;
    const float* logp;
  };
  Lists lists_of(int32_t level) const;  // on the device; not once the calls are others' (Stepper reuses them)
  Lists lists_{};  // where level 0's are
  void download_lists(Plan& plan);
  void download_places(Plan& plan);
  const kernels::TreeOut& came() const { return *reinterpret_cast<const kernels::TreeOut*>(host_.data()); }
  const kernels::TreeNode& came(int32_t row) const { return reinterpret_cast<const kernels::TreeNode*>(&came() + 1)[row]; }
  std::vector<int32_t> host_;  // TreeOut and its nodes
  std::vector<kernels::TreePlace> host_places_;
  std::vector<int32_t> host_token_;
  std::vector<float> host_logp_;
  std::vector<int32_t> place_of_;  // by tree node, as far as it was drawn ahead
};

}  // namespace aerie
