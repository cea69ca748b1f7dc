// Packing to panel16 (tensor.h). Element by element: conversion is not a hot path, and the layout is
// easiest to trust where it is written down once.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/mxfp4.h"
#include "kernels/cpu/q4_1.h"
#include "kernels/e2m1.h"
#include "kernels/e4m3.h"
#include "kernels/narrow_floats.h"
#include "kernels/panel16.h"

namespace aerie::kernels {

namespace {

using Place = Panel16Place;

float extreme_of(const float* w, int64_t n) {
  float extreme = 0;
  for (int64_t i = 0; i < n; ++i)
    if (std::fabs(w[i]) > std::fabs(extreme)) extreme = w[i];
  return extreme;
}

void pack_int8_row(const float* w, int64_t row, int64_t cols, int8_t* data, float* scales) {
  const float scale = std::fabs(extreme_of(w, cols)) / 127.0f;
  scales[Place(DType::int8, row, 0, cols).int8_scale()] = scale;
  for (int64_t i = 0; i < cols; ++i) {
    const float q = scale != 0 ? std::nearbyint(w[i] / scale) : 0.0f;
    data[Place(DType::int8, row, i, cols).int8()] = static_cast<int8_t>(std::clamp(q, -127.0f, 127.0f));
  }
}

void pack_fp8_row(const float* w, int64_t row, int64_t cols, uint8_t* data, float* scales) {
  const float scale = std::fabs(extreme_of(w, cols)) / kMostE4m3;
  scales[Place(DType::fp8, row, 0, cols).int8_scale()] = scale;
  for (int64_t i = 0; i < cols; ++i)
    data[Place(DType::fp8, row, i, cols).int8()] = scale != 0 ? to_e4m3(w[i] / scale) : uint8_t{0};
}

void put_nibble(uint8_t v, const Place& at, uint8_t* data) {
  uint8_t& byte = data[at.int4()];
  byte = at.k % kBlock < 16 ? static_cast<uint8_t>((byte & 0xf0) | v) : static_cast<uint8_t>((byte & 0x0f) | v << 4);
}

void pack_int4_block(const float* w, int64_t n, int64_t row, int64_t first, int64_t cols, uint8_t* data, void* all_scales) {
  auto* const scales = static_cast<uint16_t*>(all_scales);
  // The extreme value decides, with its sign so that -8 is used (Q4_0).
  const uint16_t h = to_half(extreme_of(w, n) / -8.0f);
  const float scale = from_half(h);
  scales[Place(DType::int4, row, first, cols).int4_scale()] = h;
  for (int64_t i = 0; i < n; ++i) {
    const float q = scale != 0 ? std::nearbyint(w[i] / scale) : 0.0f;
    put_nibble(static_cast<uint8_t>(std::clamp(q + 8.0f, 0.0f, 15.0f)), Place(DType::int4, row, first + i, cols), data);
  }
}

void pack_q4_1_block(const float* w, int64_t n, int64_t row, int64_t first, int64_t cols, uint8_t* data, void* scales) {
  const Q4_1Block block = quantise_q4_1(w, n);
  uint16_t* const scale = static_cast<uint16_t*>(scales) + Place(DType::q4_1, row, first, cols).q4_1_scale();
  scale[0] = block.scale, scale[kPanel] = block.min;
  for (int64_t i = 0; i < kBlock; ++i) put_nibble(block.codes[i], Place(DType::q4_1, row, first + i, cols), data);
}

void pack_mxfp4_block(const float* w, int64_t n, int64_t row, int64_t first, int64_t cols, uint8_t* data, void* scales) {
  const Mxfp4Block block = quantise_mxfp4(w, n);
  static_cast<uint8_t*>(scales)[Place(DType::mxfp4, row, first, cols).int4_scale()] = block.scale;
  for (int64_t i = 0; i < n; ++i) put_nibble(block.codes[i], Place(DType::mxfp4, row, first + i, cols), data);
}

}  // namespace

void pack_panel16(const float* w, int64_t n, int64_t k, DType dtype, void* data, void* scales) {
  std::memset(data, dtype == DType::int4 ? 0x88 : 0, static_cast<size_t>(data_bytes(dtype, Layout::panel16, n, k)));
  if (scales) std::memset(scales, 0, static_cast<size_t>(scale_bytes(dtype, n, k)));
  for (int64_t r = 0; r < n; ++r) {
    const float* row = w + r * k;
    if (dtype == DType::int8) {
      pack_int8_row(row, r, k, static_cast<int8_t*>(data), static_cast<float*>(scales));
    } else if (dtype == DType::fp8) {
      pack_fp8_row(row, r, k, static_cast<uint8_t*>(data), static_cast<float*>(scales));
    } else if (is_nibbles(dtype)) {
      const auto pack_block = dtype == DType::int4 ? pack_int4_block : dtype == DType::q4_1 ? pack_q4_1_block : pack_mxfp4_block;
      for (int64_t b = 0; b < k; b += kBlock)
        pack_block(row + b, std::min<int64_t>(kBlock, k - b), r, b, k, static_cast<uint8_t*>(data), scales);
    } else {
      for (int64_t c = 0; c < k; ++c) {
        const Place at(dtype, r, c, k);
        if (dtype == DType::f32) static_cast<float*>(data)[at.f32()] = row[c];
        else static_cast<uint16_t*>(data)[at.bf16()] = to_bf16(row[c]);
      }
    }
  }
}

float panel16_at(const Tensor& w, int64_t row, int64_t col) {
  const Place at(w.dtype, row, col, w.cols);
  switch (w.dtype) {
    case DType::f32: return static_cast<const float*>(w.data)[at.f32()];
    case DType::bf16:
      return from_bf16(static_cast<const uint16_t*>(w.data)[at.bf16()]);
    case DType::int8:
      return static_cast<float>(static_cast<const int8_t*>(w.data)[at.int8()]) *
             static_cast<const float*>(w.scales)[at.int8_scale()];
    case DType::fp8:
      return from_e4m3(static_cast<const uint8_t*>(w.data)[at.int8()]) * static_cast<const float*>(w.scales)[at.int8_scale()];
    case DType::int4: {
      const uint8_t byte = static_cast<const uint8_t*>(w.data)[at.int4()];
      const int q = (col % kBlock < 16 ? byte & 15 : byte >> 4) - 8;
      return static_cast<float>(q) * from_half(static_cast<const uint16_t*>(w.scales)[at.int4_scale()]);
    }
    case DType::q4_1: {
      const uint8_t byte = static_cast<const uint8_t*>(w.data)[at.int4()];
      const auto* scale = static_cast<const uint16_t*>(w.scales) + at.q4_1_scale();
      return static_cast<float>(col % kBlock < 16 ? byte & 15 : byte >> 4) * from_half(scale[0]) + from_half(scale[kPanel]);
    }
    case DType::mxfp4: {
      const uint8_t byte = static_cast<const uint8_t*>(w.data)[at.int4()];
      return static_cast<float>(kE2m1Twice[col % kBlock < 16 ? byte & 15 : byte >> 4]) * mxfp4_scale(static_cast<const uint8_t*>(w.scales)[at.int4_scale()]);
    }
    case DType::i32: break;
  }
  return 0;
}

}  // namespace aerie::kernels
