#include "core/text/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "core/platform/utf8.h"

namespace aerie::text::grammar {
namespace {

void split_into_sequences(uint32_t low, uint32_t high, std::vector<Utf8Sequence>* out) {
  for (const uint32_t last : {0x7Fu, 0x7FFu, 0xFFFFu}) {  // of one, two and three bytes
    if (low <= last && high > last) {
      split_into_sequences(low, last, out);
      split_into_sequences(last + 1, high, out);
      return;
    }
  }
  // Where the bounds differ before their last i bytes, these must go from the first to the last that there is.
  for (int i = 1; i < 4 && high >= 0x80; ++i) {
    const uint32_t tail = (uint32_t{1} << (6 * i)) - 1;
    if ((low & ~tail) == (high & ~tail)) continue;
    if ((low & tail) != 0) {
      split_into_sequences(low, low | tail, out);
      split_into_sequences((low | tail) + 1, high, out);
      return;
    }
    if ((high & tail) != tail) {
      split_into_sequences(low, (high & ~tail) - 1, out);
      split_into_sequences(high & ~tail, high, out);
      return;
    }
  }
  std::string from, to;
  utf8_append(low, &from);
  utf8_append(high, &to);
  Utf8Sequence sequence{static_cast<int>(from.size()), {}};
  for (size_t i = 0; i < from.size(); ++i) sequence.bytes[i] = {static_cast<uint8_t>(from[i]), static_cast<uint8_t>(to[i])};
  out->push_back(sequence);
}

}  // namespace

CodePoints normalized(CodePoints ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePoints merged;
  for (const CodePointRange r : ranges) {
    if (!merged.empty() && r.low <= merged.back().high + 1) merged.back().high = std::max(merged.back().high, r.high);
    else merged.push_back(r);
  }
  CodePoints out;
  for (const auto [low, high] : merged) {
    if (low < 0xD800) out.push_back({low, std::min(high, 0xD7FFu)});
    if (high > 0xDFFF) out.push_back({std::max(low, 0xE000u), high});
  }
  return out;
}

CodePoints complement(const CodePoints& ranges) {
  CodePoints out;
  uint32_t next = 0;
  for (const auto [low, high] : ranges) {
    if (low > next) out.push_back({next, low - 1});
    next = high + 1;
  }
  if (next <= kMaxCodePoint) out.push_back({next, kMaxCodePoint});
  return normalized(std::move(out));
}

void utf8_sequences(CodePointRange range, std::vector<Utf8Sequence>* out) {
  split_into_sequences(range.low, range.high, out);
}

}  // namespace aerie::text::grammar
