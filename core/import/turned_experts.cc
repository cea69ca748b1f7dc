// gpt-oss's experts in Hugging Face's directories. As floats their matrices are (columns, rows), those of a layer in one tensor; as
// published they are MXFP4: NAME_blocks (experts, rows, columns / 32, 16), the lower four bits of a byte first, and NAME_scales (experts,
// rows, columns / 32).
#include <algorithm>
#include <cmath>

#include "core/import/layer.h"
#include "core/import/mxfp4_step.h"

namespace aerie {

Result<SourceMatrix> LayerImport::turned_experts(const std::string& name, int64_t experts, int64_t rows, int64_t cols, bool pairs) {
  if (taker_.has(name + "_blocks") || taker_.has(name + "_scales")) return mxfp4_experts(name, experts, rows, cols, pairs);
  AERIE_TRY(step());
  AERIE_ASSIGN(SourceMatrix all, taker_.take_matrices(name, experts, cols, rows));
  std::vector<float> one(static_cast<size_t>(rows * cols));
  for (int64_t e = 0; e < experts; ++e) {
    float* const to = all.values.data() + e * rows * cols;
    std::copy_n(to, rows * cols, one.begin());
    for (int64_t r = 0; r < rows; ++r) {
      float* const row = to + (pairs ? row_apart(r, rows / 2) : r) * cols;
      for (int64_t c = 0; c < cols; ++c) row[c] = one[static_cast<size_t>(c * rows + r)];
    }
  }
  all.rows = experts * rows;
  all.cols = cols;
  return all;
}

Result<SourceMatrix> LayerImport::mxfp4_experts(const std::string& name, int64_t experts, int64_t rows, int64_t cols, bool pairs) {
  AERIE_TRY(step());
  constexpr int64_t kOf = kernels::kBlock;
  const auto bad = [&](const char* part, const std::string& what) {
    return error(Code::bad_format, options_.source + ": tensor " + name + part + ": " + what);
  };
  if (cols % kOf) return bad("_blocks", "rows of " + std::to_string(cols) + " are no whole blocks of 32");
  AERIE_ASSIGN(const auto blocks, taker_.take_bytes(name + "_blocks", {experts, rows, cols / kOf, kOf / 2}));
  AERIE_ASSIGN(const auto scales, taker_.take_bytes(name + "_scales", {experts, rows, cols / kOf}));
  SourceMatrix all{experts * rows, cols, std::vector<float>(static_cast<size_t>(experts * rows * cols)), kernels::DType::mxfp4};
  const uint8_t *block = blocks.data(), *scale = scales.data();
  for (int64_t r = 0; r < all.rows; ++r) {
    float* value = all.values.data() + (r / rows * rows + (pairs ? row_apart(r % rows, rows / 2) : r % rows)) * cols;
    for (int64_t b = 0; b < cols / kOf; ++b, ++scale) {
      if (*scale == kMxfp4NoNumber) return bad("_scales", "a scale is 255, no number");
      const float half = mxfp4_half(*scale);
      for (int64_t i = 0; i < kOf / 2; ++i, ++block) {
        *value++ = kMxfp4Halves[*block & 15] * half;
        *value++ = kMxfp4Halves[*block >> 4] * half;
      }
    }
  }
  // The largest scales there are make numbers that f32 does not hold.
  if (!std::all_of(all.values.begin(), all.values.end(), [](float v) { return std::isfinite(v); })) return bad("_blocks", "a value is not finite");
  return all;
}

}  // namespace aerie
