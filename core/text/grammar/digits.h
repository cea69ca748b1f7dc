#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace aerie::text::grammar {

// -1: no hexadecimal digit.
inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The digits at *at, which goes behind them, as a number; what is more is `most`. False: there are none.
inline bool take_number(std::string_view text, size_t* at, uint32_t most, uint32_t* out) {
  const size_t begin = *at;
  uint64_t n = 0;
  for (; *at < text.size() && text[*at] >= '0' && text[*at] <= '9'; ++*at)
    n = std::min<uint64_t>(10 * n + static_cast<uint64_t>(text[*at] - '0'), most);
  *out = static_cast<uint32_t>(n);
  return *at > begin;
}

}  // namespace aerie::text::grammar
