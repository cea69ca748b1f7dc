// The plugin's table, without a runtime.
#include <dlfcn.h>

#include <chrono>
#include <cstring>
#include <set>
#include <sstream>

#include "common.h"
#include "plugin.h"

namespace cli::plugin {

namespace {

constexpr uint32_t kMaxKinds = 256, kAllFlags = (1u << 6) - 1;
constexpr double kDescribeMs = 100;

bool terminated(const char* s, size_t size) { return std::memchr(s, 0, size) != nullptr; }

std::string bad_id(const char* id, size_t size) {
  if (!terminated(id, size)) return "its id does not end";
  const std::string s = id;
  if (s.empty()) return "its id is empty";
  if (s.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") != std::string::npos)
    return "its id '" + s + "' is not of [a-z0-9_.-]";
  return {};
}

// A host that has nothing to offer.
const void* no_service(const aerie_drafter_host*, const char*) { return nullptr; }
const aerie_drafter_host kBareHost = {sizeof(aerie_drafter_host), AERIE_DRAFTER_ABI_MAJOR, AERIE_DRAFTER_ABI_MINOR, 0, nullptr, no_service};

}  // namespace

const aerie_drafter_plugin_table* open_table(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failure(dlerror());
  const auto entry = reinterpret_cast<aerie_drafter_plugin_entry_fn>(dlsym(library, "aerie_drafter_plugin_entry"));
  if (!entry) throw Failure("it does not export aerie_drafter_plugin_entry");
  const aerie_drafter_plugin_table* table = entry();
  if (!table) throw Failure("aerie_drafter_plugin_entry returned no table");
  return table;
}

namespace {

std::vector<Kind> describe(const aerie_drafter_plugin_table* table) {
  std::vector<Kind> kinds;
  for (uint32_t i = 0; i < kMaxKinds; ++i) {
    aerie_drafter_desc d{};
    d.struct_size = sizeof d;
    if (table->describe(i, &d) != AERIE_D_OK) return kinds;
    if (const std::string bad = bad_id(d.id, sizeof d.id); !bad.empty()) throw Failure("drafter " + std::to_string(i) + ": " + bad);
    kinds.push_back({d.id, d.flags});
  }
  throw Failure("describe has no end: 256 drafters and more");
}

}  // namespace

std::vector<Kind> kinds_of(const Finding& described) {
  std::vector<Kind> kinds;
  std::istringstream lines(described.handed);
  for (Kind k; lines >> k.id >> k.flags;) kinds.push_back(k);
  return kinds;
}

Finding check_table(const std::string& path) {
  const aerie_drafter_plugin_table* t = open_table(path);
  if (t->struct_size < sizeof *t || t->struct_size > 4096) return fail("struct_size is " + std::to_string(t->struct_size));
  const std::string abi = std::to_string(t->abi_major) + "." + std::to_string(t->abi_min_minor);
  if (t->abi_major != AERIE_DRAFTER_ABI_MAJOR) return fail("drafter ABI " + abi + ", this host has " + std::to_string(AERIE_DRAFTER_ABI_MAJOR));
  if (t->abi_min_minor > AERIE_DRAFTER_ABI_MINOR)
    return fail("needs drafter ABI " + abi + ", this host has " + std::to_string(AERIE_DRAFTER_ABI_MAJOR) + "." + std::to_string(AERIE_DRAFTER_ABI_MINOR));
  if (t->abi_built_minor < t->abi_min_minor) return fail("it needs a newer minor version than it was built with");
  if (!t->describe || !t->create) return fail("describe or create is missing");
  return {Finding::ok, "drafter ABI " + abi + " or later"};
}

Finding check_describe(const std::string& path) {
  const aerie_drafter_plugin_table* t = open_table(path);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Kind> kinds = describe(t);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (kinds.empty()) return fail("no drafter");
  if (ms > kDescribeMs) return fail("describe took " + std::to_string(static_cast<int>(ms)) + " ms");
  std::set<std::string> ids;
  std::string words, nameless, handed;
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    const Kind& k = kinds[i];
    aerie_drafter_desc d{}, again{};
    d.struct_size = again.struct_size = sizeof d;
    t->describe(i, &d);
    t->describe(i, &again);
    if (std::memcmp(&d, &again, sizeof d) != 0) return fail(k.id + ": described differently each time");
    if (!ids.insert(k.id).second) return fail(k.id + ": there are two of it");
    if (!terminated(d.title, sizeof d.title) || !terminated(d.version, sizeof d.version)) return fail(k.id + ": a text does not end");
    if (k.flags & ~kAllFlags) return fail(k.id + ": unknown flags");
    if (d.title[0] == 0 || d.version[0] == 0) nameless = k.id;
    words += (words.empty() ? "" : ", ") + k.id;
    handed += k.id + " " + std::to_string(k.flags) + "\n";
  }
  aerie_drafter_desc d{};
  d.struct_size = sizeof d;
  if (t->describe(UINT32_MAX, &d) == AERIE_D_OK) return fail("there is a drafter with index 4294967295");
  if (!nameless.empty()) return {Finding::note, nameless + " has no title or no version", handed};
  return {Finding::ok, words, handed};
}

Finding check_create(const std::string& path, const std::string& id) {
  const aerie_drafter_plugin_table* t = open_table(path);
  aerie_drafter d{};
  d.struct_size = sizeof d;
  aerie_drafter_error e{};
  e.struct_size = sizeof e;
  const int32_t code = t->create(&kBareHost, id.c_str(), &d, &e);
  if (!terminated(e.message, sizeof e.message)) return fail("its error message does not end");
  if (code != AERIE_D_OK) return {Finding::ok, "refuses a host without services: " + std::string(e.message)};
  if (!d.destroy) return fail("no destroy");
  d.destroy(d.self);
  return {Finding::ok, "made and destroyed without services"};
}

}  // namespace cli::plugin
