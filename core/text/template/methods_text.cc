// Methods of texts.
#include <algorithm>

#include "core/text/template/methods.h"
#include "core/text/template/print.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

Value list_of(Context& c, const Value& v, const std::vector<std::string_view>& parts, Kind kind = Kind::list) {
  Ref<List> list = make<List>(c.heap);
  c.heap->spend(parts.size());
  for (const std::string_view part : parts) list->add(v.part(part));
  return list_value(kind, std::move(list));
}

// The part of a text that start and stop, where they are given, leave; and the characters in front of it.
Status bounded(const Value& v, const Value& start, const Value& stop, std::string_view* out, int64_t* before) {
  const auto n = static_cast<int64_t>(character_count(v.text()));
  int64_t from = 0, to = n;
  if (start.given() && !start.is(Kind::none)) AERIE_TRY(whole_number("start", start, &from));
  if (stop.given() && !stop.is(Kind::none)) AERIE_TRY(whole_number("end", stop, &to));
  if (from < 0) from = from < -n ? 0 : from + n;
  if (to < 0) to = to < -n ? 0 : to + n;
  to = std::min(to, n);
  *before = from;
  if (from > to) {
    *before = -1;  // not even an empty text is in it
    *out = {};
    return {};
  }
  const size_t begin = offset_of(v.text(), static_cast<size_t>(from));
  const std::string_view rest = v.text().substr(begin);
  *out = rest.substr(0, offset_of(rest, static_cast<size_t>(to - from)));
  return {};
}

// What is looked for, in p[0]; the text that it is looked for in, and the characters in front of that.
Status search(Context& c, Value* p, const char* method, const Value& v, const Arguments& a, std::string_view* wanted, std::string_view* text,
              int64_t* before) {
  AERIE_TRY(a.bind(method, {"sub", "start", "end"}, 1, p));
  AERIE_TRY(as_text(method, p[0], wanted));
  c.heap->spend(v.text().size() / 4);
  return bounded(v, p[1], p[2], text, before);
}

}  // namespace

Status text_case(Context& c, const Value& v, const Arguments& a, Value* out, std::string (*f)(std::string_view)) {
  AERIE_TRY(a.none("a method of a text"));
  c.heap->spend(v.text().size());
  *out = Value::string(c.heap, f(v.text()));
  return {};
}

Status text_strip(Context& c, const Value& v, const Arguments& a, Value* out, bool left, bool right) {
  Value p[1];
  AERIE_TRY(a.bind("strip", {"chars"}, 0, p));
  std::string_view text = v.text(), characters;
  const bool any = !p[0].given() || p[0].is(Kind::none);
  if (!any) AERIE_TRY(as_text("strip", p[0], &characters));
  const size_t before = text.size();
  if (left) text = strip_left(text, any ? nullptr : &characters);
  if (right) text = strip_right(text, any ? nullptr : &characters);
  c.heap->spend((before - text.size()) * (1 + characters.size() / 16));
  *out = v.part(text);
  return {};
}

Status text_split(Context& c, const Value& v, const Arguments& a, Value* out, bool right) {
  Value p[2];
  AERIE_TRY(a.bind("split", {"sep", "maxsplit"}, 0, p));
  int64_t max = -1;
  if (p[1].given()) AERIE_TRY(whole_number("maxsplit", p[1], &max));
  c.heap->spend(v.text().size() / 4);
  if (!p[0].given() || p[0].is(Kind::none)) {
    *out = list_of(c, v, split_at_space(v.text(), max, right));
    return {};
  }
  std::string_view at;
  AERIE_TRY(as_text("split", p[0], &at));
  if (at.empty()) return type_error("split: an empty separator");
  *out = list_of(c, v, split_at(v.text(), at, max, right));
  return {};
}

Status text_splitlines(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[1];
  AERIE_TRY(a.bind("splitlines", {"keepends"}, 0, p));
  c.heap->spend(v.text().size());
  *out = list_of(c, v, split_lines(v.text(), p[0].truth()));
  return {};
}

Status text_affix(Context&, const Value& v, const Arguments& a, Value* out, bool end) {
  Value p[3];
  AERIE_TRY(a.bind(end ? "endswith" : "startswith", {"affix", "start", "end"}, 1, p));
  std::string_view text;
  int64_t before = 0;
  AERIE_TRY(bounded(v, p[1], p[2], &text, &before));
  const bool several = p[0].is(Kind::tuple);
  bool found = false;
  for (size_t i = 0; i < (several ? p[0].list().items.size() : 1); ++i) {
    std::string_view affix;
    AERIE_TRY(as_text(end ? "endswith" : "startswith", several ? p[0].list().items[i] : p[0], &affix));
    found = found || (before >= 0 && (end ? text.ends_with(affix) : text.starts_with(affix)));
  }
  *out = Value::boolean(found);
  return {};
}

Status text_cut(Context&, const Value& v, const Arguments& a, Value* out, bool end) {
  Value p[1];
  AERIE_TRY(a.bind(end ? "removesuffix" : "removeprefix", {"affix"}, 1, p));
  std::string_view affix, text = v.text();
  AERIE_TRY(as_text("the affix", p[0], &affix));
  if (end ? text.ends_with(affix) : text.starts_with(affix)) {
    if (!end) text.remove_prefix(affix.size());
    else text.remove_suffix(affix.size());
  }
  *out = v.part(text);
  return {};
}

Status text_find(Context& c, const Value& v, const Arguments& a, Value* out, bool right, bool must) {
  Value p[3];
  std::string_view wanted, text;
  int64_t before = 0;
  AERIE_TRY(search(c, p, "find", v, a, &wanted, &text, &before));
  const size_t at = before < 0 ? std::string_view::npos : right ? text.rfind(wanted) : text.find(wanted);
  if (at == std::string_view::npos && must) return type_error("index: the text is not there");
  *out = Value::integer(at == std::string_view::npos ? -1 : before + static_cast<int64_t>(character_count(text.substr(0, at))));
  return {};
}

Status text_count(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[3];
  std::string_view wanted, text;
  int64_t before = 0;
  AERIE_TRY(search(c, p, "count", v, a, &wanted, &text, &before));
  int64_t n = 0;
  if (before >= 0 && wanted.empty()) n = static_cast<int64_t>(character_count(text)) + 1;
  else if (before >= 0)
    for (size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; at += wanted.size()) ++n;
  *out = Value::integer(n);
  return {};
}

Status text_partition(Context& c, const Value& v, const Arguments& a, Value* out, bool right) {
  Value p[1];
  AERIE_TRY(a.bind("partition", {"sep"}, 1, p));
  std::string_view at;
  AERIE_TRY(as_text("partition", p[0], &at));
  if (at.empty()) return type_error("partition: an empty separator");
  const std::string_view text = v.text();
  const size_t found = right ? text.rfind(at) : text.find(at);
  std::vector<std::string_view> parts = right ? std::vector<std::string_view>{"", "", text} : std::vector<std::string_view>{text, "", ""};
  if (found != std::string_view::npos) parts = {text.substr(0, found), text.substr(found, at.size()), text.substr(found + at.size())};
  *out = list_of(c, v, parts, Kind::tuple);
  return {};
}

Status replaced(Context& c, std::string_view text, std::string_view old, std::string_view by, int64_t count, Value* out) {
  c.heap->spend(text.size() / 4);
  std::string result;
  size_t at = 0;
  for (; count != 0; --count) {
    // An empty text is found in front of each character, and at the end.
    const size_t found = old.empty() ? at : text.find(old, at);
    if (found == std::string_view::npos || found > text.size()) break;
    (result += text.substr(at, found - at)) += by;
    at = found + old.size();
    if (old.empty()) {
      if (at == text.size()) break;
      const size_t n = character_size(text[at]);
      result += text.substr(at, n);
      at += n;
    }
    c.heap->spend(1 + by.size() / 16);
    if (!c.heap->has_room(result.size()) || c.heap->exceeded()) return c.heap->status();
  }
  result += text.substr(at);
  *out = Value::string(c.heap, std::move(result));
  return {};
}

Status text_replace(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[3];
  AERIE_TRY(a.bind("replace", {"old", "new", "count"}, 2, p));
  std::string_view old, by;
  AERIE_TRY(as_text("replace", p[0], &old));
  AERIE_TRY(as_text("replace", p[1], &by));
  int64_t count = -1;
  if (p[2].given()) AERIE_TRY(whole_number("count", p[2], &count));
  return replaced(c, v.text(), old, by, count, out);
}

Status joined_items(Context& c, std::string_view between, const List& items, bool any, Value* out) {
  std::string text;
  c.heap->spend(items.items.size());
  for (size_t i = 0; i < items.items.size(); ++i) {
    const Value& v = items.items[i];
    if (i > 0) text += between;
    if (!any && !v.is_string())
      return v.is_undefined() ? undefined_error(v)
                              : type_error(std::string("join: a '") + v.type_name() + "' is no text");
    AERIE_TRY(append_text(v, &text));
    if (!c.heap->has_room(text.size())) return c.heap->status();
  }
  c.heap->spend(text.size() / 64);
  *out = Value::string(c.heap, std::move(text));
  return {};
}

Status text_join(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[1];
  AERIE_TRY(a.bind("join", {"items"}, 1, p));
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, p[0]));
  return joined_items(c, v.text(), *items, false, out);
}

Status text_isspace(Context& c, const Value& v, const Arguments& a, Value* out) {
  AERIE_TRY(a.none("isspace"));
  c.heap->spend(v.text().size() / 4);
  *out = Value::boolean(!v.text().empty() && strip_left(v.text()).empty());
  return {};
}

Status text_isdigit(Context&, const Value& v, const Arguments& a, Value* out) {
  AERIE_TRY(a.none("isdigit"));
  bool all = !v.text().empty();
  for (const char c : v.text()) {
    if (static_cast<unsigned char>(c) >= 0x80) return error(Code::unsupported, "isdigit beyond ASCII is not supported");
    all = all && c >= '0' && c <= '9';
  }
  *out = Value::boolean(all);
  return {};
}

}  // namespace aerie::text::chat
