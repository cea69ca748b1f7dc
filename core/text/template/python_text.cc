#include "core/text/template/python_text.h"

#include <algorithm>

#include "core/platform/utf8.h"

namespace aerie::text::chat {
namespace {

size_t last_character(std::string_view text) {  // where it begins; text is not empty
  size_t at = text.size() - 1;
  while (at > 0 && continues(text[at])) --at;
  return at;
}

bool one_of(std::string_view text, size_t at, const std::string_view* characters) {
  if (characters == nullptr) return is_python_space(character_at(text, at));
  return characters->find(text.substr(at, character_size(text[at]))) != std::string_view::npos;
}

bool ends_line(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

size_t offset_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += character_size(text[at]);
  return at;
}

uint32_t character_at(std::string_view text, size_t offset) {
  const auto c = static_cast<unsigned char>(text[offset]);
  return c < 0x80 ? c : utf8_step(text.substr(offset)).codepoint;
}

bool is_python_space(uint32_t c) { return (c >= 0x1C && c <= 0x1F) || is_white_space(c); }

std::string_view strip_left(std::string_view text, const std::string_view* characters) {
  while (!text.empty() && one_of(text, 0, characters)) text.remove_prefix(character_size(text[0]));
  return text;
}

std::string_view strip_right(std::string_view text, const std::string_view* characters) {
  while (!text.empty()) {
    const size_t at = last_character(text);
    if (!one_of(text, at, characters)) break;
    text = text.substr(0, at);
  }
  return text;
}

std::vector<std::string_view> split_at_space(std::string_view text, int64_t max, bool from_right) {
  std::vector<std::string_view> out;
  text = from_right ? strip_right(text) : strip_left(text);
  while (!text.empty()) {
    if (max >= 0 && static_cast<int64_t>(out.size()) == max) {
      out.push_back(text);  // its other end keeps its space
      break;
    }
    size_t at = from_right ? text.size() : 0;
    if (from_right) {
      while (at > 0) {
        const size_t before = last_character(text.substr(0, at));
        if (is_python_space(character_at(text, before))) break;
        at = before;
      }
      out.push_back(text.substr(at));
      text = strip_right(text.substr(0, at));
    } else {
      while (at < text.size() && !is_python_space(character_at(text, at))) at += character_size(text[at]);
      out.push_back(text.substr(0, at));
      text = strip_left(text.substr(at));
    }
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view at, int64_t max, bool from_right) {
  std::vector<std::string_view> out;
  while (max < 0 || static_cast<int64_t>(out.size()) < max) {
    const size_t found = from_right ? text.rfind(at) : text.find(at);
    if (found == std::string_view::npos) break;
    if (from_right) {
      out.push_back(text.substr(found + at.size()));
      text = text.substr(0, found);
    } else {
      out.push_back(text.substr(0, found));
      text = text.substr(found + at.size());
    }
  }
  out.push_back(text);
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t at = 0, end = 0;
    for (; at < text.size(); at += character_size(text[at])) {
      if (!ends_line(character_at(text, at))) continue;
      end = text.substr(at).starts_with("\r\n") ? 2 : character_size(text[at]);
      break;
    }
    out.push_back(text.substr(0, keep_ends ? at + end : at));
    text.remove_prefix(at + end);
  }
  return out;
}

}  // namespace aerie::text::chat
