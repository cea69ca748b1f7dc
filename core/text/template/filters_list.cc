#include <algorithm>

#include "core/text/template/filters.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

// What names a filter or a test: all but the first of a call's values are for it.
Arguments rest_of(const Arguments& a, size_t from) {
  Arguments rest = a;
  rest.values += from;
  rest.plain -= from;
  return rest;
}

}  // namespace

AERIE_CHAT_FILTER(filter_length) {
  AERIE_TRY(a.none("length"));
  int64_t n = 0;
  if (v.is_string()) {
    c.heap->spend(v.text().size() / 16);
    n = static_cast<int64_t>(character_count(v.text()));
  } else if (v.has_items() && !v.is(Kind::generator)) {
    n = static_cast<int64_t>(v.list().items.size());
  } else if (v.is(Kind::dict)) {
    n = static_cast<int64_t>(v.dict().members.size());
  } else if (!v.is_undefined()) {
    return type_error(std::string("a '") + v.type_name() + "' has no length");
  }
  *out = Value::integer(n);
  return {};
}

AERIE_CHAT_FILTER(filter_first) {
  AERIE_TRY(a.none("first"));
  if (v.is(Kind::generator)) {
    auto& list = static_cast<List&>(*v.object());
    *out = list.read < list.items.size() ? list.items[list.read++] : Value::undefined("the first of nothing");
    return {};
  }
  if (v.is_string() && !v.text().empty()) return *out = v.part(v.text().substr(0, character_size(v.text()[0]))), Status();
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  *out = items->items.empty() ? Value::undefined("the first of nothing") : items->items.front();
  return {};
}

AERIE_CHAT_FILTER(filter_last) {
  AERIE_TRY(a.none("last"));
  if (v.is(Kind::generator)) return type_error("last: what a filter yields is read from its beginning; make it a list");
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  *out = items->items.empty() ? Value::undefined("the last of nothing") : items->items.back();
  return {};
}

AERIE_CHAT_FILTER(filter_list) {
  AERIE_TRY(a.none("list"));
  AERIE_ASSIGN(Ref<List> items, iterate(c.heap, v));
  *out = list_value(Kind::list, std::move(items));
  return {};
}

AERIE_CHAT_FILTER(filter_reverse) {
  AERIE_TRY(a.none("reverse"));
  if (v.is_string()) return slice_of(c, v, Value(), Value(), Value::integer(-1), out);
  const bool read_once = v.is_sequence() || v.is(Kind::dict) || v.is(Kind::view) || v.is_undefined();  // by reversed(), or as a list
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  Ref<List> list = make<List>(c.heap);
  c.heap->spend(items->items.size());
  for (auto at = items->items.rbegin(); at != items->items.rend(); ++at) list->add(*at);
  *out = list_value(read_once ? Kind::generator : Kind::list, std::move(list));
  return {};
}

AERIE_CHAT_FILTER(filter_items) {
  AERIE_TRY(a.none("items"));
  if (!v.is(Kind::dict) && !v.is_undefined()) return type_error(std::string("items of a '") + v.type_name() + "'");
  Ref<List> list = make<List>(c.heap);
  if (v.is(Kind::dict)) {
    c.heap->spend(v.dict().members.size());
    for (const auto& [key, value] : v.dict().members) list->add(pair_of(c.heap, key, value));
  }
  *out = list_value(Kind::generator, std::move(list));
  return {};
}

AERIE_CHAT_FILTER(filter_batch) {
  Value p[2];
  AERIE_TRY(a.bind("batch", {"linecount", "fill_with"}, 1, p));
  int64_t n = 0;
  AERIE_TRY(whole_number("batch", p[0], &n));
  if (n < 1 || n > 1'000'000) return error(Code::unsupported, "batch: of less than one or more than a million");
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  Ref<List> list = make<List>(c.heap);
  for (size_t i = 0; i < items->items.size(); i += static_cast<size_t>(n)) {
    Ref<List> some = make<List>(c.heap);
    for (size_t k = i; k < std::min(items->items.size(), i + static_cast<size_t>(n)); ++k) some->add(items->items[k]);
    while (p[1].given() && !p[1].is(Kind::none) && some->items.size() < static_cast<size_t>(n)) some->add(p[1]);
    list->add(list_value(Kind::list, std::move(some)));
  }
  *out = list_value(Kind::generator, std::move(list));
  return {};
}

AERIE_CHAT_FILTER(filter_map) {
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v.truth() ? v : Value::undefined()));  // of none nothing, too
  Ref<List> list = make<List>(c.heap);
  int id = -1;
  Value p[2];
  if (a.plain == 0) {
    for (size_t i = 0; i < a.named(); ++i) {
      if (a.name(i) == "attribute") p[0] = a.named_value(i);
      else if (a.name(i) == "default") p[1] = a.named_value(i);
      else return error(Code::unsupported, "map has no argument '" + std::string(a.name(i)) + "'");
    }
    if (!p[0].given()) return type_error("map wants the name of a filter, or an attribute");
  } else {
    std::string_view name;
    AERIE_TRY(as_text("map", a.values[0], &name));
    id = filter_id(name);
    if (id < 0) return error(Code::unsupported, "filter '" + std::string(name.substr(0, 40)) + "' is not supported");
    if (name == "map" || name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
      return error(Code::unsupported, "map of '" + std::string(name) + "' is not supported");  // a name for each level costs stack
  }
  const Arguments rest = id >= 0 ? rest_of(a, 1) : a;
  for (const Value& item : items->items) {
    Value result;
    if (id >= 0) {
      AERIE_TRY(apply_filter(c, id, item, rest, &result));
    } else {
      AERIE_TRY(path_of(c, item, p[0], &result, p[1]));
    }
    c.heap->spend(1);
    if (c.heap->exceeded()) return c.heap->status();
    list->add(std::move(result));
  }
  *out = list_value(Kind::generator, std::move(list));
  return {};
}

Status filter_select(Context& c, const Value& v, const Arguments& a, Value* out, bool by_attribute, bool wanted) {
  const size_t at = by_attribute ? 1 : 0;
  if (a.plain < at) return type_error("selectattr and rejectattr want the name of an attribute");
  int id = -1;
  if (a.plain > at) {
    std::string_view name;
    AERIE_TRY(as_text("a test's name", a.values[at], &name));
    id = test_id(name);
    if (id < 0) return error(Code::unsupported, "test '" + std::string(name.substr(0, 40)) + "' is not supported");
  }
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v.truth() ? v : Value::undefined()));
  Ref<List> list = make<List>(c.heap);
  const Arguments rest = id >= 0 ? rest_of(a, at + 1) : a;
  for (const Value& item : items->items) {
    Value value = item;
    if (by_attribute) AERIE_TRY(path_of(c, item, a.values[0], &value));
    bool holds = value.truth();
    if (id >= 0) AERIE_TRY(apply_test(c, id, value, rest, &holds));
    c.heap->spend(1);
    if (c.heap->exceeded()) return c.heap->status();
    if (holds == wanted) list->add(item);
  }
  *out = list_value(Kind::generator, std::move(list));
  return {};
}

}  // namespace aerie::text::chat
