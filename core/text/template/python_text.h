// Texts as Python has them: of characters, where ours are UTF-8 that is known to be valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::text::chat {

inline bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
inline size_t character_size(char first) {
  const auto c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
size_t character_count(std::string_view text);
// Bytes in front of character `index`; those of all where there are fewer.
size_t offset_of(std::string_view text, size_t index);
uint32_t character_at(std::string_view text, size_t offset);

bool is_python_space(uint32_t c);  // str.isspace, and \s
// Without white space, or without `characters`, at the ends.
std::string_view strip_left(std::string_view text, const std::string_view* characters = nullptr);
std::string_view strip_right(std::string_view text, const std::string_view* characters = nullptr);
// At white space; max < 0: everywhere.
std::vector<std::string_view> split_at_space(std::string_view text, int64_t max, bool from_right);
std::vector<std::string_view> split_at(std::string_view text, std::string_view at, int64_t max, bool from_right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// In unicode_case.cc.
std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string capitalized(std::string_view text);
std::string title_case(std::string_view text);  // str.title
bool is_printable(uint32_t c);                  // as repr takes it

}  // namespace aerie::text::chat
