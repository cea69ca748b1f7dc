// JSON Schema: objects. Their members come in the order of the schema, those that it does not name last.
#include <utility>

#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {
namespace {

using Kind = SchemaValue::Kind;

struct Property {
  Element member;  // "name": value
  bool required;
};

}  // namespace

Status SchemaReader::object(const SchemaValue& s, const std::string& path, Alternatives* out) {
  const SchemaValue *properties = s.find("properties"), *required = s.find("required"), *others = s.find("additionalProperties");
  if (properties != nullptr && !properties->is(Kind::object))
    return schema_error(Code::bad_format, child_path(path, "properties"), "is not an object");
  if (required != nullptr && !required->is(Kind::array))
    return schema_error(Code::bad_format, child_path(path, "required"), "is not a list");
  if (others != nullptr && !others->is(Kind::object) && !others->is(Kind::boolean))
    return schema_error(Code::bad_format, child_path(path, "additionalProperties"), "is neither a schema nor true nor false");
  if (properties == nullptr && required == nullptr && others == nullptr) {
    out->push_back({json_.any_object()});
    return {};
  }
  // Who names properties wants these: others come where it is said that they may.
  const bool has_others = others == nullptr ? properties == nullptr : others->is(Kind::object) || others->truth;
  const auto value_of_others = [&] {
    return others != nullptr && others->is(Kind::object) ? rule_of(*others, child_path(path, "additionalProperties"))
                                                         : json_.value();
  };

  std::vector<Property> list;
  std::vector<std::string> names;
  std::unordered_map<std::string_view, size_t> index;
  const auto add = [&](const std::string& name, Element value) {
    Sequence key, member;
    builder_.literal(json_quoted(name), &key);
    json_.member(builder_.choice({std::move(key)}), value, &member);
    list.push_back({builder_.choice({std::move(member)}), false});
    names.push_back(name);
  };
  if (properties != nullptr) {
    const std::string at = child_path(path, "properties");
    for (size_t i = 0; i < properties->keys.size(); ++i) {
      index.emplace(properties->keys[i], list.size());
      add(properties->keys[i], rule_of(properties->items[i], child_path(at, properties->keys[i])));
    }
  }
  if (required != nullptr) {
    for (const SchemaValue& name : required->items) {
      if (!name.is(Kind::string))
        return schema_error(Code::bad_format, child_path(path, "required"), "has something that is no text");
      const auto [found, is_new] = index.try_emplace(name.text, list.size());
      const size_t i = found->second;
      if (is_new) {
        if (others != nullptr && !has_others)
          return schema_error(Code::bad_format, child_path(path, "required"),
                              "asks for \"" + name.text.substr(0, 60) + "\", which additionalProperties forbids");
        add(name.text, value_of_others());
      }
      list[i].required = true;
    }
  }

  const Element comma = json_.comma(), gap = json_.gap();
  // What may come from property i on, where one has come before, and where none has; from the last one up.
  Element after = kEnd, first = kEnd;  // kEnd: nothing
  if (has_others) {
    Sequence member, more;
    json_.member(json_.other_key(names), value_of_others(), &member);
    const Element other = builder_.choice({std::move(member)});
    json_.list_of(other, &more);
    after = builder_.choice({more});
    more.insert(more.begin(), other);
    first = builder_.choice({std::move(more)});
  }
  bool may_be_empty = true;
  for (size_t i = list.size(); i-- > 0 && !builder_.too_large();) {
    const auto [member, is_required] = list[i];
    Sequence now = {member}, then = {comma, member};
    if (after != kEnd) now.push_back(after), then.push_back(after);
    Alternatives first_ways = {std::move(now)}, after_ways = {std::move(then)};
    if (!is_required) {
      if (first != kEnd) first_ways.push_back({first});
      after_ways.push_back(after != kEnd ? Sequence{after} : Sequence{});
    }
    may_be_empty &= !is_required;
    first = builder_.choice(std::move(first_ways));
    after = builder_.choice(std::move(after_ways));
  }
  const Element open = element(ElementKind::byte, '{'), close = element(ElementKind::byte, '}');
  if (first != kEnd) out->push_back({open, gap, first, gap, close});
  if (may_be_empty) out->push_back({open, gap, close});
  return {};
}

}  // namespace aerie::text::grammar
