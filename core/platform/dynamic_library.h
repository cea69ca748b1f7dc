// Shared libraries: loading plugin code safely.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace aerie::platform {

// Load exactly these bytes as a shared library (they were checked; the file they came from may have
// changed since). `name` is for errors. The library is never unloaded. Returns the address of `symbol`.
Result<void*> load_library_symbol(std::span<const uint8_t> bytes, const std::string& name, const char* symbol);

// UTF-8 absolute directory of the shared library (or program) that contains `address`; empty if unknown.
std::string directory_of_code(const void* address);

// UTF-8 paths of regular files in `directory` that end in `suffix`, sorted.
Result<std::vector<std::string>> list_files(const std::string& directory, const std::string& suffix);

bool is_absolute_path(const std::string& path);

// Shared-library suffix of this platform, ".so".
const char* library_suffix();

}  // namespace aerie::platform
