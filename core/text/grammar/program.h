// A grammar as the matcher runs it: rules of alternatives of elements, in one array.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/text/grammar/byte_set.h"

namespace aerie::text::grammar {

// What an alternative is made of: a byte, one of a set of bytes, or whatever a rule describes; kEnd behind the last.
using Element = uint32_t;
enum class ElementKind : uint32_t { end, byte, set, rule };
inline constexpr Element kEnd = 0;
inline constexpr uint32_t kMaxElementValue = (uint32_t{1} << 30) - 1;
constexpr Element element(ElementKind kind, uint32_t value) { return static_cast<uint32_t>(kind) << 30 | value; }
constexpr ElementKind kind_of(Element e) { return static_cast<ElementKind>(e >> 30); }
constexpr uint32_t value_of(Element e) { return e & kMaxElementValue; }

struct Program {
  std::vector<Element> elements;
  std::vector<uint32_t> alternatives;  // where in `elements` each begins
  std::vector<uint32_t> rules;         // rule r has alternatives[rules[r]] up to alternatives[rules[r + 1]]; the start is rule 0
  std::vector<ByteSet> sets;
  // Bytes that no element tells apart are of one class: what follows on one of them follows on all.
  std::array<uint8_t, 256> class_of{};
  std::vector<uint8_t> class_example;  // a byte of each class
  std::vector<uint8_t> plain_examples; // one of each class that has plain bytes (token_trie.h)

  bool takes(Element e, uint8_t byte) const {
    return kind_of(e) == ElementKind::byte ? value_of(e) == byte : sets[value_of(e)].has(byte);
  }
};

}  // namespace aerie::text::grammar
