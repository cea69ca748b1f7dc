// Weights as the fragments that mma takes: bf16 as they are, others as halves. fp8 and int8 are halves exactly. int4 is
// multiplied by the scale of its block there, which rounds: a weight by 2^-11 of itself at most. (With a scale beyond 8188, which no
// model has, it is infinite.)
#pragma once

#include "kernels/cuda/linear_stage.h"

namespace aerie::kernels::cuda {

// Two E4M3 numbers (e4m3.h) as halves, the lower byte's in the lower half: exactly. What newer devices have as one
// instruction: an exponent that is 8 too small, and a NaN where there is one.
__device__ inline uint32_t halves_of_e4m3(uint32_t two) {
#ifdef AERIE_E4M3_IN_HARDWARE
  return convert_e4m3(static_cast<uint16_t>(two));
#else
  constexpr uint32_t k256 = 0x5c005c00u;
  const uint32_t high = (two & 0xffu) << 8 | (two & 0xff00u) << 16, magnitude = high & 0x7f007f00u;
  const uint32_t nan = (magnitude + 0x01000100u) >> 15 & 0x00010001u;
  return multiply_halves(magnitude >> 1, k256) | (high & 0x80008000u) | nan * 0x7fffu;
#endif
}

// Four bytes, each less kZero, as halves: behind 1024's upper byte each is a half already, 1024 more.
template <uint32_t kZero>
__device__ inline void halves_of_bytes(uint32_t bytes, uint32_t (&two)[2]) {
  constexpr uint32_t k1024 = 0x64006400u, kOf1024 = 0x64646464u;
#pragma unroll
  for (int i = 0; i < 2; ++i) two[i] = subtract_halves(permute_bytes(bytes, kOf1024, i == 0 ? 0x4140 : 0x4342), k1024 + kZero * 0x00010001u);
}

// Of steps 2 i and 2 i + 1: a[step][tile] are the fragments of two tiles. `weights`: this thread's of the unit's first load; its
// four rows are rows g and g + 8 of tile 0, then of tile 1. `scales`: int4's of those rows, in the unit's first block.
template <DType kType>
__device__ inline void weights_of(const uint4* weights, const uint16_t* scales, int i, uint32_t (&a)[2][2][4]) {
  if constexpr (kType == DType::int4) {
    constexpr uint32_t kLow = 0x0f0f0f0fu, kZero = 8;
    const uint4 u = weights[i * kPanelThreads];
    const auto scale = *reinterpret_cast<const uint2*>(scales + i * kPanel);
    const uint32_t w[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      const uint32_t twice = permute_bytes(row < 2 ? scale.x : scale.y, 0, row % 2 ? 0x3232 : 0x1010);
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        uint32_t two[2];
        halves_of_bytes<kZero>((step ? w[row] >> 4 : w[row]) & kLow, two);
#pragma unroll
        for (int h = 0; h < 2; ++h) a[step][row / 2][row % 2 + 2 * h] = multiply_halves(two[h], twice);
      }
    }
  } else {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      if constexpr (kType == DType::bf16) {
        const uint4 u = weights[(4 * i + 2 * step) * kPanelThreads], v = weights[(4 * i + 2 * step + 1) * kPanelThreads];
        const uint32_t first[4] = {u.x, u.y, v.x, v.y}, second[4] = {u.z, u.w, v.z, v.w};
#pragma unroll
        for (int r = 0; r < 4; ++r) a[step][0][r] = first[r], a[step][1][r] = second[r];
      } else {
        const uint4 u = weights[(2 * i + step) * kPanelThreads];
        const uint32_t w[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
        for (int row = 0; row < 4; ++row) {
          uint32_t two[2];
          if constexpr (kType == DType::int8) halves_of_bytes<128>(w[row] ^ 0x80808080u, two);
          else two[0] = halves_of_e4m3(w[row] & 0xffffu), two[1] = halves_of_e4m3(w[row] >> 16);
          a[step][row / 2][row % 2] = two[0], a[step][row / 2][row % 2 + 2] = two[1];
        }
      }
    }
  }
}

}  // namespace aerie::kernels::cuda
