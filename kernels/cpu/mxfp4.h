// Weights as mxfp4: 32 share a power of two (kernels/e2m1.h).
#pragma once

#include "kernels/tensor.h"

namespace aerie::kernels {

struct Mxfp4Block {
  uint8_t scale;
  uint8_t codes[kBlock];
};

// n weights, 1 .. kBlock of them; behind them zeros. Weights that are MXFP4 already stay as they are, if their scale is not 0.
// Others are rounded to the nearest, ties to the even code, with that of two scales which loses less (squares): the one by which the
// largest weight is at most 6, or 4 to 8.
Mxfp4Block quantise_mxfp4(const float* w, int64_t n);

}  // namespace aerie::kernels
