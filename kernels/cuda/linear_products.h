// The sums of a warp's two panels for all rows of a tile, and what a stage adds to them. Step after step; of bf16 the rows' high
// parts, then their low ones: the same for a row whatever the number of rows, and whether warps multiply alone or together.
#pragma once

#include "kernels/cuda/linear_weights.h"
#include "kernels/cuda/warpgroup.h"

namespace aerie::kernels::cuda {

template <DType kType, int kGroups>
class Products {
  using S = Stage<kType, kGroups>;

 public:
  // By four warps together.
  static constexpr bool kTogether = kWarpgroups && kGroups >= 4;

  __device__ void clear() {
#pragma unroll
    for (auto& tile : sum_)
#pragma unroll
      for (auto& group : tile)
#pragma unroll
        for (float& v : group) v = 0;
  }
  // Of tile m and group n, as mma has it.
  __device__ float sum(int m, int n, int i) const { return sum_[m][n][i]; }

  // `weights` and `scales`: weights_of.
  __device__ void multiply(const uint4* weights, const uint16_t* scales, const char* rows) {
    if constexpr (kTogether)
      if (warpgroups()) return together(weights, scales, rows);
    alone(weights, scales, rows);
  }

 private:
  static constexpr int kWords = S::kStepBytes / 128;  // of a lane, a step and a group
  __device__ static void fragments(const char* rows, int step, int n, uint32_t (&b)[kWords]) {
    const auto* from = reinterpret_cast<const uint32_t*>(rows + n * S::kGroupBytes + step * S::kStepBytes) + threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < kWords; ++w) b[w] = from[w * 32];
  }

  // Two steps at a time: more has no room in registers.
  __device__ void together(const uint4* weights, const uint16_t* scales, const char* rows) {
#pragma unroll
    for (int first = 0; first < S::kSteps; first += 2) {
      uint32_t a[2][2][4];
      weights_of<kType>(weights, scales, first / 2, a);
      begin_warpgroup_mma();
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int part = 0; part < S::kStepBytes; part += 256)
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            const char* b = rows + (first + step) * S::kStepBytes + part;
            if constexpr (kType == DType::bf16) warpgroup_mma_bf16(sum_[m], a[step][m], b, S::kGroupBytes);
            else warpgroup_mma_half(sum_[m], a[step][m], b, S::kGroupBytes);
          }
      end_warpgroup_mma();
    }
  }

  // Of few rows four steps are read before the first mma: there are too few warps to wait by turns.
  __device__ void alone(const uint4* weights, const uint16_t* scales, const char* rows) {
    constexpr int kAtOnce = kGroups < 4 ? kGroups : 4, kPairs = kGroups < 4 ? 2 : 1, kRead = kGroups < 4 ? 4 : 1;
#pragma unroll
    for (int pair = 0; pair < S::kSteps / 2; pair += kPairs) {
      uint32_t a[kPairs][2][2][4];
#pragma unroll
      for (int p = 0; p < kPairs; ++p) weights_of<kType>(weights, scales, pair + p, a[p]);
#pragma unroll
      for (int first = 0; first < 2 * kPairs; first += kRead)
#pragma unroll
        for (int from = 0; from < kGroups; from += kAtOnce) {
          uint32_t b[kRead][kAtOnce][kWords];
#pragma unroll
          for (int step = 0; step < kRead; ++step)
#pragma unroll
            for (int n = 0; n < kAtOnce; ++n) fragments(rows, 2 * pair + first + step, from + n, b[step][n]);
          // An mma waits for the one before that has its sums: all high parts, then all low ones.
#pragma unroll
          for (int step = 0; step < kRead; ++step)
#pragma unroll
            for (int part = 0; part < kWords; part += 2)
#pragma unroll
              for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                  const uint32_t two[2] = {b[step][n][part], b[step][n][part + 1]};
                  const auto& tile = a[(first + step) / 2][(first + step) % 2][m];
                  if constexpr (kType == DType::bf16) mma_bf16(sum_[m][from + n], tile, two);
                  else mma_half(sum_[m][from + n], tile, two);
                }
        }
    }
  }

  float sum_[2][kGroups][4];
};

}  // namespace aerie::kernels::cuda
