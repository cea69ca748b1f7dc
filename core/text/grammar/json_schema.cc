// JSON Schema: what all schemas have. Types are in schema_types.cc, objects and arrays in files of their own.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/text/grammar/digits.h"
#include "core/text/grammar/grammar.h"
#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {
namespace {

using Kind = SchemaValue::Kind;

constexpr const char* kNestedId = "is supported at the root only: it changes what \"#/...\" means";
constexpr uint32_t kSaysNothing = 1u << 31;  // about a value

struct Keyword {
  std::string_view name;
  uint32_t types;  // of values that it speaks of
};
// clang-format off
constexpr Keyword kKeywords[] = {
    {"type", 0}, {"enum", 0}, {"const", 0}, {"$ref", 0}, {"anyOf", 0}, {"oneOf", 0}, {"allOf", 0},
    {"properties", kTypeObject}, {"required", kTypeObject}, {"additionalProperties", kTypeObject},
    {"items", kTypeArray}, {"prefixItems", kTypeArray}, {"minItems", kTypeArray}, {"maxItems", kTypeArray},
    {"uniqueItems", kTypeArray},
    {"minLength", kTypeString}, {"maxLength", kTypeString}, {"pattern", kTypeString}, {"format", kTypeString},
    {"minimum", kTypeNumber}, {"maximum", kTypeNumber}, {"exclusiveMinimum", kTypeNumber}, {"exclusiveMaximum", kTypeNumber},
    {"$defs", kSaysNothing}, {"definitions", kSaysNothing}, {"title", kSaysNothing}, {"description", kSaysNothing},
    {"default", kSaysNothing}, {"examples", kSaysNothing}, {"$schema", kSaysNothing}, {"$id", kSaysNothing},
    {"$comment", kSaysNothing}, {"deprecated", kSaysNothing}, {"readOnly", kSaysNothing}, {"writeOnly", kSaysNothing},
};
// clang-format on
const Keyword* keyword(std::string_view name) {
  const auto at = std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& k) { return k.name == name; });
  return at != std::end(kKeywords) ? at : nullptr;
}

constexpr std::pair<std::string_view, uint32_t> kTypeNames[] = {
    {"null", kTypeNull}, {"boolean", kTypeBoolean}, {"integer", kTypeInteger}, {"number", kTypeInteger | kTypeNumber},
    {"string", kTypeString}, {"array", kTypeArray}, {"object", kTypeObject},
};

std::string text_of_scalar(const SchemaValue& v) {
  switch (v.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return v.truth ? "true" : "false";
    case Kind::string: return json_quoted(v.text);
    default: break;
  }
  // 1.0 and 1e2 as what they are, 1 and 100; what has more digits as it is written.
  const bool whole = v.number == std::floor(v.number) && std::abs(v.number) <= static_cast<double>(kMaxJsonInteger);
  return whole ? std::to_string(static_cast<int64_t>(v.number)) : v.text;
}

// "a%20b~1c" of a reference as the key that it means.
Result<std::string> unescaped(std::string_view part, const std::string& path) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    const auto hex = [&](size_t at) { return at < part.size() ? hex_value(part[at]) : -1; };
    if (part[i] == '%' && hex(i + 1) >= 0 && hex(i + 2) >= 0) {
      out += static_cast<char>(16 * hex(i + 1) + hex(i + 2));
      i += 2;
    } else if (part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1')) {
      out += part[++i] == '0' ? '~' : '/';
    } else if (part[i] == '%' || part[i] == '~') {
      return schema_error(Code::bad_format, path, "no reference");
    } else {
      out += part[i];
    }
  }
  return out;
}

}  // namespace

uint32_t type_of_value(const SchemaValue& v) {
  switch (v.kind) {
    case Kind::null: return kTypeNull;
    case Kind::boolean: return kTypeBoolean;
    case Kind::integer: return kTypeInteger;
    case Kind::number: return v.number == std::floor(v.number) ? kTypeInteger : kTypeNumber;  // 1.0 is an integer
    case Kind::string: return kTypeString;
    case Kind::array: return kTypeArray;
    case Kind::object: return kTypeObject;
  }
  return 0;
}

std::string child_path(const std::string& path, std::string_view key) {
  constexpr size_t kBegin = 60, kEnd = 120;
  std::string out = path + "/";
  out += key.substr(0, kBegin + kEnd);
  if (out.size() > kBegin + 3 + kEnd) out = out.substr(0, kBegin) + "..." + out.substr(out.size() - kEnd);
  return out;
}

Status schema_error(Code code, const std::string& path, const std::string& what) {
  return error(code, "schema: " + path + ": " + what);
}

Result<Program> program_of_json_schema(std::string_view schema, JsonLayout layout) { return SchemaReader(layout).read(schema); }

Result<Program> SchemaReader::read(std::string_view json) {
  AERIE_ASSIGN(root_, parse_schema_value(json));
  const uint32_t root = value_of(rule_of(root_, "#"));
  while (!to_read_.empty()) {
    const Node node = std::move(to_read_.back());
    to_read_.pop_back();
    builder_.begin(node.rule);
    Alternatives alternatives;
    const Status status = read_schema(*node.schema, node.path, &alternatives);
    if (status.ok()) builder_.define(node.rule, std::move(alternatives));
    AERIE_TRY(builder_.size_status("schema: " + node.path + ":"));  // readers stop half-way where it is too large
    AERIE_TRY(status);
  }
  for (const auto& [list, path] : one_ofs_) AERIE_TRY(check_one_of(*list, path));
  return builder_.compile(root, false);
}

Element SchemaReader::rule_of(const SchemaValue& schema, const std::string& path) {
  const auto [at, is_new] = rules_.try_emplace(&schema, 0);
  if (is_new) {
    at->second = builder_.declare(path);
    to_read_.push_back({&schema, path, at->second});
  }
  return element(ElementKind::rule, at->second);
}

Status SchemaReader::check_keywords(const SchemaValue& s, const std::string& path) const {
  for (const std::string& key : s.keys) {
    if (keyword(key) == nullptr) return schema_error(Code::unsupported, child_path(path, key), "is not supported");
    if (key == "$id" && &s != &root_) return schema_error(Code::unsupported, child_path(path, key), kNestedId);
  }
  return {};
}

// That nothing else is said about the value.
Status SchemaReader::alone(const SchemaValue& s, const std::string& path, std::string_view which) const {
  for (const std::string& key : s.keys) {
    if (key == which || keyword(key)->types == kSaysNothing) continue;
    if (key == "type" && (which == "const" || which == "enum")) continue;
    return schema_error(Code::unsupported, child_path(path, key), "is not supported beside \"" + std::string(which) + "\"");
  }
  return {};
}

Status SchemaReader::types_of(const SchemaValue& s, const std::string& path, uint32_t* types) const {
  *types = 0;
  const SchemaValue* type = s.find("type");
  if (type == nullptr) {  // who says how long a string is wants a string
    for (const std::string& key : s.keys) *types |= keyword(key)->types & kAllTypes;
    if ((*types & kTypeNumber) != 0) *types |= kTypeInteger;
    if (*types == 0) *types = kAllTypes;
    return {};
  }
  const std::vector<SchemaValue> one(type->is(Kind::string) ? 1 : 0, *type);
  const std::vector<SchemaValue>& names = type->is(Kind::array) ? type->items : one;
  for (const SchemaValue& name : names) {
    const auto at =
        std::find_if(std::begin(kTypeNames), std::end(kTypeNames), [&](const auto& t) { return t.first == name.text; });
    if (!name.is(Kind::string) || at == std::end(kTypeNames))
      return schema_error(Code::bad_format, child_path(path, "type"), "is no type of JSON");
    *types |= at->second;
  }
  if (*types == 0)
    return schema_error(Code::bad_format, child_path(path, "type"), "is neither a type of JSON nor a list of such");
  return {};
}

Status SchemaReader::read_schema(const SchemaValue& s, const std::string& path, Alternatives* out) {
  if (s.is(Kind::boolean)) {
    if (s.truth) out->push_back({json_.value()});
    return {};
  }
  if (!s.is(Kind::object)) return schema_error(Code::bad_format, path, "a schema is an object, true or false");
  AERIE_TRY(check_keywords(s, path));
  for (const std::string_view key : {"$ref", "anyOf", "oneOf", "allOf"}) {
    const SchemaValue* value = s.find(key);
    if (value == nullptr) continue;
    AERIE_TRY(alone(s, path, key));
    const std::string at = child_path(path, key);
    if (key == "oneOf") one_ofs_.emplace_back(value, at);
    return key == "$ref" ? reference(*value, at, out) : choices(*value, at, key == "allOf", out);
  }
  uint32_t types = 0;
  AERIE_TRY(types_of(s, path, &types));
  if (s.find("const") != nullptr || s.find("enum") != nullptr) return constants(s, path, types, out);
  const bool says_more =
      std::any_of(s.keys.begin(), s.keys.end(), [](const std::string& k) { return (keyword(k)->types & kAllTypes) != 0; });
  if (types == kAllTypes && !says_more) {
    out->push_back({json_.value()});
    return {};
  }
  if ((types & kTypeNull) != 0) out->push_back({json_.one_of({"null"})});
  if ((types & kTypeBoolean) != 0) out->push_back({json_.one_of({"true", "false"})});
  if ((types & kTypeString) != 0) AERIE_TRY(string(s, path, out));
  if ((types & kTypeNumber) != 0) {
    AERIE_TRY(number(s, path, out));
  } else if ((types & kTypeInteger) != 0) {
    AERIE_TRY(integer(s, path, out));
  }
  if ((types & kTypeArray) != 0) AERIE_TRY(array(s, path, out));
  if ((types & kTypeObject) != 0) AERIE_TRY(object(s, path, out));
  return {};
}

Result<const SchemaValue*> SchemaReader::target_of(const SchemaValue& ref, const std::string& path, std::string* at_path) const {
  if (!ref.is(Kind::string)) return schema_error(Code::bad_format, path, "is not a text");
  std::string_view rest = ref.text;
  if (!rest.starts_with('#') || (rest.size() > 1 && rest[1] != '/'))
    return schema_error(Code::unsupported, path, "only references that begin with \"#/\", and \"#\", are supported");
  rest.remove_prefix(1);
  const SchemaValue* at = &root_;
  *at_path = "#";
  while (!rest.empty() && at != nullptr) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    AERIE_ASSIGN(const std::string key, unescaped(part, path));
    *at_path = child_path(*at_path, key);
    if (at->is(Kind::array)) {
      const bool number =
          !key.empty() && key.size() < 8 && std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
      const size_t i = number ? static_cast<size_t>(std::stoul(key)) : SIZE_MAX;
      at = i < at->items.size() ? &at->items[i] : nullptr;
    } else {
      at = at->find(key);
    }
    const SchemaValue* id = at != nullptr ? at->find("$id") : nullptr;
    if (id != nullptr && id->is(Kind::string)) return schema_error(Code::unsupported, child_path(*at_path, "$id"), kNestedId);
  }
  if (at == nullptr) return schema_error(Code::bad_format, path, "there is nothing at " + *at_path);
  return at;
}

Status SchemaReader::reference(const SchemaValue& ref, const std::string& path, Alternatives* out) {
  std::string at_path;
  AERIE_ASSIGN(const SchemaValue* at, target_of(ref, path, &at_path));
  out->push_back({rule_of(*at, at_path)});
  return {};
}

Status SchemaReader::choices(const SchemaValue& list, const std::string& path, bool only_one, Alternatives* out) {
  if (!list.is(Kind::array) || list.items.empty()) return schema_error(Code::bad_format, path, "is not a list of schemas");
  if (only_one && list.items.size() > 1) return schema_error(Code::unsupported, path, "more than one schema is not supported");
  for (size_t i = 0; i < list.items.size(); ++i) out->push_back({rule_of(list.items[i], child_path(path, std::to_string(i)))});
  return {};
}

Status SchemaReader::constants(const SchemaValue& s, const std::string& path, uint32_t types, Alternatives* out) {
  const bool is_const = s.find("const") != nullptr;
  const std::string key = is_const ? "const" : "enum";
  AERIE_TRY(alone(s, path, key));
  const SchemaValue& value = *s.find(key);
  if (!is_const && (!value.is(Kind::array) || value.items.empty()))
    return schema_error(Code::bad_format, child_path(path, key), "is not a list of values");
  std::vector<std::string> texts;
  for (size_t i = 0; i < (is_const ? 1 : value.items.size()); ++i) {
    const SchemaValue& v = is_const ? value : value.items[i];
    if ((type_of_value(v) & types) == 0) continue;
    if (v.is(Kind::array) || v.is(Kind::object)) constant(v, &out->emplace_back());
    else texts.push_back(text_of_scalar(v));
  }
  if (!texts.empty()) out->push_back({json_.one_of(std::move(texts))});
  if (out->empty()) return schema_error(Code::bad_format, child_path(path, key), "has no value of the type that is asked for");
  return {};
}

void SchemaReader::constant(const SchemaValue& value, Sequence* out) {
  const bool list = value.is(Kind::array);
  if (!list && !value.is(Kind::object)) {
    builder_.literal(text_of_scalar(value), out);
    return;
  }
  builder_.literal(list ? "[" : "{", out);
  out->push_back(json_.gap());
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) out->push_back(json_.comma());
    Sequence item;
    constant(value.items[i], &item);
    if (list) {
      out->insert(out->end(), item.begin(), item.end());
    } else {
      Sequence key;
      builder_.literal(json_quoted(value.keys[i]), &key);
      json_.member(builder_.choice({std::move(key)}), builder_.choice({std::move(item)}), out);
    }
  }
  if (!value.items.empty()) out->push_back(json_.gap());
  builder_.literal(list ? "]" : "}", out);
}

}  // namespace aerie::text::grammar
