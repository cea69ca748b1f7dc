// Batch handle. A session and its batch know each other; both links change only while both are held.
#include <chrono>
#include <thread>

#include "capi/src/aerie/handles.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

// A thread that steps in a loop leaves hardly a moment to who waits to release a member, so it lets that one go first: where
// other programs have the CPUs by leaving its own, for there a yield takes no time. Not for ever: this thread may be the one
// that the other waits for.
void let_leave(const std::atomic<int32_t>& leaving) {
  const auto somebody = [&] { return leaving.load(std::memory_order_relaxed) > 0; };
  for (int turns = 0; turns < 256 && somebody(); ++turns) std::this_thread::yield();
  for (int turns = 0; turns < 4 && somebody(); ++turns) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

template <class F>
int32_t on_batch(aerie_batch* b, aerie_error* err, F&& f) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(b, "batch"));
    const HoldFlag hold(b->busy);
    AERIE_TRY(hold.check("batch"));
    return f(*b->batch);
  });
}

}  // namespace

extern "C" {

int32_t aerie_batch_create(aerie_model* model, const aerie_batch_options* options, aerie_batch** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(out, "out"));
    aerie_batch_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_batch_options"));
    auto handle = std::make_unique<aerie_batch>();
    AERIE_ASSIGN(handle->batch, Batch::create(model->model, {o.max_rows}));
    handle->runtime = model->runtime;
    *out = handle.release();
    return {};
  });
}

void aerie_batch_release(aerie_batch* batch) {
  if (!batch) return;
  while (batch->busy.exchange(true, std::memory_order_acquire)) {
    batch->batch->request_cancel();
    std::this_thread::yield();
  }
  for (aerie_session* s : batch->sessions) {
    // Whoever has it finds the batch held and lets go.
    while (s->busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    (void)batch->batch->remove(*s->session);
    s->batch = nullptr;
    s->busy.store(false, std::memory_order_release);
  }
  delete batch;
}

int32_t aerie_batch_add(aerie_batch* batch, aerie_session* session, aerie_error* err) {
  return on_batch(batch, err, [&](Batch& b) -> Status {
    AERIE_TRY(require(session, "session"));
    const HoldFlag hold(session->busy);  // whoever holds the batch needs the session's own only
    AERIE_TRY(hold.check("session"));
    batch->sessions.reserve(batch->sessions.size() + 1);
    AERIE_TRY(b.add(*session->session));
    batch->sessions.push_back(session);
    session->batch = batch;
    return {};
  });
}

int32_t aerie_batch_remove(aerie_batch* batch, aerie_session* session, aerie_error* err) {
  return on_batch(batch, err, [&](Batch& b) -> Status {
    AERIE_TRY(require(session, "session"));
    const HoldFlag hold(session->busy);  // whoever holds the batch needs the session's own only
    AERIE_TRY(hold.check("session"));
    AERIE_TRY(b.remove(*session->session));
    std::erase(batch->sessions, session);
    session->batch = nullptr;
    return {};
  });
}

void aerie_batch_cancel(aerie_batch* batch) {
  if (batch) batch->batch->request_cancel();
}

void aerie_batch_clear_cancel(aerie_batch* batch) {
  if (batch) batch->batch->clear_cancel();
}

int32_t aerie_batch_step(aerie_batch* batch, const aerie_step_options* options, aerie_batch_result* out,
                         aerie_error* err) {
  std::shared_ptr<const std::atomic<int32_t>> leaving;  // the batch itself may be gone by then
  const int32_t code = on_batch(batch, err, [&](Batch& b) -> Status {
    leaving = batch->leaving;
    if (out) AERIE_TRY(check_result(out, "aerie_batch_result"));
    int32_t max_tokens = 0;
    std::chrono::microseconds budget{};
    AERIE_TRY(read_step(options, &max_tokens, &budget));
    {
      const SteppedBatch stepped(batch);
      AERIE_TRY(b.step(max_tokens, budget));
    }
    if (!out) return {};
    aerie_batch_result result{};
    result.n_sessions = static_cast<int32_t>(b.sessions().size());
    for (const Session* s : b.sessions()) {
      const StepResult r = s->result();
      result.n_tokens += static_cast<int32_t>(r.tokens.size());
      result.n_emitting += !r.tokens.empty();
      result.n_ended += s->status().ok() && r.state == StepState::done;
      result.n_failed += !s->status().ok();
    }
    write_result(result, out);
    return {};
  });
  if (leaving) let_leave(*leaving);
  return code;
}

}  // extern "C"
