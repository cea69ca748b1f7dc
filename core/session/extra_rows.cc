// Rows that a drafter wants read beside the tree (extension extra_rows). They follow the tree's rows in the pass, see
// the committed text and their own ancestors only, and are never walked to: nothing of them is kept.
#include <cstring>

#include "core/session/session.h"

namespace aerie {

void Session::ask_extra_rows() {
  extra_token_.clear();
  if (!host_proposed_ || !drafter_usable() || options_.sampled_rule || !options_.drafter->extra_rows()) return;
  const Status s = draft_->extra_rows(kMaxTreeRows - rows_.size(), &extra_token_, &extra_parent_);
  if (!s.ok()) {
    extra_token_.clear();
    drafter_failed(s, false);
    return;
  }
  // Rows beyond the context are not run, and neither is what stands on them.
  const int64_t room = max_context_ - static_cast<int64_t>(text_.size());
  extra_depth_.resize(extra_token_.size());
  for (size_t i = 0; i < extra_token_.size(); ++i) {
    const int32_t parent = extra_parent_[i];
    extra_depth_[i] = parent < 0 ? 1 : extra_depth_[static_cast<size_t>(parent)] + 1;
    if (extra_depth_[i] > room) {
      extra_token_.clear();
      return;
    }
  }
}

void Session::stage_extra_rows() {
  const auto size = static_cast<int64_t>(text_.size());
  const int32_t first = rows_.size() - 1;  // scratch slots before it are the tree's
  for (size_t i = 0; i < extra_token_.size(); ++i) {
    const int32_t depth = extra_depth_[i];
    tail_.assign(static_cast<size_t>(depth), 0);
    for (auto a = static_cast<int32_t>(i), d = depth; d > 0; a = extra_parent_[static_cast<size_t>(a)], --d)
      tail_[static_cast<size_t>(d) - 1] = kv_.scratch_slot(first + a);
    builder_.tree(extra_token_[i], size, tail_);
  }
}

// Every extra row is the root of a walk of one step.
void Session::record_extra_walk(const kernels::Tensor& logits) {
  const auto n = static_cast<int32_t>(extra_token_.size());
  std::vector<kernels::WalkSeq>& seqs = extra_seqs_;
  seqs.clear();
  for (int32_t i = 0; i < n; ++i)
    seqs.push_back({options_.sampling, static_cast<int64_t>(text_.size()) - 1 + extra_depth_[static_cast<size_t>(i)],
                    rows_.size() + i, 0});
  choice_.assign(static_cast<size_t>(logits.rows), -1);  // no row has a child
  kernels::Walk walk;
  walk.logits = logits;
  walk.vocab_used = model_->config().vocab_used;
  walk.token = walk.first_child = walk.next_sibling = plan_->stage(std::span<const int32_t>(choice_));
  walk.seqs = plan_->stage(std::span<const kernels::WalkSeq>(seqs));
  walk.n_seqs = n;
  walk.max_steps = 1;
  const int64_t bytes = n * kernels::walk_out_bytes(1);
  extra_out_.resize(static_cast<size_t>(bytes));
  walk.out = plan_->scratch(1, (bytes + 3) / 4).data;
  plan_->add(walk);
  plan_->add(kernels::Download{extra_out_.data(), walk.out, bytes});
}

void Session::tell_choices() {
  choice_.clear();
  for (size_t i = 0; i < extra_token_.size(); ++i) {
    const char* out = extra_out_.data() + i * static_cast<size_t>(kernels::walk_out_bytes(1));
    kernels::WalkOut head;
    kernels::WalkStep step;
    std::memcpy(&head, out, sizeof head);
    std::memcpy(&step, out + sizeof head, sizeof step);
    choice_.push_back(head.status == 0 && head.count == 1 ? step.token : -1);
  }
  extra_token_.clear();
  if (const Status s = draft_->chosen(choice_); !s.ok()) drafter_failed(s, false);
}

}  // namespace aerie
