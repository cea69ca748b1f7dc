// How Linear ends: the sums of its pieces added, then scales, bias, residual.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

struct LinearEnd {
  const float* partial = nullptr;
  int64_t columns = 0;              // a piece is (rows, columns)
  LinearShape shape{DType::bf16, 1, 1};
  bool whole = true;                // there is one piece
  const float* scales = nullptr;    // of rows, or null
  const float* weights = nullptr;   // int8, fp8: scales of outputs
  bool integers = false;            // int8: `partial` is i32
  Tensor bias = {}, residual = {}, out = {};
  const int32_t* ids = nullptr;     // LinearRows: a negative id's output is 0
};

constexpr int kEndThreads = 256;
inline Grid end_grid(int64_t cols, int64_t rows) { return {(cols + kEndThreads - 1) / kEndThreads, many_rows(rows)}; }

__device__ inline void add_pieces(const LinearEnd& e) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= e.out.cols) return;
  const int64_t piece = e.out.rows * e.columns;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y) {
    const int64_t output = e.ids ? e.ids[r * e.out.cols + n] : n;
    if (output < 0) {
      row(e.out, r)[n] = 0;
      continue;
    }
    const auto pieces = static_cast<int>(e.whole ? 1 : e.shape.pieces(static_cast<uint32_t>(output / (kBlockPanels * kPanel))));
    const float* p = e.partial + r * e.columns + n;
    float v = *p;
    if (e.integers) {
      int32_t sum = std::bit_cast<int32_t>(v);
#pragma unroll 4
      for (int s = 1; s < pieces; ++s) sum += std::bit_cast<int32_t>(p[s * piece]);
      v = static_cast<float>(sum);
    } else {
#pragma unroll 4
      for (int s = 1; s < pieces; ++s) v += p[s * piece];
    }
    if (e.weights) v = v * e.weights[output];
    if (e.scales) v = v * e.scales[r];
    if (e.bias) v = row(e.bias, 0)[n] + v;
    if (e.residual) v = row(e.residual, r)[n] + v;
    row(e.out, r)[n] = v;
  }
}

}  // namespace aerie::kernels::cuda
