// Prefix reuse: pages of this text are kept for others that begin alike, and it takes what they left.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

// Of the one drafter whose rows are kept along with the target's.
DraftRows Session::draft_rows() const {
  const DraftSide* side = sides_.empty() ? nullptr : sides_[0].get();
  return side && side->usable() ? side->sequence().rows() : DraftRows{};
}

// Further drafters with state of their own would have to read again what the target need not.
bool Session::takes_prefixes() const {
  for (const auto& side : followed())
    if (side != sides_[0] && side->usable() && !side->host_tokens()) return false;
  return true;
}

void Session::keep_prefix() {
  if (PrefixIndex* const index = model_->prefixes())
    index->keep(&place_, text_, kv_, kv_len_ / kernels::kPageSlots, draft_rows());
}

void Session::take_prefix() {
  PrefixIndex* const index = model_->prefixes();
  if (!index || !takes_prefixes() || !index->has_more(place_, text_)) return;
  const Prefix found = index->find(text_, draft_rows());
  const int64_t kept = found.place.pages * kernels::kPageSlots;
  int64_t length = kept, observed = 0;
  DraftSide* side = sides_.empty() || !sides_[0]->usable() ? nullptr : sides_[0].get();
  if (side) {
    observed = side->sequence().after(found, static_cast<int64_t>(text_.size()));
    // A drafter that reads features goes on where the target does.
    if (side->features()) length = std::min(length, observed - 1);
  }
  if (length <= kv_len_) return;
  kv_.share(found.target, length);
  if (side && observed > side->sequence().observed()) {
    side->sequence().restore(found, observed);
    side->forget_waiting();
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
