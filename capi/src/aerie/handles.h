// What stands behind the handles of aerie.h. Every handle holds what it stands on, so the host may
// release in any order.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
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
};

namespace aerie::capi {

// Held while a call works on a session or batch; a second thread gets AERIE_E_BUSY instead of a data race. A session is
// held together with the batch it is in. A holder never waits for another flag, so none waits for ever.
class Hold {
 public:
  explicit Hold(aerie_session* s) {
    if (!take(s->busy)) return;
    session_ = &s->busy;
    if (!s->batch) return;
    if (take(s->batch->busy)) batch_ = &s->batch->busy;
    else give_back(session_);
  }
  explicit Hold(aerie_batch* b) {
    if (take(b->busy)) batch_ = &b->busy;
  }
  ~Hold() {
    give_back(batch_);
    give_back(session_);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  explicit operator bool() const { return session_ || batch_; }
  Status check(const char* what) const {
    return *this ? Status() : error(Code::busy, std::string("the ") + what + " is in use by another thread");
  }

 private:
  static bool take(std::atomic<bool>& busy) { return !busy.exchange(true, std::memory_order_acquire); }
  static void give_back(std::atomic<bool>*& busy) {
    if (busy) busy->store(false, std::memory_order_release);
    busy = nullptr;
  }
  std::atomic<bool>*session_ = nullptr, *batch_ = nullptr;
};

// The result of a session's last step, as aerie_session_step and aerie_session_result give it.
Status last_result(aerie_session* session, aerie_step_result* out);
Status read_step(const aerie_step_options* in, int32_t* max_tokens, std::chrono::microseconds* budget);

}  // namespace aerie::capi
