#include "core/session/draft_side.h"

#include <algorithm>
#include <numeric>

namespace aerie {

Result<std::unique_ptr<DraftSide>> DraftSide::create(std::shared_ptr<Drafter> drafter, int64_t max_context) {
  std::unique_ptr<DraftSide> s(new DraftSide(std::move(drafter)));
  AERIE_ASSIGN(s->sequence_, DraftSequence::create(s->drafter_, max_context));
  if (s->drafter_->wants_features()) {
    const Model& target = *s->drafter_->target();
    const int64_t cols = static_cast<int64_t>(s->drafter_->taps().size()) * target.config().hidden;
    constexpr int64_t kRows = kWaitingRows + kMaxTreeRows;
    void* store = target.device()->allocate(static_cast<size_t>(kRows * cols) * 4);
    if (!store) return error(Code::out_of_memory, "session: no device memory for features");
    s->store_ = kernels::matrix(store, kRows, cols);
  }
  if (s->host_tokens()) s->peek = DraftTree();
  s->pending_.reserve(kWaitingRows + kMaxTreeRows);  // a commit allocates nothing: it is whole or it has not begun
  return s;
}

DraftSide::~DraftSide() {
  if (store_) drafter_->target()->device()->release(store_.data);
}

int64_t DraftSide::waiting() const {
  return first_ == sequence_->observed() ? static_cast<int64_t>(pending_.size()) : 0;
}

bool DraftSide::may_wait(int64_t size) const {
  return features() ? waiting() <= kWaitingRows : size - sequence_->observed() < kWaitingRows;
}

void DraftSide::keep(Plan& plan) {
  if (!features() || waiting() == 0) return;
  if (waiting() > kWaitingRows) return pending_.clear();  // nobody showed it: the target will read those rows again
  moved_.clear();
  for (size_t i = 0; i < pending_.size(); ++i)
    if (pending_[i] >= kWaitingRows) moved_.push_back(static_cast<int32_t>(i));
  if (moved_.empty()) return;
  const auto n = static_cast<int64_t>(moved_.size());
  const int32_t* to = plan.stage(std::span<const int32_t>(moved_));
  for (int32_t& at : moved_) at = pending_[static_cast<size_t>(at)];
  const int32_t* from = plan.stage(std::span<const int32_t>(moved_));
  plan.add(kernels::CopyRows{store_, from, store_, to, n});
  moving_ = true;
}

Status DraftSide::add_observe(Plan& plan, std::span<const int32_t> text, int64_t end, const kernels::Tensor& fresh,
                              int64_t first, ObserveCall* call) {
  if (!features()) {
    observing_ = std::min(end, sequence_->observed() + kMaxDraftRows);
    return sequence_->observe(call, text, observing_, {});
  }
  const int64_t old = waiting(), skip = fresh ? next() - first : 0, more = fresh ? fresh.rows - skip : 0;
  if (skip < 0 || more < 0 || next() + more != end) return error(Code::internal, "session: features and tokens out of step");
  if (old + more == 0) return {};
  kernels::Tensor features = more > 0 ? kernels::rows(fresh, skip, more) : kernels::Tensor{};
  if (old > 0) {
    const kernels::Tensor late = features;
    features = plan.scratch(old + more, store_.cols);
    const int32_t* index = plan.stage(std::span<const int32_t>(pending_));
    plan.add(kernels::CopyRows{store_, index, features, nullptr, old});
    if (more > 0) plan.add(kernels::CopyRows{late, nullptr, kernels::rows(features, old, more), nullptr, more});
  }
  observing_ = end;
  return sequence_->observe(call, text, end, features);
}

void DraftSide::pass_begins() {
  observing_ = 0;
  moving_ = false;
}

void DraftSide::pass_ended() {
  if (observing_ > 0) {
    sequence_->observed_to(observing_);
    pending_.clear();
  } else if (moving_) {
    std::iota(pending_.begin(), pending_.end(), 0);
  }
  pass_begins();
}

void DraftSide::took(std::span<const int32_t> rows, int64_t first) {
  if (!features()) return;
  if (waiting() == 0 || next() != first) {
    pending_.clear();
    first_ = first;
  }
  for (const int32_t row : rows) pending_.push_back(kWaitingRows + row);
}

void DraftSide::lose_tapped() {
  pending_.resize(static_cast<size_t>(std::find_if(pending_.begin(), pending_.end(), [](int32_t row) { return row >= kWaitingRows; }) -
                                      pending_.begin()));
}

}  // namespace aerie
