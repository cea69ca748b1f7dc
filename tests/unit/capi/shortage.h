// The process's own heap runs out when a test says so: its operator new serves the libraries too.
#pragma once

#include <cstdint>

namespace aerie_capi_test {

struct Shortage {
  static constexpr int64_t kForEver = INT64_MAX / 2;
  // From now on allocations [at, at + length) fail.
  static void begin(int64_t at, int64_t length);
  // The heap has room again. True: one has failed.
  static bool end();
};

}  // namespace aerie_capi_test
