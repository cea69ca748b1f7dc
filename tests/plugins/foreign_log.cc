// A drafter that says one line through the application's log hook, from a thread of its own, when it is opened. For
// the bindings' tests: no language's runtime has seen this thread before.
#include <cstring>
#include <thread>

#include "aerie/drafter.h"

namespace {

const aerie_drafter_host* host_of(void* self) { return static_cast<const aerie_drafter_host*>(self); }

int32_t open(void* self, const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) {
  const aerie_drafter_host* host = host_of(self);
  const auto* log = static_cast<const aerie_service_log*>(host->get_service(host, AERIE_SERVICE_LOG));
  std::thread([=] { log->log(host, 2, "from a foreign thread"); }).join();
  return AERIE_D_OK;
}
int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}
int32_t propose_host(void*, const aerie_host_context*, aerie_host_candidates* out) {
  out->count = 0;
  return AERIE_D_OK;
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i > 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
  std::strcpy(out->id, "foreign_log");
  std::strcpy(out->title, "test");
  std::strcpy(out->version, "1");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error*) {
  out->self = const_cast<aerie_drafter_host*>(host);
  out->destroy = [](void*) {};
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->propose_host = propose_host;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}
