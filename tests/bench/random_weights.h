// Memory and weights for timings of ops.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>

#include "kernels/device.h"

namespace aerie::bench {

template <class T>
T* memory(kernels::Device& d, int64_t n) {
  auto* p = static_cast<T*>(d.allocate(static_cast<size_t>(n) * sizeof(T)));
  if (!p) std::abort();
  return p;
}

// Any bits do for timing, as long as they are finite: packing 128k rows value by value would take longer than a bench.
inline kernels::Tensor weights(kernels::Device& d, int64_t n, int64_t k, kernels::DType t) {
  using namespace kernels;
  const int64_t bytes = data_bytes(t, Layout::panel16, n, k), scales = scale_bytes(t, n, k);
  Tensor w{memory<char>(d, bytes), nullptr, n, k, 0, t, Layout::panel16};
  std::mt19937_64 random(static_cast<uint64_t>(n * k));
  if (t == DType::bf16) {  // +-[0.5, 1): a sign and seven bits of fraction
    auto* p = static_cast<uint16_t*>(w.data);
    for (int64_t i = 0; i < bytes / 2; ++i) p[i] = static_cast<uint16_t>((random() & 0x807f) | 0x3f00);
  } else {
    const uint64_t mask = t == DType::fp8 ? 0xbfbfbfbfbfbfbfbf : ~uint64_t{0};  // below 2, and no NaN
    for (int64_t i = 0; i + 8 <= bytes; i += 8) reinterpret_cast<uint64_t*>(w.data)[i / 8] = random() & mask;
    w.scales = memory<char>(d, scales);
    if (t == DType::mxfp4) std::fill_n(static_cast<uint8_t*>(w.scales), scales, uint8_t{120});
    else if (!is_nibbles(t)) std::fill_n(static_cast<float*>(w.scales), scales / 4, 0x1p-7f);
    else std::fill_n(static_cast<uint16_t*>(w.scales), scales / 2, uint16_t{0x2000});  // 2^-7, of q4_1 the minima, too
  }
  return w;
}

}  // namespace aerie::bench
