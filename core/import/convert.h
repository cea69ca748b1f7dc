// Conversion of checkpoints to packages. The source is recognised by what is in it; any tensor
// missing, unexpected or mis-shaped is an error that names it (docs/package-format.md).
#pragma once

#include <functional>
#include <string>

#include "core/package/package.h"

namespace aerie {

struct ConvertOptions {
  std::string source;       // Hugging Face Llama directory, EAGLE head directory, llama2.c .bin, .aerie
  std::string output;
  kernels::DType dtype = kernels::DType::bf16;
  std::string drafter_for;  // drafters: the target's package
  std::string tokenizer;    // llama2.c's tokenizer.bin; else the directory's tokenizer.json if it has one
  bool compress = false;
  LoadProgress progress;    // in tensors' source bytes
};

Status convert(const ConvertOptions& options);

}  // namespace aerie
