// Prefix reuse: pages of this text are kept for others that begin alike, and it takes what they left.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

DraftRows Session::draft_rows() const { return draft_ && drafter_usable() ? draft_->rows() : DraftRows{}; }

void Session::keep_prefix() {
  if (PrefixIndex* const index = model_->prefixes())
    index->keep(&place_, text_, kv_, kv_len_ / kernels::kPageSlots, draft_rows());
}

void Session::take_prefix() {
  PrefixIndex* const index = model_->prefixes();
  if (!index || !index->has_more(place_, text_)) return;
  const Prefix found = index->find(text_, draft_rows());
  const int64_t kept = found.place.pages * kernels::kPageSlots;
  int64_t length = kept, observed = 0;
  if (draft_ && drafter_usable()) {
    observed = draft_->after(found, static_cast<int64_t>(text_.size()));
    // A drafter that reads features goes on where the target does.
    if (feature_store_) length = std::min(length, observed - 1);
  }
  if (length <= kv_len_) return;
  kv_.share(found.target, length);
  if (draft_ && observed > draft_->observed()) {
    draft_->restore(found, observed);
    pending_.clear();
  }
  stats_.reused_tokens += static_cast<uint64_t>(length - kv_len_);
  kv_len_ = length;
  // Rows that the drafter misses are kept when they are there.
  place_ = !draft_rows().kv || found.draft_rows == kept ? found.place : PrefixPlace{};
}

// The text is about to lose its end, or to go: what it had stays for others.
void Session::leave_prefix() {
  keep_prefix();
  if (PrefixIndex* const index = model_->prefixes()) index->touch(place_);
  place_ = {};
}

}  // namespace aerie
