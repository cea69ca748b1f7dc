#include "kernels/cpu/mxfp4.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/e2m1.h"

namespace aerie::kernels {

namespace {

// Of a magnitude, doubled, in units of the scale.
uint8_t nearest_e2m1(float twice) {
  constexpr float kHalfWay[] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};  // from a code to the next
  uint8_t code = 0;
  for (const float way : kHalfWay) code = static_cast<uint8_t>(code + (code % 2 ? twice >= way : twice > way));
  return code;
}

Mxfp4Block with_scale(const float* w, int64_t n, int scale, double* lost) {
  Mxfp4Block block{static_cast<uint8_t>(scale), {}};
  const double step = std::ldexp(1.0, scale - 127);
  *lost = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double twice = std::fabs(static_cast<double>(w[i])) / step;
    const uint8_t code = nearest_e2m1(static_cast<float>(twice));
    const double off = twice - kE2m1Twice[code];
    *lost += off * off * step * step;
    block.codes[i] = static_cast<uint8_t>(code | (std::signbit(w[i]) && code != 0 ? 8 : 0));
  }
  return block;
}

}  // namespace

Mxfp4Block quantise_mxfp4(const float* w, int64_t n) {
  float top = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, std::fabs(w[i]));
  // A power of two by which the largest is 8 to 16.
  const int fit = static_cast<int>(std::bit_cast<uint32_t>(top) >> 23) - 3;
  if (top == 0) return {};
  constexpr int kLeast = 1, kMost = 254;
  double lost_more, lost;
  const Mxfp4Block finer = with_scale(w, n, std::clamp(fit, kLeast, kMost), &lost), coarser = with_scale(w, n, std::clamp(fit + 1, kLeast, kMost), &lost_more);
  return lost_more < lost ? coarser : finer;
}

}  // namespace aerie::kernels
