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

bool Session::ask_for_room() {
  asks_for_room_ = true;
  const struct Asked {
    bool& asks;
    ~Asked() { asks = false; }
  } asked{asks_for_room_};
  return model_->make_room(wanted_);
}

int32_t prefill_rows(const Model& model, int64_t positions, bool alone) {
  const Departures& d = model.config().departures;
  if (model.fast_prefill()) return kFastPrefillRows;
  if (!alone || d.experts == 0) return kPrefillRows;
  const int64_t spans = positions / kernels::kSpanSlots + 1, rows = int64_t{kPrefillRows} * (d.experts / d.experts_used);
  return static_cast<int32_t>(std::max<int64_t>(kPrefillRows, std::min<int64_t>(rows, kMostPrefillRows) / spans));
}

// Where one comes back to, to have the text behind a prompt go on otherwise. -1: no state is kept. A drafter that reads features is shown the
// newest row once more.
int64_t Session::state_kept_at() const {
  if (!kv_.state()) return -1;
  const bool again = std::any_of(sides_.begin(), sides_.end(), [](const auto& side) { return side->usable() && side->features(); });
  return static_cast<int64_t>(generated_from_) - (again ? 2 : 1);
}

Status Session::start_prefill() {
  const auto size = static_cast<int64_t>(text_.size());
  prefill_end_ = std::min(kv_len_ + prefill_rows(*model_, size, by_itself_), size - 1);
  if (const int64_t end = state_kept_at(); kv_len_ < end && end < prefill_end_) prefill_end_ = end;
  AERIE_TRY(reserve(size));
  for (const auto& side : sides_) side->shows = false;
  for (const auto& side : followed()) {
    if (!side->usable()) continue;
    const Status s = side->features() ? side->wake(size) : Status();
    if (!s.ok()) drafter_failed(*side, s, true);
    side->shows = s.ok();
  }
  phase_ = Phase::prefill;
  recorded_ = false;
  return {};
}

void Session::stage_prefill(Plan& plan, RowsBuilder* rows, std::vector<TappedRows>* tapped) {
  for (int64_t i = kv_len_; i < prefill_end_; ++i) rows->plain(text_[static_cast<size_t>(i)], i);
  for (const auto& side : sides_) {
    side->read_features = {};
    if (!side->shows || !side->features() || side->next() > prefill_end_) continue;
    side->read_features = plan.scratch(prefill_end_ - kv_len_, side->tap(1).cols);
    tapped->push_back({side->drafter().taps(), first_row_, side->read_features});
  }
}

Status Session::add_read(Plan& plan, DraftCalls* calls, Drafter** failed) {
  const int64_t end = prefill_end_ + 1;
  for (const auto& side : sides_) {
    side->pass_begins();
    if (!side->shows || side->next() >= end) continue;  // the pass reads again, for another one, what it has
    *failed = &side->drafter();
    AERIE_TRY(plan.status());  // no memory for what it is to read
    bool first = true;  // what goes on after another call has one of its own, behind it
    const auto call = [&](int64_t rows) {
      DraftCall& joined = first ? calls->join({&side->drafter()}, this, rows, 0) : calls->add({&side->drafter()}, this);
      first = false;
      return &joined.observe;
    };
    AERIE_TRY(side->add_observe(plan, text_, end, side->read_features, kv_len_ + 1, call));
  }
  return {};
}

void Session::finish_prefill() {
  stats_.prefill_tokens += static_cast<uint64_t>(prefill_end_ - kv_len_);
  kv_len_ = prefill_end_;
  kv_.state().advance(kv_len_);
  if (kv_len_ == state_kept_at()) kv_.state().keep();
  for (const auto& side : sides_) side->pass_ended();
  phase_ = Phase::idle;
}

}  // namespace aerie
