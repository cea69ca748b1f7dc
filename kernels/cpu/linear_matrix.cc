#include "kernels/cpu/linear_matrix.h"

#include <algorithm>

#include "kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_matrix.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear_matrix-inl.h"  // for every target: its guard takes turns

// The target that has_matrix_unit asks for.
#if HWY_TARGET == HWY_AVX3_DL
#include "kernels/cpu/amx_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

void matrix_panels(const Linear& op, int64_t first, int64_t last, const PackedRows& rows) {
  all_matrix_panels<AmxTiles>(op, first, last, rows, rows.sums);
}
void matrix_rows(const Linear& op, const PackedRows& rows, int64_t first, int64_t last) { pack_all_matrix_rows(op, rows, first, last); }

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace aerie::kernels::cpu {

bool on_matrix_unit(const Linear& op) {
  if (op.w.cols == 0 || !use_matrix_unit()) return false;
  if (is_nibbles(op.w.dtype)) return op.x.rows >= kLeastNibbleRows;
  return op.w.dtype == DType::int8 || (op.w.dtype == DType::bf16 && op.w.cols >= kLeastMatrixCols);
}

// Of whole tiles; then the scales, then q4_1's sums of blocks.
static int64_t packed_bytes(const Linear& op) {
  const int64_t m = op.x.rows;
  return round_up(m, std::max<int64_t>(tile_height(m), 1)) * matrix_row_bytes(op.w.dtype, op.w.cols);
}

static int64_t scale_bytes(const Linear& op) { return round_up(matrix_row_scales(op.w.dtype, op.x.rows, op.w.cols) * 4, kLine); }

int64_t matrix_rows_bytes(const Linear& op) { return packed_bytes(op) + scale_bytes(op) * (op.w.dtype == DType::q4_1 ? 2 : 1); }

PackedRows matrix_rows_at(const Linear& op, void* memory) {
  auto* const codes = static_cast<char*>(memory);
  char* const scales = codes + packed_bytes(op);
  char* const block_sums = op.w.dtype == DType::q4_1 ? scales + scale_bytes(op) : scales;  // others have none
  return {nullptr, codes, nullptr, reinterpret_cast<float*>(scales), reinterpret_cast<float*>(block_sums)};
}

void make_matrix_rows([[maybe_unused]] const Linear& op, [[maybe_unused]] const PackedRows& rows, [[maybe_unused]] int64_t first,
                      [[maybe_unused]] int64_t last) {
#if HWY_TARGETS & HWY_AVX3_DL
  N_AVX3_DL::matrix_rows(op, rows, first, last);
#endif
}

void linear_matrix_range([[maybe_unused]] const Linear& op, [[maybe_unused]] int64_t first, [[maybe_unused]] int64_t last,
                         [[maybe_unused]] const PackedRows& rows) {
#if HWY_TARGETS & HWY_AVX3_DL
  N_AVX3_DL::matrix_panels(op, first, last, rows);
#endif
}

}  // namespace aerie::kernels::cpu
#endif
