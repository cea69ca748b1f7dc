// What mxfp4 weights are made of (OCP Microscaling Formats v1.0). E2M1, a float of 4 bits: sign, 2 bits of exponent (bias 1), 1 of
// fraction; 0, 0.5, 1, 1.5, 2, 3, 4, 6. Doubled they are integers, and the scale is of these: 2^(byte - 127), byte 0 is 0. So it is
// one less than the E8M0 scale that files have.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

constexpr int8_t kE2m1Twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr float kMostE2m1Twice = 12;

// The same by arithmetic, where a table is far.
AERIE_HOST_DEVICE inline int32_t e2m1_twice(uint32_t code) {
  const uint32_t magnitude = code & 7u;
  const auto twice = static_cast<int32_t>(magnitude < 2 ? magnitude : (2u | (magnitude & 1u)) << (magnitude >> 1) >> 1);
  return code & 8u ? -twice : twice;
}
AERIE_HOST_DEVICE inline float mxfp4_scale(uint8_t byte) { return std::bit_cast<float>(uint32_t{byte} << 23); }

}  // namespace aerie::kernels
