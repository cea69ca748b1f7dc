// Texts drawn at random from the masks of many schemas are JSON, by another parser, and what the schema asks for, by a checker
// that knows nothing of grammars.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

using Json = nlohmann::ordered_json;

size_t characters(const std::string& utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_of_type(const std::string& type, const Json& v) {
  if (type == "integer") return v.is_number_integer();
  if (type == "number") return v.is_number();
  if (type == "string") return v.is_string();
  if (type == "boolean") return v.is_boolean();
  if (type == "null") return v.is_null();
  return type == "array" ? v.is_array() : v.is_object();
}

bool valid(const Json& schema, const Json& v, const Json& root);

bool valid_object(const Json& schema, const Json& v, const Json& root) {
  for (const auto& name : schema.value("required", Json::array()))
    if (!v.contains(name.get<std::string>())) return false;
  const Json properties = schema.value("properties", Json::object());
  size_t last = 0;
  for (const auto& [key, value] : v.items()) {
    if (properties.contains(key)) {
      const auto at = static_cast<size_t>(std::distance(properties.begin(), properties.find(key))) + 1;
      if (at <= last || !valid(properties[key], value, root)) return false;  // in order, too
      last = at;
    } else if (schema.contains("additionalProperties")) {
      if (!valid(schema["additionalProperties"], value, root)) return false;
    } else if (schema.contains("properties")) {
      return false;  // ours, not JSON Schema's
    }
  }
  return true;
}

bool valid_array(const Json& schema, const Json& v, const Json& root) {
  const Json prefix = schema.value("prefixItems", Json::array());
  if (v.size() < schema.value("minItems", size_t{0}) || v.size() > schema.value("maxItems", SIZE_MAX)) return false;
  for (size_t i = 0; i < v.size(); ++i) {
    if (i < prefix.size() ? !valid(prefix[i], v[i], root)
                          : schema.contains("items") && !valid(schema["items"], v[i], root))
      return false;
    if (i >= prefix.size() && !prefix.empty() && !schema.contains("items")) return false;  // ours
  }
  return true;
}

bool valid(const Json& schema, const Json& v, const Json& root) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref")) return valid(root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), v, root);
  for (const char* key : {"anyOf", "oneOf"}) {
    if (!schema.contains(key)) continue;
    return std::any_of(schema[key].begin(), schema[key].end(), [&](const Json& s) { return valid(s, v, root); });
  }
  if (schema.contains("const") && v != schema["const"]) return false;
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), v) == schema["enum"].end()) return false;
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (std::none_of(types.begin(), types.end(), [&](const Json& t) { return is_of_type(t.get<std::string>(), v); }))
      return false;
  }
  if (v.is_number()) {
    const double n = v.get<double>();
    if (n < schema.value("minimum", -INFINITY) || n > schema.value("maximum", INFINITY)) return false;
    if (schema.contains("exclusiveMinimum") && n <= schema["exclusiveMinimum"].get<double>()) return false;
    if (schema.contains("exclusiveMaximum") && n >= schema["exclusiveMaximum"].get<double>()) return false;
  }
  if (v.is_string()) {
    const size_t n = characters(v.get_ref<const std::string&>());
    if (n < schema.value("minLength", size_t{0}) || n > schema.value("maxLength", SIZE_MAX)) return false;
  }
  if (v.is_array()) return valid_array(schema, v, root);
  return !v.is_object() || valid_object(schema, v, root);
}

constexpr const char* kSchemas[] = {
    "{}",
    R"({"type":"object"})",
    R"({"type":"string"})",
    R"({"type":"number"})",
    R"({"type":"string","minLength":3,"maxLength":7})",
    R"({"type":"array","items":{"type":"integer","minimum":-17,"maximum":2041},"minItems":2,"maxItems":9})",
    R"({"type":"array","items":{"type":"number","minimum":-3,"maximum":3},"minItems":4})",
    R"({"type":"array","items":{"anyOf":[{"type":"number","exclusiveMinimum":-2,"exclusiveMaximum":0},
        {"type":"number","minimum":10,"maximum":1e19}]},"minItems":2})",
    R"({"properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer","minimum":0,"maximum":150},
        "tags":{"type":"array","items":{"enum":["red","green","reddish","blue\n"]}},"email":{"type":["string","null"]}},
        "required":["name","tags"]})",
    R"({"properties":{"a":{"const":1},"ab":{"const":2},"b":{"const":3}},"additionalProperties":{"type":"boolean"},"required":["ab","x"]})",
    R"({"prefixItems":[{"type":"boolean"},{"type":"null"},{"const":{"k":[1,"v"]}}],"items":{"enum":[1,2.5,"x",[]]},"minItems":1,"maxItems":6})",
    R"({"$defs":{"node":{"properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/node"},"maxItems":3}},
        "required":["value"]}},"$ref":"#/$defs/node"})",
    R"({"anyOf":[{"properties":{"kind":{"const":"circle"},"radius":{"type":"number","minimum":0}},"required":["kind","radius"]},
        {"properties":{"kind":{"const":"line"},"length":{"type":"integer","exclusiveMinimum":4}},"required":["kind","length"]}]})",
    R"({"type":["boolean","null","integer"],"maximum":-5})",
    R"({"type":"array","items":{"type":"array","items":{"anyOf":[{"type":"boolean"},{"$ref":"#"}]},"maxItems":2},"maxItems":3})",
    R"({"properties":{"\u00e9 \"q\"":{"type":"null"},"":{"type":"boolean"}},"required":["", "\u00e9 \"q\""]})",
};

TEST(GrammarWalk, TextsOfSchemasAreWhatTheyAskFor) {
  for (const TriePtr& trie : tries()) {
    const int32_t end = trie->vocab_size() - 1;
    for (const char* schema : kSchemas) {
      SCOPED_TRACE(schema);
      const Json parsed = Json::parse(schema);
      const GrammarPtr g = made(try_schema(schema, trie, {end}));
      ASSERT_TRUE(g);
      Dice dice{7};
      int whole = 0;
      for (int round = 0; round < 20; ++round) {
        const Walk w = walk(*g, *trie, dice, 400, end);
        if (!w.whole) continue;
        ++whole;
        const Json value = Json::parse(w.text, nullptr, false);
        ASSERT_FALSE(value.is_discarded()) << w.text;
        ASSERT_TRUE(valid(parsed, value, parsed)) << w.text;
      }
      EXPECT_GT(whole, 0);
    }
  }
}

TEST(GrammarWalk, TextsOfLlamaCppsJsonGrammarAreJson) {
  for (const TriePtr& trie : tries()) {
    const GrammarPtr g = made(try_gbnf(kJsonGbnf, trie, {0}));
    Dice dice{3};
    int whole = 0;
    for (int round = 0; round < 20; ++round) {
      const Walk w = walk(*g, *trie, dice, 300, 0);
      whole += w.whole;
      // Its escapes may be half of a pair, and its numbers too large for a double: that is its own affair.
      if (!w.whole || w.text.find("\\u") != std::string::npos) continue;
      try {
        EXPECT_TRUE(nlohmann::json::parse(w.text).is_object());
      } catch (const nlohmann::json::parse_error& e) {
        ADD_FAILURE() << e.what() << "\n" << w.text;
      } catch (const nlohmann::json::out_of_range&) {
      }
    }
    EXPECT_GT(whole, 0);
  }
}

}  // namespace
}  // namespace aerie::text::test
