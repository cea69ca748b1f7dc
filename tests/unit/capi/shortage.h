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
  // Which allocations fail in turn: every one at first, then every 1 + at / alike, for later ones are many and alike. With
  // AddressSanitizer, where each takes ten times as long, a quarter of them, unless AERIE_EVERY_ALLOCATION is set (tests/full.sh).
  static int64_t first(int64_t length);
  static int64_t next(int64_t at, int64_t alike);
};

}  // namespace aerie_capi_test
