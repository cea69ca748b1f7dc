// JSON Schema: "oneOf". A grammar takes a text of any alternative; that it is of no other one must be seen from the schemas.
#include <algorithm>
#include <span>

#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {
namespace {

using Kind = SchemaValue::Kind;

constexpr int kMaxDepth = 16;  // of references and properties that are followed to tell two schemas apart

// The values of a "const" or "enum".
std::span<const SchemaValue> constants_of(const SchemaValue& s) {
  if (const SchemaValue* value = s.find("const")) return {value, 1};
  if (const SchemaValue* list = s.find("enum")) return list->items;
  return {};
}

bool asks_for(const SchemaValue* required, std::string_view name) {
  return required != nullptr &&
         std::any_of(required->items.begin(), required->items.end(), [&](const SchemaValue& r) { return r.text == name; });
}

// What a schema says of a member; null: nothing.
const SchemaValue* member_of(const SchemaValue& s, std::string_view name) {
  const SchemaValue* properties = s.find("properties");
  const SchemaValue* named = properties != nullptr ? properties->find(name) : nullptr;
  return named != nullptr ? named : s.find("additionalProperties");
}

// Whether our texts of an object, which are closed unless they are said to be open, may have a member.
bool may_write(const SchemaValue& s, std::string_view name) {
  const SchemaValue *properties = s.find("properties"), *others = s.find("additionalProperties");
  if (properties != nullptr && properties->find(name) != nullptr) return true;
  const bool open = others != nullptr ? !others->is(Kind::boolean) || others->truth : properties == nullptr;
  return open || asks_for(s.find("required"), name);
}

}  // namespace

// All schemas have been read before, so that mistakes in them have been said.
Status SchemaReader::check_one_of(const SchemaValue& list, const std::string& path) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      // What the one writes must not be valid for the other, which is more than what that would write.
      if (avoids(list.items[i], list.items[k], 0) && avoids(list.items[k], list.items[i], 0)) continue;
      return schema_error(Code::unsupported, child_path(path, std::to_string(i)),
                          "is not told apart from alternative " + std::to_string(k) +
                              " by its type, const or enum, nor by those of a required property; \"anyOf\" takes both");
    }
  }
  return {};
}

bool SchemaReader::avoids(const SchemaValue& ours, const SchemaValue& other, int depth) {
  if (depth > kMaxDepth || --comparisons_left_ < 0) return false;
  if (ours.is(Kind::boolean) && !ours.truth) return true;
  if (other.is(Kind::boolean)) return !other.truth;
  for (const bool of_ours : {true, false}) {
    const SchemaValue& s = of_ours ? ours : other;
    const auto avoided = [&](const SchemaValue& way) {
      return of_ours ? avoids(way, other, depth + 1) : avoids(ours, way, depth + 1);
    };
    if (const SchemaValue* ref = s.find("$ref")) {
      std::string at_path;
      const auto target = target_of(*ref, {}, &at_path);
      return target.ok() && avoided(**target);
    }
    for (const char* key : {"anyOf", "oneOf", "allOf"})
      if (const SchemaValue* list = s.find(key)) return std::all_of(list->items.begin(), list->items.end(), avoided);
  }
  uint32_t types = 0, other_types = kAllTypes;  // without a type, what is said of one leaves all others valid
  if (!types_of(ours, {}, &types).ok()) return false;
  if (other.find("type") != nullptr && !types_of(other, {}, &other_types).ok()) return false;
  const std::span<const SchemaValue> values = constants_of(ours), other_values = constants_of(other);
  const auto is_among = [&](const SchemaValue& v, std::span<const SchemaValue> list) {
    return std::any_of(list.begin(), list.end(), [&](const SchemaValue& w) { return may_be_equal(v, w); });
  };
  if (!values.empty()) {
    return std::all_of(values.begin(), values.end(), [&](const SchemaValue& v) {
      const uint32_t type = type_of_value(v);
      return (type & types & other_types) == 0 || (!other_values.empty() && !is_among(v, other_values));
    });
  }
  if (!other_values.empty()) {
    return std::all_of(other_values.begin(), other_values.end(),
                       [&](const SchemaValue& v) { return (type_of_value(v) & types & other_types) == 0; });
  }
  const uint32_t common = types & other_types;
  return common == 0 || (common == kTypeObject && objects_avoid(ours, other, depth));
}

bool SchemaReader::objects_avoid(const SchemaValue& ours, const SchemaValue& other, int depth) {
  SchemaValue anything;
  anything.kind = Kind::boolean;
  anything.truth = true;
  const SchemaValue *required = ours.find("required"), *other_required = other.find("required");
  for (const SchemaValue* names : {required, other_required}) {
    if (names == nullptr) continue;
    for (const SchemaValue& name : names->items) {
      comparisons_left_ -= static_cast<int64_t>(1 + (required != nullptr ? required->items.size() : 0));
      if (comparisons_left_ < 0) return false;
      if (!may_write(ours, name.text)) return true;  // what the other asks for
      const SchemaValue *member = member_of(ours, name.text), *other_member = member_of(other, name.text);
      // One of them asks for it: without it a text of ours is none of the other's, or not ours.
      if (other_member != nullptr && avoids(member != nullptr ? *member : anything, *other_member, depth + 1)) return true;
    }
  }
  return false;
}

bool SchemaReader::may_be_equal(const SchemaValue& a, const SchemaValue& b) {
  if (--comparisons_left_ < 0) return true;
  if (a.is_number() && b.is_number()) return a.number == b.number;
  if (a.kind != b.kind || a.truth != b.truth || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    const SchemaValue* other = a.is(Kind::object) ? b.find(a.keys[i]) : &b.items[i];
    if (other == nullptr || !may_be_equal(a.items[i], *other)) return false;
  }
  return true;
}

}  // namespace aerie::text::grammar
