// Weights to the numbers of q4_1 (tensor.h).
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace aerie::kernels {

struct Q4_1Block {
  uint16_t scale = 0, min = 0;  // IEEE halves
  uint8_t codes[kBlock] = {};   // 0..15: weight = scale * code + min
};

// n <= kBlock weights. Those that lie on a grid of at most 16 levels, as weights do that were 4-bit before (Q4_0, Q4_1, Q4_K, or
// quantised with a zero point), keep their levels: exactly, where scale and minimum are halves (a block of one value: to 22 bits). Of others the scale and the minimum are those of
// the least squares, which weigh large weights more.
Q4_1Block quantise_q4_1(const float* w, int64_t n);

}  // namespace aerie::kernels
