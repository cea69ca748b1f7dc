// The fixed header of a .aerie file and the numbers of the format (docs/package-format.md).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/status.h"

namespace aerie::package {

// The first byte is text; CR LF and ^Z show a transfer that thought the rest was, too.
inline constexpr std::array<uint8_t, 8> kMagic = {'A', 'E', 'R', 'I', 'E', '\r', '\n', 0x1A};
inline constexpr uint16_t kMajor = 1;
inline constexpr uint16_t kMinor = 0;
inline constexpr uint64_t kHeaderBytes = 128;
inline constexpr uint64_t kMaxManifestBytes = 16 << 20;
inline constexpr uint64_t kDataAlignment = 4096;  // of the data region in the file: what O_DIRECT wants
inline constexpr uint64_t kBlobAlignment = 64;    // of each blob in the data region, of the manifest, of scales
inline constexpr uint64_t kMaxGap = 64 << 10;     // between regions; zeros
inline constexpr uint64_t kMaxChunkBytes = 16 << 20;
// A zstd blob may unpack to this many times its stored size, not more: a small file cannot claim much memory.
inline constexpr uint64_t kMaxExpansion = 1024;

struct Header {
  uint16_t major = kMajor, minor = kMinor;
  uint64_t file_bytes = 0;
  uint64_t manifest_offset = 0, manifest_bytes = 0, manifest_xxh64 = 0;
  uint64_t data_offset = 0, data_bytes = 0;
};

std::array<uint8_t, kHeaderBytes> encode_header(const Header& h);
// Everything that can be said about the header of `file` without the manifest.
Result<Header> decode_header(std::span<const uint8_t> file);

constexpr uint64_t align_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace aerie::package
