#include "core/session/walks.h"

#include <algorithm>

namespace aerie {

static_assert(sizeof(kernels::WalkOut) == 8 && sizeof(kernels::WalkStep) == 16);

void Walks::clear() {
  for (auto* v : {&token_, &first_child_, &next_sibling_, &kept_walk_, &kept_step_, &kept_slot_}) v->clear();
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

void Walks::keep(int32_t walk, int32_t step, int32_t slot) {
  kept_walk_.push_back(walk);
  kept_step_.push_back(step);
  kept_slot_.push_back(slot);
}

const StagedWalks& Walks::stage(Plan& plan) {
  const auto put = [&](const std::vector<int32_t>& v) { return const_cast<int32_t*>(plan.stage(std::span<const int32_t>(v))); };
  return staged_ = {put(token_), put(first_child_), put(next_sibling_)};
}

void Walks::record(Plan& plan, const kernels::Tensor& logits, int32_t vocab_used, std::span<const kernels::KvCache> caches,
                   const int32_t* slot) {
  if (seqs_.empty()) return;
  kernels::Walk walk;
  walk.logits = logits;
  walk.vocab_used = vocab_used;
  walk.token = staged_.token;
  walk.first_child = staged_.first_child;
  walk.next_sibling = staged_.next_sibling;
  walk.seqs = plan.stage(std::span<const kernels::WalkSeq>(seqs_));
  walk.n_seqs = static_cast<int32_t>(seqs_.size());
  walk.max_steps = max_steps_;
  const int64_t bytes = walk.n_seqs * kernels::walk_out_bytes(max_steps_);
  out_.resize(static_cast<size_t>(bytes / 8));
  walk.out = plan.scratch(1, bytes / 4).data;
  plan.add(walk);
  plan.add(kernels::Download{out_.data(), walk.out, bytes});
  const auto n = static_cast<int32_t>(kept_walk_.size());
  if (n == 0) return;
  const auto put = [&](const std::vector<int32_t>& v) { return plan.stage(std::span<const int32_t>(v)); };
  auto* from = static_cast<int32_t*>(plan.scratch(1, n).data);
  plan.add(kernels::PathSlots{walk.out, max_steps_, put(kept_walk_), put(kept_step_), slot, n, from});
  const int32_t* const to = put(kept_slot_);
  for (const kernels::KvCache& cache : caches) plan.add(kernels::KvCopy{cache, from, to, n});
}

std::span<const kernels::WalkStep> Walks::result(int32_t walk) const {
  const char* at = reinterpret_cast<const char*>(out_.data()) + walk * kernels::walk_out_bytes(max_steps_);
  const auto* head = reinterpret_cast<const kernels::WalkOut*>(at);
  if (head->status != 0 || head->count < 1) return {};
  return {reinterpret_cast<const kernels::WalkStep*>(at + sizeof *head), static_cast<size_t>(head->count)};
}

}  // namespace aerie
