// The manifest as plain structs; FlatBuffers is known to manifest.cc alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/package/config.h"
#include "core/package/package.h"

namespace aerie::package {

enum class Codec : uint8_t { raw = 0, zstd = 1 };

struct ChunkRow {
  uint64_t xxh64 = 0;  // of the stored bytes
  uint32_t stored_bytes = 0, raw_bytes = 0;
};

struct StoredRow {
  uint64_t offset = 0;  // in the data region
  uint64_t stored_bytes = 0, raw_bytes = 0;
  Codec codec = Codec::raw;
  std::vector<ChunkRow> chunks;  // zstd only
  uint64_t xxh64 = 0;            // of the raw bytes
};

struct TensorRow {
  std::string name;
  kernels::DType dtype = kernels::DType::f32;
  kernels::Layout layout = kernels::Layout::row_major;
  int64_t rows = 0, cols = 0;
  uint64_t scales_offset = 0;  // in the raw bytes, 0 without scales
  StoredRow stored;
};

struct BlobRow {
  std::string name;
  StoredRow stored;
};

struct Manifest {
  PackageKind kind = PackageKind::target;
  std::string name, fingerprint;
  std::optional<LlamaConfig> target;
  std::optional<DrafterConfig> drafter;
  std::vector<TensorRow> tensors;
  std::vector<BlobRow> blobs;
};

std::vector<uint8_t> encode_manifest(const Manifest& m);
// Verified as a FlatBuffer and with every enum in range; sizes and numbers are judged by validate.h.
Result<Manifest> decode_manifest(std::span<const uint8_t> bytes);

// Header, manifest, validation: a file whose every row may be trusted. Data is not looked at.
struct Described {
  uint16_t major = 0, minor = 0;
  uint64_t file_bytes = 0, manifest_bytes = 0;
  std::span<const uint8_t> data;
  Manifest manifest;
};
Result<Described> describe(std::span<const uint8_t> file);

}  // namespace aerie::package
