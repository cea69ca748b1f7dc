#include "core/session/batch.h"

#include <algorithm>

namespace aerie {

Result<std::unique_ptr<Batch>> Batch::create(std::shared_ptr<Model> model, const BatchOptions& options) {
  if (options.max_rows < 0) return error(Code::invalid_argument, "max_rows: " + std::to_string(options.max_rows));
  std::unique_ptr<Batch> b(new Batch(std::move(model)));
  AERIE_ASSIGN(b->stepper_, Stepper::create(b->model_, options.max_rows));
  return b;
}

Batch::~Batch() {
  if (stepper_) stepper_->drop_pass();  // nobody waits for it
  while (!sessions_.empty()) forget(*sessions_.back());
}

Status Batch::add(Session& session) {
  if (session.model_ != model_) return error(Code::mismatch, "batch: the session is of another model");
  if (session.batch_) return error(Code::busy, session.batch_ == this ? "batch: the session is in it already"
                                                                      : "batch: the session is in another one");
  int64_t longest = session.max_context_;
  for (const Session* s : sessions_) longest = std::max(longest, s->max_context_);
  AERIE_TRY(stepper_->reserve(sessions_.size() + 1, longest));
  sessions_.push_back(&session);
  session.discard();
  session.batch_ = this;
  return {};
}

Status Batch::remove(Session& session) {
  if (session.batch_ != this) return error(Code::not_found, "batch: the session is not in it");
  forget(session);
  return {};
}

void Batch::forget(Session& session) noexcept {
  session.discard();
  session.batch_ = nullptr;
  std::erase(sessions_, &session);
}

Status Batch::step(int32_t max_tokens, std::chrono::microseconds budget) {
  if (max_tokens < 0 || budget.count() < 0) return error(Code::invalid_argument, "step: negative limit");
  if (!stepper_->step(sessions_, max_tokens, budget, &cancel_)) return error(Code::cancelled, "step: cancelled");
  return {};
}

}  // namespace aerie
