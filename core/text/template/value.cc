#include "core/text/template/value.h"

#include <algorithm>

#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

constexpr size_t kFewMembers = 8;  // are found by looking at each

bool equal_lists(Heap* heap, const List& a, const List& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(heap, a.items[i], b.items[i])) return false;
  return true;
}

bool equal_dicts(Heap* heap, const Dict& a, const Dict& b) {
  if (a.members.size() != b.members.size()) return false;
  for (const auto& [key, value] : a.members) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(heap, value, *other)) return false;
  }
  return true;
}

}  // namespace

Value Value::string(Heap* heap, std::string text) {
  if (text.empty()) return string(std::string_view());
  const Ref<Text> owner = make<Text>(heap, std::move(text));
  return string(owner->bytes, Ref<Object>(owner.get()));
}

bool Value::truth() const {
  switch (kind_) {
    case Kind::absent:
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return integer_ != 0;
    case Kind::number: return number_ != 0;
    case Kind::string: return !text_.empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view: return !list().items.empty();
    case Kind::dict: return !dict().members.empty();
    default: return true;
  }
}

const char* Value::type_name() const {
  switch (kind_) {
    case Kind::absent:
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::number: return "float";
    case Kind::string: return "str";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::range: return "range";
    case Kind::view: return "dict view";
    case Kind::generator: return "generator";
    case Kind::dict: return "dict";
    case Kind::space: return "Namespace";
    case Kind::loop: return "LoopContext";
    case Kind::macro: return "Macro";
    case Kind::function: return "function";
    case Kind::method: return "method";
  }
  return "";
}

void List::add(Value v) {
  depth_ = std::max(depth_, v.depth() + 1);
  charge(sizeof(Value));
  items.push_back(std::move(v));
}

const Value* Dict::find(std::string_view key) const {
  if (members.size() > kFewMembers) {
    const auto at = by_text_.find(key);
    return at != by_text_.end() ? &members[at->second].second : nullptr;
  }
  for (const auto& [k, v] : members)
    if (k.is_string() && k.text() == key) return &v;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_string()) return find(key.text());
  heap()->spend(members.size());
  for (const auto& [k, v] : members)
    if (!k.is_string() && equal(heap(), k, key)) return &v;
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  depth_ = std::max({depth_, value.depth() + 1, key.depth() + 1});
  if (const Value* old = find(key)) {
    *const_cast<Value*>(old) = std::move(value);
    return;
  }
  charge(2 * sizeof(Value) + 32);
  members.emplace_back(key, std::move(value));
  const size_t n = members.size();
  if (n <= kFewMembers) return;
  for (size_t i = n == kFewMembers + 1 ? 0 : n - 1; i < n; ++i)
    if (members[i].first.is_string()) by_text_.emplace(members[i].first.text(), static_cast<uint32_t>(i));
}

void Dict::clear() {
  members.clear();
  by_text_.clear();
}

Value pair_of(Heap* heap, Value a, Value b) {
  Ref<List> pair = make<List>(heap);
  pair->items.reserve(2);
  pair->add(std::move(a));
  pair->add(std::move(b));
  return list_value(Kind::tuple, std::move(pair));
}

bool equal(Heap* heap, const Value& a, const Value& b) {
  heap->spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::string: heap->spend(a.text().size() / 64); return a.text() == b.text();
    case Kind::list:
    case Kind::tuple:
    case Kind::range: return a.object().get() == b.object().get() || equal_lists(heap, a.list(), b.list());
    case Kind::dict: return a.object().get() == b.object().get() || equal_dicts(heap, a.dict(), b.dict());
    case Kind::function: return a.as_integer() == b.as_integer();
    default: return a.object().get() == b.object().get();
  }
}

bool hashable(const Value& v) {
  if (v.is(Kind::tuple)) return std::all_of(v.list().items.begin(), v.list().items.end(), hashable);
  return !v.is(Kind::list) && !v.is(Kind::dict);
}

Result<int> order(Heap* heap, const Value& a, const Value& b) {
  heap->spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
    const double x = a.as_number(), y = b.as_number();
    if (x != x || y != y) return error(Code::unsupported, "the order of NaN is not supported");
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) {  // bytes of UTF-8 have the order of what they stand for
    heap->spend(a.text().size() / 64);
    return a.text().compare(b.text());
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const auto &x = a.list().items, &y = b.list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(heap, x[i], y[i])) return order(heap, x[i], y[i]);
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) return undefined_error(*v);
  return type_error(std::string("'") + a.type_name() + "' and '" + b.type_name() + "' have no order");
}

Status type_error(const std::string& what) { return error(Code::invalid_argument, what); }

Status undefined_error(const Value& v) {
  if (v.text().empty()) return type_error("a value is undefined");
  return type_error("'" + std::string(v.text().substr(0, 100)) + "' is undefined");
}

Result<Ref<List>> iterate(Heap* heap, const Value& v) {
  if (v.has_items()) {
    auto* list = static_cast<List*>(v.object().get());
    if (!v.is(Kind::generator)) return Ref<List>(list);
    Ref<List> rest = make<List>(heap);
    heap->spend(list->items.size() - list->read);
    for (; list->read < list->items.size(); ++list->read) rest->add(list->items[list->read]);
    return rest;
  }
  Ref<List> out = make<List>(heap);
  if (v.is(Kind::dict)) {
    heap->spend(v.dict().members.size());
    for (const auto& [key, value] : v.dict().members) out->add(key);
  } else if (v.is_string()) {
    heap->spend(v.text().size());
    if (!heap->has_room(v.text().size() * sizeof(Value))) return heap->status();
    for (size_t at = 0; at < v.text().size();) {
      const size_t n = character_size(v.text()[at]);
      out->add(v.part(v.text().substr(at, n)));
      at += n;
    }
  } else if (!v.is_undefined()) {
    return type_error(std::string("'") + v.type_name() + "' is no list, and no other thing to go through");
  }
  return out;
}

}  // namespace aerie::text::chat
