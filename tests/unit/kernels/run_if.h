// Ops behind a RunIf, on any device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/device.h"

namespace aerie::kernels::test {

// x doubled by each op that is run, many times by one queue, whose plans may have become graphs.
inline void expect_passed_over(Device& device) {
  constexpr int64_t kFloats = 100;
  auto* wanted = static_cast<int32_t*>(device.allocate(2 * sizeof(int32_t)));
  const Tensor x = matrix(device.allocate(kFloats * 4), 1, kFloats);
  std::vector<float> data(kFloats);
  std::vector<int32_t> flags(2);
  const Add twice{x, x, x};
  const std::vector<Op> plan = {Upload{wanted, flags.data(), 8}, Upload{x.data, data.data(), kFloats * 4}, twice,
                                RunIf{wanted, 2}, twice, twice, RunIf{wanted + 1, 1}, twice, twice, RunIf{wanted, 0},
                                Download{data.data(), x.data, kFloats * 4}};
  auto queue = device.make_queue();
  ASSERT_TRUE(queue.ok());
  for (int i = 0; i < 12; ++i) {
    flags = {i % 2, i / 2 % 2 * 7};
    std::fill(data.begin(), data.end(), 1.0f);
    ASSERT_TRUE((*queue)->submit(plan).ok());
    // In as many slices as the device likes.
    while (*(*queue)->advance(i % 3 ? kNoDeadline : Clock::now() - std::chrono::seconds(1)) == RunState::pending) {
    }
    EXPECT_EQ(data, std::vector<float>(kFloats, static_cast<float>(4 * (flags[0] ? 4 : 1) * (flags[1] ? 2 : 1)))) << i;
  }
  device.release(wanted);
  device.release(x.data);
}

}  // namespace aerie::kernels::test
