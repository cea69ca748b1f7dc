// How Linear ends: the sums of its slices added, then scales, bias, residual.
#pragma once

#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

struct LinearEnd {
  const float* partial = nullptr;
  int64_t slices = 1, columns = 0;  // a slice is (rows, columns)
  const float* scales = nullptr;    // of rows, or null
  const float* weights = nullptr;   // int8, fp8: scales of outputs
  bool integers = false;            // int8: `partial` is i32
  Tensor bias = {}, residual = {}, out = {};
  const int32_t* ids = nullptr;     // LinearRows: a negative id's output is 0
};

constexpr int kEndThreads = 256;
inline Grid end_grid(int64_t cols, int64_t rows) { return {(cols + kEndThreads - 1) / kEndThreads, many_rows(rows)}; }

__device__ inline void add_slices(const LinearEnd& e) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= e.out.cols) return;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y) {
    if (e.ids && e.ids[r * e.out.cols + n] < 0) {
      row(e.out, r)[n] = 0;
      continue;
    }
    const float* p = e.partial + r * e.columns + n;
    float v = *p;
    if (e.integers) {
      int32_t sum = 0;
      for (int64_t s = 0; s < e.slices; ++s) sum += std::bit_cast<int32_t>(p[s * e.out.rows * e.columns]);
      v = static_cast<float>(sum);
    } else {
      for (int64_t s = 1; s < e.slices; ++s) v += p[s * e.out.rows * e.columns];
    }
    if (e.weights) v = v * e.weights[e.ids ? e.ids[r * e.out.cols + n] : n];
    if (e.scales) v = v * e.scales[r];
    if (e.bias) v = row(e.bias, 0)[n] + v;
    if (e.residual) v = row(e.residual, r)[n] + v;
    row(e.out, r)[n] = v;
  }
}

}  // namespace aerie::kernels::cuda
