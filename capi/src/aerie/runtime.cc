// Runtime: device, threads, hooks, plugins.
#include <algorithm>
#include <cstring>

#include "capi/src/aerie/builtin_drafters.h"
#include "capi/src/aerie/handles.h"
#include "core/device/device.h"
#include "core/platform/dynamic_library.h"

using namespace aerie;
using namespace aerie::capi;

namespace aerie::capi {

Result<PluginKind> Runtime::find_plugin(const std::string& id, uint32_t flags) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const PluginKind& p : plugins)
    if (id.empty() ? (p.desc.flags & flags) == flags : id == p.desc.id) return p;
  std::string known;
  for (const PluginKind& p : plugins) known += (known.empty() ? "" : ", ") + std::string(p.desc.id);
  return error(Code::not_found, (id.empty() ? std::string("no loaded plugin can run this package")
                                            : "no loaded plugin has the id " + id) +
                                    " (loaded: " + (known.empty() ? "none" : known) + ")");
}

namespace {
Status add_kinds(Runtime& runtime, const std::string& path, const std::vector<PluginKind>& kinds) {
  const std::lock_guard<std::mutex> lock(runtime.mutex);
  std::deque<PluginKind> fresh;  // all of them, or none
  for (const PluginKind& kind : kinds) {
    const auto same = std::find_if(runtime.plugins.begin(), runtime.plugins.end(), [&](const PluginKind& p) {
      return std::strcmp(p.desc.id, kind.desc.id) == 0;
    });
    if (same == runtime.plugins.end()) fresh.push_back(kind);
    else if (same->table != kind.table)
      return error(Code::mismatch, path + ": id " + kind.desc.id + " is taken by " + same->path);
  }
  const size_t before = runtime.plugins.size();
  try {
    for (PluginKind& kind : fresh) runtime.plugins.push_back(std::move(kind));
  } catch (...) {
    while (runtime.plugins.size() > before) runtime.plugins.pop_back();
    throw;
  }
  return {};
}

Status add_plugin(Runtime& runtime, const std::string& path) {
  AERIE_ASSIGN(const std::vector<PluginKind> kinds, load_plugin(path));
  return add_kinds(runtime, path, kinds);
}

Status add_linked(Runtime& runtime, const std::string& name, aerie_drafter_plugin_entry_fn entry) {
  AERIE_ASSIGN(const std::vector<PluginKind> kinds, linked_plugin(entry, name));
  return add_kinds(runtime, name, kinds);
}
}  // namespace

}  // namespace aerie::capi

extern "C" {

uint32_t aerie_version(void) {
  return AERIE_VERSION_MAJOR << 16 | AERIE_VERSION_MINOR << 8 | AERIE_VERSION_PATCH;
}

const char* aerie_code_name(int32_t code) {
  static const char* const names[] = {"ok",        "invalid argument", "not found",     "input/output", "bad format",
                                      "mismatch",  "unsupported",      "out of memory", "cancelled",    "limit",
                                      "plugin",    "device",           "busy",          "internal"};
  return code >= 0 && code < static_cast<int32_t>(sizeof names / sizeof *names) ? names[code] : "unknown";
}

int32_t aerie_runtime_create(const aerie_runtime_options* options, aerie_runtime** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(out, "out"));
    aerie_runtime_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_runtime_options"));
    const std::string device = o.device ? o.device : "cpu";
    if (o.threads < 0 || o.threads > 1024)
      return error(Code::invalid_argument, "threads: " + std::to_string(o.threads));
    if ((o.alloc == nullptr) != (o.free == nullptr))
      return error(Code::invalid_argument, "alloc and free: set both or none");
    kernels::CpuOptions cpu;
    cpu.threads = o.threads;
    cpu.host_parallel_for = o.parallel_for;
    cpu.host_user = o.parallel_user;
    cpu.alloc = o.alloc;
    cpu.free = o.free;
    cpu.alloc_user = o.alloc_user;
    auto runtime = std::make_shared<Runtime>();
    AERIE_ASSIGN(runtime->device, make_device(device, cpu));
    if (o.log)
      runtime->log = [log = o.log, user = o.log_user](int32_t level, const std::string& message) {
        log(user, level, one_line(message).c_str());  // a plugin's words may be in it
      };
    runtime->description = std::string(runtime->device->name()) + " " + runtime->device->isa();
    *out = new aerie_runtime{std::move(runtime)};
    return {};
  });
}

void aerie_runtime_release(aerie_runtime* runtime) { delete runtime; }

const char* aerie_runtime_description(const aerie_runtime* runtime) {
  return runtime ? runtime->runtime->description.c_str() : "";
}

int32_t aerie_runtime_load_plugin(aerie_runtime* runtime, const char* path, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(runtime, "runtime"));
    AERIE_TRY(require(path, "absolute_path"));
    return add_plugin(*runtime->runtime, path);
  });
}

int32_t aerie_runtime_load_plugin_directory(aerie_runtime* runtime, const char* path, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(runtime, "runtime"));
    std::string directory = path ? path : "";
    if (!path && !builtin_drafters().empty()) {
      for (const BuiltinDrafter& d : builtin_drafters()) AERIE_TRY(add_linked(*runtime->runtime, d.name, d.entry));
      return {};
    }
    if (!path) {
      const std::string home = platform::directory_of_code(reinterpret_cast<const void*>(&aerie_version));
      if (home.empty()) return error(Code::not_found, "cannot tell where this library lies; give a directory");
      directory = home + "/aerie/drafters";
    }
    if (!platform::is_absolute_path(directory))
      return error(Code::invalid_argument, directory + ": a plugin directory must be absolute");
    AERIE_ASSIGN(const std::vector<std::string> files,
                 platform::list_files(directory, platform::library_suffix()));
    for (const std::string& file : files) AERIE_TRY(add_plugin(*runtime->runtime, file));
    return {};
  });
}

int32_t aerie_runtime_add_plugin(aerie_runtime* runtime, const char* name, aerie_plugin_entry_fn entry,
                                 aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(runtime, "runtime"));
    AERIE_TRY(require(name, "name"));
    AERIE_TRY(require(reinterpret_cast<const void*>(entry), "entry"));
    return add_linked(*runtime->runtime, name, entry);
  });
}

int32_t aerie_runtime_plugin_info(aerie_runtime* runtime, uint32_t index, aerie_plugin_info* out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(runtime, "runtime"));
    AERIE_TRY(check_result(out, "aerie_plugin_info"));
    const std::lock_guard<std::mutex> lock(runtime->runtime->mutex);
    const auto& plugins = runtime->runtime->plugins;
    if (index >= plugins.size()) return error(Code::not_found, "plugin " + std::to_string(index));
    const PluginKind& p = plugins[index];
    aerie_plugin_info info{};
    info.flags = p.desc.flags;
    info.id = p.desc.id;
    info.title = p.desc.title;
    info.version = p.desc.version;
    info.path = p.path.c_str();
    write_result(info, out);
    return {};
  });
}

}  // extern "C"
