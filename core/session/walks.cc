#include "core/session/walks.h"

#include <algorithm>

namespace aerie {

static_assert(sizeof(kernels::WalkOut) == 8 && sizeof(kernels::WalkStep) == 16);

void Walks::clear() {
  for (auto* v : {&token_, &first_child_, &next_sibling_}) v->clear();
  seqs_.clear();
  max_steps_ = 1;
}

void Walks::tree(const TreeRows& rows) {
  const int32_t first = this->rows();
  const auto shifted = [first](int32_t row) { return row < 0 ? -1 : first + row; };
  for (size_t i = 0; i < rows.token.size(); ++i) {
    token_.push_back(rows.token[i]);
    first_child_.push_back(shifted(rows.first_child[i]));
    next_sibling_.push_back(shifted(rows.next_sibling[i]));
  }
}

void Walks::row(int32_t token) {
  token_.push_back(token);
  first_child_.push_back(-1);
  next_sibling_.push_back(-1);
}

int32_t Walks::start(const kernels::Sampling& sampling, int64_t root_position, int32_t root_row, int32_t deepest) {
  seqs_.push_back({sampling, root_position, root_row, 0});
  max_steps_ = std::max(max_steps_, deepest + 1);
  return static_cast<int32_t>(seqs_.size()) - 1;
}

void Walks::record(Plan& plan, const kernels::Tensor& logits, int32_t vocab_used) {
  if (seqs_.empty()) return;
  kernels::Walk walk;
  walk.logits = logits;
  walk.vocab_used = vocab_used;
  walk.token = plan.stage(std::span<const int32_t>(token_));
  walk.first_child = plan.stage(std::span<const int32_t>(first_child_));
  walk.next_sibling = plan.stage(std::span<const int32_t>(next_sibling_));
  walk.seqs = plan.stage(std::span<const kernels::WalkSeq>(seqs_));
  walk.n_seqs = static_cast<int32_t>(seqs_.size());
  walk.max_steps = max_steps_;
  const int64_t bytes = walk.n_seqs * kernels::walk_out_bytes(max_steps_);
  out_.resize(static_cast<size_t>(bytes / 8));
  walk.out = plan.scratch(1, bytes / 4).data;
  plan.add(walk);
  plan.add(kernels::Download{out_.data(), walk.out, bytes});
}

std::span<const kernels::WalkStep> Walks::result(int32_t walk) const {
  const char* at = reinterpret_cast<const char*>(out_.data()) + walk * kernels::walk_out_bytes(max_steps_);
  const auto* head = reinterpret_cast<const kernels::WalkOut*>(at);
  if (head->status != 0 || head->count < 1) return {};
  return {reinterpret_cast<const kernels::WalkStep*>(at + sizeof *head), static_cast<size_t>(head->count)};
}

}  // namespace aerie
