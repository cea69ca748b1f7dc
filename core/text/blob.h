// Little-endian writing, and reading that checks every count against the bytes that are left.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace aerie::text {

inline constexpr uint32_t kBlobMagic = 0x4B4F5441;  // "ATOK"
inline constexpr uint32_t kBlobVersion = 1;
enum class BlobKind : uint32_t {
  byte_bpe = 1,
  sentencepiece = 2,
  sentencepiece_typed = 3,
  sentencepiece_ruled = 4,
  sentencepiece_named = 5
};

// Above any real tokenizer by an order of magnitude; what a hostile file can make us allocate.
inline constexpr int32_t kMaxVocab = 1 << 22;
inline constexpr uint32_t kMaxMerges = 1 << 23;
inline constexpr size_t kMaxTokenBytes = 0xFFFF;
inline constexpr size_t kMaxTextBytes = size_t{1} << 30;  // of one encode: ids and offsets stay in int32

class BlobWriter {
 public:
  void u8(uint8_t v) { bytes_.push_back(v); }
  void u16(uint16_t v) { little_endian(v, 2); }
  void u32(uint32_t v) { little_endian(v, 4); }
  void i32(int32_t v) { u32(static_cast<uint32_t>(v)); }
  void f32(float v) { u32(std::bit_cast<uint32_t>(v)); }
  void string16(std::string_view s) {  // the caller has checked s against kMaxTokenBytes
    u16(static_cast<uint16_t>(s.size()));
    bytes_.insert(bytes_.end(), s.begin(), s.end());
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  void little_endian(uint32_t v, int n) {
    for (int i = 0; i < n; ++i) bytes_.push_back(static_cast<uint8_t>(v >> (8 * i)));
  }
  std::vector<uint8_t> bytes_;
};

// A read past the end gives zeros and marks the reader as failed: parsers check ok() once per item.
class BlobReader {
 public:
  explicit BlobReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size() - at_; }
  uint8_t u8() { return static_cast<uint8_t>(little_endian(1)); }
  uint16_t u16() { return static_cast<uint16_t>(little_endian(2)); }
  uint32_t u32() { return little_endian(4); }
  int32_t i32() { return static_cast<int32_t>(u32()); }
  float f32() { return std::bit_cast<float>(u32()); }
  std::string string(size_t n) {
    if (!need(n)) return {};
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
    at_ += n;
    return std::string(begin, n);
  }
  std::string string16() { return string(u16()); }

 private:
  bool need(size_t n) {
    if (n > left()) ok_ = false;
    return ok_;
  }
  uint32_t little_endian(int n) {
    if (!need(static_cast<size_t>(n))) return 0;
    uint32_t v = 0;
    for (int i = 0; i < n; ++i) v |= static_cast<uint32_t>(bytes_[at_ + i]) << (8 * i);
    at_ += n;
    return v;
  }
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace aerie::text
