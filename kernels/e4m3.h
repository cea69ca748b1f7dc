// E4M3, the 8-bit float that fp8 weights are made of: sign, 4 bits of exponent (bias 7), 3 of fraction, subnormals; no
// infinity; all lower seven bits set is NaN. The largest is 448.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

constexpr float kMostE4m3 = 448.0f;
constexpr uint32_t kNanE4m3 = 0x7f;

// Without subnormal floats on the way, which some processors are slow with: of both forms of a number, with the hidden bit
// and (twice as large) less it, the right one is the smaller.
AERIE_HOST_DEVICE inline float from_e4m3(uint32_t code) {
  const uint32_t magnitude = code & 127u;
  if (magnitude == kNanE4m3) return std::numeric_limits<float>::quiet_NaN();
  const auto normal = std::bit_cast<float>((magnitude << 20) + (120u << 23));
  const float other = std::bit_cast<float>((magnitude << 20) + (121u << 23)) - 0x1p-6f;
  const float v = normal < other ? normal : other;
  return code & 128u ? -v : v;
}

// Nearest, ties to even; beyond the range the largest; not of NaN.
inline uint8_t to_e4m3(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v), sign = bits >> 24 & 128u, magnitude = bits & 0x7fffffffu;
  const auto a = std::bit_cast<float>(magnitude);
  uint32_t code;
  if (a < 0x1p-6f) code = std::bit_cast<uint32_t>(a + 0x1p14f) & 15u;  // its last bit is worth 2^-9
  else if (a >= kMostE4m3) code = kNanE4m3 - 1;
  else code = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
  return static_cast<uint8_t>(sign | code);
}

}  // namespace aerie::kernels
