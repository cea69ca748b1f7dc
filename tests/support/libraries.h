// Where the build has put what is loaded when a program runs.
#pragma once

#include <cstdlib>
#include <string>

namespace aerie::test {

inline std::string drafter_directory() {
  const char* carried = std::getenv("AERIE_TEST_BINARY_DIR");  // a program on another machine is told
  return (carried ? std::string(carried) + "/lib" : AERIE_LIBRARY_DIR) + "/aerie/drafters";
}
inline std::string drafter_library(const std::string& name) { return drafter_directory() + "/" + name + AERIE_LIBRARY_SUFFIX; }
// Of tests/plugins: one that does what plugins must not.
inline std::string bad_plugin(const std::string& name) { return AERIE_LIBRARY_DIR "/test-plugins/" + name + AERIE_LIBRARY_SUFFIX; }

}  // namespace aerie::test
