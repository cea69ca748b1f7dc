// exp and log of our own for single floats. The vector forms (cpu/math-inl.h) do the same plain
// multiplications and additions in the same order, without FMA, so every ISA gives these bits.
// The constants are those of Cephes expf and logf.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#ifdef __CUDACC__
#define AERIE_HOST_DEVICE __host__ __device__
#else
#define AERIE_HOST_DEVICE
#endif

namespace aerie::kernels {

struct LogPoly {
  static constexpr float kP[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                  -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                  2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  static constexpr float kLn2Lo = -2.12194440e-4f;
  static constexpr float kLn2Hi = 0.693359375f;
};

struct ExpPoly {
  static constexpr float kP[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                  4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  static constexpr float kLog2e = 1.44269504088896341f;
  static constexpr float kLn2Hi = 0.693359375f;
  static constexpr float kLn2Lo = -2.12194440e-4f;
  static constexpr float kMin = -86.9f;         // below: 0, so that no subnormal is made
  static constexpr float kMax = 88.72f;         // above: +inf
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to nearest even
};

// p = p * x + c for the coefficients behind the first. Each is a constant of its own: device code cannot index the
// host's array.
template <class Poly, int I>
struct Coefficient {
  static constexpr float value = Poly::kP[I];
};
template <class Poly, int... I>
AERIE_HOST_DEVICE inline float horner(float x, std::integer_sequence<int, I...>) {
  float p = Coefficient<Poly, 0>::value;
  ((p = p * x + Coefficient<Poly, I + 1>::value), ...);
  return p;
}

// log(1 + f) + e * ln 2 for f in [sqrt(1/2) - 1, sqrt(2) - 1].
AERIE_HOST_DEVICE inline float log1p_reduced(float f, float e) {
  const float p = horner<LogPoly>(f, std::make_integer_sequence<int, 8>());
  const float z = f * f;
  float y = p * f * z;
  y = y + e * LogPoly::kLn2Lo;
  y = y - 0.5f * z;
  y = f + y;
  return y + e * LogPoly::kLn2Hi;
}

// Exponent and mantissa of a positive normal float, x = 2^e * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).
AERIE_HOST_DEVICE inline void split_positive(float x, float* f, float* e) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;  // sqrt(1/2)
  const uint32_t i = std::bit_cast<uint32_t>(x) + (0x3f800000u - kSqrtHalf);
  *e = static_cast<float>(static_cast<int32_t>(i >> 23) - 127);
  *f = std::bit_cast<float>((i & 0x007fffffu) + kSqrtHalf) - 1.0f;
}

// log of a positive normal finite float.
AERIE_HOST_DEVICE inline float log_positive(float x) {
  float f, e;
  split_positive(x, &f, &e);
  return log1p_reduced(f, e);
}

AERIE_HOST_DEVICE inline float exp_own(float x) {
  if (x != x) return x;
  if (x < ExpPoly::kMin) return 0.0f;
  if (x > ExpPoly::kMax) return std::numeric_limits<float>::infinity();
  const float n = (x * ExpPoly::kLog2e + ExpPoly::kRound) - ExpPoly::kRound;
  float r = x - n * ExpPoly::kLn2Hi;
  r = r - n * ExpPoly::kLn2Lo;
  float p = horner<ExpPoly>(r, std::make_integer_sequence<int, 5>());
  p = p * (r * r);
  p = p + r;
  p = p + 1.0f;
  // 2^n as 2 * 2^(n - 1): n = 128 would not fit an exponent.
  const float half = std::bit_cast<float>(static_cast<uint32_t>(static_cast<int32_t>(n) + 126) << 23);
  return p * half * 2.0f;
}

// cap * tanh(x / cap), and of what is not finite NaN (ops.h: SoftCap).
AERIE_HOST_DEVICE inline float capped(float x, float cap) {
  return (1.0f - 2.0f / (1.0f + exp_own(x / cap * 2.0f))) * cap + (x - x);
}

}  // namespace aerie::kernels
