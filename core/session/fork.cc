// Fork: a second session where this one stands. Keys and values are shared until one of them writes.
#include "core/session/session.h"

namespace aerie {

Result<std::unique_ptr<Session>> Session::fork(uint32_t stream) {
  discard();
  if (!streams_) streams_ = std::make_shared<ForkStreams>(options_.sampling.stream);
  SessionOptions options = options_;
  options.sampling.stream = stream != 0 ? stream : streams_->next();
  std::unique_ptr<Session> f(new Session(model_, std::move(options)));
  AERIE_TRY(f->start());
  f->streams_ = streams_;
  f->text_.assign(text_.begin(), text_.end());
  f->generated_from_ = generated_from_;
  f->stops_ = stops_;
  f->finish_ = finish_;
  f->stop_bytes_ = stop_bytes_;
  f->kv_.share(kv_, kv_len_);
  f->kv_len_ = kv_len_;
  f->place_ = place_;
  AERIE_TRY(f->take_drafts_of(*this));
  return f;
}

// What the drafter has seen, what waits for it, and what the policy has learned about it and about costs.
Status Session::take_drafts_of(const Session& other) {
  policy_ = other.policy_->clone();
  target_cost_ = other.target_cost_;
  draft_cost_ = other.draft_cost_;
  draft_guess_ = other.draft_guess_;
  draft_root_ms_ = other.draft_root_ms_;
  if (!draft_ || !drafter_usable()) return {};
  if (Status s = draft_->take_over(*other.draft_, static_cast<int64_t>(text_.size())); !s.ok()) {
    drafter_failed(s, true);
    return {};
  }
  const int64_t waiting = other.pending_count();
  if (waiting == 0) return {};
  AERIE_ASSIGN(auto plan, Plan::create(model_->device(), size_t{4} * kMaxTreeRows));
  AERIE_ASSIGN(auto queue, model_->device()->make_queue());
  const int32_t* rows = plan->stage(std::span<const int32_t>(other.pending_));
  plan->add(kernels::CopyRows{other.feature_store_, rows, feature_store_, rows, waiting});
  AERIE_TRY(plan->submit(*queue));
  AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
  if (state != kernels::RunState::done) return error(Code::device, "fork: the copy of features did not finish");
  pending_.assign(other.pending_.begin(), other.pending_.end());
  pending_first_ = other.pending_first_;
  return {};
}

}  // namespace aerie
