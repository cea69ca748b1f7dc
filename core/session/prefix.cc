// Prefix reuse: pages of this text are kept for others that begin alike, and it takes what they left.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

// Of every drafter that is kept up with the text, in their order.
std::span<const DraftRows> Session::draft_rows() {
  draft_rows_.clear();
  for (const auto& side : followed())  // one that has missed something begins anew behind it
    draft_rows_.push_back(side->usable() && side->whole() ? side->sequence().rows() : DraftRows{});
  return draft_rows_;
}

void Session::keep_prefix() {
  if (PrefixIndex* const index = from_image_ ? nullptr : model_->prefixes())
    index->keep(&place_, text_, kv_, kv_len_ / kernels::kPageSlots, draft_rows());
}

void Session::take_prefix() {
  PrefixIndex* const index = model_->prefixes();
  if (!index || !index->has_more(place_, text_)) return;
  const auto rows = draft_rows();
  const Prefix found = index->find(text_, rows);
  const auto size = static_cast<int64_t>(text_.size()), kept = found.place.pages * kernels::kPageSlots;
  const auto sides = followed();
  const auto after = [&](size_t i) { return sides[i]->sequence().after(found.drafts[i], found.place.pages, size); };
  int64_t length = kept;
  for (size_t i = 0; i < sides.size(); ++i)  // drafters that read features go on where the target does
    if (sides[i]->usable() && sides[i]->features()) length = std::min(length, after(i) - 1);
  if (length <= kv_len_) return;
  kv_.share(found.target, length);
  bool all_kept = true;
  for (size_t i = 0; i < sides.size(); ++i) {
    DraftSide& side = *sides[i];
    if (!side.usable()) continue;
    all_kept = all_kept && (!rows[i].kv || found.drafts[i].rows == kept);
    const int64_t observed = side.features() ? std::min(after(i), length + 1) : after(i);
    if (observed <= side.sequence().observed()) continue;
    side.sequence().restore(found.drafts[i], observed);
    side.forget_waiting();
  }
  stats_.reused_tokens += static_cast<uint64_t>(length - kv_len_);
  kv_len_ = length;
  place_ = all_kept ? found.place : PrefixPlace{};  // rows that a drafter misses are kept when they are there
}

// The text is about to lose its end, or to go: what it had stays for others.
void Session::leave_prefix() {
  keep_prefix();
  if (PrefixIndex* const index = model_->prefixes()) index->touch(place_);
  place_ = {};
}

}  // namespace aerie
