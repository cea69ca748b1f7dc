#include "core/drafter/plugin_library.h"

#include <xxhash.h>

#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <utility>

#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"
#include "core/platform/utf8.h"

namespace aerie {

namespace {

constexpr uint64_t kMaxPluginBytes = 256u << 20;
constexpr uint32_t kMaxKinds = 64;

bool good_id(const char (&id)[64]) {
  const void* end = std::memchr(id, 0, sizeof id);
  if (!end || id[0] == 0) return false;
  for (const char* c = id; *c; ++c)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_' || *c == '.' || *c == '-')) return false;
  return true;
}

template <size_t N>
void clean(char (&text)[N]) {
  text[N - 1] = 0;
  text[one_line(text, text, N - 1)] = 0;
}

// By content: the same bytes under two names are one library, and an edited file is a new one. Kinds are shared by
// all runtimes, as the mutexes of serial plugins must be.
struct LoadedPlugins {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<PluginKind>> by_hash;
  std::map<aerie_drafter_plugin_entry_fn, std::vector<PluginKind>> by_entry;
};
LoadedPlugins& loaded_plugins() {
  static auto* cache = new LoadedPlugins;  // never destroyed: plugins outlive static destruction
  return *cache;
}

// What a library says of itself when it is asked for the first time.
Result<std::vector<PluginKind>> ask(aerie_drafter_plugin_entry_fn entry, const std::string& name) {
  const auto threw = [&](const std::string& what) { return error(Code::plugin, name + ": the entry point or describe threw " + what); };
  try {
    return check_plugin_table(entry(), name);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return threw(std::string("an exception: ") + e.what());
  } catch (...) {
    return threw("an exception");
  }
}

}  // namespace

Result<std::vector<PluginKind>> check_plugin_table(const aerie_drafter_plugin_table* table, const std::string& name) {
  const auto bad = [&](const std::string& what) { return error(Code::plugin, name + ": " + what); };
  if (!table) return bad("the entry point returned no table");
  if (table->struct_size < sizeof(aerie_drafter_plugin_table) || table->struct_size > 4096)
    return bad("plugin table: struct_size " + std::to_string(table->struct_size));
  if (table->abi_major == 0) return bad("plugin table: abi_major is 0");
  if (table->abi_major != AERIE_DRAFTER_ABI_MAJOR)
    return bad("built for drafter ABI " + std::to_string(table->abi_major) + ", this host has " +
               std::to_string(AERIE_DRAFTER_ABI_MAJOR));
  if (table->abi_min_minor > AERIE_DRAFTER_ABI_MINOR)
    return bad("needs drafter ABI " + std::to_string(table->abi_major) + "." + std::to_string(table->abi_min_minor) +
               ", this host has " + std::to_string(AERIE_DRAFTER_ABI_MAJOR) + "." +
               std::to_string(AERIE_DRAFTER_ABI_MINOR));
  if (!table->describe || !table->create) return bad("plugin table: describe or create is missing");
  std::vector<PluginKind> kinds;
  const auto serial = std::make_shared<std::mutex>();  // what its drafters share is the library's
  for (uint32_t i = 0;; ++i) {
    PluginKind kind;
    kind.table = table;
    kind.path = name;
    kind.desc.struct_size = sizeof kind.desc;
    if (table->describe(i, &kind.desc) != AERIE_D_OK) break;
    if (!good_id(kind.desc.id)) return bad("drafter " + std::to_string(i) + ": id is empty, unterminated or not [a-z0-9_.-]");
    if (i == kMaxKinds) return bad("describes more than " + std::to_string(kMaxKinds) + " drafters");
    for (const PluginKind& k : kinds)
      if (std::strcmp(k.desc.id, kind.desc.id) == 0) return bad(std::string("describes drafter ") + kind.desc.id + " twice");
    clean(kind.desc.title);
    clean(kind.desc.version);
    if (kind.desc.flags & AERIE_DRAFTER_SERIAL) kind.serial = serial;
    kinds.push_back(std::move(kind));
  }
  if (kinds.empty()) return bad("the library describes no drafter");
  return kinds;
}

Result<std::vector<PluginKind>> load_plugin(const std::string& path) {
  if (!platform::is_absolute_path(path)) return error(Code::invalid_argument, path + ": a plugin path must be absolute");
  AERIE_ASSIGN(const std::vector<uint8_t> bytes, platform::read_file(path, kMaxPluginBytes));
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  LoadedPlugins& cache = loaded_plugins();
  const std::lock_guard<std::mutex> lock(cache.mutex);
  const std::pair<uint64_t, uint64_t> key{h.high64, h.low64};
  if (const auto it = cache.by_hash.find(key); it != cache.by_hash.end()) return it->second;
  AERIE_ASSIGN(void* symbol, platform::load_library_symbol(bytes, path, "aerie_drafter_plugin_entry"));
  const auto entry = reinterpret_cast<aerie_drafter_plugin_entry_fn>(symbol);
  AERIE_ASSIGN(std::vector<PluginKind> kinds, ask(entry, path));
  return cache.by_hash.emplace(key, std::move(kinds)).first->second;
}

Result<std::vector<PluginKind>> linked_plugin(aerie_drafter_plugin_entry_fn entry, const std::string& name) {
  LoadedPlugins& cache = loaded_plugins();
  const std::lock_guard<std::mutex> lock(cache.mutex);
  if (const auto it = cache.by_entry.find(entry); it != cache.by_entry.end()) return it->second;
  AERIE_ASSIGN(std::vector<PluginKind> kinds, ask(entry, name));
  return cache.by_entry.emplace(entry, std::move(kinds)).first->second;
}

}  // namespace aerie
