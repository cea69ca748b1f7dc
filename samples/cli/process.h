// What differs between systems.
#pragma once

#include <filesystem>

namespace cli {

// Standard streams are there and carry bytes as they are, a file that grows too large is an error and not the end.
void begin_process();

// For what can be made again; empty: there is none.
std::filesystem::path cache_folder();

}  // namespace cli
