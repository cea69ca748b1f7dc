// Weights as the fragments that mma takes: bf16 as they are, others as halves. fp8 and int8 are halves exactly. int4 is
// multiplied by the scale of its block there, and q4_1's minimum is added by the same instruction, which rounds once: a weight by
// 2^-11 of itself at most. (One beyond 65504, which no model has, is infinite.)
//
// mxfp4's doubled numbers are halves of one byte, which is looked up (a shift would give the numbers times 2^-14, and the scale,
// a half, would have to make up for that: none above 12 could be), and their scale is a power of two. So weights are exact, and as
// they are from 2^-24 to 65504. Of a block whose scale is less than 2^-24 all are 0; where it is more than 2^15 none is finite.
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

// The doubled E2M1 numbers (e2m1.h) of a word's lower or upper nibbles as halves. Eight of them are found by four instructions
// for both: what the compiler knows of one it has for the other.
template <bool kUpper>
__device__ inline void halves_of_e2m1(uint32_t word, uint32_t (&two)[2]) {
  constexpr uint32_t kFirstFour = 0x42403c00u, kLastFour = 0x4a484644u;  // 0, 1, 2, 3; 4, 6, 8, 12
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t magnitudes = permute_bytes(kFirstFour, kLastFour, word >> (16 * i) & 0x7777u);
    const uint32_t signs = permute_bytes(word << 4, word, i == 0 ? 0x5140 : 0x7362) & 0x80808080u;
    const uint32_t lower_and_upper = magnitudes | signs;
    two[i] = kUpper ? lower_and_upper & 0xff00ff00u : permute_bytes(lower_and_upper, 0, 0x2404);
  }
}

// What a thread reads of a unit's weights at a time: those of one step, of nibbles two.
template <DType kType>
struct WeightWords {
  static constexpr int kSteps = is_nibbles(kType) ? 2 : 1;
  uint4 first, second;  // bf16: both
  uint2 scales;         // int4, q4_1: of its four rows
  uint2 minima;         // q4_1
  uint32_t powers;      // mxfp4: bytes of its four rows

  // `weights`: this thread's of the unit's first load. `of_blocks`: the scales of its rows, in the unit's first block.
  __device__ void read(const uint4* weights, const char* of_blocks, int step) {
    constexpr int kLoads = kType == DType::bf16 ? 2 : 1;
    first = weights[step / kSteps * kLoads * kPanelThreads];
    if constexpr (kType == DType::bf16) second = weights[(step * kLoads + 1) * kPanelThreads];
    if constexpr (is_nibbles(kType)) {
      const char* block = of_blocks + step / kSteps * kBlockScales<kType>;
      if constexpr (kType == DType::mxfp4) powers = *reinterpret_cast<const uint32_t*>(block);
      else scales = *reinterpret_cast<const uint2*>(block);
      if constexpr (kType == DType::q4_1) minima = *reinterpret_cast<const uint2*>(block + kPanel * kScaleSize<kType>);
    }
  }

  // The fragments of two tiles, of whose rows g and g + 8 the thread has the first two and the last two of its four.
  __device__ void fragments(int step, uint32_t (&a)[2][4]) const {
    if constexpr (kType == DType::bf16) {
      a[0][0] = first.x, a[0][1] = first.y, a[0][2] = second.x, a[0][3] = second.y;
      a[1][0] = first.z, a[1][1] = first.w, a[1][2] = second.z, a[1][3] = second.w;
    } else {
      const uint32_t w[4] = {first.x, first.y, first.z, first.w};
#pragma unroll
      for (int row = 0; row < 4; ++row) {
        uint32_t two[2];
        halves(w[row], row, step, two);
        a[row / 2][row % 2] = two[0], a[row / 2][row % 2 + 2] = two[1];
      }
    }
  }

 private:
  __device__ void halves(uint32_t word, int row, int step, uint32_t (&two)[2]) const {
    if constexpr (kType == DType::fp8) {
      two[0] = halves_of_e4m3(word & 0xffffu), two[1] = halves_of_e4m3(word >> 16);
    } else if constexpr (kType == DType::int8) {
      halves_of_bytes<128>(word ^ 0x80808080u, two);
    } else if constexpr (kType == DType::mxfp4) {
      if (step % 2) halves_of_e2m1<true>(word, two);
      else halves_of_e2m1<false>(word, two);
      const uint32_t scale = power(row);
#pragma unroll
      for (uint32_t& h : two) h = multiply_halves(h, scale);
    } else {
      halves_of_bytes<kType == DType::int4 ? 8 : 0>((step % 2 ? word >> 4 : word) & 0x0f0f0f0fu, two);
      const uint32_t scale = twice(scales, row);
#pragma unroll
      for (uint32_t& h : two)
        if constexpr (kType == DType::int4) h = multiply_halves(h, scale);
        else h = multiply_add_halves(h, scale, twice(minima, row));
    }
  }
  // A row's power of two, whose byte is a float's exponent, as a half in both halves.
  __device__ uint32_t power(int row) const {
    return float_to_halves(std::bit_cast<float>((row < 3 ? powers << (23 - 8 * row) : powers >> 1) & 0x7f800000u));
  }
  // A row's half, in both halves.
  __device__ static uint32_t twice(const uint2& of_rows, int row) {
    return permute_bytes(row < 2 ? of_rows.x : of_rows.y, 0, row % 2 ? 0x3232 : 0x1010);
  }
};

}  // namespace aerie::kernels::cuda
