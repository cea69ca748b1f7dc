// gpt-oss's experts in Hugging Face's directories. As floats their matrices are (columns, rows), those of a layer in one tensor; as
// published they are MXFP4: NAME_blocks (experts, rows, columns / 32, 16), the lower four bits of a byte first, and NAME_scales (experts,
// rows, columns / 32).
#include <algorithm>
#include <cmath>

#include "core/import/expert_matrices.h"
#include "core/import/mxfp4_step.h"

namespace aerie {

namespace {

Result<Sink::Experts> mxfp4_experts(TensorTaker& take, const std::string& name, int64_t experts, int64_t rows, int64_t cols, bool pairs) {
  constexpr int64_t kOf = kernels::kBlock;
  const auto bad = [name, source = take.source_name()](const char* part, const std::string& what) {
    return error(Code::bad_format, source + ": tensor " + name + part + ": " + what);
  };
  if (cols % kOf) return bad("_blocks", "rows of " + std::to_string(cols) + " are no whole blocks of 32");
  AERIE_ASSIGN(const auto blocks, take.take_bytes(name + "_blocks", {experts, rows, cols / kOf, kOf / 2}));
  AERIE_ASSIGN(const auto scales, take.take_bytes(name + "_scales", {experts, rows, cols / kOf}));
  const auto read = [=](int64_t expert) -> Result<std::vector<float>> {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    const uint8_t *block = blocks.data() + expert * rows * cols / 2, *scale = scales.data() + expert * rows * cols / kOf;
    for (int64_t r = 0; r < rows; ++r) {
      float* value = values.data() + (pairs ? row_apart(r, rows / 2) : r) * cols;
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
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) return bad("_blocks", "a value is not finite");
    return values;
  };
  return Sink::Experts{experts, rows, cols, kernels::DType::mxfp4, read};
}

}  // namespace

Result<Sink::Experts> turned_experts(TensorTaker& take, const std::string& name, int64_t experts, int64_t rows, int64_t cols, bool pairs) {
  if (take.has(name + "_blocks") || take.has(name + "_scales")) return mxfp4_experts(take, name, experts, rows, cols, pairs);
  AERIE_TRY(take.expect(name, {experts, cols, rows}));
  const auto read = [=, &take](int64_t expert) -> Result<std::vector<float>> {
    AERIE_ASSIGN(const auto turned, take.part(name, expert));
    std::vector<float> values(turned.size());
    for (int64_t r = 0; r < rows; ++r) {
      float* const row = values.data() + (pairs ? row_apart(r, rows / 2) : r) * cols;
      for (int64_t c = 0; c < cols; ++c) row[c] = turned[static_cast<size_t>(c * rows + r)];
    }
    return values;
  };
  return Sink::Experts{experts, rows, cols, take.stored(name), read};
}

}  // namespace aerie
