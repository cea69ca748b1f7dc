// The emulation finds what it promises to find: else the other tests here would mean little.
#include <set>

#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {
namespace {
using cuda::emulation::Index;
using cuda::emulation::run_grid;

std::string block(unsigned threads, size_t shared, const std::function<void()>& body) {
  return run_grid(Index{1, 1, 1}, threads, shared, body);
}

TEST(CudaEmulation, ThreadsMeetAtBarriers) {
  each_order([&] {
    std::vector<int> sums;
    EXPECT_EQ(block(64, 64 * sizeof(int), [&] {
                auto* s = cuda::shared_memory<int>();
                s[threadIdx.x] = static_cast<int>(threadIdx.x);
                cuda::sync_block();
                const int sum = s[threadIdx.x] + s[63 - threadIdx.x];
                cuda::sync_block();
                s[threadIdx.x] = 0;
                sums.push_back(sum);
              }),
              "");
    EXPECT_EQ(sums, std::vector<int>(64, 63));
  });
}

TEST(CudaEmulation, ABarrierThatNotAllReachIsADeadlock) {
  EXPECT_NE(block(64, 0, [] {
              if (threadIdx.x != 5) cuda::sync_block();
            }).find("deadlock: 63 threads wait at a block barrier"),
            std::string::npos);
  EXPECT_NE(block(32, 0, [] {
              if (threadIdx.x < 9) cuda::shuffle(1.0f, 0);
            }).find("9 for their warp, 23 have ended"),
            std::string::npos);
  EXPECT_NE(block(32, 0, [] {
              if (threadIdx.x < 16) cuda::shuffle(1.0f, 0);
              else cuda::sync_warp();
            }).find("while its warp is at"),
            std::string::npos);
}

TEST(CudaEmulation, AWarpgroupHasOneOperand) {
  const auto multiply = [](auto&& at) {
    return block(128, 1024, [&] {
      auto* s = cuda::shared_memory<char>();
      for (int i = 0; i < 2; ++i) s[threadIdx.x * 8 + static_cast<unsigned>(i)] = 0;
      float c[2][4] = {};
      cuda::warpgroup_mma_bf16(c, {0, 0, 0, 0}, s + at(threadIdx.x), 256u);
    });
  };
  EXPECT_EQ(multiply([](unsigned) { return 0; }), "");
  EXPECT_NE(multiply([](unsigned t) { return t < 96 ? 0 : 256; }).find("another operand"), std::string::npos);
  EXPECT_NE(multiply([](unsigned) { return 8; }).find("not aligned"), std::string::npos);
}

// Without the barrier, a thread sees what came before it: another order, another result.
TEST(CudaEmulation, AMissingBarrierShowsInAnotherOrder) {
  std::set<float> results;
  each_order([&] {
    float got = 0;
    EXPECT_EQ(block(32, 32 * sizeof(float), [&] {
                auto* s = cuda::shared_memory<float>();
                s[threadIdx.x] = 1;
                if (threadIdx.x == 3) got = s[20];
              }),
              "");
    results.insert(std::isnan(got) ? -1 : got);
  });
  EXPECT_EQ(results.size(), 2u);  // NaN: nobody had written
}

TEST(CudaEmulation, CopiesArriveWhenTheyAreWaitedFor) {
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(block(32, 48, [&] {
              auto* s = cuda::shared_memory<float>();
              if (threadIdx.x == 0) {
                cuda::copy_async16(s, from, true);
                cuda::copy_async_commit();
                cuda::copy_async16(s + 4, from + 4, true);
                cuda::copy_async16(s + 8, nullptr, false);
                cuda::copy_async_commit();
                EXPECT_TRUE(std::isnan(s[0]));
                cuda::copy_async_wait<1>();
                EXPECT_EQ(s[3], 4.0f);
                EXPECT_TRUE(std::isnan(s[4]));
                cuda::copy_async_wait<0>();
                EXPECT_EQ(s[7], 8.0f);
                EXPECT_EQ(s[8], 0.0f);
              }
            }),
            "");
}

TEST(CudaEmulation, CopiesAreAligned) {
  alignas(16) const float from[8] = {};
  for (const int off : {0, 1})
    EXPECT_EQ(block(32, 16, [&] { cuda::copy_async16(cuda::shared_memory<float>(), from + off, true); }).find("not aligned") == std::string::npos, off == 0);
}

TEST(CudaEmulation, LaunchesNoGpuWouldTakeAreRefused) {
  EXPECT_NE(block(33, 0, [] {}), "");
  EXPECT_NE(block(32, 226 << 10, [] {}), "");
  EXPECT_NE(run_grid(Index{1, 70000, 1}, 32, 0, [] {}), "");
  EXPECT_NE(block(64, 0, [] { cuda::emulation::launch_bounds(32); }).find("launch bounds"), std::string::npos);
  EXPECT_EQ(block(64, 0, [] { cuda::emulation::launch_bounds(64); }), "");
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
