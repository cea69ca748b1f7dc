// Rows of the cache: (head_dim) elements of one layer, K or V, slot and head.
#pragma once

#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr int kMostDim = 512, kUsualDim = 256;

__device__ inline float load_element(const KvCache& c, int64_t r, int64_t i) {
  const int64_t at = r * c.head_dim + i;
  if (c.dtype == DType::int8) return static_cast<float>(static_cast<const int8_t*>(c.data)[at]) * c.scales[r];
  if (c.dtype == DType::bf16) return from_bf16(static_cast<const uint16_t*>(c.data)[at]);
  return static_cast<const float*>(c.data)[at];
}

// 16 bytes of a row (int8_t, or uint16_t: bf16) as floats, to 16-byte aligned memory.
template <class T>
__device__ inline void widen(const uint4& bits, float scale, float* to) {
  auto* out = reinterpret_cast<float4*>(to);
  const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
  const auto code = [&](int w, int b) { return static_cast<float>(static_cast<int8_t>(words[w] >> (8 * b))) * scale; };
  const auto half = [&](int w, int h) { return from_bf16(h ? words[w] >> 16 : words[w] & 0xffff); };
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 1) out[w] = make_float4(code(w, 0), code(w, 1), code(w, 2), code(w, 3));
    else if (w % 2 == 0) out[w / 2] = make_float4(half(w, 0), half(w, 1), half(w + 1, 0), half(w + 1, 1));
  }
}

// A warp stores a row of which lane l has elements l, l + 32, ... (zeros behind the end).
template <int kElements>
__device__ inline void store_row(const KvCache& c, int64_t r, const float (&x)[kElements]) {
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
  for (int e = 0; e < kElements; ++e) {
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
