// Activations as the fragments that mma takes: for each group of 8 batch rows and each step of K the lanes' first words, then
// their second, ... (so a row's are 16 bytes behind one another, as warpgroup.h wants them). K is padded with zeros; rows that
// are not there are left out. bf16 weights: hi, hi, lo, lo, the row as the sum of two bf16 each, so that little is lost against
// f32. fp8 weights: h, h, halves, and one scale a row, a power of two that keeps the row's largest below 2^15. int8/int4
// weights: q, q, and one scale a row.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr int kPrepareThreads = 1024;  // a row is one block's

// v as the sum of two bf16. The first is the nearest, but never infinite when v is not.
__device__ inline void split_bf16(float v, uint32_t* high, uint32_t* low) {
  *high = to_bf16(v);
  if (finite(v) && !finite(from_bf16(*high))) *high = std::bit_cast<uint32_t>(v) >> 16;
  *low = finite(v) ? to_bf16(v - from_bf16(*high)) : 0;
}

// Where the first of kWords words is of row r's lane i % 4 in step i / 4, `words` = 4 steps a row; the others are 32 words apart.
template <int kWords>
__device__ inline int64_t word_place(int64_t r, int64_t i, int64_t words) {
  return (r / kGroupRows * (words / 4) + i / 4) * (32 * kWords) + r % kGroupRows * 4 + i % 4;
}

// Of bf16 weights: a kernel that has rows in its hands leaves them so. Rows of a group that do not exist are not there.
struct Fragments {
  void* to = nullptr;  // null: nobody wants them
  int64_t words = 0;   // of a row
};
// The first element of pair `pair` of a row's word i.
__device__ inline int64_t word_element(int64_t i, int pair) { return i / 4 * 16 + pair * 8 + i % 4 * 2; }
__device__ inline void put_word(const Fragments& f, int64_t r, int64_t i, const float (&x)[4]) {
  uint32_t word[4] = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    uint32_t high, low;
    split_bf16(x[e], &high, &low);
    word[e / 2] |= high << (e % 2 * 16);
    word[2 + e / 2] |= low << (e % 2 * 16);
  }
  auto* to = static_cast<uint32_t*>(f.to) + word_place<4>(r, i, f.words);
#pragma unroll
  for (int w = 0; w < 4; ++w) to[w * 32] = word[w];
}

struct PrepareTask {
  Tensor x;
  int64_t padded_steps;
  void* out;
  float* scales;  // int8, fp8
};

// Grid (rows; bf16: parts of a row): a block a row or a part of it. A row's words are numbered by (step of K, lane of the row's four).
struct BlockRow {
  int64_t r, k, words;
  const float* in;
  __device__ explicit BlockRow(const PrepareTask& task)
      : r(blockIdx.x),
        k(task.x.cols),
        words(task.padded_steps * 4),
        in(row(task.x, r)) {}
  __device__ void put(void* out, int64_t i, const uint32_t (&word)[2]) const {
    auto* to = static_cast<uint32_t*>(out) + word_place<2>(r, i, words);
    to[0] = word[0];
    to[32] = word[1];
  }

  // write(i, x): word i and the n floats that it is made of, at k_of(i, 0), k_of(i, 1), ...; padding is 0. A thread reads
  // several words before it writes the first, for nothing is read past a write.
  template <int n, class KOf, class Write>
  __device__ void each_word(const KOf& k_of, const Write& write) const {
    constexpr int kHeld = 16 / n;
    const int64_t step = static_cast<int64_t>(gridDim.y) * kPrepareThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.y) * kPrepareThreads + threadIdx.x; i < words; i += kHeld * step) {
      float x[kHeld][n];
#pragma unroll
      for (int h = 0; h < kHeld; ++h)
#pragma unroll
        for (int e = 0; e < n; ++e) {
          const int64_t at = k_of(i + h * step, e);
          x[h][e] = at < k ? in[at] : 0.0f;
        }
#pragma unroll
      for (int h = 0; h < kHeld; ++h)
        if (i + h * step < words) write(i + h * step, x[h]);
    }
  }
};

__device__ inline void prepare_bf16(const PrepareTask& task) {
  if (blockIdx.x >= task.x.rows) return;
  const BlockRow row(task);
  const auto k_of = [](int64_t i, int e) { return word_element(i, e / 2) + e % 2; };
  row.each_word<4>(k_of, [&](int64_t i, const float (&x)[4]) { put_word({task.out, row.words}, row.r, i, x); });
}

// The largest magnitude of a row, by a whole block; infinite where one is not finite.
__device__ inline float top_of(const float* in, int64_t k) {
  float top = 0;
  for (int64_t i = threadIdx.x; i < k; i += kPrepareThreads) top = fmaxf(top, finite(in[i]) ? fabsf(in[i]) : kInf);
  return block_max(top, shared_memory<float>());
}

// A power of two by its exponent.
__device__ inline float two_to(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

__device__ inline void prepare_half(const PrepareTask& task) {
  if (blockIdx.x >= task.x.rows) return;
  const BlockRow row(task);
  const float top = top_of(row.in, row.k);
  const bool fine = finite(top);  // else NaN for the whole row, through its scale
  const int exponent = static_cast<int>(std::bit_cast<uint32_t>(fine ? top : 0.0f) >> 23) - 127;
  const int shift = exponent > -112 ? 14 - exponent : 126;  // its inverse is no subnormal
  const float factor = two_to(shift);
  if (threadIdx.x == 0) task.scales[row.r] = fine ? two_to(-shift) : std::numeric_limits<float>::quiet_NaN();
  const auto k_of = [](int64_t i, int e) { return i * 4 + e; };  // the four k of a word of weights
  row.each_word<4>(k_of, [&](int64_t i, const float (&x)[4]) {
    uint32_t word[2] = {};
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (fine) word[e / 2] |= static_cast<uint32_t>(float_to_half(x[e] * factor)) << (e % 2 * 16);
    row.put(task.out, i, word);
  });
}

__device__ inline void prepare_int8(const PrepareTask& task) {
  if (blockIdx.x >= task.x.rows) return;
  const BlockRow row(task);
  const float top = top_of(row.in, row.k);
  const bool fine = finite(top);
  const float inverse = fine && top > 1e-36f ? 127.0f / top : 0.0f;  // no overflow
  if (threadIdx.x == 0) task.scales[row.r] = fine ? top / 127.0f : std::numeric_limits<float>::quiet_NaN();
  const auto k_of = [](int64_t i, int e) { return i / 4 * 32 + e / 4 * 16 + i % 4 * 4 + e % 4; };
  row.each_word<8>(k_of, [&](int64_t i, const float (&x)[8]) {
    uint32_t word[2] = {};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float q = fine ? fminf(fmaxf(rintf(x[e] * inverse), -127.0f), 127.0f) : 0.0f;
      word[e / 4] |= (static_cast<uint32_t>(static_cast<int32_t>(q)) & 255u) << (e % 4 * 8);
    }
    row.put(task.out, i, word);
  });
}

}  // namespace aerie::kernels::cuda
