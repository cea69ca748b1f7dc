// Plugin libraries: checked, loaded once for each content, never unloaded.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aerie/drafter.h"
#include "kernels/status.h"

namespace aerie {

// One drafter kind of one loaded library.
struct PluginKind {
  const aerie_drafter_plugin_table* table = nullptr;
  aerie_drafter_desc desc{};
  std::string path;  // where it was first loaded from
  std::shared_ptr<std::mutex> serial;  // held around calls of SERIAL plugins, else null
};

// All drafter kinds in the library at an absolute path. Identical bytes are loaded once a process.
Result<std::vector<PluginKind>> load_plugin(const std::string& absolute_path);
// All drafter kinds of a plugin linked into the program. `name` is for errors and stands for the path.
Result<std::vector<PluginKind>> linked_plugin(aerie_drafter_plugin_entry_fn entry, const std::string& name);
// Check a table. `name` is for errors.
Result<std::vector<PluginKind>> check_plugin_table(const aerie_drafter_plugin_table* table, const std::string& name);

}  // namespace aerie
