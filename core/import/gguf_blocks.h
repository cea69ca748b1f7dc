// The element types of a GGUF file: floats, and blocks of quantised values as ggml lays them out.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor.h"

namespace aerie {

struct GgufType {
  uint32_t id;
  const char* name;
  int64_t elements;  // of a block
  int64_t bytes;     // of a block
  // `blocks` blocks as f32, blocks * elements of them. Null: known by size only.
  void (*read)(const uint8_t* data, int64_t blocks, float* out);
  kernels::DType stored = kernels::DType::f32;  // as SourceTensor's; of those that are read
};

// Null: not known here.
const GgufType* gguf_type(uint32_t id);

}  // namespace aerie
