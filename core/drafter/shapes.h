// The tensors of a plugin's call, for the error that refuses it.
#pragma once

#include <initializer_list>
#include <iterator>
#include <string>

#include "aerie/drafter.h"

namespace aerie {

struct NamedTensor {
  const char* name;
  const aerie_tensor* tensor;
};

// "x (3, 64), w (128, 32) int8 packed, bias absent"; of f32 rows the shape alone.
inline std::string shapes(std::initializer_list<NamedTensor> tensors) {
  static constexpr const char* kNames[] = {"", " bf16", " int8", " int4", " i32", " fp8", " q4_1", " mxfp4"};
  std::string out;
  for (const auto& [name, t] : tensors) {
    out += (out.empty() ? "" : ", ") + std::string(name);
    if (!t || !t->data) {
      out += " absent";
      continue;
    }
    out += " (" + std::to_string(t->rows) + ", " + std::to_string(t->cols) + ")";
    out += t->dtype < std::size(kNames) ? kNames[t->dtype] : " of dtype " + std::to_string(t->dtype);
    if (t->layout == 1) out += " packed";
    if (t->layout == 1 && !t->scales && t->dtype > AERIE_DTYPE_BF16) out += " without scales";
  }
  return out;
}

}  // namespace aerie
