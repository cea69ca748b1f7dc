// Prefill: the target reads prompt tokens in chunks, and the drafter is shown each chunk in the same plan.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

Status Session::start_prefill() {
  const auto size = static_cast<int64_t>(text_.size());
  const int64_t end = std::min(kv_len_ + kPrefillRows, size - 1);
  const int64_t n = end - kv_len_;
  AERIE_TRY(kv_.reserve(size));
  // Recorded again without the drafter if the drafter fails.
  for (bool with_drafter = draft_ && drafter_usable();; with_drafter = false) {
    plan_->clear();
    builder_.clear();
    builder_.sequence(kv_);
    for (int64_t i = kv_len_; i < end; ++i) builder_.plain(text_[static_cast<size_t>(i)], i);
    const Rows rows = builder_.stage(*plan_);
    observing_ = 0;
    if (!with_drafter) {
      model_->forward(*plan_, rows, {}, {});
      break;
    }
    kernels::Tensor features;
    if (feature_store_) features = plan_->scratch(n, feature_store_.cols);
    model_->forward(*plan_, rows, options_.drafter->taps(), features);
    const Status s = record_observe(end + 1, features);
    if (s.ok()) break;
    drafter_failed(s, true);
  }
  prefill_end_ = end;
  phase_ = Phase::prefill;
  return plan_->submit(*queue_);
}

Status Session::finish_prefill() {
  stats_.prefill_tokens += static_cast<uint64_t>(prefill_end_ - kv_len_);
  kv_len_ = prefill_end_;
  if (observing_ > 0) {
    draft_->observed_to(observing_);
    pending_.clear();
  }
  phase_ = Phase::idle;
  return {};
}

}  // namespace aerie
