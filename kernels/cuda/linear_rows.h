// Activations as the fragments that mma takes: for each group of 8 batch rows, each step of K and each lane the lane's
// words, rows and K padded with zeros. bf16 weights: {hi, hi, lo, lo}, the row as the sum of two bf16 each, so that little
// is lost against f32. fp8 weights: {h, h}, halves, and one scale a row, a power of two that keeps the row's largest below
// 2^15. int8/int4 weights: {q, q}, and one scale a row.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr int kPrepareThreads = 256;

// Nearly v, never past it, so never infinite when v is not.
__device__ inline uint32_t cut_to_bf16(float v) { return v != v ? 0x7fc0u : std::bit_cast<uint32_t>(v) >> 16; }

__device__ inline void split_bf16(float v, uint32_t* high, uint32_t* low) {
  *high = cut_to_bf16(v);
  *low = finite(v) ? to_bf16(v - from_bf16(*high)) : 0;
}

struct PrepareTask {
  Tensor x;
  int64_t padded_steps, padded_rows;
  void* out;
  float* scales;  // int8, fp8
};

// Grid (rows in whole groups): a block a row. A row's words are numbered by (step of K, lane of the row's four).
struct BlockRow {
  int64_t r, k, words, first;
  const float* in;  // null: padding
  __device__ explicit BlockRow(const PrepareTask& task)
      : r(blockIdx.x),
        k(task.x.cols),
        words(task.padded_steps * 4),
        first(r / kGroupRows * task.padded_steps * 32 + r % kGroupRows * 4),
        in(r < task.x.rows ? row(task.x, r) : nullptr) {}
  // Where word i goes.
  __device__ int64_t place(int64_t i) const { return first + i / 4 * 32 + i % 4; }
};

__device__ inline void prepare_bf16(const PrepareTask& task) {
  if (blockIdx.x >= task.padded_rows) return;
  const BlockRow row(task);
  for (int64_t i = threadIdx.x; i < row.words; i += kPrepareThreads) {
    const int64_t step = i / 4, t = i % 4;
    uint32_t word[4] = {};
    for (int half = 0; half < 2; ++half)
      for (int odd = 0; odd < 2; ++odd) {
        const int64_t at = step * 16 + half * 8 + 2 * t + odd;
        if (!row.in || at >= row.k) continue;
        uint32_t high, low;
        split_bf16(row.in[at], &high, &low);
        word[half] |= high << (16 * odd);
        word[2 + half] |= low << (16 * odd);
      }
    static_cast<uint4*>(task.out)[row.place(i)] = make_uint4(word[0], word[1], word[2], word[3]);
  }
}

struct RowTop {
  float top;  // largest magnitude
  bool fine;  // all are finite
};
// Of a row, by a whole block; null: there is none.
__device__ inline RowTop top_of(const float* in, int64_t k) {
  auto* shared = shared_memory<float>();
  float top = 0, bad = 0;
  for (int64_t i = threadIdx.x; in && i < k; i += kPrepareThreads) {
    top = fmaxf(top, fabsf(in[i]));
    if (!finite(in[i])) bad = 1;
  }
  if (in) {  // the same for the whole block
    top = block_max(top, shared);
    bad = block_max(bad, shared);
  }
  return {top, bad == 0.0f};
}

// A power of two by its exponent.
__device__ inline float two_to(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

__device__ inline void prepare_half(const PrepareTask& task) {
  if (blockIdx.x >= task.padded_rows) return;
  const BlockRow row(task);
  const RowTop row_top = top_of(row.in, row.k);
  const int exponent = static_cast<int>(std::bit_cast<uint32_t>(row_top.top) >> 23) - 127;
  const int shift = exponent > -112 ? 14 - exponent : 126;  // its inverse is no subnormal
  const float factor = two_to(shift);
  if (threadIdx.x == 0) task.scales[row.r] = row_top.fine ? two_to(-shift) : std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = threadIdx.x; i < row.words; i += kPrepareThreads) {
    const int64_t step = i / 4, t = i % 4;
    uint32_t word[2] = {};
    for (int half = 0; half < 2; ++half)
      for (int odd = 0; odd < 2; ++odd) {  // the four k of a word of weights
        const int64_t at = step * 16 + 4 * t + 2 * half + odd;
        if (row.in && row_top.fine && at < row.k)
          word[half] |= static_cast<uint32_t>(float_to_half(row.in[at] * factor)) << (16 * odd);
      }
    static_cast<uint2*>(task.out)[row.place(i)] = make_uint2(word[0], word[1]);
  }
}

__device__ inline void prepare_int8(const PrepareTask& task) {
  if (blockIdx.x >= task.padded_rows) return;
  const BlockRow row(task);
  const RowTop row_top = top_of(row.in, row.k);
  const float top = row_top.top;
  const bool fine = row_top.fine;  // else NaN for the whole row, through its scale
  const float inverse = fine && top > 1e-36f ? 127.0f / top : 0.0f;  // no overflow
  if (threadIdx.x == 0) task.scales[row.r] = fine ? top / 127.0f : std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = threadIdx.x; i < row.words; i += kPrepareThreads) {
    const int64_t step = i / 4, t = i % 4;
    uint32_t word[2] = {};
    for (int half = 0; half < 2; ++half)
      for (int b = 0; b < 4; ++b) {
        const int64_t at = step * 32 + half * 16 + 4 * t + b;
        if (!row.in || !fine || at >= row.k) continue;
        const float q = fminf(fmaxf(rintf(row.in[at] * inverse), -127.0f), 127.0f);
        word[half] |= (static_cast<uint32_t>(static_cast<int32_t>(q)) & 255u) << (8 * b);
      }
    static_cast<uint2*>(task.out)[row.place(i)] = make_uint2(word[0], word[1]);
  }
}

}  // namespace aerie::kernels::cuda
