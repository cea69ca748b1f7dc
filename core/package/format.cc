#include "core/package/format.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace aerie::package {

namespace {

constexpr size_t kChecksumAt = 120;

void put(uint8_t* at, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(v >> (8 * i));
}
uint64_t get(const uint8_t* at, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= static_cast<uint64_t>(at[i]) << (8 * i);
  return v;
}

Status bad(const char* field, const std::string& what) {
  return error(Code::bad_format, std::string(field) + ": " + what);
}

// [offset, offset + n) inside a file of `total` bytes, without overflow.
bool inside(uint64_t offset, uint64_t n, uint64_t total) { return offset <= total && n <= total - offset; }

}  // namespace

std::array<uint8_t, kHeaderBytes> encode_header(const Header& h) {
  std::array<uint8_t, kHeaderBytes> b{};
  std::copy(kMagic.begin(), kMagic.end(), b.begin());
  put(&b[8], h.major, 2);
  put(&b[10], h.minor, 2);
  put(&b[12], kHeaderBytes, 4);
  put(&b[16], h.file_bytes, 8);
  put(&b[24], h.manifest_offset, 8);
  put(&b[32], h.manifest_bytes, 8);
  put(&b[40], h.manifest_xxh64, 8);
  put(&b[48], h.data_offset, 8);
  put(&b[56], h.data_bytes, 8);
  put(&b[kChecksumAt], XXH64(b.data(), kChecksumAt, 0), 8);
  return b;
}

Result<Header> decode_header(std::span<const uint8_t> file) {
  if (file.size() >= kMagic.size() && !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    if (std::memcmp(file.data(), kMagic.data(), 5) == 0)
      return bad("magic", "damaged as if it had been copied as text; copy it as binary");
    return bad("magic", "this is not an Aerie package; aerie convert makes one of a checkpoint");
  }
  if (file.size() < kHeaderBytes) return bad("length", std::to_string(file.size()) + " bytes, shorter than the header");
  const uint8_t* b = file.data();
  Header h;
  h.major = static_cast<uint16_t>(get(b + 8, 2));
  h.minor = static_cast<uint16_t>(get(b + 10, 2));
  // The version comes first: a later major may lay out the rest differently.
  if (h.major != kMajor)
    return error(Code::unsupported, "format version: " + std::to_string(h.major) + "." + std::to_string(h.minor) +
                                        ", this build reads " + std::to_string(kMajor) + ".x");
  if (get(b + kChecksumAt, 8) != XXH64(b, kChecksumAt, 0)) return bad("header checksum", "the header is damaged");
  if (get(b + 12, 4) != kHeaderBytes) return bad("header length", std::to_string(get(b + 12, 4)) + ", not 128");
  h.file_bytes = get(b + 16, 8);
  h.manifest_offset = get(b + 24, 8);
  h.manifest_bytes = get(b + 32, 8);
  h.manifest_xxh64 = get(b + 40, 8);
  h.data_offset = get(b + 48, 8);
  h.data_bytes = get(b + 56, 8);
  if (h.file_bytes != file.size())
    return bad("file length", "the header says " + std::to_string(h.file_bytes) + " bytes, the file has " +
                                  std::to_string(file.size()));
  if (h.manifest_bytes > kMaxManifestBytes)
    return bad("manifest length", std::to_string(h.manifest_bytes) + " bytes, the limit is 16 MiB");
  if (!inside(h.manifest_offset, h.manifest_bytes, h.file_bytes) || h.manifest_offset < kHeaderBytes ||
      h.manifest_offset % kBlobAlignment)
    return bad("manifest offset", "outside the file or misaligned");
  if (!inside(h.data_offset, h.data_bytes, h.file_bytes) || h.data_offset < kHeaderBytes ||
      h.data_offset % kDataAlignment)
    return bad("data offset", "outside the file or misaligned");

  // header, manifest and data in either order; what lies between them is short and zero.
  std::pair<uint64_t, uint64_t> ranges[] = {{h.manifest_offset, h.manifest_bytes}, {h.data_offset, h.data_bytes}};
  std::sort(std::begin(ranges), std::end(ranges));  // an empty region comes before what begins where it does
  uint64_t end = kHeaderBytes;
  for (const auto& [offset, bytes] : ranges) {
    if (offset < end) return bad("data offset", "manifest and data overlap");
    if (offset - end > kMaxGap) return bad("data offset", "unused space in the file");
    if (std::any_of(b + end, b + offset, [](uint8_t v) { return v != 0; })) return bad("padding", "is not zero");
    end = offset + bytes;
  }
  if (end != h.file_bytes) return bad("file length", "bytes after the last region");
  if (XXH64(b + h.manifest_offset, h.manifest_bytes, 0) != h.manifest_xxh64)
    return bad("manifest checksum", "the manifest is damaged");
  return h;
}

}  // namespace aerie::package
