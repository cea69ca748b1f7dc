// What stands behind the handles of aerie.h. Every handle holds what it stands on, so the host may
// release in any order.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aerie/aerie.h"
#include "capi/src/guard.h"
#include "core/drafter/drafter.h"
#include "core/drafter/plugin_library.h"
#include "core/session/batch.h"
#include "kernels/device.h"

namespace aerie::capi {

struct Runtime {
  std::shared_ptr<kernels::Device> device;
  LogSink log;
  std::string description;
  std::mutex mutex;  // plugins
  std::deque<PluginKind> plugins;  // addresses stay: aerie_plugin_info borrows from them

  // The loaded drafter kind with this id, or the first with these flags when id is empty.
  Result<PluginKind> find_plugin(const std::string& id, uint32_t flags);
};

}  // namespace aerie::capi

struct aerie_runtime {
  std::shared_ptr<aerie::capi::Runtime> runtime;
};

struct aerie_model {
  std::atomic<int32_t> references{1};
  std::shared_ptr<aerie::capi::Runtime> runtime;
  std::shared_ptr<aerie::Model> model;
};

struct aerie_drafter_handle {
  std::shared_ptr<aerie::capi::Runtime> runtime;
  std::shared_ptr<aerie::Drafter> drafter;
};

struct aerie_session {
  std::shared_ptr<aerie::capi::Runtime> runtime;
  std::unique_ptr<aerie::Session> session;
  std::vector<aerie_token> tokens;  // of the last step
  std::atomic<bool> busy{false};
  aerie_batch* batch = nullptr;  // read and written by who holds `busy`
};

struct aerie_batch {
  std::shared_ptr<aerie::capi::Runtime> runtime;
  std::unique_ptr<aerie::Batch> batch;
  std::vector<aerie_session*> sessions;
  std::atomic<bool> busy{false};
  // Threads that wait to release a session of it. Its own, for who waits may see the batch released.
  std::shared_ptr<std::atomic<int32_t>> leaving = std::make_shared<std::atomic<int32_t>>(0);
};

namespace aerie::capi {

// Held while a call works on a handle; a second thread gets AERIE_E_BUSY instead of a data race. A holder never waits
// for another flag, so none waits for ever.
class HoldFlag {
 public:
  explicit HoldFlag(std::atomic<bool>& busy) : busy_(busy.exchange(true, std::memory_order_acquire) ? nullptr : &busy) {}
  ~HoldFlag() { give_back(); }
  HoldFlag(const HoldFlag&) = delete;
  HoldFlag& operator=(const HoldFlag&) = delete;
  explicit operator bool() const { return busy_ != nullptr; }
  void give_back() {
    if (busy_) busy_->store(false, std::memory_order_release);
    busy_ = nullptr;
  }
  Status check(const char* what) const {
    if (busy_) return {};
    return error(Code::busy, std::string("the ") + what + " is in use by another thread, or by the call that a hook was asked from");
  }

 private:
  std::atomic<bool>* busy_;
};

// The batch that this thread steps, and the same while it asks its host for KV memory: then the host may rewind and
// release sessions of that batch, though it is held.
inline thread_local aerie_batch* stepped_batch = nullptr;
inline thread_local aerie_batch* lent_batch = nullptr;

class SteppedBatch {
 public:
  explicit SteppedBatch(aerie_batch* batch) : before_(std::exchange(stepped_batch, batch)) {}
  ~SteppedBatch() { stepped_batch = before_; }
  aerie_batch* before() const { return before_; }
  SteppedBatch(const SteppedBatch&) = delete;
  SteppedBatch& operator=(const SteppedBatch&) = delete;

 private:
  aerie_batch* before_;
};

class LentBatch {
 public:
  LentBatch() : stepped_(nullptr), before_(std::exchange(lent_batch, stepped_.before())) {}
  ~LentBatch() { lent_batch = before_; }
  LentBatch(const LentBatch&) = delete;
  LentBatch& operator=(const LentBatch&) = delete;

 private:
  SteppedBatch stepped_;
  aerie_batch* before_;
};

// A session is held together with the batch it is in.
class Hold {
 public:
  explicit Hold(aerie_session* s) : session_(s->busy) {
    if (!session_ || !s->batch) return;
    if (s->batch == lent_batch) {  // it needs no more, unless it is the one that asks
      if (s->session->asks_for_room()) session_.give_back();
      return;
    }
    batch_.emplace(s->batch->busy);
    if (!*batch_) session_.give_back();
  }
  explicit operator bool() const { return static_cast<bool>(session_); }
  Status check(const char* what) const { return session_.check(what); }

 private:
  HoldFlag session_;
  std::optional<HoldFlag> batch_;  // given back first
};

// A [session] call: what it does to the session, behind the guard and the hold.
template <class F>
int32_t on_session(aerie_session* s, aerie_error* err, F&& f) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(s, "session"));
    const Hold hold(s);
    AERIE_TRY(hold.check("session"));
    return f(*s->session);
  });
}

Status read_session(const aerie_session_options* in, SessionOptions* out);  // `in` may be null
std::unique_ptr<aerie_session> session_handle(const std::shared_ptr<Runtime>& runtime);  // without its session yet

// The result of a session's last step, as aerie_session_step and aerie_session_result give it.
Status last_result(aerie_session* session, aerie_step_result* out);
Status read_step(const aerie_step_options* in, int32_t* max_tokens, std::chrono::microseconds* budget);

}  // namespace aerie::capi
