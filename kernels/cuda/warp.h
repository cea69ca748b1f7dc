// Small parts that kernels share: rows of tensors, number formats, reductions. A reduction is a fixed tree.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/narrow_floats.h"
#include "kernels/ops.h"
#include "kernels/panel16.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cuda {

constexpr float kInf = std::numeric_limits<float>::infinity();

__device__ inline float* row(const Tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.stride; }
__device__ inline bool finite(float v) { return v - v == 0.0f; }

template <class T>
__device__ T warp_sum(T v) {
  for (int mask = 16; mask > 0; mask /= 2) v += shuffle_xor(v, mask);
  return v;
}
template <class T>
__device__ T warp_max(T v) {  // of floats: not NaN, unless all are
  for (int mask = 16; mask > 0; mask /= 2) {
    const T other = shuffle_xor(v, mask);
    v = v < other || v != v ? other : v;
  }
  return v;
}
__device__ inline bool warp_any(bool v) { return warp_max(v ? 1 : 0) != 0; }

// Of a block of up to 32 warps; `shared` has room for one value a warp, and may be used again at once.
template <class T>
__device__ T block_sum(T v, T* shared) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  sync_block();
  T total = shared[0];
#pragma unroll 4
  for (unsigned w = 1; w < blockDim.x / 32; ++w) total += shared[w];
  sync_block();
  return total;
}
template <class T>
__device__ T block_max(T v, T* shared) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  sync_block();
  T top = shared[0];
#pragma unroll 4
  for (unsigned w = 1; w < blockDim.x / 32; ++w) top = top < shared[w] || top != top ? shared[w] : top;
  sync_block();
  return top;
}

}  // namespace aerie::kernels::cuda
