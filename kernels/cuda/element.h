// One element of a tensor, whatever its layout and dtype.
#pragma once

#include "kernels/cuda/warp.h"
#include "kernels/e2m1.h"
#include "kernels/e4m3.h"

namespace aerie::kernels::cuda {

__device__ inline float element(const Tensor& t, int64_t r, int64_t c) {
  if (t.layout == Layout::row_major)
    return t.dtype == DType::bf16 ? from_bf16(static_cast<const uint16_t*>(t.data)[r * t.stride + c]) : row(t, r)[c];
  const Panel16Place at(t.dtype, r, c, t.cols);
  switch (t.dtype) {
    case DType::f32:
      return static_cast<const float*>(t.data)[at.f32()];
    case DType::bf16:
      return from_bf16(static_cast<const uint16_t*>(t.data)[at.bf16()]);
    case DType::int8:
      return static_cast<float>(static_cast<const int8_t*>(t.data)[at.int8()]) *
             static_cast<const float*>(t.scales)[at.int8_scale()];
    case DType::fp8:
      return from_e4m3(static_cast<const uint8_t*>(t.data)[at.int8()]) * static_cast<const float*>(t.scales)[at.int8_scale()];
    case DType::q4_1: {
      const uint8_t byte = static_cast<const uint8_t*>(t.data)[at.int4()];
      const auto* scale = static_cast<const uint16_t*>(t.scales) + at.q4_1_scale();
      return static_cast<float>(c % kBlock < 16 ? byte & 15 : byte >> 4) * half_to_float(scale[0]) + half_to_float(scale[kPanel]);
    }
    case DType::mxfp4: {
      const uint8_t byte = static_cast<const uint8_t*>(t.data)[at.int4()];
      return static_cast<float>(e2m1_twice(c % kBlock < 16 ? byte & 15 : byte >> 4)) *
             mxfp4_scale(static_cast<const uint8_t*>(t.scales)[at.int4_scale()]);
    }
    default: {
      const uint8_t byte = static_cast<const uint8_t*>(t.data)[at.int4()];
      const int q = (c % kBlock < 16 ? byte & 15 : byte >> 4) - 8;
      return static_cast<float>(q) * half_to_float(static_cast<const uint16_t*>(t.scales)[at.int4_scale()]);
    }
  }
}

}  // namespace aerie::kernels::cuda
