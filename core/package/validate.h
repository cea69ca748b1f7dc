// What a manifest may say. The reader and the writer ask the same questions, so nothing is written that
// could not be read. Messages are "field: what"; the caller puts the file in front.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/package/manifest.h"

namespace aerie::package {

// Above any real model by an order of magnitude, and small enough that no product of two overflows.
inline constexpr int64_t kMaxRows = 1 << 24;
inline constexpr int64_t kMaxCols = 1 << 22;

// Printable ASCII, 1..255 bytes: names end up in messages.
Status check_name(const std::string& name);
Status check_config(const LlamaConfig& c);
Status check_config(const DrafterConfig& c);
Status check_rope_scaling(const RopeScaling& r);
// Where it departs from Llama's architecture; its sizes are sound.
Status check_departures(const LlamaConfig& c);
// Of layers with wider heads than most, where there are any; c has its other sizes.
Status check_wide_heads(const LlamaConfig& c);
Status check_fingerprint(const std::string& hex);

// A tensor that a target's config implies.
struct ExpectedTensor {
  std::string name;
  int64_t rows = 0, cols = 0;
  bool weight = false;  // panel16; otherwise f32 row_major
  bool precise = false;  // a weight that is bf16 or f32: what it gives decides which others are used
};
// In the order packages store them. `c` has passed check_config.
std::vector<ExpectedTensor> expected_tensors(const LlamaConfig& c);
// Of a drafter's decoder: those of its layers alone.
std::vector<ExpectedTensor> expected_layer_tensors(const LlamaConfig& c);

// Raw bytes of a tensor and where its scales begin in them (0: none). False: no such tensor can be.
bool tensor_extent(kernels::DType dtype, kernels::Layout layout, int64_t rows, int64_t cols, uint64_t* raw_bytes,
                   uint64_t* scales_offset);

Status check_manifest(const Manifest& m, uint64_t data_bytes);

}  // namespace aerie::package
