// Rows that a drafter wants read beside the tree (extension extra_rows). They follow the tree's rows in the pass, see
// the committed text and their own ancestors only, and are never walked to: nothing of them is kept.
#include "core/session/session.h"

namespace aerie {

void Session::ask_extra_rows() {
  extra_token_.clear();
  if (!host_proposed_ || !drafter_usable() || options_.sampled_rule || !side_->drafter().extra_rows()) return;
  const Status s = side_->sequence().extra_rows(kMaxTreeRows - rows_.size(), &extra_token_, &extra_parent_);
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

void Session::stage_extra_rows(RowsBuilder* rows, Walks* walks) {
  const auto size = static_cast<int64_t>(text_.size());
  const int32_t first = rows_.size() - 1;  // scratch slots before it are the tree's
  for (size_t i = 0; i < extra_token_.size(); ++i) {
    const int32_t depth = extra_depth_[i];
    tail_.assign(static_cast<size_t>(depth), 0);
    for (auto a = static_cast<int32_t>(i), d = depth; d > 0; a = extra_parent_[static_cast<size_t>(a)], --d)
      tail_[static_cast<size_t>(d) - 1] = kv_.scratch_slot(first + a);
    rows->tree(extra_token_[i], size, tail_);
    // Every extra row is the root of a walk of one step.
    walks->row(extra_token_[i]);
    const int32_t walk = walks->start(options_.sampling, size - 1 + depth, walks->rows() - 1, 0);
    if (i == 0) extra_walk_ = walk;
  }
}

void Session::tell_choices(const Walks& walks) {
  choice_.clear();
  for (size_t i = 0; i < extra_token_.size(); ++i) {
    const auto steps = walks.result(extra_walk_ + static_cast<int32_t>(i));
    choice_.push_back(steps.empty() ? -1 : steps[0].token);
  }
  extra_token_.clear();
  if (const Status s = side_->sequence().chosen(choice_); !s.ok()) drafter_failed(s, false);
}

}  // namespace aerie
