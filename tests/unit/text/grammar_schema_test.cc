// JSON Schema: which texts it allows, and what is said of one that is not supported.
#include "core/text/grammar/json_rules.h"
#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

struct Texts {
  const char* schema;
  std::vector<std::string> good, bad;
};

void PrintTo(const Texts& t, std::ostream* out) { *out << t.schema; }
class SchemaTexts : public testing::TestWithParam<Texts> {};

TEST_P(SchemaTexts, AreThoseOfTheSchema) {
  const GrammarPtr g = made(try_schema(GetParam().schema));
  ASSERT_TRUE(g);
  for (const std::string& text : GetParam().good) EXPECT_TRUE(is_whole(g, text)) << text;
  for (const std::string& text : GetParam().bad) EXPECT_FALSE(is_whole(g, text)) << text;
}

const Texts kTexts[] = {
    {"{}",
     {"null", "true", "-0.5e+3", "\"\"", "[]", "{}", "[1, [2,{\"a\": \"\\u00e9\\n\"}]]",
      "{\n  \"a\": [\n\t1\n ],\n  \"b\":2\n}", "\"\\uD83D\\uDE00\U0001F600\""},
     {"", " null", "null ", "01", "1.", "-", "[1,]", "{\"a\"}", "{a:1}", "\"\n\"", "\"\\ud83d\"", "\"\\x\"", "[1,  2]",
      "[1,\n\n2]", "+1", "nul"}},
    {"true", {"[true]"}, {"tru"}},
    {R"({"type":"object"})", {"{}", "{ }", "{\"x\":{\"y\":[]}}"}, {"[]", "1"}},
    {R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"},"c":{}},"required":["b"]})",
     {"{\"b\":1}", "{\"b\": 1, \"a\": \"\"}", "{\"b\":1,\n \"c\":[]}", "{ \"b\":1,\"a\":\"x\",\"c\":null }"},
     {"{}", "{\"a\":\"\",\"b\":1}", "{\"b\":1,\"d\":1}", "{\"b\":\"1\"}", "{\"b\":1,}", "{,\"b\":1}",
      "{\"b\":1 \"a\":\"\"}", "{\"b\":1,\"b\":1}"}},
    {R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}}})",
     {"{}", "{\"a\":null}", "{\"b\":null}", "{\"c\":null}", "{\"a\":null,\"c\":null}",
      "{\"a\":null,\"b\":null,\"c\":null}"},
     {"{\"c\":null,\"a\":null}", "{\"x\":null}", "[]", "{,}", "{\"a\":null,}"}},
    {R"({"properties":{"ab":{"const":1},"a":{"const":2},"é\"":{"const":3}},"additionalProperties":{"type":"boolean"}})",
     {"{}", "{\"x\":true}", "{\"\":true}", "{\"abc\":true,\"b\":false}", "{\"ab\":1,\"z\":true}",
      "{\"a\":2,\"\u00e9\":false}", "{\"\u00e9\\\"\":3}"},
     {"{\"a\":true}", "{\"ab\":true}", "{\"x\":1}", "{\"x\":true,\"ab\":1}", "{\"\\u0061\":true}",
      "{\"\u00e9\\\"\":true}"}},
    {R"({"type":"object","required":["q"]})",
     {"{\"q\":1}", "{\"q\":[],\"r\":2}"},
     {"{}", "{\"r\":1}", "{\"q\":1,\"q\":2}"}},
    {R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", "{\"a\":1, \"b\": 2}"}, {"{\"a\":\"\"}"}},
    {R"({"type":"object","additionalProperties":false})", {"{}", "{ }"}, {"{\"a\":1}"}},
    {R"({"type":"object","properties":{},"additionalProperties":true})", {"{}", "{\"a\":1}"}, {"[]"}},
    {R"({"type":"array"})", {"[]", "[1, \"a\"]"}, {"{}"}},
    {R"({"items":{"type":"integer"}})", {"[]", "[1]", "[1,2, 3]", "[\n 1\n]"}, {"[\"\"]", "[,1]", "1"}},
    {R"({"type":"array","items":{"const":1},"minItems":2,"maxItems":4})",
     {"[1,1]", "[1,1,1]", "[1,1,1,1]"},
     {"[]", "[1]", "[1,1,1,1,1]"}},
    {R"({"type":"array","items":{"const":1},"minItems":1})", {"[1]", "[1,1,1]"}, {"[]"}},
    {R"({"type":"array","maxItems":1})", {"[]", "[1]"}, {"[1,1]"}},
    {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
    {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
    {R"({"prefixItems":[{"const":1},{"const":2}]})", {"[]", "[1]", "[1,2]"}, {"[2]", "[1,2,3]", "[1,1]"}},
    {R"({"prefixItems":[{"const":1},{"const":2}],"minItems":2,"items":{"const":3}})",
     {"[1,2]", "[1,2,3]", "[1,2,3,3]"},
     {"[]", "[1]", "[1,2,2]"}},
    {R"({"prefixItems":[{"const":1},{"const":2}],"minItems":4,"maxItems":5,"items":{"const":3}})",
     {"[1,2,3,3]", "[1,2,3,3,3]"},
     {"[1,2,3]", "[1,2,3,3,3,3]"}},
    {R"({"prefixItems":[{"const":1},{"const":2},{"const":3}],"minItems":1,"maxItems":2})",
     {"[1]", "[1,2]"},
     {"[]", "[1,2,3]"}},
    {R"({"type":"string"})", {"\"\"", "\"a\u4e2d\"", "\"\\\"\""}, {"\"", "a", "\"\"\"", "\"\x01\"", "\"\xff\"", "1"}},
    {R"({"type":"string","minLength":2,"maxLength":3})",
     {"\"ab\"", "\"\u4e2d\\n\U0001F600\"", "\"\\uD83D\\uDE00a\""},
     {"\"a\"", "\"abcd\"", "\"\\uD83D\\uDE00\""}},
    {R"({"minLength":1})", {"\"a\""}, {"\"\"", "1"}},
    {R"({"maxLength":0})", {"\"\""}, {"\"a\""}},
    {R"({"type":"integer"})",
     {"0", "-0", "7", "-12", "999999999999999"},
     {"1.0", "01", "1e3", "1000000000000000", "", "-"}},
    {R"({"type":"number"})", {"0", "-0.0", "3.25", "1e9", "-1.5E-10"}, {".5", "1.", "1e", "0x1", "1e100"}},
    {R"({"type":"integer","minimum":-3,"maximum":12.5})", {"-3", "0", "12"}, {"-4", "13", "-03", "007"}},
    {R"({"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":100})", {"1", "99"}, {"0", "100", "-1"}},
    {R"({"type":"integer","minimum":1000000})", {"1000000", "999999999999999"}, {"999999", "-1000000"}},
    {R"({"type":"integer","format":"uint8"})", {"0", "255"}, {"256", "-1"}},
    {R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})",
     {"-999999999999999"},
     {"1.5"}},
    {R"({"type":"number","minimum":0})", {"0", "0.5", "12.25"}, {"-0.5", "-1", "1e3"}},
    {R"({"type":"number","minimum":0,"maximum":1})",
     {"0", "0.0", "0.999", "1", "1.0", "1.000"},
     {"1.1", "1.001", "-0.1", "2"}},
    {R"({"type":"number","minimum":-2,"maximum":10})",
     {"-2", "-2.0", "-1.99", "-0.5", "9.99", "10", "10.0"},
     {"-2.1", "10.01", "11", "-3"}},
    {R"({"type":"number","maximum":-3})", {"-3", "-3.0", "-3.5", "-400.1"}, {"-2.9", "0", "3", "-0"}},
    {R"({"type":"number","minimum":-7,"maximum":-7})", {"-7", "-7.0"}, {"-7.1", "-6.9", "7"}},
    {R"({"type":"number","maximum":1e20})", {"5", "-2.5", "999999999999999.5"}, {"1e50", "1e2"}},
    {R"({"type":"number","exclusiveMinimum":0})", {"0.5", "0.001", "1", "1.0", "12.25"}, {"0", "0.0", "-1", "-0", "0.000"}},
    {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", {"0.1", "0.999"}, {"0", "1", "1.0", "0.0", "-0.5"}},
    {R"({"type":"number","exclusiveMinimum":-2,"exclusiveMaximum":0})", {"-1.5", "-1", "-0.1"}, {"-2", "-2.0", "0", "-0", "-0.0", "-2.5"}},
    {R"({"type":"number","exclusiveMinimum":-3,"maximum":-1})", {"-2.99", "-1.0", "-1"}, {"-3", "-0.9", "0"}},
    {R"({"type":"number","exclusiveMinimum":2,"minimum":2,"maximum":4})", {"2.5", "3", "4", "4.0"}, {"2", "2.0", "4.1"}},
    {R"({"type":"number","minimum":5,"exclusiveMaximum":7})", {"5", "5.0", "6.9"}, {"4.9", "7", "7.0"}},
    {R"({"type":["string","null"]})", {"\"a\"", "null"}, {"1", "nul"}},
    {R"({"type":["integer","number"]})", {"1", "1.5"}, {"\"\""}},
    {R"({"type":["string","integer"],"minLength":1,"minimum":5})", {"\"a\"", "5"}, {"\"\"", "4"}},
    {R"({"type":["null","boolean","integer","number","string","array","object"],"minLength":1})",
     {"\"a\"", "[]", "{}", "1.5"},
     {"\"\""}},
    {R"({"type":"boolean"})", {"true", "false"}, {"null", "1"}},
    {R"({"type":"string","minimum":3,"items":{}})",
     {"\"a\""},
     {"3"}},  // what speaks of other types says nothing of a string
    {R"({"enum":["a","ab","b\n\"",1,2.50,null,true,[1,{"x":[]}],{}]})",
     {"\"a\"", "\"ab\"", "\"b\\n\\\"\"", "1", "2.50", "null", "true", "[1,{\"x\":[]}]", "[ 1, { \"x\": [] } ]", "{}"},
     {"\"abc\"", "\"\"", "2.5", "false", "[1]", "\"\\u0061\""}},
    {R"({"type":"string","enum":["a",1,"b"]})", {"\"a\"", "\"b\""}, {"1"}},
    // Whole numbers are integers, however they are written.
    {R"({"const":1.0,"type":"integer"})", {"1"}, {"1.0", "10"}},
    {R"({"enum":[1e2,-0.0,-3.0,2.5,1e20],"type":"integer"})", {"100", "0", "-3", "1e20"}, {"2.5", "1e2", "-0"}},
    {R"({"const":{"a":[4.0]}})", {"{\"a\":[4]}"}, {"{\"a\":[4.0]}"}},
    {R"({"const":{"a":[1,"x"]}})", {"{\"a\":[1,\"x\"]}", "{\n\"a\": [ 1,\n \"x\" ] }"}, {"{}", "{\"a\":[1]}"}},
    {R"({"anyOf":[{"type":"integer"},{"type":"null"}],"title":"t"})", {"1", "null"}, {"\"\""}},
    {R"({"oneOf":[{"const":"x"},{"enum":["y",1]},{"type":["null","integer"],"const":null}]})", {"\"x\"", "\"y\"", "1", "null"}, {"2"}},
    {R"({"oneOf":[{"type":"integer"},{"type":"string","maxLength":1},{"enum":[true,[1],1.5]},{"$ref":"#/$defs/n"}],
        "$defs":{"n":{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"null"}}}]}}})",
     {"1", "\"y\"", "\"\"", "true", "[1]", "1.5", "null", "{}", "{\"a\":null}"},
     {"\"xy\"", "2.5", "false"}},
    {R"({"oneOf":[{"properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
        {"properties":{"k":{"const":"b"}},"required":["k"]},{"properties":{"k":{"enum":["c","d"]}},"required":["k"]}]})",
     {"{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\"}", "{\"k\":\"d\"}"},
     {"{\"k\":\"a\"}", "{\"k\":\"e\"}"}},
    // Each needs what the other does not write, or forbids; nested, too.
    {R"({"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}]})",
     {"{\"a\":1}", "{\"b\":2}"},
     {"{}", "{\"a\":1,\"b\":2}"}},
    {R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","properties":{"b":{"type":"null"}},"additionalProperties":false}]})",
     {"{\"a\":1}", "{\"b\":null}", "{}"},
     {"{\"b\":1}"}},
    {R"({"oneOf":[{"properties":{"of":{"properties":{"k":{"const":1}},"type":"object","required":["k"]}},"required":["of"]},
        {"properties":{"of":{"properties":{"k":{"const":2}},"type":"object","required":["k"]}},"required":["of"]}]})",
     {"{\"of\":{\"k\":1}}", "{\"of\":{\"k\":2}}"},
     {"{\"of\":{\"k\":3}}"}},
    {R"({"allOf":[{"$ref":"#/$defs/n"}],"description":"d","$defs":{"n":{"type":"null"}}})", {"null"}, {"1"}},
    {R"({"$ref":"#/definitions/a~1b%20~0","definitions":{"a/b ~":{"const":5}}})", {"5"}, {"6"}},
    {R"({"properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}}})",
     {"{\"a\":1,\"b\":2}"},
     {"{\"b\":\"\"}"}},
    {R"({"anyOf":[{"const":1},{"$ref":"#/anyOf/0"}]})", {"1"}, {"2"}},
    {R"({"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]})",
     {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"},
     {"{\"next\":{\"v\":1}}", "{\"v\":1,\"next\":{}}"}},
    {R"({"$defs":{"tree":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}},"$ref":"#/$defs/tree"})",
     {"{}", "{\"c\":[{},{\"c\":[]}]}"},
     {"{\"c\":{}}"}},
    // What can never be written is left out.
    {R"({"properties":{"a":{"const":1},"b":false,"c":{"const":3}}})", {"{}", "{\"a\":1,\"c\":3}"}, {"{\"b\":1}"}},
    {R"({"properties":{"v":{"const":1},"x":{"$ref":"#/$defs/endless"}},"$defs":{"endless":{"properties":{"e":{"$ref":"#/$defs/endless"}},"required":["e"]}}})",
     {"{}", "{\"v\":1}"},
     {"{\"x\":{}}"}},
    {R"({"$schema":"s","$id":"i","$comment":"c","default":{"minLength":-1},"examples":[1],"deprecated":false,"readOnly":true,"writeOnly":true,"type":"null"})",
     {"null"},
     {"1"}},
};
INSTANTIATE_TEST_SUITE_P(All, SchemaTexts, testing::ValuesIn(kTexts));

TEST(Schema, BoundsOfIntegersAreExact) {
  Dice dice;
  for (int round = 0; round < 400; ++round) {
    const int size = round % 2 == 0 ? 30 : 2500;
    int low = static_cast<int>(dice(2 * size)) - size, high = low + static_cast<int>(dice(round % 3 == 0 ? 12 : 2 * size));
    const GrammarPtr g = made(try_schema("{\"type\":\"integer\",\"minimum\":" + std::to_string(low) +
                                         ",\"maximum\":" + std::to_string(high) + "}"));
    ASSERT_TRUE(g);
    for (int i = low - 40; i <= high + 40; ++i)
      ASSERT_EQ(is_whole(g, std::to_string(i)), i >= low && i <= high) << i << " in " << low << ".." << high;
    ASSERT_FALSE(is_whole(g, "00"));
  }
}

TEST(Schema, AnyStringOfJsonIsQuoted) {
  for (int c = 1; c < 0x100; ++c) {
    std::string text;
    utf8_append(static_cast<uint32_t>(c), &text);
    EXPECT_EQ(nlohmann::json::parse(grammar::json_quoted(text)).get<std::string>(), text);
  }
  EXPECT_EQ(grammar::json_quoted("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
}

void refused_schema(const std::string& schema, Code code, const std::string& words) {
  const auto g = try_schema(schema);
  ASSERT_FALSE(g.ok()) << schema.substr(0, 200);
  EXPECT_EQ(g.status().code(), code) << g.status().message();
  EXPECT_NE(g.status().message().find(words), std::string::npos) << schema.substr(0, 200) << "\n" << g.status().message();
}

TEST(SchemaRefusals, NameThePath) {
  const Code bad = Code::bad_format, unsupported = Code::unsupported;
  refused_schema("", bad, "not JSON");
  refused_schema("{\"type\":}", bad, "not JSON, from byte 9 on");
  refused_schema("{} {}", bad, "not JSON");
  refused_schema("3", bad, "#: a schema is an object, true or false");
  refused_schema("{\"title\":\"a\",\"title\":\"b\"}", bad, "\"title\" is there twice");
  refused_schema(std::string(100, '[') + std::string(100, ']'), Code::limit, "nested above");
  refused_schema(std::string(1000000, '['), Code::limit, "nested above");
  for (const char* key :
       {"not", "if", "patternProperties", "propertyNames", "minProperties", "dependentRequired", "unevaluatedItems",
        "multipleOf", "contains", "contentEncoding", "$anchor", "$dynamicRef", "nullable", "x-mine"}) {
    refused_schema(std::string("{\"properties\":{\"a\":{\"items\":{\"") + key + "\":1}}}}", unsupported,
                   std::string("#/properties/a/items/") + key + ": is not supported");
  }
  refused_schema(R"({"type":"strin"})", bad, "#/type: is no type");
  refused_schema(R"({"type":["null",3]})", bad, "#/type: is no type");
  refused_schema(R"({"type":[]})", bad, "#/type");
  refused_schema(R"({"type":3})", bad, "#/type");
  refused_schema(R"({"properties":[]})", bad, "#/properties: is not an object");
  refused_schema(R"({"properties":{"a":1}})", bad, "#/properties/a: a schema is");
  refused_schema(R"({"required":"a"})", bad, "#/required: is not a list");
  refused_schema(R"({"required":[1]})", bad, "#/required");
  refused_schema(R"({"properties":{},"required":["a"],"additionalProperties":false})", bad, "#/required: asks for \"a\"");
  refused_schema(R"({"additionalProperties":1})", bad, "#/additionalProperties");
  refused_schema(R"({"items":[{}]})", unsupported, "#/items: a list of schemas is not supported: its name is prefixItems");
  refused_schema(R"({"items":3})", bad, "#/items: a schema is");
  refused_schema(R"({"prefixItems":{}})", bad, "#/prefixItems");
  refused_schema(R"({"type":"array","minItems":3,"maxItems":2})", bad, "minItems is above maxItems");
  refused_schema(R"({"prefixItems":[{}],"minItems":2})", bad, "minItems is above the number");
  refused_schema(R"({"type":"array","uniqueItems":true})", unsupported, "#/uniqueItems");
  refused_schema(R"({"minItems":-1})", bad, "#/minItems: is not a whole number");
  refused_schema(R"({"minLength":1.5})", bad, "#/minLength");
  refused_schema(R"({"maxLength":1000000})", Code::limit, "#/maxLength: is above 65536");
  refused_schema(R"({"type":"string","minLength":2,"maxLength":1})", bad, "minLength is above maxLength");
  refused_schema(R"({"type":"integer","minimum":"1"})", bad, "#/minimum: is not a number");
  refused_schema(R"({"type":"integer","minimum":5,"maximum":4})", bad, "no number is between");
  refused_schema(R"({"type":"integer","minimum":1e16})", unsupported, "#/minimum: is not supported above 15 digits");
  refused_schema(R"({"type":"number","minimum":0.5})", unsupported, "#/minimum: is supported only if");
  refused_schema(R"({"type":"number","minimum":5,"exclusiveMaximum":5})", bad, "#: no number is between");
  refused_schema(R"({"properties":{"a":{"anyOf":[{},{"maximum":1e400}]}}})", unsupported,
                 "schema: #/properties/a/anyOf/1/maximum: a number beyond");
  refused_schema("-1e999", unsupported, "schema: #: a number beyond");
  refused_schema(R"({"enum":[]})", bad, "#/enum");
  refused_schema(R"({"enum":3})", bad, "#/enum");
  refused_schema(R"({"type":"integer","enum":["a"]})", bad, "#/enum: has no value of the type");
  refused_schema(R"({"enum":[1],"minimum":0})", unsupported, "#/minimum: is not supported beside \"enum\"");
  refused_schema(R"({"$ref":"#/x","type":"null"})", unsupported, "#/type: is not supported beside \"$ref\"");
  refused_schema(R"({"$ref":"#/x"})", bad, "#/$ref: there is nothing at #/x");
  refused_schema(R"({"$ref":"#/%zz"})", bad, "#/$ref: no reference");
  refused_schema(R"({"$ref":"http://x/y"})", unsupported, "#/$ref: only references");
  refused_schema(R"({"$ref":"#x"})", unsupported, "#/$ref: only references");
  refused_schema(R"({"$ref":3})", bad, "#/$ref");
  refused_schema(R"({"anyOf":[]})", bad, "#/anyOf");
  refused_schema(R"({"anyOf":[{}],"oneOf":[{}]})", unsupported, "#/oneOf: is not supported beside \"anyOf\"");
  refused_schema(R"({"allOf":[{},{}]})", unsupported, "#/allOf: more than one");
  refused_schema(R"({"$ref":"#"})", unsupported, "schema: #: is left-recursive");
  refused_schema(R"({"items":{"anyOf":[{"type":"null"},{"$ref":"#/items"}]}})", unsupported, "schema: #/items: is left-recursive");
  refused_schema("false", bad, "schema: #: has no text that ever ends");
  refused_schema(R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})", bad, "schema: #: has no text that ever ends");
}

TEST(SchemaRefusals, AlternativesOfOneOfThatMayHoldTheSame) {
  for (const char* list : {
           R"([{"type":"integer"},{"type":"number"}])",
           R"([{"const":"x"},{"type":"string","maxLength":1}])",
           R"([{"type":"string","maxLength":1},{"const":"x"}])",
           R"([{"enum":[1,2]},{"enum":["a",2.0]}])",
           R"([{"const":{"a":[1,{}],"b":1}},{"const":{"b":1.0,"a":[1,{}]}}])",
           R"([{"type":"null"},{}])",
           R"([true,{"type":"null"}])",
           R"([{"type":"number"},{"const":1}])",
           R"([{"type":"array","items":{"type":"null"}},{"type":"array"}])",
           R"([{"properties":{"k":{"const":1}}},{"properties":{"k":{"const":2}}}])",             // neither is required: {}
           R"([{"properties":{"k":{"const":1}},"required":["k"]},{"type":["object","null"]}])",  // any object
           R"([{"type":"string"},{"required":["k"]}])",                                          // which leaves a string valid
           R"([{"properties":{"k":{"const":1}},"required":["k"]},{"properties":{"k":{"type":"integer"}},"required":["k"]}])",
           R"([{"properties":{"a":{}},"required":["a"],"additionalProperties":true},{"properties":{"b":{}},"required":["b"]}])",
           R"([{"anyOf":[{"type":"null"},{"type":"integer"}]},{"type":["string","null"]}])",
           R"([{"$ref":"#/$defs/loop"},{"$ref":"#/$defs/loop"}])",
       }) {
    const std::string schema = std::string("{\"items\":{\"oneOf\":") + list +
                               "},\"$defs\":{\"loop\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/loop\"}},\"required\":[\"b\"]}}}";
    refused_schema(schema, Code::unsupported, "schema: #/items/oneOf/1: is not told apart from alternative 0");
  }
  // Where alternatives are many and each is large, the check ends, too.
  std::string values = "[0", wide = "[{\"type\":\"null\"}";
  for (int i = 1; i < 20000; ++i) values += "," + std::to_string(i);
  values += "]";
  for (int i = 0; i < 4; ++i) wide += ",{\"enum\":" + values + "}";
  refused_schema("{\"oneOf\":" + wide + "]}", Code::unsupported, "#/oneOf/2: is not told apart");
}

TEST(SchemaRefusals, AnIdBelowTheRoot) {
  refused_schema(R"({"$id":"r","properties":{"a":{"$id":"b","type":"null"}}})", Code::unsupported, "#/properties/a/$id: is supported");
  refused_schema(R"({"$ref":"#/$defs/a/items","$defs":{"a":{"$id":"b","items":{"type":"null"}}}})", Code::unsupported,
                 "#/$defs/a/$id: is supported at the root only");
  EXPECT_TRUE(try_schema(R"({"$id":"r","properties":{"$id":{"type":"null"},"b":{"$ref":"#/properties/$id"}}})").ok());
}

TEST(SchemaRefusals, HostileSizes) {
  // A chain of references costs no stack.
  std::string chain = "{\"$ref\":\"#/$defs/d0\",\"$defs\":{";
  for (int i = 0; i < 20000; ++i)
    chain += "\"d" + std::to_string(i) + "\":{\"$ref\":\"#/$defs/d" + std::to_string(i + 1) + "\"},";
  chain += "\"d20000\":{\"type\":\"null\"}}}";
  const GrammarPtr g = made(try_schema(chain));
  ASSERT_TRUE(g);
  EXPECT_TRUE(is_whole(g, "null"));
  // Many properties and values, and long names.
  std::string properties = "{\"properties\":{", values = "{\"enum\":[";
  for (int i = 0; i < 2000; ++i) {
    properties += "\"property" + std::to_string(i * 7919) + "\":{},";
    values += "\"value" + std::to_string(i * 7919) + "\",";
  }
  properties += "\"z\":{}},\"additionalProperties\":true}";
  values += "0]}";
  EXPECT_TRUE(is_whole(made(try_schema(values)), "\"value7919\""));
  EXPECT_TRUE(is_whole(made(try_schema(properties)), "{\"property7919\":1,\"z\":2,\"property1\":3}"));
  refused_schema("{\"properties\":{\"" + std::string(600000, 'x') + "\":{}}}", Code::limit, "schema: #: it grows too large");
  const auto refused = try_schema("{\"properties\":{\"" + std::string(100000, 'x') + "\":{\"not\":1}}}");
  ASSERT_FALSE(refused.ok());
  EXPECT_LT(refused.status().message().size(), 400u);
}

}  // namespace
}  // namespace aerie::text::test
