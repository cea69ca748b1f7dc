// Linear on the processor's matrix unit (matrix_unit.h): where it is used, linear.cc leaves the op to these.
#pragma once

#include "kernels/cpu/linear_tile.h"
#include "kernels/ops.h"

namespace aerie::kernels::cpu {

constexpr int64_t kSide = 16;                  // rows of a tile
constexpr int64_t kTileBytes = kSide * kLine;  // of one with all of them
constexpr int64_t kLeastMatrixCols = 64;       // of bf16: below, what two bf16 lose of an activation is more than the sum's rounding
constexpr int64_t kLeastInt4Rows = 9;         // of int4: fewer are faster without

// Parts that an activation is cut into.
constexpr int64_t matrix_parts(DType weights) { return weights == DType::bf16 ? 2 : 1; }
constexpr int64_t kGroup = 2 * kSide;          // rows that meet a panel at once
constexpr int64_t kLotPanels = 16;             // whose sums are kept while k comes in parts

// Tiles of k that m rows meet at once: half a megabyte of rows.
constexpr int64_t matrix_steps_at_once(DType weights, int64_t m) {
  const int64_t steps = (512 << 10) / (round_up(m, kSide) * matrix_parts(weights) * kLine);
  return steps > 8 ? steps : 8;
}
// Bytes for the sums of m rows with the panels that they meet together.
constexpr int64_t matrix_sums_bytes(DType weights, int64_t m) {
  return round_up(m, kSide) * kPanel * 4 * (weights == DType::int4 ? 1 : m <= kGroup ? 4 : kLotPanels);
}
// Rows that the tiles of an op have, of which there are m.
constexpr int64_t tile_height(int64_t m) { return m < kSide ? m : kSide; }
// Bytes of a packed row: of each part whole lines.
constexpr int64_t matrix_row_bytes(DType weights, int64_t k) {
  return matrix_parts(weights) * round_up(weights == DType::bf16 ? 2 * k : k, kLine);
}

// How much faster many rows are than without the unit, at least.
constexpr int64_t kMatrixSpeed = 4;

// Of floats the number of rows has no say: their sums have another order here.
bool on_matrix_unit(const Linear& op);
// Panels that meet the rows together.
int64_t matrix_panels_at_once(const Linear& op);
// The rows as the unit reads them: bytes, and their making.
int64_t matrix_rows_bytes(const Linear& op);
PackedRows pack_matrix_rows(const Linear& op, void* out, bool kept);
// Panels [first, last) of op.out.
void linear_matrix_range(const Linear& op, int64_t first, int64_t last, const PackedRows& rows);

}  // namespace aerie::kernels::cpu
