// A template as tokens, with the white space of jinja2's trim_blocks and lstrip_blocks taken out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace aerie::text::chat {

enum class TokenKind : uint8_t { data, print_begin, print_end, tag_begin, tag_end, name, string, integer, number, op, end };

struct Token {
  TokenKind kind;
  uint32_t line;
  std::string_view text;  // of a string: what is between the quotes
  bool is(std::string_view op) const { return kind == TokenKind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

// Line breaks as one character, the last one gone: what jinja2 does with a template first.
std::string normalized_source(std::string_view text);
// `source` stays where it is as long as the tokens.
Result<std::vector<Token>> tokens_of(std::string_view source);
// A string's escapes undone, as Python's "unicode-escape" does it.
Result<std::string> unescaped_string(std::string_view raw);

Status template_error(Code code, uint32_t line, const std::string& what);

}  // namespace aerie::text::chat
