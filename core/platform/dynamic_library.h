// Shared libraries: loading plugin code safely.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace aerie::platform {

// Load exactly these bytes, which were read from `path` and checked, as a shared library. The file may have changed since: then
// they are loaded all the same, or it is an error. The library is never unloaded. Returns the address of `symbol`.
Result<void*> load_library_symbol(std::span<const uint8_t> bytes, const std::string& path, const char* symbol);

// UTF-8 absolute directory of the shared library (or program) that contains `address`; empty if unknown.
std::string directory_of_code(const void* address);

// UTF-8 paths of regular files in `directory` that end in `suffix`, sorted.
Result<std::vector<std::string>> list_files(const std::string& directory, const std::string& suffix);

bool is_absolute_path(const std::string& path);

// Shared-library suffix of this platform, ".so".
const char* library_suffix();

}  // namespace aerie::platform
