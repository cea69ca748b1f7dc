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

// Of outputs n[...] of row r (of ids: id[...]), many at once: they are loads that do not wait for each other.
template <int kMany>
__device__ void linear_end(const LinearEnd& e, int64_t r, const int64_t (&n)[kMany], const int64_t (&output)[kMany], float (&v)[kMany]) {
  constexpr int kPieces = 4;
  const int64_t piece = e.out.rows * e.columns;
  int pieces[kMany], most = 0;
#pragma unroll
  for (int i = 0; i < kMany; ++i) {
    pieces[i] = output[i] < 0 ? 0 : e.whole ? 1 : static_cast<int>(e.shape.pieces(static_cast<uint32_t>(output[i] / (kBlockPanels * kPanel))));
    most = pieces[i] > most ? pieces[i] : most;
    v[i] = 0;
  }
  for (int s = 0; s < most; s += kPieces) {
    float part[kMany][kPieces];
#pragma unroll
    for (int i = 0; i < kMany; ++i)
#pragma unroll
      for (int j = 0; j < kPieces; ++j) part[i][j] = s + j < pieces[i] ? e.partial[(s + j) * piece + r * e.columns + n[i]] : 0.0f;
#pragma unroll
    for (int i = 0; i < kMany; ++i)
#pragma unroll
      for (int j = 0; j < kPieces; ++j) {
        if (s + j == 0) v[i] = part[i][0];
        else if (s + j >= pieces[i]) continue;
        else if (e.integers) v[i] = std::bit_cast<float>(std::bit_cast<int32_t>(v[i]) + std::bit_cast<int32_t>(part[i][j]));
        else v[i] = v[i] + part[i][j];
      }
  }
#pragma unroll
  for (int i = 0; i < kMany; ++i) {
    if (output[i] < 0) continue;
    if (e.integers) v[i] = static_cast<float>(std::bit_cast<int32_t>(v[i]));
    if (e.weights) v[i] = v[i] * e.weights[output[i]];
    if (e.scales) v[i] = v[i] * e.scales[r];
    if (e.bias) v[i] = row(e.bias, 0)[n[i]] + v[i];
    if (e.residual) v[i] = row(e.residual, r)[n[i]] + v[i];
  }
}
// Of a Linear of all outputs, by a kernel that goes on with them: they are stored, too. Where n is -1 there is none.
template <int kMany>
__device__ void finish_linear(const LinearEnd& e, int64_t r, const int64_t (&n)[kMany], float (&v)[kMany]) {
  linear_end(e, r, n, n, v);
#pragma unroll
  for (int i = 0; i < kMany; ++i)
    if (n[i] >= 0) row(e.out, r)[n[i]] = v[i];
}

constexpr int kEndThreads = 256;
inline Grid end_grid(int64_t cols, int64_t rows) { return {(cols + kEndThreads - 1) / kEndThreads, many_rows(rows)}; }

__device__ inline void add_pieces(const LinearEnd& e) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= e.out.cols) return;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y) {
    float v[1];
    linear_end(e, r, {n}, {e.ids ? int64_t{e.ids[r * e.out.cols + n]} : n}, v);
    row(e.out, r)[n] = v[0];
  }
}

}  // namespace aerie::kernels::cuda
