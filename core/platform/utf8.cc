#include "core/platform/utf8.h"

#include <algorithm>

namespace aerie {

Utf8Step utf8_step(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {Utf8Kind::complete, 1, lead};
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // what the second byte may be
  uint32_t codepoint = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2, codepoint = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3, codepoint = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, codepoint = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Utf8Kind::invalid, 1, 0};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Kind::incomplete, i, 0};
    if (at(i) < low || at(i) > high) return {Utf8Kind::invalid, i, 0};
    codepoint = codepoint << 6 | (at(i) & 0x3F);
    low = 0x80, high = 0xBF;
  }
  return {Utf8Kind::complete, length, codepoint};
}

void utf8_append(uint32_t c, std::string* out) {
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

size_t utf8_valid_prefix(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const Utf8Step step = utf8_step(bytes.substr(i));
    if (step.kind != Utf8Kind::complete) break;
    i += step.length;
  }
  return i;
}

size_t one_line(std::string_view bytes, char* out, size_t room) noexcept {
  size_t n = 0;
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    const bool control = step.codepoint < 0x20 || (step.codepoint >= 0x7F && step.codepoint < 0xA0);
    const std::string_view shown = step.kind == Utf8Kind::complete && !control ? bytes.substr(0, step.length) : "?";
    if (shown.size() > room - n) break;
    std::copy(shown.begin(), shown.end(), out + n);
    n += shown.size();
    bytes.remove_prefix(step.length);
  }
  return n;
}

std::string one_line(std::string_view bytes) {
  std::string out(bytes.size(), 0);
  out.resize(one_line(bytes, out.data(), out.size()));
  return out;
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace aerie
