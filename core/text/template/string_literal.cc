// The escapes of a string in a template.
#include "core/platform/utf8.h"
#include "core/text/grammar/digits.h"
#include "core/text/template/lexer.h"

namespace aerie::text::chat {

Result<std::string> unescaped_string(std::string_view raw) {
  std::string out;
  const auto fail = [](const char* what) { return error(Code::bad_format, what); };
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    size_t digits = 0;
    switch (c) {
      case '\n': continue;
      case '\\':
      case '\'':
      case '"': out += c; continue;
      case 'a': out += '\a'; continue;
      case 'b': out += '\b'; continue;
      case 'f': out += '\f'; continue;
      case 'n': out += '\n'; continue;
      case 'r': out += '\r'; continue;
      case 't': out += '\t'; continue;
      case 'v': out += '\v'; continue;
      case 'x': digits = 2; break;
      case 'u': digits = 4; break;
      case 'U': digits = 8; break;
      case 'N': return error(Code::unsupported, "\"\\N{...}\" is not supported");
      default: break;
    }
    if (digits == 0 && (c < '0' || c > '7')) {  // an unknown one stays as it is
      out += '\\';
      out += c;
      continue;
    }
    uint64_t value = 0;
    if (digits == 0) {
      for (size_t n = 0; n < 3 && i < raw.size() && raw[i] >= '0' && raw[i] <= '7'; ++n, ++i)
        value = 8 * value + static_cast<uint64_t>(raw[i] - '0');
      --i;
    }
    for (size_t n = 0; n < digits; ++n) {
      const int digit = ++i < raw.size() ? grammar::hex_value(raw[i]) : -1;
      if (digit < 0) return fail("an escape without its hexadecimal digits");
      value = 16 * value + static_cast<uint64_t>(digit);
    }
    if (value > 0x10FFFF) return fail("a character above U+10FFFF");
    if (value >= 0xD800 && value < 0xE000) return error(Code::unsupported, "U+D800 to U+DFFF are no characters");
    utf8_append(static_cast<uint32_t>(value), &out);
  }
  return out;
}

}  // namespace aerie::text::chat
