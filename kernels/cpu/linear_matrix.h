// Linear on the processor's matrix unit (matrix_unit.h): where it is used, linear.cc leaves the op to these.
#pragma once

#include "kernels/cpu/linear_tile.h"
#include "kernels/ops.h"

namespace aerie::kernels::cpu {

constexpr int64_t kSide = 16;                  // rows of a tile
constexpr int64_t kTileBytes = kSide * kLine;  // of one with all of them
constexpr int64_t kLeastMatrixCols = 64;       // of bf16: below, what two bf16 lose of an activation is more than the sum's rounding
constexpr int64_t kLeastNibbleRows = 13;       // of weights of 4 bits: fewer are faster without

// Parts that an activation is cut into: two bf16, or the high and the low byte of a code.
constexpr int64_t matrix_parts(DType weights) { return is_nibbles(weights) ? 1 : 2; }
// Each has a sum of its own, in the place of a second tile of rows.
constexpr bool sums_apart(DType weights) { return weights == DType::int8; }
// Of few rows both lie in one tile, the second behind the first.
constexpr bool stacked(DType weights, int64_t m) { return sums_apart(weights) && m <= kSide / 2; }
// Rows that meet a panel at once; tiles of sums that m rows have with it.
constexpr int64_t group_rows(DType weights) { return sums_apart(weights) ? kSide : 2 * kSide; }
constexpr int64_t sum_tiles(DType weights, int64_t m) {
  return round_up(m, kSide) / kSide * (sums_apart(weights) && !stacked(weights, m) ? 2 : 1);
}

// Tiles of k that m rows meet at once: half a megabyte of rows.
constexpr int64_t matrix_steps_at_once(DType weights, int64_t m) {
  const int64_t steps = (512 << 10) / (round_up(m, kSide) * matrix_parts(weights) * kLine);
  return steps > 8 ? steps : 8;
}
// Panels that meet m rows together. Where k comes in parts, the rows come from afar for every such lot, and its sums are kept
// meanwhile: as many as a task may take time for.
constexpr int64_t kMostLotPanels = 16;
constexpr int64_t matrix_panels_at_once(DType weights, int64_t m, int64_t k) {
  if (is_nibbles(weights)) return 1;
  if (m <= group_rows(weights)) return sum_tiles(weights, m) == 1 ? 4 : 2;
  if (data_bytes(weights, Layout::panel16, kPanel, k) / kTileBytes <= matrix_steps_at_once(weights, m)) return 2;
  const int64_t most = (32 << 20) / (kPanel * k * m) / 2 * 2;
  return most < 4 ? 4 : most < kMostLotPanels ? most : kMostLotPanels;
}
// Bytes for the sums of m rows with them.
constexpr int64_t matrix_sums_bytes(DType weights, int64_t m, int64_t k) {
  return sum_tiles(weights, m) * kTileBytes * matrix_panels_at_once(weights, m, k);
}
// Rows of an op of m in a tile of theirs.
constexpr int64_t tile_height(int64_t m) { return m < kSide ? m : kSide; }
// Bytes of a packed row: of each part whole lines.
constexpr int64_t matrix_row_bytes(DType weights, int64_t k) {
  return matrix_parts(weights) * round_up(weights == DType::bf16 ? 2 * k : k, kLine);
}

// Scales of packed rows: int8's, one a row; those for weights of 4 bits, [tile][block][row], and some behind them that a tile of fewer rows reads.
// Of q4_1 as many sums of blocks lie behind them.
constexpr int64_t matrix_row_scales(DType weights, int64_t m, int64_t k) {
  return is_nibbles(weights) ? round_up(m, tile_height(m)) * (round_up(k, kLine) / kBlock) + kSide : m;
}

// About how much faster many rows are than without the unit.
constexpr int64_t matrix_speed(DType weights) { return is_nibbles(weights) ? 1 : weights == DType::int8 ? 2 : 4; }

// Of floats the number of rows has no say: their sums have another order here.
bool on_matrix_unit(const Linear& op);
// The rows as the unit reads them: bytes, where they lie in these, and the making of [first, last).
int64_t matrix_rows_bytes(const Linear& op);
PackedRows matrix_rows_at(const Linear& op, void* memory);
void make_matrix_rows(const Linear& op, const PackedRows& rows, int64_t first, int64_t last);
// Panels [first, last) of op.out. rows.sums: matrix_sums_bytes.
void linear_matrix_range(const Linear& op, int64_t first, int64_t last, const PackedRows& rows);

}  // namespace aerie::kernels::cpu
