// The fixed parts of a .aerie file: header and caps.
#pragma once

#include <cstdint>
#include <string>

#include "core/package/config.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace aerie::package {

constexpr char kMagic[8] = {'A', 'E', 'R', 'I', 'E', '\r', '\n', '\x1a'};
constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr uint64_t kMaxManifest = 16u << 20;
constexpr uint64_t kMaxChunk = 16u << 20;
constexpr uint64_t kAlign = 64;        // of every blob
constexpr uint64_t kDataAlign = 4096;  // of the data region: it can be mapped on its own
constexpr int64_t kMaxSide = int64_t{1} << 26;

// 128 bytes, little endian, as it lies in the file.
struct Header {
  char magic[8];
  uint32_t major, minor;
  uint64_t header_bytes;
  uint64_t file_bytes;
  uint64_t manifest_offset, manifest_bytes, manifest_xxh64;
  uint64_t data_offset, data_bytes;
  uint64_t reserved[6];
  uint64_t header_xxh64;  // of the 120 bytes before it
};
static_assert(sizeof(Header) == 128);

// Shape -> bytes of data and of scales, checked against overflow and absurdity first.
Status tensor_bytes(kernels::DType dtype, kernels::Layout layout, uint64_t rows, uint64_t cols, uint64_t* data,
                    uint64_t* scales_offset, uint64_t* raw);

// Ranges and relations of every number.
Status check(const LlamaConfig& c);
Status check(const DrafterConfig& c);

// What a target must hold: calls expect(name, rows, cols, weight) for each tensor its config implies.
template <class F>
void for_each_tensor(const LlamaConfig& c, F&& expect) {
  const int64_t q = int64_t{c.heads} * c.head_dim, qkv = q + int64_t{2} * c.kv_heads * c.head_dim;
  expect("embed", c.vocab_size, c.hidden, true);
  expect("norm", 1, c.hidden, false);
  if (!c.tied) expect("lm_head", c.vocab_size, c.hidden, true);
  for (int32_t i = 0; i < c.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    expect(at + "attn_norm", 1, c.hidden, false);
    expect(at + "attn.qkv", qkv, c.hidden, true);
    if (c.qkv_bias) expect(at + "attn.qkv.bias", 1, qkv, false);
    expect(at + "attn.o", c.hidden, q, true);
    expect(at + "mlp_norm", 1, c.hidden, false);
    expect(at + "mlp.gate_up", int64_t{2} * c.ffn, c.hidden, true);
    expect(at + "mlp.down", c.hidden, c.ffn, true);
  }
}

}  // namespace aerie::package
