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
  Tensor bias = {}, residual = {}, out = {};
  const int32_t* ids = nullptr;     // LinearRows: a negative id's output is 0
};

// The outputs of one row that a thread ends: kMany runs of kWide that follow one another, beginning at a multiple of kWide.
// What they add up are loads that do not wait for each other: kPieces pieces at a time, and the residual with the first. (An
// answer takes as long as everything else that is done here.)
template <int kWide, int kMany, int kPieces>
struct Ending {
  float v[kMany][kWide];

  // Runs that begin at n[...] (-1: not there) of row r.
  __device__ void sums(const LinearEnd& e, int64_t r, const int64_t (&n)[kMany]) {
    const int64_t piece = e.out.rows * e.columns;
    const float* from = e.partial + r * e.columns;
    int pieces[kMany], most = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) {
      pieces[i] = n[i] < 0 ? 0 : e.whole ? 1 : static_cast<int>(e.shape.pieces(static_cast<uint32_t>(n[i]) / (kBlockPanels * kPanel)));
      most = pieces[i] > most ? pieces[i] : most;
#pragma unroll
      for (int w = 0; w < kWide; ++w) v[i][w] = 0;
    }
#pragma unroll 1
    for (int s = 0; s < most; s += kPieces, from += kPieces * piece) {
      Run part[kMany][kPieces];
#pragma unroll
      for (int i = 0; i < kMany; ++i)
#pragma unroll
        for (int j = 0; j < kPieces; ++j)
          if (s + j < pieces[i]) part[i][j] = *reinterpret_cast<const Run*>(from + j * piece + n[i]);
#pragma unroll
      for (int i = 0; i < kMany; ++i)
#pragma unroll
        for (int j = 0; j < kPieces; ++j)
          if (s + j < pieces[i]) add(s + j == 0, part[i][j].v, v[i]);
    }
  }

  // Then scales, bias and residual, and `out` has them.
  __device__ void finish(const LinearEnd& e, int64_t r, const int64_t (&n)[kMany]) {
    const float scale = e.scales ? e.scales[r] : 1.0f;
    float residual[kMany][kWide] = {};
    if (e.residual) {
      const float* from = row(e.residual, r);
#pragma unroll
      for (int i = 0; i < kMany; ++i) {
        if (whole(from, n[i], e.out.cols)) {
          const Run run = *reinterpret_cast<const Run*>(from + n[i]);
#pragma unroll
          for (int w = 0; w < kWide; ++w) residual[i][w] = run.v[w];
          continue;
        }
#pragma unroll
        for (int w = 0; w < kWide; ++w) residual[i][w] = n[i] >= 0 && n[i] + w < e.out.cols ? from[n[i] + w] : 0.0f;
      }
    }
    sums(e, r, n);
    float* out = row(e.out, r);
#pragma unroll
    for (int i = 0; i < kMany; ++i) {
#pragma unroll
      for (int w = 0; w < kWide; ++w) {
        const int64_t at = n[i] + w;
        float& x = v[i][w];
        if (n[i] < 0 || at >= e.out.cols) {
          x = 0;
          continue;
        }
        x = scaled(e, at, scale, x);
        if (e.bias) x = row(e.bias, 0)[at] + x;
        if (e.residual) x = residual[i][w] + x;
      }
      if (whole(out, n[i], e.out.cols)) {
        store_run(out + n[i], v[i]);
        continue;
      }
#pragma unroll
      for (int w = 0; w < kWide; ++w)
        if (n[i] >= 0 && n[i] + w < e.out.cols) out[n[i] + w] = v[i][w];
    }
  }

  __device__ static float scaled(const LinearEnd& e, int64_t output, float scale, float x) {
    if (e.weights) x = x * e.weights[output];
    return e.scales ? x * scale : x;
  }

 private:
  struct alignas(4 * kWide) Run {
    float v[kWide];
  };
  // All of a run from n on is there, and one access of so many bytes may have it.
  __device__ static bool whole(const float* row, int64_t n, int64_t cols) {
    return n >= 0 && n + kWide <= cols && reinterpret_cast<uintptr_t>(row + n) % sizeof(Run) == 0;
  }
  __device__ static void add(bool first, const float (&part)[kWide], float (&to)[kWide]) {
#pragma unroll
    for (int w = 0; w < kWide; ++w) {
      to[w] = first ? part[w] : to[w] + part[w];
    }
  }
};

constexpr int kEndThreads = 64, kEndWide = 4, kFewPieces = 3, kManyPieces = 10;
inline Grid end_grid(int64_t cols, int64_t rows) {
  return {(cols + kEndThreads * kEndWide - 1) / (kEndThreads * kEndWide), many_rows(rows)};
}

// What scales output n, before it is wanted: memory may have a queue by then.
__device__ inline void scales_ahead(const LinearEnd& e, int64_t n) {
  if (e.weights && n < e.out.cols) want_soon(e.weights + n);
}

// Grid (columns, rows). kPieces: what is under way has registers, and of few pieces more threads have room for theirs.
template <int kPieces>
__device__ void add_pieces(const LinearEnd& e) {
  const int64_t n = (static_cast<int64_t>(blockIdx.x) * kEndThreads + threadIdx.x) * kEndWide;
  if (n >= e.out.cols) return;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y) Ending<kEndWide, 1, kPieces>().finish(e, r, {n});
}
// Of f32 weights and products of a library a row of `partial` has as many columns as there are, perhaps an odd number.
__device__ inline void add_odd_pieces(const LinearEnd& e) {
  const int64_t n = (static_cast<int64_t>(blockIdx.x) * kEndThreads + threadIdx.x) * kEndWide;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y)
    for (int w = 0; w < kEndWide; ++w)
      if (n + w < e.out.cols) Ending<1, 1, 1>().finish(e, r, {n + w});
}

// The same of ids. Grid (columns, rows).
__device__ inline void add_pieces_of_ids(const LinearEnd& e) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kEndThreads + threadIdx.x) * kEndWide;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y)
    for (int64_t n = first; n < first + kEndWide && n < e.out.cols; ++n) {
      const int64_t id = e.ids[r * e.out.cols + n];
      if (id < 0) {
        row(e.out, r)[n] = 0;
        continue;
      }
      const auto pieces = static_cast<int>(e.whole ? 1 : e.shape.pieces(static_cast<uint32_t>(id) / (kBlockPanels * kPanel)));
      const float* p = e.partial + r * e.columns + n;
      float v = *p;
      for (int s = 1; s < pieces; ++s) v = v + p[s * e.out.rows * e.columns];
      row(e.out, r)[n] = Ending<1, 1, 1>::scaled(e, id, e.scales ? e.scales[r] : 1.0f, v);
    }
}

}  // namespace aerie::kernels::cuda
