// Ranges of code points as sequences of ranges of bytes, so that a matcher needs to know bytes alone.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace aerie::text::grammar {

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;
inline bool is_surrogate(uint32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

struct CodePointRange {
  uint32_t low, high;  // both are in it
  auto operator<=>(const CodePointRange&) const = default;
};
using CodePoints = std::vector<CodePointRange>;

// In order, none touching the next, without surrogates, which UTF-8 does not have.
CodePoints normalized(CodePoints ranges);
// All other code points; of normalized ones.
CodePoints complement(const CodePoints& ranges);

struct ByteRange {
  uint8_t low, high;
  auto operator<=>(const ByteRange&) const = default;
};
struct Utf8Sequence {
  int length;
  std::array<ByteRange, 4> bytes;
};
// Together they spell each code point of a normalized range, and nothing else.
void utf8_sequences(CodePointRange range, std::vector<Utf8Sequence>* out);

}  // namespace aerie::text::grammar
