// Tensor: a borrowed 2-D view of device memory. Whoever made the memory owns it.
//
// Shapes are (rows, cols). A weight matrix is (N outputs, K inputs); activations are
// (R rows of a batch, width). A vector is 1 row.
//
// Layouts
//   row_major  element (r, c) at data[r * stride + c]
//   panel16    weights packed for streaming: panels of 16 output rows, N padded to a multiple of
//              16 and K to k_padded() with zeros. Element order, for panel p, lane l (row 16p+l):
//     f32    [p][k][l]
//     bf16   [p][k/2][l][k%2]                         K padded to 2
//     int8   [p][k/4][l][k%4]        int8, w = scale * q          K padded to 32
//     fp8    the same                E4M3 (e4m3.h), w = scale * code
//     int4   [p][k/32][j 0..3][l][i 0..3] bytes; the byte (j, l, i) holds k = 32b + 4j + i in its
//            low nibble and k = 32b + 16 + 4j + i in its high nibble; w = scale * (q - 8)
//     q4_1   the same bytes as int4       w = scale * q + min   (llama.cpp's Q4_1)
//     mxfp4  the same bytes as int4       w = scale * (E2M1 number, e2m1.h)   (OCP Microscaling's MXFP4)
//     scales: int8 and fp8 f32, one a row: [p][l]; int4 IEEE half, one for 32 weights: [p][k/32][l]; q4_1 the same, and behind
//     the 16 scales of a block of a panel their 16 minima: [p][k/32][scale, min][l];
//     mxfp4 a byte, one for 32 weights as int4's, a power of two (e2m1.h)
//   The layout is the same on every ISA, so a package maps straight into the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie::kernels {

enum class DType : uint8_t { f32 = 0, bf16 = 1, int8 = 2, int4 = 3, i32 = 4, fp8 = 5, q4_1 = 6, mxfp4 = 7 };
enum class Layout : uint8_t { row_major = 0, panel16 = 1 };

constexpr int kPanel = 16;  // output rows in a panel
constexpr int kBlock = 32;  // of 4-bit types: weights sharing a scale; K of what has scales is padded to it
constexpr int64_t kMaxInt8Cols = 131072;  // so that a sum of products of int8 fits int32

struct Tensor {
  void* data = nullptr;    // device address; null means "absent"
  void* scales = nullptr;  // has_scales only, see above
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;      // row_major: elements from one row to the next
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;

  constexpr explicit operator bool() const { return data != nullptr; }
};

constexpr bool has_row(const Tensor& t, int64_t r) { return r >= 0 && r < t.rows; }
constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The same bytes, with other scales.
constexpr bool is_nibbles(DType t) { return t == DType::int4 || t == DType::q4_1 || t == DType::mxfp4; }
constexpr bool has_scales(DType t) { return t == DType::int8 || is_nibbles(t) || t == DType::fp8; }
// The types that matrices of weights have.
constexpr bool is_weight(DType t) { return t <= DType::mxfp4 && t != DType::i32; }
// They meet activations that are integers too.
constexpr bool is_integer(DType t) { return t == DType::int8 || is_nibbles(t); }

constexpr int64_t k_padded(DType t, int64_t k) {
  return t == DType::bf16 ? round_up(k, 2) : has_scales(t) ? round_up(k, kBlock) : k;
}

// Bytes of `data` for a matrix of this shape; scales are counted apart.
constexpr int64_t data_bytes(DType t, Layout layout, int64_t rows, int64_t cols) {
  const int64_t n = layout == Layout::panel16 ? round_up(rows, kPanel) : rows;
  const int64_t k = layout == Layout::panel16 ? k_padded(t, cols) : cols;
  switch (t) {
    case DType::f32:
    case DType::i32: return n * k * 4;
    case DType::bf16: return n * k * 2;
    case DType::int8:
    case DType::fp8: return n * k;
    case DType::int4:
    case DType::q4_1:
    case DType::mxfp4: return n * k / 2;
  }
  return 0;
}

constexpr int64_t scale_bytes(DType t, int64_t rows, int64_t cols) {
  if (t == DType::int8 || t == DType::fp8) return round_up(rows, kPanel) * 4;
  const int64_t of_block = t == DType::q4_1 ? 4 : t == DType::int4 ? 2 : t == DType::mxfp4 ? 1 : 0;
  return of_block * round_up(rows, kPanel) * (round_up(cols, kBlock) / kBlock);
}

// A row-major f32 (or i32) view.
inline Tensor matrix(void* data, int64_t rows, int64_t cols, DType t = DType::f32) {
  return Tensor{data, nullptr, rows, cols, cols, t, Layout::row_major};
}

// Columns [first, first + n) of a row-major tensor; rows keep their stride.
inline Tensor columns(const Tensor& t, int64_t first, int64_t n) {
  Tensor v = t;
  const int64_t size = t.dtype == DType::bf16 ? 2 : 4;
  v.data = static_cast<char*>(t.data) + first * size;
  v.cols = n;
  return v;
}

// Rows [first, first + n) of a row-major tensor.
inline Tensor rows(const Tensor& t, int64_t first, int64_t n) {
  Tensor v = t;
  const int64_t size = t.dtype == DType::bf16 ? 2 : 4;
  v.data = static_cast<char*>(t.data) + first * t.stride * size;
  v.rows = n;
  return v;
}

// Panels [first, first + n) of packed weights, fewer where they end.
inline Tensor panels(const Tensor& w, int64_t first, int64_t n) {
  Tensor v = w;
  v.data = static_cast<char*>(w.data) + data_bytes(w.dtype, Layout::panel16, first * kPanel, w.cols);
  if (w.scales) v.scales = static_cast<char*>(w.scales) + scale_bytes(w.dtype, first * kPanel, w.cols);
  v.rows = w.rows - first * kPanel < n * kPanel ? w.rows - first * kPanel : n * kPanel;
  return v;
}

}  // namespace aerie::kernels
