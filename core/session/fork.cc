// Fork: a second session where this one stands. Keys and values are shared until one of them writes.
#include "core/session/session.h"

namespace aerie {

Result<std::unique_ptr<Session>> Session::fork(uint32_t stream) {
  discard();
  if (!streams_) streams_ = std::make_shared<ForkStreams>(options_.sampling.stream);
  std::unique_ptr<Session> f(new Session(model_, options_));
  AERIE_TRY(f->start());
  f->streams_ = streams_;
  f->text_.assign(text_.begin(), text_.end());
  f->generated_from_ = generated_from_;
  f->stops_ = stops_;
  f->stops_stale_ = stops_stale_;
  f->finish_ = finish_;
  f->stop_bytes_ = stop_bytes_;
  AERIE_TRY(f->rules_.take_over(rules_));
  f->kv_.share(kv_, kv_len_);
  f->kv_len_ = kv_len_;
  f->place_ = place_;
  f->from_image_ = from_image_;
  AERIE_TRY(f->take_drafts_of(*this));
  f->options_.sampling.stream = stream != 0 ? stream : streams_->next();  // a fork that fails takes none
  return f;
}

// What drafters have seen, what waits for them, and what policies have learned about them and about costs.
Status Session::take_drafts_of(const Session& other) {
  if (other.no_drafter_policy_) no_drafter_policy_ = other.no_drafter_policy_->clone();
  target_cost_ = other.target_cost_;
  chooser_ = other.chooser_;
  for (size_t i = 0; i < sides_.size(); ++i) {
    const Status s = sides_[i]->take_over(*other.sides_[i], static_cast<int64_t>(text_.size()));
    if (s.ok()) continue;
    if (s.code() == Code::device || s.code() == Code::out_of_memory) return s;
    drafter_failed(*sides_[i], s, true);
  }
  draft_with(sides_.empty() ? nullptr : sides_[0].get());
  return {};
}

}  // namespace aerie
