// The arithmetic of noise.h, for the host and for device code alike.
#pragma once

#include <cstdint>

#include "kernels/scalar_math.h"

namespace aerie::kernels::noise {

struct Words {
  uint32_t w[4];
};

AERIE_HOST_DEVICE inline uint32_t lo32(uint64_t v) { return static_cast<uint32_t>(v); }
AERIE_HOST_DEVICE inline uint32_t hi32(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

AERIE_HOST_DEVICE inline Words philox(Words c, uint32_t k0, uint32_t k1) {
  constexpr uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMul0) * c.w[0];
    const uint64_t p1 = static_cast<uint64_t>(kMul1) * c.w[2];
    c = {{hi32(p1) ^ c.w[1] ^ k0, lo32(p1), hi32(p0) ^ c.w[3] ^ k1, lo32(p0)}};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

// The block of tokens 4 * first to 4 * first + 3.
AERIE_HOST_DEVICE inline Words block(uint64_t seed, uint64_t stream, int64_t position, uint32_t first) {
  const auto p = static_cast<uint64_t>(position);
  return philox({{first, lo32(p), hi32(p) ^ hi32(stream), lo32(stream)}}, lo32(seed), hi32(seed));
}

// -log(u), u = (w + 0.5) * 2^-32. With c the smaller of w and its complement, y = (c + 0.5) * 2^-32
// is u itself or 1 - u, in (0, 1/2], and fits a float with full relative accuracy; 1 - u is the
// only way to tell the u next to 1 apart (they decide the upper tail of G).
AERIE_HOST_DEVICE inline float minus_log_uniform(uint32_t w) {
  const bool upper = (w >> 31) != 0;
  const auto c = static_cast<int32_t>(upper ? ~w : w);
  const float y = (static_cast<float>(c) + 0.5f) * 0x1p-32f;
  float f, e;
  if (!upper) {
    split_positive(y, &f, &e);
  } else if (y <= 0.2929f) {
    f = 0.0f - y;  // log(1 - y), 1 - y above sqrt(1/2)
    e = 0.0f;
  } else {
    f = 1.0f - (y + y);  // log(2 (1 - y)) - log 2
    e = -1.0f;
  }
  return 0.0f - log1p_reduced(f, e);
}

AERIE_HOST_DEVICE inline float gumbel_of_word(uint32_t word) { return 0.0f - log_positive(minus_log_uniform(word)); }

AERIE_HOST_DEVICE inline float gumbel(uint64_t seed, uint64_t stream, int64_t position, int32_t token) {
  const auto t = static_cast<uint32_t>(token);
  const Words words = block(seed, stream, position, t / 4);
  const uint32_t low = t % 2 ? words.w[1] : words.w[0], high = t % 2 ? words.w[3] : words.w[2];
  return gumbel_of_word(t % 4 < 2 ? low : high);
}

}  // namespace aerie::kernels::noise
