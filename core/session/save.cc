// A session to bytes and back. What cannot be kept between two rows (a drafter's state for the newest token) is not
// saved: that row is shown again.
#include <algorithm>
#include <cmath>

#include "core/drafter/measure_drafter.h"
#include "core/kv/kv_image.h"
#include "core/model/cost_key.h"
#include "core/session/session.h"
#include "core/session/snapshot.h"

namespace aerie {

namespace {

SnapshotKey snapshot_key(const Model& model) {
  const CostKey k = cost_key(model);
  const std::string device = model.device()->name();
  return {k.version, model.fast_prefill() ? device + ", prompts read fast" : device, k.isa, k.model, k.weights};
}

Status mismatch(const char* field, const std::string& saved, const std::string& here) {
  return error(Code::mismatch, std::string(field) + ": saved with " + saved + ", this is " + here);
}

Status check_key(const SnapshotKey& saved, const SnapshotKey& here) {
  const auto check = [&](const char* field, std::string SnapshotKey::*member) {
    return saved.*member == here.*member ? Status() : mismatch(field, saved.*member, here.*member);
  };
  AERIE_TRY(check("model", &SnapshotKey::model));
  AERIE_TRY(check("weights", &SnapshotKey::weights));
  AERIE_TRY(check("device", &SnapshotKey::device));
  AERIE_TRY(check("isa", &SnapshotKey::isa));
  return check("version of the build", &SnapshotKey::version);
}

std::string text_of(const KvLayers& l) {
  return std::to_string(l.layers) + " layers of " + std::to_string(l.kv_heads) + " heads of " + std::to_string(l.head_dim);
}
std::string text_of(const KvShape& s) { return text_of(s.most()) + (s.wide.layers > 0 ? " and " + text_of(s.wide) : ""); }

const SavedDrafter* saved_of(const Snapshot& s, Drafter& drafter) {
  const DrafterKey key = drafter_key(drafter);
  const auto found = std::find_if(s.drafters.begin(), s.drafters.end(), [&](const SavedDrafter& d) {
    return d.plugin == key.plugin && d.package == key.package && d.weights == key.weights;
  });
  return found == s.drafters.end() ? nullptr : &*found;
}

const char* name_of(kernels::DType t) {
  return t == kernels::DType::int8 ? "int8" : t == kernels::DType::bf16 ? "bf16" : "f32";
}

}  // namespace

// A drafter that reads features, of which none wait, is shown the newest row again: the target reads that once more, and recurrent layers do
// so from before it.
Session::SavedState Session::saved_state() const {
  const StateSequence& state = kv_.state();
  if (!state) return {-1, kv_len_};
  const bool again = has_read() && std::any_of(sides_.begin(), sides_.end(), [](const auto& side) { return side->usable() && side->features() && side->waiting() == 0; });
  if (again && state.before() >= 0) return {state.before(), state.position_before()};
  return {state.now(), kv_len_};
}

Snapshot Session::describe(std::vector<const DraftSide*>* saved, const SavedState& state) const {
  Snapshot s;
  s.key = snapshot_key(*model_);
  s.text = text_;
  s.generated_from = static_cast<int64_t>(generated_from_);
  switch (finish_) {
    case Finish::eos: s.finish = SavedFinish::eos; break;
    case Finish::stop_token: s.finish = SavedFinish::stop_token; break;
    case Finish::stop_string: s.finish = SavedFinish::stop_string; break;
    case Finish::none:
    case Finish::constraint:      // who restores it has another, or none
    case Finish::context: break;  // a longer context may be there to restore into
  }
  s.stop_bytes = finish_ == Finish::stop_string ? stop_bytes_ : 0;
  const int64_t read = state.positions;
  s.kv = {kv_.pool()->shape(), read};
  if (state.number >= 0) s.state_floats = kv_.state().pool()->floats();
  if (choosing_) {
    s.cycle_tokens = chooser_.rate().tokens;
    s.cycle_passes = chooser_.rate().ms;
  }
  for (const auto& side : sides_) {
    const DraftSequence& sequence = side->sequence();
    if (!side->usable()) continue;
    SavedDrafter& d = s.drafters.emplace_back();
    saved->push_back(side.get());
    DrafterKey key = drafter_key(side->drafter());
    d.plugin = std::move(key.plugin);
    d.package = std::move(key.package);
    d.weights = std::move(key.weights);
    // Who is not followed may be behind, or have more waiting than whoever restores it takes: it is shown the text again.
    const bool too_many = side->waiting() > kMaxSavedWaiting;
    d.waiting = side->next() == read + 1 && !too_many ? side->waiting() : 0;
    d.feature_cols = d.waiting > 0 ? side->store().cols : 0;
    // The newest row answers for the root, from memory of the plugin's own: unless its features wait, it is shown again.
    // And no row is ahead of the target's: those that it reads again, for another drafter, come after.
    const int64_t most = d.waiting > 0 ? sequence.observed() : std::min(static_cast<int64_t>(text_.size()) - 1, read + 1);
    // One that has missed something begins anew with what waits.
    DraftSequence::Seen seen = side->whole() && !too_many ? sequence.resumable(std::min(sequence.observed(), most)) : sequence.nothing();
    if (seen.end > most) seen = sequence.nothing();  // it began where the target has not been yet
    d.first = seen.begin;
    d.observed = seen.end;
    if (side->whole() && !too_many && d.observed != sequence.observed()) d.waiting = d.feature_cols = 0;  // they would not follow on
    if (const KvSequence* kv = sequence.kv()) d.kv = {kv->pool()->shape(), seen.rows()};
    d.away = side->away;
    d.memory = side->policy->memory();
    if (!std::all_of(d.memory.begin(), d.memory.end(), [](double v) { return std::isfinite(v); })) d.memory.clear();
    if (!d.memory.empty()) d.policy = draft_kind();
  }
  return s;
}

Status Session::save(std::span<uint8_t> out, size_t* size) {
  discard();
  // What depends on which drafters can be used is decided once: another thread's session may find one that cannot meanwhile.
  std::vector<const DraftSide*> sides;
  const SavedState state = saved_state();
  const Snapshot s = describe(&sides, state);
  if (s.stop_bytes > kMaxStopBytes)
    return error(Code::limit, "save: stop bytes: " + std::to_string(s.stop_bytes) + ", the most is " + std::to_string(kMaxStopBytes));
  *size = encoded_size(s);
  if (out.empty()) return {};
  if (out.size() < *size)
    return error(Code::limit, "save: the session takes " + std::to_string(*size) + " bytes, there is room for " +
                                  std::to_string(out.size()));
  out = out.first(*size);
  const SnapshotRooms rooms = encode_snapshot(s, out);
  std::vector<kernels::Op> ops;
  download_kv(kv_, s.kv.positions, rooms.kv, &ops);
  if (s.state_floats > 0) download_state(*kv_.state().pool(), state.number, rooms.state, &ops);
  for (size_t i = 0; i < sides.size(); ++i) download_drafter(*sides[i], s.drafters[i], rooms.drafters[i], &ops);
  AERIE_TRY(transfer(*model_->device(), ops).at("save"));
  seal_snapshot(out);
  return {};
}

void Session::download_drafter(const DraftSide& side, const SavedDrafter& d, const SnapshotRooms::Draft& room,
                               std::vector<kernels::Op>* ops) const {
  if (d.kv.positions > 0) download_kv(*side.sequence().kv(), d.kv.positions, room.kv, ops);
  const int64_t row = d.feature_cols * int64_t{sizeof(float)};
  for (int64_t i = 0; i < d.waiting; ++i)
    ops->push_back(kernels::Download{room.features + i * row,
                                     kernels::rows(side.store(), side.pending()[static_cast<size_t>(i)], 1).data, row});
}

Result<std::unique_ptr<Session>> Session::restore(std::shared_ptr<Model> model, SessionOptions options,
                                                  std::span<const uint8_t> bytes) {
  Result<Snapshot> saved = decode_snapshot(bytes);
  if (!saved.ok()) return saved.status().at("saved session");
  if (const Status s = check_key(saved->key, snapshot_key(*model)); !s.ok()) return s.at("saved session");
  AERIE_ASSIGN(auto session, make(std::move(model), std::move(options)));
  if (const Status s = session->take_over(*saved); !s.ok()) return s.at("saved session");
  return session;
}

Status Session::take_over(const Snapshot& s) {
  const KvShape here = kv_.pool()->shape();
  if (s.kv.shape.dtype != here.dtype) return mismatch("kv dtype", name_of(s.kv.shape.dtype), name_of(here.dtype));
  if (!(s.kv.shape == here)) return error(Code::bad_format, "kv: its shape is not the model's: " + text_of(s.kv.shape) + " instead of " + text_of(here));
  if (s.text.size() > static_cast<size_t>(max_context_))
    return error(Code::limit, "tokens: " + std::to_string(s.text.size()) + ", the context is " + std::to_string(max_context_));
  for (const int32_t t : s.text)
    if (t < 0 || t >= model_->config().vocab_size)
      return error(Code::bad_format, "token: " + std::to_string(t) + " is not in the vocabulary of " +
                                         std::to_string(model_->config().vocab_size));
  const int64_t state = kv_.state() && s.kv.positions > 0 ? kv_.state().pool()->floats() : 0;
  if (s.state_floats != state)
    return error(Code::bad_format, "state: " + std::to_string(s.state_floats) + " numbers, the model has " + std::to_string(state));
  std::vector<kernels::Op> ops;
  if (s.kv.positions > 0) AERIE_TRY(kv_.reserve(s.kv.positions));
  upload_kv(kv_, s.kv.positions, s.kv.data, &ops);
  if (state > 0) upload_state(*kv_.state().pool(), kv_.state().next(), s.state, &ops);
  for (const auto& side : sides_) {
    if (!side->usable()) continue;
    const Status begun = side->sequence().begin();
    if (begun.code() == Code::out_of_memory) return begun;
    if (begun.ok()) resume_drafter(*side, s, &ops);
    else drafter_failed(*side, begun, true);
  }
  AERIE_TRY(transfer(*model_->device(), ops));
  text_.assign(s.text.begin(), s.text.end());
  from_image_ = true;
  kv_len_ = s.kv.positions;
  if (state > 0) kv_.state().advance(kv_len_);
  generated_from_ = static_cast<size_t>(s.generated_from);
  take_over_end(s);
  return take_over_memory(s);
}

// What policies go on from, where the same kind of policy drafts for the same kind of draft.
Status Session::take_over_memory(const Snapshot& s) {
  for (const auto& side : sides_) {
    const SavedDrafter* d = saved_of(s, side->drafter());
    if (!d || d->policy != draft_kind()) continue;
    if (!side->policy->recall(d->memory)) return error(Code::bad_format, "policy memory: not of " + d->policy);
  }
  if (!choosing_ || !(s.cycle_passes > 0)) return {};
  chooser_.recall({s.cycle_tokens, s.cycle_passes});
  for (size_t i = 0; i < sides_.size(); ++i)  // as its last cycle left them
    choice_options_[i] = {sides_[i]->policy.get(), target_cost_.known() && sides_[i]->usable(), sides_[i]->host_tokens() ? &sides_[i]->peek : nullptr};
  return {};
}

// A text that had ended has ended here too, if it would have under these options.
void Session::take_over_end(const Snapshot& s) {
  if (text_.empty()) return;
  const auto last_of = [&](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), text_.back()) != ids.end();
  };
  if (s.finish == SavedFinish::eos && !options_.ignore_eos && last_of(model_->config().eos_ids)) finish_ = Finish::eos;
  if (s.finish == SavedFinish::stop_token && last_of(options_.stop_tokens)) finish_ = Finish::stop_token;
  if (s.finish == SavedFinish::stop_string) {
    finish_ = Finish::stop_string;
    stop_bytes_ = s.stop_bytes;
  }
}

// One that was not saved, or whose state is not in keys and values, is shown the whole text.
void Session::resume_drafter(DraftSide& side, const Snapshot& s, std::vector<kernels::Op>* ops) {
  const SavedDrafter* const found = saved_of(s, side.drafter());
  if (!found) return;
  const SavedDrafter& d = *found;
  const KvSequence* kv = side.sequence().kv();
  const bool fits = kv ? d.kv.shape == kv->pool()->shape() && d.kv.positions == d.observed - d.first
                       : d.kv.positions == 0;
  if (!fits) return;
  if (d.waiting > 0 && (!side.features() || d.feature_cols != side.store().cols)) return;
  side.away = d.away;
  if (!side.resume({d.first, d.observed}, d.waiting, s.kv.positions + 1)) return;
  side.from_image = kv != nullptr || d.waiting > 0;
  if (kv) upload_kv(*kv, d.kv.positions, d.kv.data, ops);
  if (d.waiting > 0)
    ops->push_back(kernels::Upload{side.tap(static_cast<int32_t>(d.waiting)).data, d.features, d.feature_bytes()});
}

}  // namespace aerie
