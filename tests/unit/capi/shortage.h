// The process's own heap runs out when a test says so: its operator new serves the libraries too.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "aerie/aerie.h"

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

  // A call that the shortage may hit: it says so then, and goes through once there is memory again.
  template <class Call>
  static void insist(const Call& call, const aerie_error& err, int* failures) {
    const int32_t code = call();
    if (code == AERIE_OK) return;
    end();
    ++*failures;
    EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << err.message;
    EXPECT_EQ(err.code, code);
    ASSERT_EQ(call(), AERIE_OK) << err.message;
  }
  // run(at, length, &failures): whether an allocation has failed in calls that it insists on. With each allocation missing in turn, and with
  // all from one on, until none is reached. How many calls have failed.
  template <class Run>
  static int each(const Run& run) {
    int failures = 0;
    for (const int64_t length : {int64_t{1}, kForEver}) {
      int64_t at = first(length);
      for (int before = -1; failures > before; at = next(at, 24)) {
        before = failures;
        if (run(at, length, &failures) && failures == before) ++failures;  // one that does without: a sort's scratch
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << "allocation " << at;
          return failures;
        }
      }
    }
    return failures;
  }
};

}  // namespace aerie_capi_test
