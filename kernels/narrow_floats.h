// bf16 and half, the 16-bit floats, as numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

AERIE_HOST_DEVICE inline float from_bf16(uint32_t code) { return std::bit_cast<float>(code << 16); }
// Nearest, ties to even; a NaN stays a NaN.
AERIE_HOST_DEVICE inline uint16_t to_bf16(float v) {
  const auto u = std::bit_cast<uint32_t>(v);
  if (v != v) return static_cast<uint16_t>(u >> 16 | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

inline float from_half(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  float v;
  if (exponent == 31) v = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  else if (exponent == 0) v = static_cast<float>(fraction) * 0x1p-24f;
  else v = std::bit_cast<float>(static_cast<uint32_t>((exponent + 112) << 23 | fraction << 13));
  return h & 0x8000 ? -v : v;
}
// Nearest, ties to even; beyond the range the largest finite.
inline uint16_t to_half(float v) {
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const float a = std::fabs(v);
  if (!(a < 65520.0f)) return static_cast<uint16_t>(sign | 0x7bff);
  if (a < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(a * 0x1p24f)));
  auto u = std::bit_cast<uint32_t>(a);
  u += 0xfff + (u >> 13 & 1);
  return static_cast<uint16_t>(sign | ((u >> 13) - (112 << 10)));
}

}  // namespace aerie::kernels
