// The list of filters, and those that are for any value.
#include "core/text/template/filters.h"

#include <algorithm>
#include <iterator>

#include "core/text/template/print.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

Status filter_default(Context&, const Value& v, const Arguments& a, Value* out) {
  Value p[2];
  AERIE_TRY(a.bind("default", {"default_value", "boolean"}, 0, p));
  const bool missing = v.is_undefined() || (p[1].truth() && !v.truth());
  *out = !missing ? v : p[0].given() ? p[0] : Value::string("");
  return {};
}

Status filter_safe(Context& c, const Value& v, const Arguments& a, Value* out) {
  AERIE_TRY(a.none("safe"));
  AERIE_ASSIGN(*out, text_of(c.heap, v));
  out->mark();
  return {};
}

constexpr FilterEntry kFilters[] = {
    {"trim", filter_trim},
    {"upper", filter_upper},
    {"lower", filter_lower},
    {"title", filter_title},
    {"capitalize", filter_capitalize},
    {"replace", filter_replace},
    {"indent", filter_indent},
    {"tojson", filter_tojson},
    {"string", filter_string},
    {"format", filter_format},
    {"join", filter_join},
    {"length", filter_length},
    {"count", filter_length},
    {"first", filter_first},
    {"last", filter_last},
    {"list", filter_list},
    {"reverse", filter_reverse},
    {"items", filter_items},
    {"batch", filter_batch},
    {"map", filter_map},
    {"sort", filter_sort},
    {"dictsort", filter_dictsort},
    {"unique", filter_unique},
    {"sum", filter_sum},
    {"abs", filter_abs},
    {"int", filter_int},
    {"float", filter_float},
    {"round", filter_round},
    {"default", filter_default},
    {"d", filter_default},
    {"safe", filter_safe},
    {"select", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_select(c, v, a, out, false, true); }},
    {"reject", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_select(c, v, a, out, false, false); }},
    {"selectattr", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_select(c, v, a, out, true, true); }},
    {"rejectattr", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_select(c, v, a, out, true, false); }},
    {"min", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_extreme(c, v, a, out, false); }},
    {"max", [](Context& c, const Value& v, const Arguments& a, Value* out) { return filter_extreme(c, v, a, out, true); }},
};

}  // namespace

int filter_id(std::string_view name) {
  for (size_t i = 0; i < std::size(kFilters); ++i)
    if (kFilters[i].name == name) return static_cast<int>(i);
  return -1;
}

Status apply_filter(Context& c, int id, const Value& v, const Arguments& a, Value* out) {
  const FilterEntry& f = kFilters[id];
  constexpr std::string_view kOfMarked[] = {"safe", "length", "count", "default", "d", "tojson", "trim", "first"};
  if (v.marked() && std::find(std::begin(kOfMarked), std::end(kOfMarked), f.name) == std::end(kOfMarked))
    return error(Code::unsupported, std::string(f.name) + " of what \"safe\" has marked is not supported");
  return f.call(c, v, a, out);
}

Status path_of(Context& c, const Value& v, const Value& path, Value* out, const Value& otherwise) {
  const bool has_default = otherwise.given() && !otherwise.is(Kind::none);
  if (path.is_whole()) {
    AERIE_TRY(item_of(c, v, path, out));
    if (has_default && out->is_undefined()) *out = otherwise;
    return {};
  }
  std::string_view names;
  AERIE_TRY(as_text("attribute", path, &names));
  Value at = v;
  for (const std::string_view name : split_at(names, ".", -1, false)) {
    const bool number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string_view::npos;
    Value next;
    AERIE_TRY(item_of(c, at, number ? Value::integer(std::stol(std::string(name))) : path.part(name), &next));
    at = has_default && next.is_undefined() ? otherwise : std::move(next);
  }
  *out = std::move(at);
  return {};
}

}  // namespace aerie::text::chat
