// Where an element of a panel16 matrix is (tensor.h has the layout in words).
#pragma once

#include "kernels/tensor.h"

namespace aerie::kernels {

struct Panel16Place {  // of element (row, col)
  int64_t panel, lane, k, kp;
  constexpr Panel16Place(DType t, int64_t row, int64_t col, int64_t cols)
      : panel(row / kPanel), lane(row % kPanel), k(col), kp(k_padded(t, cols)) {}
  // Index of the element in units of its own size.
  constexpr int64_t f32() const { return panel * kPanel * kp + k * kPanel + lane; }
  constexpr int64_t bf16() const { return panel * kPanel * kp + k / 2 * 2 * kPanel + lane * 2 + k % 2; }
  // int8 and fp8.
  constexpr int64_t int8() const { return panel * kPanel * kp + k / 4 * 4 * kPanel + lane * 4 + k % 4; }
  // Byte, of q4_1 and mxfp4, too; the element is its low nibble when k % 32 < 16, else the high one.
  constexpr int64_t int4() const {
    const int64_t in = k % kBlock % 16;
    return panel * kPanel * kp / 2 + k / kBlock * 16 * kPanel + in / 4 * 4 * kPanel + lane * 4 + in % 4;
  }
  // int8 and fp8.
  constexpr int64_t int8_scale() const { return panel * kPanel + lane; }
  // In halves; mxfp4's in bytes.
  constexpr int64_t int4_scale() const { return (panel * (kp / kBlock) + k / kBlock) * kPanel + lane; }
  // Its minimum is kPanel behind it.
  constexpr int64_t q4_1_scale() const { return (panel * (kp / kBlock) + k / kBlock) * 2 * kPanel + lane; }
};

}  // namespace aerie::kernels
