// Rows of the cache: (head_dim) elements of one layer, K or V, slot and head.
#pragma once

#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr int kMostDim = 256;
constexpr int kMostElements = kMostDim / 32;  // of a row, a lane

__device__ inline float load_element(const KvCache& c, int64_t r, int64_t i) {
  const int64_t at = r * c.head_dim + i;
  if (c.dtype == DType::int8) return static_cast<float>(static_cast<const int8_t*>(c.data)[at]) * c.scales[r];
  if (c.dtype == DType::bf16) return from_bf16(static_cast<const uint16_t*>(c.data)[at]);
  return static_cast<const float*>(c.data)[at];
}

// A warp stores a row of which lane l has elements l, l + 32, ... (zeros behind the end).
__device__ inline void store_row(const KvCache& c, int64_t r, const float (&x)[kMostElements]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float top = 0;
  bool good = true;
  for (const float v : x) {
    top = fmaxf(top, fabsf(v));
    good = good && finite(v);
  }
  const bool fine = !warp_any(!good);
  top = warp_max(top);
  if (c.dtype == DType::int8 && lane == 0)
    c.scales[r] = fine ? top / 127.0f : std::numeric_limits<float>::quiet_NaN();
  const float inverse = fine && top > 1e-36f ? 127.0f / top : 0.0f;  // no overflow
  for (int e = 0; e < kMostElements; ++e) {
    const int64_t i = lane + 32 * e, at = r * c.head_dim + i;
    if (i >= c.head_dim) continue;
    if (c.dtype == DType::int8)
      static_cast<int8_t*>(c.data)[at] = static_cast<int8_t>(fine ? rintf(x[e] * inverse) : 0.0f);
    else if (c.dtype == DType::bf16)
      static_cast<uint16_t*>(c.data)[at] = to_bf16(x[e]);
    else
      static_cast<float*>(c.data)[at] = x[e];
  }
}

}  // namespace aerie::kernels::cuda
