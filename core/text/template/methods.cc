#include "core/text/template/methods.h"

#include <algorithm>
#include <iterator>

#include "core/text/template/loop.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

Status dict_items(Context& c, const Value& v, const Arguments& a, Value* out) {
  AERIE_TRY(a.none("items"));
  Ref<List> list = make<List>(c.heap);
  c.heap->spend(v.dict().members.size());
  for (const auto& [key, value] : v.dict().members) list->add(pair_of(c.heap, key, value));
  *out = list_value(Kind::view, std::move(list));
  return {};
}

Status dict_parts(Context& c, const Value& v, const Arguments& a, Value* out, bool keys) {
  AERIE_TRY(a.none(keys ? "keys" : "values"));
  Ref<List> list = make<List>(c.heap);
  c.heap->spend(v.dict().members.size());
  for (const auto& [key, value] : v.dict().members) list->add(keys ? key : value);
  *out = list_value(Kind::view, std::move(list));
  return {};
}

Status dict_get(Context&, const Value& v, const Arguments& a, Value* out) {
  Value p[2];
  if (a.named() > 0) return type_error("get takes no arguments with names");
  AERIE_TRY(a.bind("get", {"key", "default"}, 1, p));
  if (!hashable(p[0])) return type_error(std::string("a '") + p[0].type_name() + "' is no key");
  const Value* value = v.dict().find(p[0]);
  *out = value != nullptr ? *value : p[1].given() ? p[1] : Value::none();
  return {};
}

Status dict_copy(Context&, const Value& v, const Arguments& a, Value* out) {
  AERIE_TRY(a.none("copy"));
  *out = v;  // nothing can change it
  return {};
}

Status list_index(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[1];
  AERIE_TRY(a.bind("index", {"value"}, 1, p));
  const auto& items = v.list().items;
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(c.heap, items[i], p[0])) return *out = Value::integer(static_cast<int64_t>(i)), Status();
  return type_error("index: the value is not in the list");
}

Status list_count(Context& c, const Value& v, const Arguments& a, Value* out) {
  Value p[1];
  AERIE_TRY(a.bind("count", {"value"}, 1, p));
  const auto& items = v.list().items;
  *out = Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& i) { return equal(c.heap, i, p[0]); }));
  return {};
}

Status loop_cycle(Context&, const Value& v, const Arguments& a, Value* out) {
  if (a.plain == 0 || a.named() > 0) return type_error("loop.cycle wants values");
  *out = a.values[(static_cast<const Loop&>(*v.object()).next - 1) % a.plain];
  return {};
}

#define METHOD(call) [](Context& c, const Value& v, const Arguments& a, Value* out) -> Status { return call; }
constexpr MethodEntry kMethods[] = {
    {Kind::string, "strip", METHOD(text_strip(c, v, a, out, true, true))},
    {Kind::string, "lstrip", METHOD(text_strip(c, v, a, out, true, false))},
    {Kind::string, "rstrip", METHOD(text_strip(c, v, a, out, false, true))},
    {Kind::string, "split", METHOD(text_split(c, v, a, out, false))},
    {Kind::string, "rsplit", METHOD(text_split(c, v, a, out, true))},
    {Kind::string, "splitlines", text_splitlines},
    {Kind::string, "startswith", METHOD(text_affix(c, v, a, out, false))},
    {Kind::string, "endswith", METHOD(text_affix(c, v, a, out, true))},
    {Kind::string, "replace", text_replace},
    {Kind::string, "upper", METHOD(text_case(c, v, a, out, upper_case))},
    {Kind::string, "lower", METHOD(text_case(c, v, a, out, lower_case))},
    {Kind::string, "title", METHOD(text_case(c, v, a, out, title_case))},
    {Kind::string, "capitalize", METHOD(text_case(c, v, a, out, capitalized))},
    {Kind::string, "find", METHOD(text_find(c, v, a, out, false, false))},
    {Kind::string, "rfind", METHOD(text_find(c, v, a, out, true, false))},
    {Kind::string, "index", METHOD(text_find(c, v, a, out, false, true))},
    {Kind::string, "rindex", METHOD(text_find(c, v, a, out, true, true))},
    {Kind::string, "count", text_count},
    {Kind::string, "join", text_join},
    {Kind::string, "format", METHOD(brace_format(c, v.text(), a, out))},
    {Kind::string, "partition", METHOD(text_partition(c, v, a, out, false))},
    {Kind::string, "rpartition", METHOD(text_partition(c, v, a, out, true))},
    {Kind::string, "removeprefix", METHOD(text_cut(c, v, a, out, false))},
    {Kind::string, "removesuffix", METHOD(text_cut(c, v, a, out, true))},
    {Kind::string, "isspace", text_isspace},
    {Kind::string, "isdigit", text_isdigit},
    {Kind::dict, "items", dict_items},
    {Kind::dict, "keys", METHOD(dict_parts(c, v, a, out, true))},
    {Kind::dict, "values", METHOD(dict_parts(c, v, a, out, false))},
    {Kind::dict, "get", dict_get},
    {Kind::dict, "copy", dict_copy},
    {Kind::list, "index", list_index},
    {Kind::list, "count", list_count},
    {Kind::list, "copy", dict_copy},
    {Kind::tuple, "index", list_index},
    {Kind::tuple, "count", list_count},
    {Kind::loop, "cycle", loop_cycle},
};
#undef METHOD

struct Known {
  Kind kind;
  std::string_view names;  // " a b "
};
constexpr Known kChanging[] = {
    {Kind::dict, " clear pop popitem setdefault update "},
    {Kind::list, " append clear pop reverse insert sort extend remove "},
};
constexpr Known kUnsupported[] = {
    {Kind::string, " casefold center encode expandtabs format_map isalnum isalpha isascii isdecimal isidentifier islower isnumeric "
                   "isprintable istitle isupper ljust maketrans rjust swapcase translate zfill "},
    {Kind::dict, " fromkeys "},
    {Kind::integer, " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes "},
    {Kind::boolean, " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes "},
    {Kind::number, " as_integer_ratio conjugate fromhex hex imag is_integer real "},
    {Kind::range, " count index start step stop "},
    {Kind::view, " isdisjoint mapping "},
    {Kind::generator, " close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw "},
    {Kind::loop, " changed "},  // what it keeps may hold the loop itself
    {Kind::macro, " arguments caller catch_kwargs catch_varargs explicit_caller name "},
};

template <size_t N>
bool known(const Known (&table)[N], Kind kind, std::string_view name) {
  const auto has = [&](const Known& k) {
    const size_t at = k.kind == kind ? k.names.find(name) : std::string_view::npos;
    return at != std::string_view::npos && k.names[at - 1] == ' ' && k.names[at + name.size()] == ' ';
  };
  return !name.empty() && name[0] != ' ' && std::any_of(std::begin(table), std::end(table), has);
}

}  // namespace

int method_id(Kind kind, std::string_view name) {
  for (size_t i = 0; i < std::size(kMethods); ++i)
    if (kMethods[i].kind == kind && kMethods[i].name == name) return static_cast<int>(i);
  if (known(kChanging, kind, name)) return kChangesValue;
  return known(kUnsupported, kind, name) ? kUnsupportedMethod : kNoMethod;
}

Status call_method(Context& c, const Method& method, const Arguments& arguments, Value* out) {
  const MethodEntry& m = kMethods[method.id];
  constexpr std::string_view kOfMarked[] = {"strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "startswith", "endswith", "find"};
  if (method.self.marked() && std::find(std::begin(kOfMarked), std::end(kOfMarked), m.name) == std::end(kOfMarked))
    return error(Code::unsupported, std::string(m.name) + " of what \"safe\" has marked is not supported");
  return m.call(c, method.self, arguments, out);
}

}  // namespace aerie::text::chat
