// Walks: the exact walks of one pass, over the scored rows of all its sessions, and what they found.
#pragma once

#include <span>
#include <vector>

#include "core/model/plan.h"
#include "core/tree/draft_tree.h"

namespace aerie {

// Where the rows of a staged pass are told, for ops that write them.
struct StagedWalks {
  int32_t *token, *first_child, *next_sibling;
};

class Walks {
 public:
  void clear();
  // The tree's rows are the next ones of the logits.
  void tree(const TreeRows& rows);
  // A row of its own, with no children.
  void row(int32_t token);
  int32_t rows() const { return static_cast<int32_t>(token_.size()); }
  // A walk from `root_row`, at most `deepest` nodes below it; its number for result().
  int32_t start(const kernels::Sampling& sampling, int64_t root_position, int32_t root_row, int32_t deepest);

  // The keys and values of the row that step `step` of a walk drew from are kept in `slot`, if it comes so far.
  void keep(int32_t walk, int32_t step, int32_t slot);

  const StagedWalks& stage(Plan& plan);
  // slot: of the pass's rows.
  void record(Plan& plan, const kernels::Tensor& logits, int32_t vocab_used, std::span<const kernels::KvCache> caches, const int32_t* slot);
  // Once the plan has run: the steps of a walk; none where a logit was not finite.
  std::span<const kernels::WalkStep> result(int32_t walk) const;

 private:
  std::vector<int32_t> token_, first_child_, next_sibling_, kept_walk_, kept_step_, kept_slot_;
  StagedWalks staged_{};
  std::vector<kernels::WalkSeq> seqs_;
  int32_t max_steps_ = 1;
  std::vector<int64_t> out_;  // WalkOut and its steps, a walk after the other; both are multiples of 8 bytes
};

}  // namespace aerie
