// The --kv option of the benchmarks.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/tensor.h"

namespace aerie {

inline constexpr const char* kKvFormats = "f32|bf16|int8";

inline std::optional<kernels::DType> kv_format(std::string_view name) {
  if (name == "f32") return kernels::DType::f32;
  if (name == "bf16") return kernels::DType::bf16;
  if (name == "int8") return kernels::DType::int8;
  return std::nullopt;
}

}  // namespace aerie
