// OCP Microscaling's MXFP4 as files have it: 32 weights of 4 bits (E2M1) and their scale in a byte (E8M0, 2^(byte - 127)).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace aerie {

// In halves of the scale. A zero keeps its sign, so that files that hold the same weights as floats are the same model.
inline constexpr float kMxfp4Halves[16] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12};
constexpr uint8_t kMxfp4NoNumber = 255;

// Half of a scale.
inline float mxfp4_half(uint8_t scale) {
  return scale == kMxfp4NoNumber ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, scale - 128);
}

}  // namespace aerie
