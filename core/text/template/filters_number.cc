#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/text/template/filters.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

// Python's int("...") and float("..."), as far as ASCII goes: white space around, "_" between digits.
bool digits_of(std::string_view text, std::string* out) {
  text = strip_right(strip_left(text));
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    if (text[i] != '_') *out += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1)) return false;
  }
  return !out->empty() && (*out)[0] != '+';
}

bool float_of(std::string_view text, double* d) {
  std::string digits;
  if (!digits_of(text, &digits)) return false;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), *d);
  if (code == std::errc::result_out_of_range) *d = std::strtod("inf", nullptr);
  return end == digits.data() + digits.size();
}

Status whole_of(double d, Value* out) {
  if (!(std::abs(d) < 9.2e18)) return error(Code::unsupported, "whole numbers beyond 64 bits are not supported");
  *out = Value::integer(static_cast<int64_t>(d));
  return {};
}

}  // namespace

AERIE_CHAT_FILTER(filter_abs) {
  AERIE_TRY(a.none("abs"));
  if (!v.is_number()) return v.is_undefined() ? undefined_error(v) : type_error(std::string("abs of a '") + v.type_name() + "'");
  if (v.is(Kind::number)) return *out = Value::number(std::abs(v.as_number())), Status();
  return negative(v, v.as_integer() < 0, out);
}

AERIE_CHAT_FILTER(filter_int) {
  Value p[2];
  AERIE_TRY(a.bind("int", {"default", "base"}, 0, p));
  if (p[1].given() && !(p[1].is_whole() && p[1].as_integer() == 10))
    return error(Code::unsupported, "int: bases other than ten are not supported");
  if (v.is_undefined()) return undefined_error(v);
  *out = p[0].given() ? p[0] : Value::integer(0);
  if (v.is_whole()) return *out = Value::integer(v.as_integer()), Status();
  double d = 0;
  if (v.is(Kind::number)) {
    d = v.as_number();
  } else if (v.is_string()) {
    std::string digits;
    int64_t i = 0;
    if (digits_of(v.text(), &digits)) {
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), i);
      if (end == digits.data() + digits.size()) {
        if (code != std::errc()) return error(Code::unsupported, "whole numbers beyond 64 bits are not supported");
        return *out = Value::integer(i), Status();
      }
    }
    if (!float_of(v.text(), &d)) return {};
  } else {
    return {};
  }
  return std::isfinite(d) ? whole_of(d, out) : Status();
}

AERIE_CHAT_FILTER(filter_float) {
  Value p[1];
  AERIE_TRY(a.bind("float", {"default"}, 0, p));
  if (v.is_undefined()) return undefined_error(v);
  double d = 0;
  if (v.is_number()) *out = Value::number(v.as_number());
  else if (v.is_string() && float_of(v.text(), &d)) *out = Value::number(d);
  else *out = p[0].given() ? p[0] : Value::number(0);
  return {};
}

AERIE_CHAT_FILTER(filter_round) {
  Value p[2];
  AERIE_TRY(a.bind("round", {"precision", "method"}, 0, p));
  int64_t precision = 0;
  if (p[0].given()) AERIE_TRY(whole_number("precision", p[0], &precision));
  if (precision < 0 || precision > 15) return error(Code::unsupported, "round: a precision below 0 or above 15 is not supported");
  const std::string_view method = p[1].is_string() ? p[1].text() : p[1].given() ? "?" : "common";
  if (!v.is_number()) return v.is_undefined() ? undefined_error(v) : type_error(std::string("round of a '") + v.type_name() + "'");
  const double d = v.as_number();
  if (method == "common") {
    if (v.is_whole()) return *out = Value::integer(v.as_integer()), Status();
    char digits[400];
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), d);
    double rounded = 0;  // from_chars: strtod reads what the locale takes for a point
    std::string_view text(digits);
    for (char& ch : digits)
      if (ch == ',') ch = '.';
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    *out = Value::number(std::isfinite(d) ? rounded : d);
    return {};
  }
  if (method != "ceil" && method != "floor") return type_error("round: method is 'common', 'ceil' or 'floor'");
  const double factor = std::pow(10.0, static_cast<double>(precision));
  *out = Value::number((method == "ceil" ? std::ceil(d * factor) : std::floor(d * factor)) / factor);
  return {};
}

}  // namespace aerie::text::chat
