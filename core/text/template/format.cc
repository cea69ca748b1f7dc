// "..." % values and "...".format(values): the forms without widths.
#include "core/text/template/builtins.h"
#include "core/text/template/print.h"

namespace aerie::text::chat {
namespace {

Status append_limited(Context& c, const Value& v, std::string* out) {
  AERIE_TRY(append_text(v, out));
  return c.heap->has_room(out->size()) ? Status() : c.heap->status();
}

bool is_digits(std::string_view s) { return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos; }

}  // namespace

Status percent_format(Context& c, std::string_view form, const Value& values, Value* out) {
  std::string text;
  size_t used = 0;
  const bool several = values.is(Kind::tuple);
  const size_t n = several ? values.list().items.size() : 1;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      text += form[i];
      continue;
    }
    const char kind = ++i < form.size() ? form[i] : '\0';
    if (kind == '%') {
      text += '%';
      continue;
    }
    if (kind != 's' && kind != 'd' && kind != 'i')
      return error(Code::unsupported, "in a text with %, forms other than %s, %d, %i and %% are not supported");
    if (used == n) return type_error("too few values for the %s of a text");
    const Value& v = several ? values.list().items[used] : values;
    ++used;
    if (kind != 's' && !v.is_whole())
      return v.is(Kind::number) ? error(Code::unsupported, "%d of a float is not supported")
                                : type_error(std::string("%d of a '") + v.type_name() + "'");
    if (kind != 's') text += std::to_string(v.as_integer());
    else AERIE_TRY(append_limited(c, v, &text));
  }
  // A dict may be left over, for it could have been asked by name.
  if (used < n && !values.is(Kind::dict) && !values.is(Kind::list)) return type_error("more values than the text has %s");
  *out = Value::string(c.heap, std::move(text));
  return {};
}

Status brace_format(Context& c, std::string_view form, const Arguments& a, Value* out) {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '{' && form[i] != '}') {
      text += form[i];
      continue;
    }
    if (i + 1 < form.size() && form[i + 1] == form[i]) {
      text += form[i++];
      continue;
    }
    const size_t end = form[i] == '{' ? form.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos) return type_error("format: a single brace");
    const std::string_view field = form.substr(i + 1, end - i - 1);
    if (field.find_first_of(":!.[{") != std::string_view::npos)
      return error(Code::unsupported, "format: {" + std::string(field.substr(0, 40)) + "} is not supported, only {}, {0} and {name} are");
    const Value* v = nullptr;
    if (field.empty() || is_digits(field)) {
      const size_t at = field.empty() ? next++ : field.size() < 5 ? static_cast<size_t>(std::stoul(std::string(field))) : a.plain;
      if (at < a.plain) v = a.values + at;
    } else {
      v = a.find(field);
    }
    if (v == nullptr) return type_error("format: there is no value for {" + std::string(field.substr(0, 40)) + "}");
    AERIE_TRY(append_limited(c, *v, &text));
    i = end;
  }
  *out = Value::string(c.heap, std::move(text));
  return {};
}

}  // namespace aerie::text::chat
