// Rows of activations as the matrix unit reads them: tiles of 16 rows, and in each tile after tile of columns.
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_codes-inl.h"
#include "kernels/cpu/linear_matrix.h"

#if defined(AERIE_MATRIX_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_MATRIX_ROWS_INL_H_
#undef AERIE_MATRIX_ROWS_INL_H_
#else
#define AERIE_MATRIX_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// So many rows of activations from the first on, in two bf16 each, to a tile of n: [tile's columns][part][row][32].
inline void pack_matrix_floats(const FoundRows& x, int64_t first_row, int64_t rows, int64_t n, int64_t k, char* out) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  const auto to_bf16 = [&](V v) HWY_ATTR {  // nearest, ties to even, in the upper half; NaN stays one
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
    return hn::IfThenElse(hn::RebindMask(du, hn::Ne(v, v)), hn::Set(du, 0x7fc00000u), hn::And(rounded, hn::Set(du, 0xffff0000u)));
  };
  const auto put = [&](hn::VFromD<decltype(du)> v, char* to) HWY_ATTR {
    hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(v)), d16, reinterpret_cast<uint16_t*>(to));
  };
  constexpr int64_t kDepth = kLine / 2;
  alignas(64) float padded[kDepth] = {};  // the last ones of a row; zeros stay behind them
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t first = 0; first < k; first += kDepth) {
      char* part = out + (first / kDepth * 2 * n + m) * kLine;
      const float* from = x[first_row + m] + first;
      if (k - first < kDepth) {
        for (int64_t i = 0; i < k - first; ++i) padded[i] = from[i];
        from = padded;
      }
      for (int64_t i = 0; i < kDepth; i += kN) {
        const V v = hn::LoadU(d, from + i);
        const auto nearest = to_bf16(v);
        put(nearest, part + 2 * i);
        put(to_bf16(hn::Sub(v, hn::BitCast(d, nearest))), part + n * kLine + 2 * i);
      }
    }
}

// The same as codes, each in bytes: [tile's columns][part][row][64]. scales: matrix_row_scales. of_codes(row): what is kept of their
// sums.
template <class Order, class SumsOf>
void pack_matrix_codes(const FoundRows& x, int64_t first_row, int64_t rows, int64_t n, int64_t k, const Order& order, char* out, float* scales,
                       const SumsOf& of_codes) {
  constexpr int64_t parts = Order::kPerBlock / kBlock;
  for (int64_t m = 0; m < rows; ++m) {
    const auto place = [&](int64_t b) { return reinterpret_cast<int8_t*>(out + (b / 2 * parts * n + m) * kLine + b % 2 * kBlock); };
    quantise_row(x[first_row + m], k, round_up(k, kLine) / kBlock, order, place, of_codes(m), n, scales + m);
  }
}

// Of rows that a tile of 16 reads and an op does not have, the blocks' scales (or sums): any other number might be one that takes a
// processor a hundred times as long to multiply by.
inline void clear_matrix_rows(float* scales, int64_t rows, int64_t n, int64_t blocks) {
  for (int64_t b = 0; b < blocks; ++b, scales += n)
    for (int64_t m = 0; m < rows; ++m) scales[m] = 0;
}

// Rows [first, last) of an op, tile after tile. What lies behind the last one is multiplied with the others, and nobody looks at it.
inline void pack_all_matrix_rows(const Linear& op, const PackedRows& rows, int64_t first, int64_t last) {
  const DType type = op.w.dtype;
  const int64_t k = op.w.cols, height = tile_height(op.x.rows), bytes = matrix_row_bytes(type, k), blocks = round_up(k, kLine) / kBlock;
  auto* const out = static_cast<char*>(const_cast<void*>(rows.q));
  auto *const scales = const_cast<float*>(rows.scale), *const block_sums = const_cast<float*>(rows.block_sums);
  const FoundRows x{static_cast<const float*>(op.x.data), op.x.stride, rows.from};
  const auto no_sums = [](int64_t) { return NoSums(); };
  for (int64_t row = first, end; row < last; row = end) {
    const int64_t in_tile = row % height, tile = row - in_tile, of_blocks = tile * blocks + in_tile;
    end = tile + height < last ? tile + height : last;
    char* to = out + tile * bytes + in_tile * kLine;
    const auto sums = [&](int64_t m) { return ScaledSums{block_sums + of_blocks + m, height}; };
    if (type == DType::bf16) pack_matrix_floats(x, row, end - row, height, k, to);
    else if (type == DType::int8) pack_matrix_codes(x, row, end - row, height, k, HighAndLow{height * kLine}, to, scales + row, no_sums);
    else if (type == DType::q4_1) pack_matrix_codes(x, row, end - row, height, k, Bytes(), to, scales + of_blocks, sums);
    else pack_matrix_codes(x, row, end - row, height, k, Bytes(), to, scales + of_blocks, no_sums);
    if (const int64_t had = end - tile; is_nibbles(type) && end == op.x.rows) {
      clear_matrix_rows(scales + tile * blocks + had, height - had, height, blocks);
      if (type == DType::q4_1) clear_matrix_rows(block_sums + tile * blocks + had, height - had, height, blocks);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
