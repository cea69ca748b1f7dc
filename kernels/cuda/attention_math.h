// What attention over a bf16 cache does with single numbers: in few instructions and without branches, for these are most of
// its work, and with a branch for each a thread would wait for one after another.
#pragma once

#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

// exp of what is not above 0, by exp_own's polynomial in FMAs.
__device__ inline float exp_below(float x) {
  const bool least = x < ExpPoly::kMin;
  const float in = least ? ExpPoly::kMin : x;  // a NaN stays one, to the end
  const float shifted = fmaf(in, ExpPoly::kLog2e, ExpPoly::kRound), n = shifted - ExpPoly::kRound;
  const float r = fmaf(n, -ExpPoly::kLn2Lo, fmaf(n, -ExpPoly::kLn2Hi, in));
  float p = Coefficient<ExpPoly, 0>::value;
  p = fmaf(p, r, Coefficient<ExpPoly, 1>::value);
  p = fmaf(p, r, Coefficient<ExpPoly, 2>::value);
  p = fmaf(p, r, Coefficient<ExpPoly, 3>::value);
  p = fmaf(p, r, Coefficient<ExpPoly, 4>::value);
  p = fmaf(p, r, Coefficient<ExpPoly, 5>::value);
  p = fmaf(p, r * r, r) + 1.0f;
  const float two_to_n = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127) << 23);  // n is what has been shifted in
  return least ? 0.0f : p * two_to_n;
}

// Two bf16, nearest to a (in the lower half) and b.
__device__ inline uint32_t pack_bf16(float a, float b) {
#ifdef __CUDACC__
  uint32_t two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(b), "f"(a));
  return two;
#else
  return to_bf16(a) | uint32_t{to_bf16(b)} << 16;
#endif
}
// Each as the sum of two bf16, in words of fragments.
__device__ inline void split_pair(float a, float b, uint32_t* high, uint32_t* low) {
  *high = pack_bf16(a, b);
  *low = pack_bf16(a - std::bit_cast<float>(*high << 16), b - std::bit_cast<float>(*high & 0xffff0000u));
}
// Of what may be so large that the nearest bf16 is infinite. (What is infinite, or a NaN, is in the low part then.)
__device__ inline void split_any_pair(float a, float b, uint32_t* high, uint32_t* low) {
  constexpr float kMost = std::bit_cast<float>(0x7f7f0000u);
  *high = pack_bf16(fminf(fmaxf(a, -kMost), kMost), fminf(fmaxf(b, -kMost), kMost));
  *low = pack_bf16(a - std::bit_cast<float>(*high << 16), b - std::bit_cast<float>(*high & 0xffff0000u));
}

}  // namespace aerie::kernels::cuda
