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
#include "core/session/session.h"
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
};
