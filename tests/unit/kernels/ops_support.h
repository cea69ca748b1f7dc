// What the tests of the ops share: random data, running an op through the CPU kernels or on the
// reference device, every ISA of this machine.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

// The targets come before Highway.
// clang-format off
#include "kernels/cpu/hwy_targets.h"
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/op_kernels.h"
#include "tests/support/rounds_as_cpu.h"

namespace aerie::kernels::test {

using aerie::test::RoundsAsCpu;
using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

// Drawn once for all instruction sets and threads: not optimised and with sanitizers, that takes longer than what is tested.
inline Floats random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
  static std::mutex mutex;
  static auto& drawn = *new std::map<std::tuple<size_t, uint32_t, float>, Floats>();  // threads may end late
  const std::lock_guard<std::mutex> lock(mutex);
  Floats& v = drawn[{n, seed, scale}];
  if (v.size() != n) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    v.resize(n);
    for (float& x : v) x = normal(rng);
  }
  return v;
}

inline Tensor view(Floats& v, int64_t rows, int64_t cols) { return matrix(v.data(), rows, cols); }

// All tasks of one op, last to first: their order must not matter.
template <class O>
void run_cpu(const O& op, int threads = 2) {
  cpu::Scratch scratch;
  for (int32_t t = cpu::tasks(op, threads); t-- > 0;) cpu::run(op, t, threads, scratch);
  scratch.release();
}

inline void run_plan(Device& device, std::span<const Op> ops) {
  auto queue = device.make_queue();
  ASSERT_TRUE(queue.ok());
  const Status s = (*queue)->submit(ops);
  ASSERT_TRUE(s.ok()) << s.message();
  const auto r = (*queue)->advance(kNoDeadline);
  ASSERT_TRUE(r.ok()) << r.status().message();
  ASSERT_EQ(*r, RunState::done);
}

template <class O>
void run_reference(const O& op) {
  const Op plan[] = {op};
  run_plan(*make_reference_device(), plan);
}

// f(isa) once on every ISA of this machine.
template <class F>
void each_isa(F&& f) {
  for (const Isa& isa : supported_isas()) {
    SCOPED_TRACE(isa.name());
    set_isa(isa);
    if constexpr (std::is_invocable_v<F, const Isa&>) f(isa);
    else f();
  }
  reset_isa();
}

inline bool fused(const Isa& isa) { return isa.target != HWY_SSE4; }

inline void expect_near(const Floats& got, const Floats& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1.0f + std::fabs(want[i]))) << "at " << i;
}

// Bits, so that -0 and NaN count.
inline bool same_bits(const void* a, const void* b, size_t bytes) { return std::memcmp(a, b, bytes) == 0; }
inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), a.size() * 4);
}

}  // namespace aerie::kernels::test
