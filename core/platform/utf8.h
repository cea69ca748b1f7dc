// Bytes that should be UTF-8: one step through them, and what may be shown of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace aerie {

enum class Utf8Kind {
  complete,    // `length` bytes are the character `codepoint`
  incomplete,  // all that is left may still become a character
  invalid,     // `length` bytes can never become one (Unicode's "maximal subpart")
};

struct Utf8Step {
  Utf8Kind kind;
  size_t length;
  uint32_t codepoint;
};

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

// `bytes` must not be empty. Overlong forms, surrogates and values past U+10FFFF are invalid at their
// first impossible byte (Unicode 16, table 3-7), so a decoder never waits for bytes that cannot help.
Utf8Step utf8_step(std::string_view bytes);
void utf8_append(uint32_t codepoint, std::string* out);

// Length of the longest prefix that is valid UTF-8.
size_t utf8_valid_prefix(std::string_view bytes);

// Text of others (a file's, a plugin's) as one line of UTF-8 that a terminal only prints: control characters and what is
// not UTF-8 become '?'. Writes at most `room` bytes, whole characters, and returns how many; never more than it was given.
size_t one_line(std::string_view bytes, char* out, size_t room) noexcept;
std::string one_line(std::string_view bytes);

// Unicode's White_Space, which is also \s in the regex engine of Hugging Face tokenizers.
bool is_white_space(uint32_t codepoint);

}  // namespace aerie
