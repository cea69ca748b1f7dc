// "pattern" and "format" of JSON Schema: the texts that another engine finds the expression in.
#include <cstdio>
#include <functional>
#include <regex>

#include "core/text/grammar/json_rules.h"
#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

GrammarPtr of_pattern(const std::string& pattern) {
  return made(try_schema("{\"type\":\"string\",\"pattern\":" + grammar::json_quoted(pattern) + "}"));
}

TEST(SchemaPattern, FindsWhatARegexFinds) {
  const struct {
    const char *pattern, *letters;
  } cases[] = {
      {"^a*b?$", "ab"},
      {"^(ab|b){2,3}$", "ab"},
      {"a", "ab"},
      {"^a", "ab"},
      {"a$", "ab"},
      {"^a|b$", "abc"},
      {"ab|^c$", "abc"},
      {"^$", "a"},
      {"", "a"},
      {"^(?:a|(b+?)){1,}c$", "abc"},
      {"^[^a\\d]+$", "ab1"},
      {"^[a-c-]\\-?$", "abd-"},
      {"^\\w\\W\\s?\\S$", "a_ "},
      {"^.\\.\\x61\\u0062$", "ab."},
      {"^(a|)b{0}c{2,}$", "abc"},
      {"^[\\w.]+@\\w+$", "a@."},
      {"^\\D\\/]}$", "1/]}"},
      {"^[\"\\\\]$", "\"\\"},
      {"^a{2}[\\]\\[]$", "a[]"},
  };
  for (const auto& [pattern, letters] : cases) {
    SCOPED_TRACE(pattern);
    const GrammarPtr g = of_pattern(pattern);
    ASSERT_TRUE(g);
    const std::regex r(pattern);
    const std::function<void(const std::string&)> all = [&](const std::string& text) {
      ASSERT_EQ(is_whole(g, grammar::json_quoted(text)), std::regex_search(text, r)) << text;
      for (const char* c = letters; *c && text.size() < 6; ++c) all(text + *c);
    };
    all("");
  }
}

TEST(SchemaPattern, CharactersAreCodePoints) {
  EXPECT_TRUE(is_whole(of_pattern("^.[\u00e4-\u00f6]$"), "\"\U0001F600\u00f6\""));
  EXPECT_TRUE(is_whole(of_pattern("^\\s$"), "\"\\n\""));
  EXPECT_FALSE(is_whole(of_pattern("^.$"), "\"\\n\""));
  EXPECT_TRUE(is_whole(of_pattern("a"), "\"\\u00e9a\\n\""));  // what is around it is spelled in any way
  EXPECT_TRUE(is_whole(of_pattern("^(?<year>\\d{4})$"), "\"2024\""));
}

TEST(SchemaPattern, RefusesByPathWhatItDoesNotKnow) {
  for (const char* pattern :
       {"(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "\\1",   "\\b",     "\\p{L}", "\\k<a>", "\\cA", "a^",
        "^a$b",  "(^a)",  "(a$)",    "*",       "a**",   "a{",      "a{2,1}", "a{x}",   "(a",   "a)",
        "[a",    "[z-a]", "[\\d-z]", "\\",      "\\u12", "\\ud800", "\\0",    "a|?",    "{2}"}) {
    const auto g = try_schema("{\"items\":{\"type\":\"string\",\"pattern\":" + grammar::json_quoted(pattern) + "}}");
    ASSERT_FALSE(g.ok()) << pattern;
    EXPECT_EQ(g.status().code(), Code::unsupported) << pattern;
    EXPECT_EQ(g.status().message().find("schema: #/items/pattern: "), 0u) << g.status().message();
  }
  for (const char* schema :
       {R"({"pattern":"a","minLength":1})", R"({"pattern":"a","format":"date"})", R"({"format":"date","maxLength":20})",
        R"({"type":"string","format":"email"})", R"({"format":""})"}) {
    const auto g = try_schema(schema);
    ASSERT_FALSE(g.ok()) << schema;
    EXPECT_EQ(g.status().code(), Code::unsupported) << schema;
  }
  EXPECT_EQ(try_schema(R"({"pattern":3})").status().code(), Code::bad_format);
  EXPECT_EQ(try_schema("{\"pattern\":\"" + std::string(100000, '(') + "\"}").status().code(), Code::unsupported);
  EXPECT_EQ(try_schema(R"({"pattern":"(a{60000}|b){60000}c{99999}"})").status().code(), Code::limit);
}

TEST(SchemaFormat, DatesAreDays) {
  const GrammarPtr g = made(try_schema(R"({"type":"string","format":"date"})"));
  ASSERT_TRUE(g);
  for (const int year : {1600, 1900, 1999, 2000, 2023, 2024, 2100, 9996}) {
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    for (int month = 0; month <= 13; ++month) {
      for (int day = 0; day <= 32; ++day) {
        constexpr int kDays[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0};
        char text[32];
        snprintf(text, sizeof text, "\"%04d-%02d-%02d\"", year, month, day);
        ASSERT_EQ(is_whole(g, text), day >= 1 && day <= kDays[month] + (leap && month == 2)) << text;
      }
    }
  }
}

TEST(SchemaFormat, OtherFormats) {
  const struct {
    const char *format, *good, *bad;
  } cases[] = {
      {"time", "23:59:59Z", "24:00:00Z"},
      {"time", "00:00:00.125+05:30", "00:00:00"},
      {"date-time", "2024-02-29T12:30:00Z", "2023-02-29T12:30:00Z"},
      {"uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"},
      {"ipv4", "255.0.10.199", "256.0.0.1"},
      {"ipv4", "0.0.0.0", "01.2.3.4"},
  };
  for (const auto& [format, good, bad] : cases) {
    const GrammarPtr g = made(try_schema(std::string("{\"type\":\"string\",\"format\":\"") + format + "\"}"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(is_whole(g, "\"" + std::string(good) + "\"")) << good;
    EXPECT_FALSE(is_whole(g, "\"" + std::string(bad) + "\"")) << bad;
  }
}

TEST(Pattern, TooLargeIsALimit) {
  for (const char* pattern : {"(a{70000})", "a{70000}", "^[a-c]{1,60000}(?:[a-c]{60000}[d-f]{1,60000}){50000}(?:x{65536}){9,60000}$"}) {
    const auto g = try_schema(std::string("{\"items\":{\"pattern\":\"") + pattern + "\"}}");
    ASSERT_FALSE(g.ok()) << pattern;
    EXPECT_EQ(g.status().code(), Code::limit) << g.status().message();
    EXPECT_NE(g.status().message().find("schema: #/items: it grows too large"), std::string::npos) << g.status().message();
  }
}

}  // namespace
}  // namespace aerie::text::test
