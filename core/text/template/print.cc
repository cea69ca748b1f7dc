#include "core/text/template/print.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/platform/utf8.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

void append_repr(std::string_view text, std::string* out) {
  const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  *out += quote;
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_size(text[at]);
    const uint32_t c = character_at(text, at);
    char escape[16];
    if (c == '\n') *out += "\\n";
    else if (c == '\r') *out += "\\r";
    else if (c == '\t') *out += "\\t";
    else if (c == '\\' || c == static_cast<uint32_t>(quote)) (*out += '\\') += static_cast<char>(c);
    else if (is_printable(c)) *out += text.substr(at, n);
    else *out += (std::snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c), escape);
    at += n;
  }
  *out += quote;
}

Status append_value_repr(const Value& v, std::string* out) {
  if (v.is_string()) {
    v.object() ? v.object()->heap()->spend(v.text().size() / 16) : void();
    append_repr(v.text(), out);
    return {};
  }
  if (v.is_undefined()) {
    *out += "Undefined";
    return {};
  }
  return append_text(v, out);
}

Status append_items(const Value& v, std::string* out) {
  const bool tuple = v.is(Kind::tuple);
  const auto& items = v.list().items;
  v.list().heap()->spend(items.size());
  *out += tuple ? '(' : '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) *out += ", ";
    AERIE_TRY(append_value_repr(items[i], out));
    if (out->size() > kMaxOutputBytes) return error(Code::limit, "a text is too long");
  }
  if (tuple && items.size() == 1) *out += ',';
  *out += tuple ? ')' : ']';
  return {};
}

}  // namespace

std::string number_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  // The shortest digits that read back as d; Python changes to an exponent elsewhere than to_chars does.
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  const std::string_view whole(buffer, static_cast<size_t>(end - buffer));
  const size_t e = whole.find('e');
  int exponent = 0;
  const size_t sign = whole[e + 1] == '+' ? 2 : 1;
  std::from_chars(whole.data() + e + sign, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    std::string out(whole.substr(0, e));
    char tail[16];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out += tail;
  }
  char fixed[40];
  const auto fixed_end = std::to_chars(fixed, fixed + sizeof fixed, d, std::chars_format::fixed).ptr;
  std::string out(fixed, fixed_end);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

Status append_text(const Value& v, std::string* out) {
  switch (v.kind()) {
    case Kind::absent:
    case Kind::undefined: return {};
    case Kind::none: *out += "None"; return {};
    case Kind::boolean: *out += v.truth() ? "True" : "False"; return {};
    case Kind::integer: *out += std::to_string(v.as_integer()); return {};
    case Kind::number: *out += number_text(v.as_number()); return {};
    case Kind::string: *out += v.text(); return {};
    case Kind::list:
    case Kind::tuple: return append_items(v, out);
    case Kind::dict: {
      v.dict().heap()->spend(v.dict().members.size());
      *out += '{';
      bool first = true;
      for (const auto& [key, value] : v.dict().members) {
        if (!first) *out += ", ";
        first = false;
        AERIE_TRY(append_value_repr(key, out));
        *out += ": ";
        AERIE_TRY(append_value_repr(value, out));
        if (out->size() > kMaxOutputBytes) return error(Code::limit, "a text is too long");
      }
      *out += '}';
      return {};
    }
    default: return error(Code::unsupported, std::string("the text of a ") + v.type_name() + " is not supported");
  }
}

Result<Value> text_of(Heap* heap, const Value& v) {
  if (v.is_string()) return Value::string(v.text(), v.object());
  std::string out;
  AERIE_TRY(append_text(v, &out));
  return Value::string(heap, std::move(out));
}

}  // namespace aerie::text::chat
