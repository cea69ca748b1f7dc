// A set of bytes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace aerie::text::grammar {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  void add(uint32_t low, uint32_t high) {
    for (uint32_t b = low; b <= high; ++b) words[b / 64] |= uint64_t{1} << (b % 64);
  }
  bool has(uint8_t byte) const { return (words[byte / 64] >> (byte % 64) & 1) != 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  auto operator<=>(const ByteSet&) const = default;
};

}  // namespace aerie::text::grammar
