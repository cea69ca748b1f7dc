// The sums of a warp's two panels for all rows of a tile, and what a stage adds to them. Step after step; of bf16 the rows' high
// parts, then their low ones: the same for a row whatever the number of rows, and whether warps multiply alone or together.
#pragma once

#include <type_traits>

#include "kernels/cuda/linear_stage.h"
#include "kernels/cuda/warpgroup.h"

namespace aerie::kernels::cuda {

// Nibbles 0 .. 15 as bytes -8 .. 7.
__device__ inline uint32_t minus_eight(uint32_t nibbles) { return ((nibbles | 0x80808080u) - 0x08080808u) ^ 0x80808080u; }

template <DType kType, int kGroups>
class Products {
  using S = Stage<kType, kGroups>;
  using Sum = std::conditional_t<kType == DType::int8, int32_t, float>;  // int8: exact to the end

 public:
  // By four warps together. (int4 weights have a scale for every step.)
  static constexpr bool kTogether = kWarpgroups && kGroups >= 4 && kType != DType::int4;

  __device__ void clear() {
#pragma unroll
    for (auto& tile : sum_)
#pragma unroll
      for (auto& group : tile)
#pragma unroll
        for (Sum& v : group) v = 0;
  }
  // Of tile m and group n, as mma has it.
  __device__ float bits(int m, int n, int i) const {
    if constexpr (kType == DType::int8) return std::bit_cast<float>(sum_[m][n][i]);
    else return sum_[m][n][i];
  }

  // `weights`: this thread's of the first load. `scales`: of its four outputs, in the first step.
  __device__ void multiply(const uint4* weights, const uint16_t* scales, const char* rows) {
    if constexpr (kTogether)
      if (warpgroups()) return together(weights, rows);
    if constexpr (kType == DType::int4) int4(weights, scales, rows);
    else alone(weights, rows);
  }

 private:
  static constexpr int kStepBytes = S::kGroupBytes / kUnitSteps, kWords = kStepBytes / 128;
  // This lane's.
  __device__ static void fragments(const char* rows, int step, int n, uint32_t (&b)[kWords]) {
    const auto* from = reinterpret_cast<const uint32_t*>(rows + n * S::kGroupBytes + step * kStepBytes) + threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < kWords; ++w) b[w] = from[w * 32];
  }

  // The fragments of two tiles: rows g and g + 8 of tile m are the thread's rows 2 m and 2 m + 1.
  __device__ static void weights_of(const uint4* weights, int step, uint32_t (&a)[2][4]) {
    const uint4 u = weights[step * S::kLoads * kPanelThreads];
    if constexpr (S::kOneLoad) {
      constexpr uint32_t kLow = 0x0f0f0f0fu;
      const uint32_t w[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t word = w[2 * m + i];
          a[m][i] = kType == DType::int4 ? minus_eight(word & kLow) : halves_of_e4m3(word & 0xffffu);
          a[m][2 + i] = kType == DType::int4 ? minus_eight(word >> 4 & kLow) : halves_of_e4m3(word >> 16);
        }
    } else {
      const uint4 v = weights[(step * S::kLoads + 1) * kPanelThreads];
      a[0][0] = u.x, a[0][1] = u.y, a[0][2] = v.x, a[0][3] = v.y;
      a[1][0] = u.z, a[1][1] = u.w, a[1][2] = v.z, a[1][3] = v.w;
    }
  }

  // Half of the unit at a time: more has no room in registers.
  __device__ void together(const uint4* weights, const char* rows) {
    constexpr int kSteps = kUnitSteps / 2;
#pragma unroll
    for (int first = 0; first < kUnitSteps; first += kSteps) {
      uint32_t a[kSteps][2][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) weights_of(weights, first + step, a[step]);
      begin_warpgroup_mma();
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < kStepBytes; part += 256)
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            const char* b = rows + (first + step) * kStepBytes + part;
            if constexpr (kType == DType::bf16) warpgroup_mma_bf16(sum_[m], a[step][m], b, S::kGroupBytes);
            else if constexpr (kType == DType::fp8) warpgroup_mma_half(sum_[m], a[step][m], b, S::kGroupBytes);
            else warpgroup_mma_s8(sum_[m], a[step][m], b, S::kGroupBytes);
          }
      end_warpgroup_mma();
    }
  }

  // Of few rows everything is read before the first mma: there are too few warps to wait by turns.
  __device__ void alone(const uint4* weights, const char* rows) {
    constexpr int kAtOnce = kGroups < 4 ? kGroups : 4, kSteps = kGroups < 4 ? kUnitSteps : 1;
#pragma unroll
    for (int first = 0; first < kUnitSteps; first += kSteps) {
      uint32_t a[kSteps][2][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) weights_of(weights, first + step, a[step]);
#pragma unroll
      for (int from = 0; from < kGroups; from += kAtOnce) {
        uint32_t b[kSteps][kAtOnce][kWords];
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
#pragma unroll
          for (int n = 0; n < kAtOnce; ++n) fragments(rows, first + step, from + n, b[step][n]);
        // An mma waits for the one before that has its sums: all high parts, then all low ones.
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
#pragma unroll
          for (int part = 0; part < kWords; part += 2)
#pragma unroll
            for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
              for (int m = 0; m < 2; ++m) {
                const uint32_t two[2] = {b[step][n][part], b[step][n][part + 1]};
                Sum(&sum)[4] = sum_[m][from + n];
                if constexpr (kType == DType::bf16) mma_bf16(sum, a[step][m], two);
                else if constexpr (kType == DType::fp8) mma_half(sum, a[step][m], two);
                else mma_s8(sum, a[step][m], two);
              }
      }
    }
  }

  __device__ void int4(const uint4* weights, const uint16_t* scales, const char* rows) {
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      uint32_t a[2][4];
      weights_of(weights, step, a);
      float scale[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) scale[i] = half_to_float(scales[step * kPanel + i]);
#pragma unroll
      for (int n = 0; n < kGroups; ++n) {
        uint32_t b[2];
        fragments(rows, step, n, b);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          int32_t c[4] = {};
          mma_s8(c, a[m], b);
#pragma unroll
          for (int i = 0; i < 4; ++i) sum_[m][n][i] = fmaf(static_cast<float>(c[i]), scale[2 * m + i / 2], sum_[m][n][i]);
        }
      }
    }
  }

  Sum sum_[2][kGroups][4];
};

}  // namespace aerie::kernels::cuda
