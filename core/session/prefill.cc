// Prefill: the target reads prompt tokens in chunks, and the drafter is shown each chunk in the same plan.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

// Pages for so many positions, this session's own from where it writes.
Status Session::reserve(int64_t positions) {
  Status s = kv_.reserve(positions, kv_len_);
  if (!s.ok()) wanted_ = kv_.missing(positions, kv_len_) * kernels::kPageSlots;
  return s;
}

Status Session::start_prefill() {
  const auto size = static_cast<int64_t>(text_.size());
  prefill_end_ = std::min(kv_len_ + kPrefillRows, size - 1);
  AERIE_TRY(reserve(size));
  shows_ = draft_ && drafter_usable();
  phase_ = Phase::prefill;
  recorded_ = false;
  return {};
}

void Session::stage_prefill(Plan& plan, RowsBuilder* rows, std::vector<TappedRows>* tapped) {
  for (int64_t i = kv_len_; i < prefill_end_; ++i) rows->plain(text_[static_cast<size_t>(i)], i);
  read_features_ = {};
  if (!shows_ || !feature_store_) return;
  read_features_ = plan.scratch(prefill_end_ - kv_len_, feature_store_.cols);
  tapped->push_back({options_.drafter->taps(), first_row_, read_features_});
}

Status Session::add_read(Plan& plan, DraftCalls* calls) {
  observing_ = 0;
  if (!shows_) return {};
  const int64_t end = prefill_end_ + 1;
  DraftCall& call = calls->join({options_.drafter.get()}, this, end - draft_->observed(), 0);
  return add_observe(plan, end, read_features_, &call.observe);
}

void Session::finish_prefill() {
  stats_.prefill_tokens += static_cast<uint64_t>(prefill_end_ - kv_len_);
  kv_len_ = prefill_end_;
  if (observing_ > 0) {
    draft_->observed_to(observing_);
    pending_.clear();
  }
  phase_ = Phase::idle;
}

}  // namespace aerie
