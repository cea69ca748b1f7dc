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

  // `weights` and `scales`: as WeightWords::read takes them.
  __device__ void multiply(const uint4* weights, const char* scales, const char* rows) {
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

  // While the tensor cores have one step's weights the next one's are made.
  __device__ void together(const uint4* weights, const char* scales, const char* rows) {
    WeightWords<kType> words;
    uint32_t a[2][2][4];
#pragma unroll
    for (int step = 0; step < S::kSteps; ++step) {
      if (step % words.kSteps == 0) words.read(weights, scales, step);
      if (step > 1) wait_for_warpgroup_mma<1>();
      words.fragments(step, a[step % 2]);
      begin_warpgroup_mma();
#pragma unroll
      for (int part = 0; part < S::kStepBytes; part += 256)
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const char* b = rows + step * S::kStepBytes + part;
          if constexpr (kType == DType::bf16) warpgroup_mma_bf16(sum_[m], a[step % 2][m], b, S::kGroupBytes);
          else warpgroup_mma_half(sum_[m], a[step % 2][m], b, S::kGroupBytes);
        }
      end_warpgroup_mma();
    }
    wait_for_warpgroup_mma<0>();
  }

  // Of few rows four steps are read before the first mma: there are too few warps to wait by turns.
  __device__ void alone(const uint4* weights, const char* scales, const char* rows) {
    constexpr int kAtOnce = kGroups < 4 ? kGroups : 4, kSteps = kGroups < 4 ? 4 : WeightWords<kType>::kSteps;
#pragma unroll
    for (int first = 0; first < S::kSteps; first += kSteps) {
      WeightWords<kType> words;
      uint32_t a[kSteps][2][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step % words.kSteps == 0) words.read(weights, scales, first + step);
        words.fragments(step, a[step]);
      }
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
                if constexpr (kType == DType::bf16) mma_bf16(sum_[m][from + n], a[step][m], two);
                else mma_half(sum_[m][from + n], a[step][m], two);
              }
      }
    }
  }

  float sum_[2][kGroups][4];
};

}  // namespace aerie::kernels::cuda
