#include "core/session/draft_side.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace aerie {

Result<std::unique_ptr<DraftSide>> DraftSide::create(std::shared_ptr<Drafter> drafter, int64_t max_context, const KvSequence* target) {
  std::unique_ptr<DraftSide> s(new DraftSide(std::move(drafter)));
  AERIE_ASSIGN(s->sequence_, DraftSequence::create(s->drafter_, max_context, target));
  if (s->drafter_->wants_features()) {
    const Model& model = *s->drafter_->target();
    const int64_t cols = static_cast<int64_t>(s->drafter_->taps().size()) * model.config().hidden;
    constexpr int64_t kRows = kWaitingRows + kMaxTreeRows;
    void* store = model.device()->allocate(static_cast<size_t>(kRows * cols) * 4);
    if (!store) return model.device()->no_memory("session: features");
    s->store_ = kernels::matrix(store, kRows, cols);
  }
  if (s->host_tokens()) s->peek = DraftTree();
  s->pending_.reserve(kWaitingRows + kMaxTreeRows);  // a commit allocates nothing: it is whole or it has not begun
  return s;
}

DraftSide::~DraftSide() {
  if (store_) drafter_->target()->device()->release(store_.data);
}

void DraftSide::found_no_room(const Status& why, bool lost_sync) noexcept {
  shortages_ += lost_sync ? kMaxShortages / 3 + 1 : 1;
  if (!usable()) drafter_->tell(0, why, "too often: this session goes on without it");
  else if (!std::exchange(told_shortage_, true)) drafter_->tell(1, why, "it is asked again");
}

int64_t DraftSide::waiting() const {
  return gap_ || first_ == sequence_->observed() ? static_cast<int64_t>(pending_.size()) : 0;
}

Status DraftSide::wake(int64_t size) {
  if (!std::exchange(away, false)) return {};
  if (features()) return std::exchange(gap_, false) ? sequence_->restart(first_) : Status();
  return host_tokens() || size - sequence_->observed() <= kWaitingRows ? Status() : sequence_->restart(size - kWaitingRows);
}

Status DraftSide::rewind(int64_t n) {
  const bool missed = gap_;
  forget_waiting();
  return missed ? sequence_->restart(n - kWaitingRows) : sequence_->rollback(n);
}

void DraftSide::forget_waiting() {
  pending_.clear();
  gap_ = false;
}

void DraftSide::keep(Plan& plan) {
  if (!features() || waiting() == 0) return;
  if (const int64_t old = waiting() - kWaitingRows; old > 0) {
    pending_.erase(pending_.begin(), pending_.begin() + old);
    first_ += old;
    gap_ = true;
  }
  to_.clear();
  from_.clear();
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i] < kWaitingRows) continue;
    from_.push_back(pending_[i]);
    to_.push_back(slot(i));
  }
  if (to_.empty()) return;
  const int32_t* from = plan.stage(std::span<const int32_t>(from_));
  const int32_t* to = plan.stage(std::span<const int32_t>(to_));
  plan.add(kernels::CopyRows{store_, from, store_, to, static_cast<int64_t>(to_.size())});
  moving_ = true;
}

Status DraftSide::add_observe(Plan& plan, std::span<const int32_t> text, int64_t end, const kernels::Tensor& fresh,
                              int64_t first, const NextCall& call) {
  if (!features()) {
    observing_ = std::min(end, sequence_->observed() + kMaxDraftRows);
    return sequence_->observe(call(observing_ - sequence_->observed()), text, sequence_->observed(), observing_, {});
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
  for (int64_t at = sequence_->observed(), row = 0; at < end;) {  // as many at once as plugins are promised at most
    const int64_t rows = std::min<int64_t>(end - at, kMaxDraftRows);
    AERIE_TRY(sequence_->observe(call(rows), text, at, at + rows, kernels::rows(features, row, rows)));
    at += rows;
    row += rows;
  }
  return {};
}

void DraftSide::pass_begins() {
  observing_ = 0;
  moving_ = false;
}

void DraftSide::pass_ended() {
  if (observing_ > 0) {
    sequence_->observed_to(observing_);
    forget_waiting();
  } else if (moving_) {
    for (size_t i = 0; i < pending_.size(); ++i) pending_[i] = slot(i);
  }
  pass_begins();
}

void DraftSide::took(std::span<const int32_t> rows, int64_t first) {
  if (!features()) return;
  if (waiting() == 0 || next() != first) {
    forget_waiting();
    first_ = first;
  }
  for (const int32_t row : rows) pending_.push_back(kWaitingRows + row);
}

Status DraftSide::take_over(const DraftSide& other, int64_t text_size) {
  policy = other.policy->clone();
  cost = other.cost;
  guess = other.guess;
  root_ms = other.root_ms;
  habit = other.habit;
  measured = other.measured;
  shortages_ = other.shortages_;  // where the other has given up, what it has seen is in doubt
  if (!usable()) return {};
  AERIE_TRY(sequence_->take_over(*other.sequence_, text_size));
  away = other.away;
  from_image = other.from_image;
  const auto rows = other.pending();
  if (rows.empty()) return {};
  const auto& device = drafter_->target()->device();
  AERIE_ASSIGN(auto plan, Plan::create(device, size_t{4} * (kWaitingRows + kMaxTreeRows)));
  AERIE_ASSIGN(auto queue, device->make_queue());
  const int32_t* index = plan->stage(rows);
  plan->add(kernels::CopyRows{other.store_, index, store_, index, static_cast<int64_t>(rows.size())});
  AERIE_TRY(plan->submit(*queue));
  AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
  if (state != kernels::RunState::done) return error(Code::device, "fork: the copy of features did not finish");
  pending_.assign(rows.begin(), rows.end());
  first_ = other.first_;
  gap_ = other.gap_;
  return {};
}

bool DraftSide::resume(const DraftSequence::Seen& seen, int64_t rows, int64_t next) {
  if (rows > kMaxTreeRows || !sequence_->resume(seen).ok()) return false;
  first_ = next - rows;
  gap_ = rows > 0 && first_ != seen.end;
  away = away || gap_;  // it begins anew when it is asked again
  pending_.resize(static_cast<size_t>(rows));
  std::iota(pending_.begin(), pending_.end(), kWaitingRows);
  return true;
}

void DraftSide::lose_tapped() {
  pending_.resize(static_cast<size_t>(std::find_if(pending_.begin(), pending_.end(), [](int32_t row) { return row >= kWaitingRows; }) -
                                      pending_.begin()));
}

}  // namespace aerie
