// Activations as the fragments that mma takes: for each group of 8 batch rows and each step of K the lanes' first words, then
// their second, ... (so a row's are 16 bytes behind one another, as warpgroup.h wants them). K is padded with zeros; rows that
// are not there are left out. bf16 weights: hi, hi, lo, lo, the row as the sum of two bf16 each, so that little is lost against
// f32. Other weights: h, h, halves, and one scale a row, a power of two that keeps the row's largest below 2^15.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr int kPrepareThreads = 1024;  // at most, as many as a row has words

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

// How many bytes of Place::rows a Linear's rows take as fragments. Behind them are the rows' scales, if they have any.
inline int64_t fragment_bytes(const Tensor& w, int64_t rows) {
  return LinearShape::up(rows, kGroupRows) * LinearShape::units_of(w.dtype, w.cols) * unit_steps(w.dtype) * 32 * (has_scales(w.dtype) ? 8 : 16);
}
inline float* row_scales(const Tensor& w, int64_t rows, char* at) {
  return has_scales(w.dtype) ? reinterpret_cast<float*>(at + fragment_bytes(w, rows)) : nullptr;
}

// A kernel that has rows in its hands leaves them so. Rows of a group that do not exist are not there.
struct Fragments {
  void* to = nullptr;       // null: nobody wants them
  int64_t words = 0;        // of a row
  float* scales = nullptr;  // wanted are halves, and a scale for each row; null: two bf16
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

// A power of two by its exponent.
__device__ inline float two_to(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

// What a row whose largest magnitude is `top` (infinite: something is not finite) is multiplied by to be halves; and its scale.
struct HalfScale {
  bool fine;  // else the whole row is NaN, through its scale
  float factor, scale;
  __device__ explicit HalfScale(float top) : fine(finite(top)) {
    const int exponent = static_cast<int>(std::bit_cast<uint32_t>(fine ? top : 0.0f) >> 23) - 127;
    const int shift = exponent > -112 ? 14 - exponent : 126;  // its inverse is no subnormal
    factor = two_to(shift);
    scale = fine ? two_to(-shift) : std::numeric_limits<float>::quiet_NaN();
  }
  __device__ uint32_t halves(float first, float second) const {
    return fine ? float_to_half(first * factor) | static_cast<uint32_t>(float_to_half(second * factor)) << 16 : 0;
  }
};
// Elements 2 i and 2 i + 1 of row r.
__device__ inline void put_halves(const Fragments& f, int64_t r, int64_t i, uint32_t halves) {
  static_cast<uint32_t*>(f.to)[word_place<2>(r, i / 2, f.words) + i % 2 * 32] = halves;
}

struct PrepareTask {
  Tensor x;
  Fragments to;
};

// Grid (rows; bf16: parts of a row): a block a row or a part of it. A row's words are numbered by (step of K, lane of the row's
// four). A thread reads several before it writes the first, for nothing is read past a write.
struct RowWords {
  static constexpr int kHeld = 4;
  int64_t r, k, words;
  int64_t first, stride;  // this thread's words
  const float* in;
  __device__ explicit RowWords(const PrepareTask& task)
      : r(blockIdx.x),
        k(task.x.cols),
        words(task.to.words),
        first(static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x),
        stride(static_cast<int64_t>(gridDim.y) * blockDim.x),
        in(row(task.x, r)) {}

  using Held = float[kHeld][4];
  // The elements of words i, i + stride, ...: those at k_of(word, 0 .. 3), 0 where there are none.
  template <class KOf>
  __device__ void read(int64_t i, const KOf& k_of, Held& x) const {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t at = k_of(i + h * stride, e);
        x[h][e] = at < k ? in[at] : 0.0f;
      }
  }
  template <class Put>
  __device__ void each(int64_t i, const Held& x, const Put& put) const {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (i + h * stride < words) put(i + h * stride, x[h]);
  }
};

__device__ inline void prepare_bf16(const PrepareTask& task) {
  if (blockIdx.x >= task.x.rows) return;
  const RowWords row(task);
  const auto k_of = [](int64_t i, int e) { return word_element(i, e / 2) + e % 2; };
  for (int64_t i = row.first; i < row.words; i += RowWords::kHeld * row.stride) {
    RowWords::Held x;
    row.read(i, k_of, x);
    row.each(i, x, [&](int64_t word, const float (&v)[4]) { put_word(task.to, row.r, word, v); });
  }
}

// The largest magnitude so far and of these; infinite where one is not finite.
__device__ inline float top_of(float top, const float (&x)[4]) {
#pragma unroll
  for (const float v : x) top = fmaxf(top, finite(v) ? fabsf(v) : kInf);
  return top;
}

// Of up to 16384 elements each is read once.
__device__ inline void prepare_half(const PrepareTask& task) {
  if (blockIdx.x >= task.x.rows) return;
  const RowWords row(task);
  const auto k_of = [](int64_t i, int e) { return i * 4 + e; };  // the four k of a word of weights, or of half a word
  RowWords::Held held, x;
  row.read(row.first, k_of, held);
  float top = 0;
  const auto look = [&](int64_t, const float (&v)[4]) { top = top_of(top, v); };
  row.each(row.first, held, look);
  const int64_t rest = row.first + RowWords::kHeld * row.stride;
#pragma unroll 1
  for (int64_t i = rest; i < row.words; i += RowWords::kHeld * row.stride) row.read(i, k_of, x), row.each(i, x, look);
  const HalfScale half(block_max(top, shared_memory<float>()));
  if (threadIdx.x == 0) task.to.scales[row.r] = half.scale;
  const auto put = [&](int64_t word, const float (&v)[4]) {
#pragma unroll
    for (int two = 0; two < 2; ++two) put_halves(task.to, row.r, 2 * word + two, half.halves(v[2 * two], v[2 * two + 1]));
  };
  row.each(row.first, held, put);
#pragma unroll 1
  for (int64_t i = rest; i < row.words; i += RowWords::kHeld * row.stride) row.read(i, k_of, x), row.each(i, x, put);
}

}  // namespace aerie::kernels::cuda
