#include "core/text/template/filters.h"
#include "core/text/template/methods.h"
#include "core/text/template/print.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

Status changed(Context& c, const Value& v, const Arguments& a, Value* out, std::string_view what, std::string (*f)(std::string_view)) {
  AERIE_TRY(a.none(what));
  AERIE_ASSIGN(const Value text, text_of(c.heap, v));
  c.heap->spend(text.text().size());
  *out = Value::string(c.heap, f(text.text()));
  return {};
}

// jinja2's own idea of words: they begin behind white space, "-", and brackets.
std::string title_of(std::string_view text) {
  std::string out;
  size_t word = 0;
  for (size_t at = 0; at <= text.size();) {
    const bool end = at == text.size();
    const std::string_view here = end ? std::string_view() : text.substr(at, character_size(text[at]));
    const bool between = !end && (is_python_space(character_at(text, at)) ||
                                  std::string_view("-({[<").find(here) != std::string_view::npos);
    if (between || end) {
      const std::string_view item = text.substr(word, at - word);
      const size_t first = item.empty() ? 0 : character_size(item[0]);
      (out += upper_case(item.substr(0, first))) += lower_case(item.substr(first));
      out += here;
      if (end) break;
      word = at + here.size();
    }
    at += here.size();
  }
  return out;
}

}  // namespace

AERIE_CHAT_FILTER(filter_upper) { return changed(c, v, a, out, "upper", upper_case); }
AERIE_CHAT_FILTER(filter_lower) { return changed(c, v, a, out, "lower", lower_case); }
AERIE_CHAT_FILTER(filter_title) { return changed(c, v, a, out, "title", title_of); }
AERIE_CHAT_FILTER(filter_capitalize) { return changed(c, v, a, out, "capitalize", capitalized); }

AERIE_CHAT_FILTER(filter_trim) {
  if (v.is_string()) return text_strip(c, v, a, out, true, true);
  AERIE_ASSIGN(const Value text, text_of(c.heap, v));
  return text_strip(c, text, a, out, true, true);
}

AERIE_CHAT_FILTER(filter_replace) {
  Value p[3];
  AERIE_TRY(a.bind("replace", {"old", "new", "count"}, 2, p));
  AERIE_ASSIGN(const Value text, text_of(c.heap, v));
  AERIE_ASSIGN(const Value old, text_of(c.heap, p[0]));
  AERIE_ASSIGN(const Value by, text_of(c.heap, p[1]));
  int64_t count = -1;
  if (p[2].given() && !p[2].is(Kind::none)) AERIE_TRY(whole_number("count", p[2], &count));
  return replaced(c, text.text(), old.text(), by.text(), count, out);
}

AERIE_CHAT_FILTER(filter_indent) {
  Value p[3];
  AERIE_TRY(a.bind("indent", {"width", "first", "blank"}, 0, p));
  std::string indent(4, ' ');
  if (p[0].is_string()) {
    indent = p[0].text();
  } else if (p[0].given()) {
    int64_t width = 0;
    AERIE_TRY(whole_number("indent", p[0], &width));
    if (width > 1024) return error(Code::limit, "indent: by more than 1024");
    indent.assign(width > 0 ? static_cast<size_t>(width) : 0, ' ');
  }
  std::string_view whole;
  AERIE_TRY(as_text("indent", v, &whole));
  c.heap->spend(whole.size());
  // jinja2 adds a line break first, so that a text that ends with one keeps it.
  const std::string with_end = std::string(whole) + "\n";
  std::string text;
  bool first = true;
  for (const std::string_view line : split_lines(with_end, false)) {
    if (!first) text += '\n';
    if (first ? p[1].truth() : p[2].truth() || !line.empty()) text += indent;
    text += line;
    first = false;
    c.heap->spend(1 + indent.size() / 16);
    if (!c.heap->has_room(text.size()) || c.heap->exceeded()) return c.heap->status();
  }
  *out = Value::string(c.heap, std::move(text));
  return {};
}

AERIE_CHAT_FILTER(filter_tojson) {
  Value p[4];
  AERIE_TRY(a.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, p));
  JsonForm form;
  form.ascii = p[0].truth();
  form.sorted = p[3].truth();
  if (p[1].is_string()) {
    form.indent = p[1].text();
    form.lines = true;
  } else if (p[1].given() && !p[1].is(Kind::none)) {
    int64_t width = 0;
    AERIE_TRY(whole_number("indent", p[1], &width));
    if (width > 1024) return error(Code::limit, "tojson: indented by more than 1024");
    form.indent.assign(width > 0 ? static_cast<size_t>(width) : 0, ' ');
    form.lines = true;
  }
  if (form.lines) form.item_separator = ",";
  if (p[2].given() && !p[2].is(Kind::none)) {
    if (!p[2].is_sequence() || p[2].list().items.size() != 2) return type_error("tojson: separators are two texts");
    std::string_view item, key;
    AERIE_TRY(as_text("separators", p[2].list().items[0], &item));
    AERIE_TRY(as_text("separators", p[2].list().items[1], &key));
    form.item_separator = item;
    form.key_separator = key;
  }
  std::string text;
  AERIE_TRY(append_json(v, form, &text));
  c.heap->spend(text.size() / 16);
  *out = Value::string(c.heap, std::move(text));
  return {};
}

AERIE_CHAT_FILTER(filter_string) {
  AERIE_TRY(a.none("string"));
  AERIE_ASSIGN(*out, text_of(c.heap, v));
  return {};
}

AERIE_CHAT_FILTER(filter_format) {
  if (a.named() > 0) return error(Code::unsupported, "format with names is not supported");
  AERIE_ASSIGN(const Value text, text_of(c.heap, v));
  Ref<List> list = make<List>(c.heap);
  for (size_t i = 0; i < a.plain; ++i) list->add(a.values[i]);
  return percent_format(c, text.text(), list_value(Kind::tuple, std::move(list)), out);
}

AERIE_CHAT_FILTER(filter_join) {
  Value p[2];
  AERIE_TRY(a.bind("join", {"d", "attribute"}, 0, p));
  AERIE_ASSIGN(Ref<List> items, iterate(c.heap, v));
  if (p[1].given() && !p[1].is(Kind::none)) {
    Ref<List> attributes = make<List>(c.heap);
    for (const Value& item : items->items) {
      Value attribute;
      AERIE_TRY(path_of(c, item, p[1], &attribute));
      attributes->add(std::move(attribute));
    }
    items = std::move(attributes);
  }
  AERIE_ASSIGN(const Value between, text_of(c.heap, p[0]));
  return joined_items(c, between.text(), *items, true, out);
}

}  // namespace aerie::text::chat
