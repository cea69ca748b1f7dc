// v.name, v[key], v[start:stop:step].
#include <algorithm>

#include "core/text/template/builtins.h"
#include "core/text/template/loop.h"
#include "core/text/template/methods.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

Value missing(Context& c, std::string_view name, bool kept) {
  if (kept) return Value::undefined(name);  // of the template
  const Value text = Value::string(c.heap, std::string(name));
  return Value::undefined(text.text(), text.object());
}

// False: the value has no such attribute of Python's.
Status attribute(Context& c, const Value& v, std::string_view name, Value* out, bool* found) {
  *found = true;
  if (v.is(Kind::loop)) {
    AERIE_TRY(loop_attribute(c, v, name, out, found));
    return {};
  }
  const int id = method_id(v.kind(), name);
  if (id == kNoMethod) return *found = false, Status();
  if (id == kChangesValue) {  // the sandbox hides what would change the conversation
    *out = missing(c, name, false);
    return {};
  }
  if (id == kUnsupportedMethod)
    return error(Code::unsupported, "'" + std::string(name) + "' of a '" + v.type_name() + "' is not supported");
  *out = Value::of(Kind::method, Ref<Object>(make<Method>(c.heap, v, static_cast<uint32_t>(id)).get()));
  return {};
}

bool indexed(Context& c, const Value& v, const Value& key, Value* out) {
  if (!key.is_whole()) return false;
  int64_t i = key.as_integer();
  if (v.is_sequence()) {
    const auto& items = v.list().items;
    if (i < 0) i += static_cast<int64_t>(items.size());
    if (i < 0 || i >= static_cast<int64_t>(items.size())) return false;
    *out = items[static_cast<size_t>(i)];
    return true;
  }
  if (!v.is_string()) return false;
  const std::string_view text = v.text();
  c.heap->spend(text.size() / 64);
  if (i < 0) i += static_cast<int64_t>(character_count(text));
  if (i < 0) return false;
  const size_t at = offset_of(text, static_cast<size_t>(i));
  if (at >= text.size()) return false;
  *out = v.part(text.substr(at, character_size(text[at])));
  return true;
}

}  // namespace

Status attribute_of(Context& c, const Value& v, std::string_view name, Value* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (v.is(Kind::space)) {
    const Value* value = static_cast<const Space&>(*v.object()).attributes->find(name);
    *out = value != nullptr ? *value : missing(c, name, true);
    return {};
  }
  bool found = false;
  AERIE_TRY(attribute(c, v, name, out, &found));
  if (found) return {};
  const Value* value = v.is(Kind::dict) ? v.dict().find(name) : nullptr;
  *out = value != nullptr ? *value : missing(c, name, true);
  return {};
}

Status item_of(Context& c, const Value& v, const Value& key, Value* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (v.is(Kind::dict)) {
    if (const Value* value = hashable(key) ? v.dict().find(key) : nullptr) return *out = *value, Status();
  } else if (v.is(Kind::space) && key.is_string()) {
    return attribute_of(c, v, key.text(), out);
  } else if (indexed(c, v, key, out)) {
    return {};
  }
  if (key.is_string()) {
    bool found = false;
    AERIE_TRY(attribute(c, v, key.text(), out, &found));
    if (!found) *out = missing(c, key.text(), !key.object());
    return {};
  }
  if (key.is_undefined()) return *out = Value::undefined(key.text(), key.object()), Status();
  *out = missing(c, key.is_whole() ? "[" + std::to_string(key.as_integer()) + "]" : std::string("[...]"), false);
  return {};
}

Status slice_of(Context& c, const Value& v, const Value& start, const Value& stop, const Value& step, Value* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_sequence() && !v.is_string()) {
    *out = Value::undefined("a slice");
    return {};
  }
  const auto n = static_cast<int64_t>(v.is_string() ? character_count(v.text()) : v.list().items.size());
  int64_t by = 1;
  if (step.given() && !step.is(Kind::none)) AERIE_TRY(whole_number("the step of a slice", step, &by));
  if (by == 0) return type_error("a slice with step 0");
  const auto place = [&](const Value& w, int64_t otherwise, int64_t* at) -> Status {
    *at = otherwise;
    if (!w.given() || w.is(Kind::none)) return {};
    AERIE_TRY(whole_number("a slice", w, at));
    if (*at < 0) *at = std::max<int64_t>(*at < -n ? -1 : *at + n, by < 0 ? -1 : 0);
    else *at = std::min(*at, by < 0 ? n - 1 : n);
    return {};
  };
  int64_t from = 0, to = 0;
  AERIE_TRY(place(start, by < 0 ? n - 1 : 0, &from));
  AERIE_TRY(place(stop, by < 0 ? -1 : n, &to));
  by = std::clamp<int64_t>(by, -n - 1, n + 1);
  c.heap->spend(static_cast<uint64_t>(n) / 16 + 1);
  if (v.is_string()) {
    if (by == 1) {
      const size_t begin = offset_of(v.text(), static_cast<size_t>(from));
      const std::string_view rest = v.text().substr(begin);
      *out = v.part(to > from ? rest.substr(0, offset_of(rest, static_cast<size_t>(to - from))) : std::string_view());
      return {};
    }
    std::vector<std::string_view> characters;
    for (size_t at = 0; at < v.text().size(); at += characters.back().size())
      characters.push_back(v.text().substr(at, character_size(v.text()[at])));
    c.heap->spend(characters.size());
    std::string text;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by) text += characters[static_cast<size_t>(i)];
    *out = Value::string(c.heap, std::move(text));
    return {};
  }
  Ref<List> list = make<List>(c.heap);
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by) list->add(v.list().items[static_cast<size_t>(i)]);
  c.heap->spend(list->items.size());
  *out = list_value(v.kind(), std::move(list));
  return {};
}

}  // namespace aerie::text::chat
