#include "core/session/stepper.h"

#include <algorithm>
#include <exception>
#include <new>

#include "core/model/slices.h"
#include "core/session/session.h"

namespace aerie {

namespace {
// Added to now: the longest that one may ask for would be past the clock's end, and so over at once.
constexpr std::chrono::microseconds kLongestBudget = std::chrono::hours(24 * 365);

uint64_t nanoseconds(kernels::Clock::duration d) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
}

}  // namespace

Result<std::unique_ptr<Stepper>> Stepper::create(std::shared_ptr<Model> model, int32_t max_rows) {
  std::unique_ptr<Stepper> s(new Stepper(std::move(model), max_rows));
  AERIE_ASSIGN(s->queue_, s->model_->device()->make_queue());
  return s;
}

Stepper::~Stepper() {
  if (queue_) queue_->abandon();
}

Status Stepper::reserve(size_t sessions, int64_t longest_context) {
  const size_t bytes = sessions * (kIndexBytes + static_cast<size_t>(longest_context) / 4);
  if (bytes > index_bytes_) {
    const size_t size = std::max(bytes, index_bytes_ * 2);
    AERIE_ASSIGN(auto plan, Plan::create(model_->device(), size));
    if (!flight_.empty()) settle();
    if (!flight_.empty() && !settled_) settled_ = std::move(plan_);
    plan_ = std::move(plan);
    index_bytes_ = size;
  }
  flight_.reserve(sessions);
  timed_.reserve(sessions);
  return {};
}

bool Stepper::step(const std::vector<Session*>& sessions, int32_t max_tokens, std::chrono::microseconds budget,
                   std::atomic<bool>* cancel) {
  const auto begin = kernels::Clock::now();
  bool finished = true;
  for (Session* s : sessions) s->emitted_.clear();  // the last step's, should this one not begin
  try {
    for (Session* s : sessions) s->begin_step(max_tokens);
    finished = run(sessions, budget, cancel);
  } catch (const std::bad_alloc&) {
    all_failed(sessions, out_of_memory());
  } catch (const std::exception& e) {
    all_failed(sessions, a_hook_threw("step", e.what()));
  } catch (...) {
    all_failed(sessions, a_hook_threw("step", "no std::exception"));
  }
  const uint64_t all = nanoseconds(kernels::Clock::now() - begin);
  for (Session* s : sessions) s->stats_.other_ns += all - std::min(all, s->in_passes_);
  return finished;
}

bool Stepper::run(const std::vector<Session*>& sessions, std::chrono::microseconds budget, std::atomic<bool>* cancel) {
  using kernels::Clock;
  const auto deadline = budget.count() > 0 ? Clock::now() + std::min(budget, kLongestBudget) : kernels::kNoDeadline;
  queue_->set_slack(budget.count() > 0 ? Clock::duration() : kSliceSlack);
  const auto any = [&](auto&& f) { return std::any_of(sessions.begin(), sessions.end(), f); };
  while (any([](const Session* s) { return s->active(); }) && !any([](const Session* s) { return s->said(); })) {
    if (cancel && cancel->exchange(false, std::memory_order_relaxed)) return false;
    bool cancelled = false;
    for (Session* s : sessions) cancelled = s->take_cancel() || cancelled;
    if (cancelled) break;
    const Clock::time_point start = Clock::now();
    if (flight_.empty()) record_next(sessions);
    uint64_t proposing = 0;  // no part of the pass that is recorded behind it
    for (Session* s : sessions) proposing += s->take_proposing();
    for (Session* s : flight_) s->count_proposing(proposing);
    if (flight_.empty()) continue;  // they have ended or failed
    timed_ = flight_;
    Result<kernels::RunState> state = queue_->advance(std::min(deadline, start + kSlice));
    const Clock::time_point waited = Clock::now();
    const Clock::time_point began = start + std::chrono::nanoseconds(proposing);
    pass_ms_ += std::chrono::duration<double, std::milli>(waited - began).count();
    for (Session* s : timed_) s->count_time(nanoseconds(waited - began));
    if (state.ok() && *state == kernels::RunState::idle) state = error(Code::device, "step: the pass was lost");
    if (!state.ok()) all_failed(timed_, state.status());
    else if (*state == kernels::RunState::done) pass_ended();
    const Clock::time_point now = Clock::now();
    for (Session* s : timed_) s->count_time(nanoseconds(now - waited));
    if (now >= deadline) break;
  }
  return true;
}

void Stepper::record_next(const std::vector<Session*>& sessions) {
  const auto verifying = std::count_if(sessions.begin(), sessions.end(), [](const Session* s) { return s->active() && s->has_read(); });
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session* const s = sessions[i];
    while (s->active() && s->phase_ == Session::Phase::idle) {
      s->by_itself_ = sessions.size() == 1;
      s->beside_ = std::max(1, static_cast<int32_t>(verifying));
      const Status status = s->begin(max_rows_ <= 0);
      if (status.ok()) break;
      if (status.code() == Code::limit && s->ask_for_room()) {
        if (s->take_cancel()) break;  // the way out of a host that promises room and gives none
        continue;
      }
      s->give_up(status);
    }
  }
  record_draft(sessions);
  if (flight_.empty()) record_target(sessions);
}

void Stepper::record_draft(const std::vector<Session*>& sessions) {
  for (Session* s : sessions)
    if (s->active() && s->phase_ == Session::Phase::draft) flight_.push_back(s);
  decide_levels(sessions);
  drafting_ = true;
  while (!flight_.empty()) {
    if (try_draft()) {
      Status status = plan_->submit(*queue_);
      if (status.ok()) return submitted();
      if (flight_.size() > 1) {  // whose fault it is shows when they go one by one
        flight_.erase(flight_.begin() + 1, flight_.end());
        continue;
      }
      failed_ = {{flight_[0]}, std::move(status), nullptr, true};
    }
    for (Session* s : failed_.sessions) {
      std::erase(flight_, s);
      const Status status = s->draft_failed(failed_.why, !failed_.observed, s == failed_.sessions[0]);
      if (!status.ok()) s->give_up(status);
    }
  }
}

bool Stepper::try_draft() {
  plan_->clear();
  clock_.begin(*plan_, levels_on_device());
  calls_.clear();
  if (!draft_on_device()) return false;
  for (Session* s : flight_) {
    if (s->device_.on()) {
      s->device_.download_all(*plan_);
      continue;
    }
    if (Status status = s->add_draft(*plan_, &calls_); !status.ok()) {
      failed_ = {{s}, std::move(status), nullptr, false};
      return false;
    }
  }
  if (!record_calls()) return false;
  clock_.end(*plan_);
  return true;
}

bool Stepper::record_calls() {
  for (const auto& call : calls_.all())
    if (!call->request.on_device && !record_call(*call)) return false;
  return true;
}

bool Stepper::record_call(DraftCall& call) {
  failed_.why = call.record(*plan_, &failed_.observed);
  if (failed_.why.ok()) return true;
  failed_.sessions = call.sessions;
  failed_.drafter = call.request.drafter;
  return false;
}

// Rows that verify come first: only they have logits.
void Stepper::record_target(const std::vector<Session*>& sessions) {
  for (const auto phase : {Session::Phase::verify, Session::Phase::prefill})
    for (Session* s : sessions)
      if (s->active() && s->phase_ == phase) flight_.push_back(s);
  drafting_ = false;
  decide_rows();
  if (flight_.empty()) return;
  share_rows();
  while (!try_target()) {
    for (Session* s : failed_.sessions) s->pass_without(*failed_.drafter, failed_.why, s == failed_.sessions[0]);
  }
  if (const Status status = plan_->submit(*queue_); !status.ok()) return all_failed(flight_, status);
  submitted();
}

// False: a drafter would not record its part.
bool Stepper::try_target() {
  plan_->clear();
  rows_.clear();
  walks_.clear();
  tapped_.clear();
  clock_.begin(*plan_, levels_on_device());
  const auto verifies = [](const Session* s) { return s->phase_ == Session::Phase::verify; };
  const auto show = [&](bool verifying) {
    calls_.clear();
    for (Session* s : flight_) {
      if (verifies(s) != verifying) continue;
      Drafter* whose = nullptr;
      if (Status status = verifying ? s->add_missed(*plan_, &calls_, &whose) : s->add_read(*plan_, &calls_, &whose); !status.ok()) {
        failed_ = {{s}, std::move(status), whose, false};
        return false;
      }
    }
    return record_calls();
  };
  if (!show(true)) return false;  // before this pass overwrites the features
  calls_.clear();
  if (!draft_on_device()) return false;
  for (Session* s : flight_) s->stage_rows(*plan_, &rows_, &walks_, &tapped_);
  Rows rows = rows_.stage(*plan_);
  rows.fast = model_->fast_prefill() && walks_.rows() == 0 && rows.n > kLeastFastRows;
  const StagedWalks& walks = walks_.stage(*plan_);
  for (Session* s : flight_)
    if (verifies(s)) s->select_on_device(*plan_, rows_, rows, walks);
  const kernels::Tensor hidden = model_->forward(*plan_, rows, tapped_, rows_.any_branches() ? &kept_ : nullptr, walks_.rows());
  if (!show(false)) return false;
  if (walks_.rows() == 0) return true;
  const kernels::Tensor logits = model_->logits(*plan_, kernels::rows(hidden, 0, walks_.rows()));
  for (Session* s : flight_)
    if (verifies(s)) s->record_download(*plan_, logits);
  walks_.record(*plan_, logits, model_->config().vocab_used, model_->pool()->caches(), rows.slot);
  clock_.end(*plan_);
  return true;
}

void Stepper::submitted() {
  pass_ms_ = 0;
  for (Session* s : flight_) s->in_flight(this);
}

void Stepper::pass_ended() {
  int32_t rows = 0;
  for (const Session* s : flight_) rows += s->pass_rows();
  clock_.stop(pass_ms_);
  count_device_drafts();
  const double behind = !drafting_ && rows_.any_branches() ? states_ms_ : 0;  // as long as the last time
  for (Session* s : flight_) s->pass_done(clock_.rest() + behind, rows);
  copy_src_.clear();
  copy_dst_.clear();
  if (drafting_)
    for (const auto& call : calls_.all())
      if (!call->request.on_device) call->propose.deliver();
  for (Session* s : flight_) {
    const Status status = take_results(*s);
    s->landed();
    if (!status.ok()) s->give_up(status);
  }
  if (!drafting_) commit();
  flight_over();
}

void Stepper::flight_over() noexcept {
  flight_.clear();
  settled_.reset();
}

// What one session's hooks throw, or its want of memory, is not the others' failure.
Status Stepper::take_results(Session& session) noexcept {
  const size_t copies = copy_dst_.size();
  Status failed;
  try {
    return session.finish_pass(walks_, &rows_, &copy_src_, &copy_dst_);
  } catch (const std::bad_alloc&) {
    failed = out_of_memory();
  } catch (const std::exception& e) {
    failed = a_hook_threw("step", e.what());
  } catch (...) {
    failed = a_hook_threw("step", "no std::exception");
  }
  copy_src_.resize(copies);
  copy_dst_.resize(copies);
  return failed;
}

// What the sampled rule accepted, in one go, as walks on the device have kept theirs; and the states behind what was accepted. The tokens are
// decided; this is not worth giving the frame back for.
void Stepper::commit() {
  Status status;
  if (!copy_src_.empty() || rows_.keeps_paths()) {
    const auto begin = kernels::Clock::now();
    plan_->clear_ops();
    if (!copy_src_.empty()) {
      const int32_t* src = plan_->stage(std::span<const int32_t>(copy_src_));
      const int32_t* dst = plan_->stage(std::span<const int32_t>(copy_dst_));
      for (const kernels::KvCache& cache : model_->pool()->caches())
        plan_->add(kernels::KvCopy{cache, src, dst, static_cast<int32_t>(copy_src_.size())});
    }
    if (rows_.keeps_paths()) model_->record_states(*plan_, rows_.stage_states(*plan_), kept_);
    status = plan_->submit(*queue_);
    if (status.ok()) {
      const auto state = queue_->advance(kernels::kNoDeadline);
      if (!state.ok()) status = state.status();
      else if (*state != kernels::RunState::done) status = error(Code::device, "commit did not finish");
    }
    if (rows_.keeps_paths()) states_ms_ = std::chrono::duration<double, std::milli>(kernels::Clock::now() - begin).count();
  }
  for (Session* s : flight_) {
    if (s->phase_ != Session::Phase::verify) continue;
    if (status.ok()) s->commit();
    else s->give_up(status);
  }
}

void Stepper::withdraw(Session& session) noexcept {
  std::erase(flight_, &session);
  session.landed();
  for (const auto& side : session.sides_)
    for (const auto& call : calls_.all()) call->propose.forget(&side->sequence().candidates());
  if (flight_.empty()) {
    queue_->abandon();
    flight_over();
  } else {
    settle();  // the plan reads and writes what is the session's until it has run
  }
}

// Run the pass in flight to its end; the next step takes the results. For its sessions nothing is lost.
void Stepper::settle() noexcept {
  try {
    if (const auto state = queue_->advance(kernels::kNoDeadline); state.ok() && *state == kernels::RunState::done) return;
  } catch (...) {  // as if it had failed
  }
  drop_pass();
}

void Stepper::drop_pass() noexcept {
  queue_->abandon();
  for (Session* s : flight_) s->landed();
  for (Session* s : flight_) s->discard();
  flight_over();
}

void Stepper::all_failed(const std::vector<Session*>& sessions, const Status& why) noexcept {
  queue_->abandon();
  for (Session* s : flight_) s->landed();
  for (Session* s : sessions)
    if (s->in_doubt()) s->give_up(why);
  for (Session* s : flight_) s->discard();
  flight_over();
}

}  // namespace aerie
