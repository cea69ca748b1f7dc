// Conversion of checkpoints to packages. The source is recognised by what is in it, never by its name or by
// what its config claims; any tensor missing, unexpected or mis-shaped is an error that names it
// (docs/package-format.md). A failed or cancelled conversion leaves no file behind.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/package/package.h"

namespace aerie {

// Instead of a tokenizer's file: the package is to speak token ids only.
inline constexpr const char* kNoTokenizer = "none";

// What weights become: all of one dtype, or each of that which is nearest to what its source has it in, so that little is rounded twice.
// mxfp4 stays what it is but where f32 or bf16, which hold it exactly, are asked for: any other would round it again, and be no smaller.
class WeightDType {
 public:
  constexpr WeightDType() = default;                        // as stored, but f32 as bf16, half the bytes
  constexpr WeightDType(kernels::DType all) : all_(all) {}  // not explicit: a dtype is a choice
  static constexpr WeightDType stored() {
    WeightDType d;
    d.keep_f32_ = true;
    return d;
  }
  constexpr kernels::DType of(kernels::DType stored) const {
    if (stored == kernels::DType::mxfp4 && all_ && *all_ != kernels::DType::f32 && *all_ != kernels::DType::bf16) return stored;
    return all_ ? *all_ : stored == kernels::DType::f32 && !keep_f32_ ? kernels::DType::bf16 : stored;
  }

 private:
  std::optional<kernels::DType> all_;
  bool keep_f32_ = false;
};

struct ConvertOptions {
  // Hugging Face Llama directory, head directory (or the .safetensors file in either), GGUF, llama2.c .bin, or .aerie.
  std::string source;
  std::string output;
  WeightDType dtype;                         // any but i32
  std::optional<WeightDType> head_dtype;     // of the embedding and the LM head; else as the others
  std::string drafter_for;                   // drafters: the target's package
  std::string tokenizer;  // llama2.c's tokenizer.bin, a tokenizer.json or .model, or kNoTokenizer; else the source's own
  bool compress = false;
  // Targets: rank of the candidate head (candidate_head.h) to add. 0: what the source has (.aerie); -1: none.
  int32_t candidate_rank = 0;
  // Targets of other formats than .aerie: the longest text they will read, at most what the model can; 0: that. (LongRoPE: 0 is the
  // shorter of its two contexts.)
  int32_t context = 0;
  LoadProgress progress;                         // work done and to do, in a unit of the source's; false cancels
  std::vector<std::string>* warnings = nullptr;  // what a user should know though it went well

  kernels::DType dtype_of(std::string_view tensor, kernels::DType stored) const {
    const bool head = tensor == "embed" || tensor == "lm_head" || tensor.ends_with(".lm_head");  // Medusa's and Hydra's own
    return (head && head_dtype ? *head_dtype : dtype).of(stored);
  }
};

// [any]
Status convert(const ConvertOptions& options);

}  // namespace aerie
