// Conversion and inspection behind aerie/tools.h.
#include "aerie/tools.h"

#include <cstdlib>
#include <cstring>

#include "capi/src/guard.h"
#include "core/import/convert.h"
#include "core/import/inspect.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

Result<WeightDType> weights_of(const char* field, int32_t weights) {
  using kernels::DType;
  switch (weights) {
    case AERIE_WEIGHTS_F32: return WeightDType(DType::f32);
    case AERIE_WEIGHTS_DEFAULT: return WeightDType();
    case AERIE_WEIGHTS_BF16: return WeightDType(DType::bf16);
    case AERIE_WEIGHTS_INT8: return WeightDType(DType::int8);
    case AERIE_WEIGHTS_INT4: return WeightDType(DType::int4);
    case AERIE_WEIGHTS_FP8: return WeightDType(DType::fp8);
    case AERIE_WEIGHTS_Q4_1: return WeightDType(DType::q4_1);
    case AERIE_WEIGHTS_MXFP4: return WeightDType(DType::mxfp4);
    case AERIE_WEIGHTS_STORED: return WeightDType::stored();
    default: return error(Code::invalid_argument, std::string(field) + ": " + std::to_string(weights) + " is none of AERIE_WEIGHTS_*");
  }
}

}  // namespace

extern "C" {

int32_t aerie_convert(const aerie_convert_options* options, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(options, "options"));
    aerie_convert_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_convert_options"));
    AERIE_TRY(require(o.source, "source"));
    AERIE_TRY(require(o.output, "output"));
    ConvertOptions c;
    c.source = o.source;
    c.output = o.output;
    if (o.drafter_for) c.drafter_for = o.drafter_for;
    if (o.tokenizer) c.tokenizer = o.tokenizer;
    AERIE_ASSIGN(c.dtype, weights_of("dtype", o.dtype));
    if (o.head_dtype != AERIE_WEIGHTS_DEFAULT) {
      AERIE_ASSIGN(c.head_dtype, weights_of("head_dtype", o.head_dtype));
    }
    c.compress = o.compress != 0;
    c.candidate_rank = o.candidate_rank;
    c.context = o.context;
    if (o.progress)
      c.progress = [&](uint64_t done, uint64_t total) { return o.progress(o.progress_user, done, total) != 0; };
    std::vector<std::string> warnings;
    c.warnings = &warnings;
    AERIE_TRY(convert(c));
    if (o.log)
      for (const std::string& w : warnings) o.log(o.log_user, 1, one_line(w).c_str());
    return {};
  });
}

int32_t aerie_inspect(const char* path, int32_t format, char** text, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(path, "path"));
    AERIE_TRY(require(text, "text"));
    if (format != AERIE_INSPECT_TEXT && format != AERIE_INSPECT_JSON)
      return error(Code::invalid_argument, "format: " + std::to_string(format));
    AERIE_ASSIGN(const std::string s, inspect(path, format == AERIE_INSPECT_JSON));
    auto* copy = static_cast<char*>(std::malloc(s.size() + 1));
    if (!copy) return error(Code::out_of_memory, "out of memory");
    std::memcpy(copy, s.c_str(), s.size() + 1);
    *text = copy;
    return {};
  });
}

void aerie_string_free(char* text) { std::free(text); }

}  // extern "C"
