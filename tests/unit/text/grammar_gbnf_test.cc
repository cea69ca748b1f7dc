// GBNF: which texts a grammar has, and what is said of one that is none.
#include <functional>
#include <regex>

#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

// All texts of up to `length` letters are judged as the regex judges them.
void same_as_regex(std::string_view gbnf, const std::string& regex, std::string_view letters, size_t length) {
  SCOPED_TRACE(gbnf);
  const GrammarPtr g = made(try_gbnf(gbnf));
  ASSERT_TRUE(g);
  const std::regex r(regex);
  std::function<void(std::string)> all = [&](std::string text) {
    ASSERT_EQ(is_whole(g, text), std::regex_match(text, r)) << text;
    if (text.size() < length)
      for (const char c : letters) all(text + c);
  };
  all("");
}

TEST(Gbnf, ItsTextsAreThoseOfTheSameRegex) {
  same_as_regex("root ::= \"ab\" | \"ba\"", "ab|ba", "ab", 4);
  same_as_regex("root ::= a b\na ::= \"a\"*\nb ::= \"b\"+ a?", "a*b+(a*)?", "ab", 6);
  same_as_regex("root ::= (\"a\" | \"b\" \"a\"){2,3} \"c\"", "(a|ba){2,3}c", "abc", 7);
  same_as_regex("root ::= [a-b]{2} [^a]{1,} \"a\"{0,2}", "[ab]{2}[^a]+a{0,2}", "abc", 6);
  same_as_regex("root ::= (\"a\"?)* \"b\"", "(a?)*b", "ab", 5);
  same_as_regex("root ::= (\"a\"? \"b\"*)+ \"c\"?", "(a?b*)+c?", "abc", 5);
  same_as_regex("root ::= \"abc\"{0} \"\"* () \"a\"", "a", "abc", 3);
  same_as_regex("root ::= \"a\"{3} | \"a\"{5,}", "a{3}|a{5,}", "a", 9);
  same_as_regex("root ::= (\"a\"{2}){2} \"b\"?+", "a{4}(b?)+", "ab", 7);
  same_as_regex("root ::= | \"a\" root \"b\"", "|ab|aabb|aaabbb", "ab", 7);
  same_as_regex("root ::= \"a\" root | \"b\"", "a*b", "ab", 6);
  same_as_regex("root ::= . \"a\"", "[^]a", "ab\n", 3);
}

TEST(Gbnf, LinesCommentsAndNames) {
  const GrammarPtr g = made(try_gbnf("# a comment\r\n\r\n"
                                     "root ::= one-2 |   # another \" one\n"
                                     "   \"b\"\n"
                                     "   | (\n \"c\" # here, too\n \"d\" |\n \"e\"\n)\n\n"
                                     "one-2 ::=\n  \"a\"\n# the end"));
  ASSERT_TRUE(g);
  for (const char* text : {"a", "b", "cd", "e"}) EXPECT_TRUE(is_whole(g, text)) << text;
  for (const char* text : {"", "c", "ce", "ab", "f"}) EXPECT_FALSE(is_whole(g, text)) << text;
}

TEST(Gbnf, EscapesAreCharacters) {
  const GrammarPtr g = made(try_gbnf(R"(root ::= "\n\r\t\\\"\x41\xe9\u4E2D\U0001F600" [\x41-\x43\]\\\-^] [a-])"));
  ASSERT_TRUE(g);
  const std::string head = "\n\r\t\\\"A\u00e9\u4e2d\U0001F600";
  for (const char* tail : {"Aa", "C-", "]a", "\\a", "-a", "^a"}) EXPECT_TRUE(is_whole(g, head + tail)) << tail;
  for (const char* tail : {"Da", "Ab", "[a", "A"}) EXPECT_FALSE(is_whole(g, head + tail)) << tail;
}

TEST(Gbnf, ClassesAreOfCodePoints) {
  const struct {
    const char* gbnf;
    std::function<bool(uint32_t)> in;
  } classes[] = {
      {"root ::= .", [](uint32_t) { return true; }},
      {"root ::= [^\"\\\\\\x00-\\x1F]", [](uint32_t c) { return c > 0x1F && c != '"' && c != '\\'; }},
      {"root ::= [\\u0400-\\u04ff\\U00010000-\\U00010FFF_a-z]",
       [](uint32_t c) {
         return (c >= 0x400 && c <= 0x4FF) || (c >= 0x10000 && c <= 0x10FFF) || c == '_' || (c >= 'a' && c <= 'z');
       }},
      {"root ::= [^\\u0085-\\U00020003]", [](uint32_t c) { return c < 0x85 || c > 0x20003; }},
      {"root ::= [\u00e4-\u4e2d]", [](uint32_t c) { return c >= 0xe4 && c <= 0x4e2d; }},
      {"root ::= [\\uD000-\\uE001]", [](uint32_t c) { return c >= 0xD000 && c <= 0xE001; }},
  };
  for (const auto& [gbnf, in] : classes) {
    const GrammarPtr g = made(try_gbnf(gbnf));
    ASSERT_TRUE(g) << gbnf;
    for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 61) {
      std::string text;
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      utf8_append(c, &text);
      ASSERT_EQ(is_whole(g, text), in(c)) << gbnf << " U+" << std::hex << c;
    }
  }
}

TEST(Gbnf, NoBytesThatAreNotUtf8) {
  const GrammarPtr g = made(try_gbnf("root ::= .*"));
  ASSERT_TRUE(g);
  Dice dice;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t n = dice(6); n > 0; --n) text += static_cast<char>(dice(4) == 0 ? dice(256) : 0x80 + dice(128));
    ASSERT_EQ(is_whole(g, text), utf8_valid_prefix(text) == text.size());
    if (match(*g, text) != Match::begun) continue;
    ASSERT_EQ(utf8_step(std::string_view(text).substr(utf8_valid_prefix(text))).kind, Utf8Kind::incomplete);
  }
}

TEST(Gbnf, LlamaCppsJsonGrammar) {
  const GrammarPtr g = made(try_gbnf(kJsonGbnf));
  ASSERT_TRUE(g);
  for (const char* text :
       {"{}", "{\"a\":1}", "{ \"a\": [1, -2.5e+3,{\"b\":null}], \"\\u00e4\u00e4\":\"\"}", "{\n  \"x\": true\n}"})
    EXPECT_TRUE(is_whole(g, text)) << text;
  for (const char* text : {"", "[]", "{\"a\":01}", "{\"a\"  :1}", "{\"a\":1,}", "{\"\\x\":1}", "{}}"})
    EXPECT_FALSE(is_whole(g, text)) << text;
}

TEST(Gbnf, AByteOrderMarkIsNoPartOfIt) {
  EXPECT_TRUE(is_whole(made(try_gbnf("\xEF\xBB\xBFroot ::= \"a\"")), "a"));
  EXPECT_FALSE(try_gbnf("\xEF\xBB\xBF\xEF\xBB\xBFroot ::= \"a\"").ok());
}

void refused_gbnf(const std::string& gbnf, Code code, const std::string& words) {
  const auto g = try_gbnf(gbnf);
  ASSERT_FALSE(g.ok()) << gbnf;
  EXPECT_EQ(g.status().code(), code) << g.status().message();
  EXPECT_NE(g.status().message().find(words), std::string::npos) << gbnf << "\n" << g.status().message();
}

TEST(GbnfRefusals, NameTheLineAndWhatIsWrong) {
  const Code bad = Code::bad_format;
  refused_gbnf("", bad, "no rule \"root\"");
  refused_gbnf("# nothing\n", bad, "no rule \"root\"");
  refused_gbnf("start ::= \"a\"", bad, "no rule \"root\"");
  refused_gbnf("root ::= \"a\"\nroot ::= \"b\"", bad, "line 2: rule \"root\" is defined twice");
  refused_gbnf("root ::= a\n\na ::= b-c", bad, "line 3: rule \"b-c\" is not defined");
  refused_gbnf("root = \"a\"", bad, "line 1: expected \"::=\" behind the name \"root\", found \"=\"");
  refused_gbnf("root", bad, "found the end");
  refused_gbnf("root\n::= \"a\"", bad, "found the end of the line");
  refused_gbnf("::= \"a\"", bad, "line 1: expected the name of a rule, found \":\"");
  refused_gbnf("root ::= \"a\n\n\nx", bad, "line 1: this '\"' is not closed");
  refused_gbnf("root ::= [a", bad, "line 1: this \"[\" is not closed");
  refused_gbnf("root ::= \"x\" (\n\"a\"\n", bad, "line 1: this \"(\" is not closed");
  refused_gbnf("root ::= (\"a\"\n\"b\" ]", bad, "line 2: expected \")\", found \"]\"");
  refused_gbnf("root ::= \"a\")", bad, "line 1: expected the end of rule \"root\", found \")\"");
  refused_gbnf("root ::= \"a\" \u00e9", bad, "found \"\u00e9\"");
  refused_gbnf("root ::=\n *", bad, "line 2: there is nothing in front of \"*\" to repeat");
  refused_gbnf("root ::= (\"a\" | ?)", bad, "nothing in front of \"?\"");
  refused_gbnf("root ::= {2}", bad, "nothing in front of \"{\"");
  refused_gbnf("root ::= \"a\"{}", bad, "expected a number, found \"}\"");
  refused_gbnf("root ::= \"a\"{,2}", bad, "expected a number, found \",\"");
  refused_gbnf("root ::= \"a\"{2,x}", bad, "expected a number, found \"x\"");
  refused_gbnf("root ::= \"a\"{2", bad, "expected \"}\", found the end");
  refused_gbnf("root ::= \"a\"{3,2}", bad, "at least 3 and at most 2");
  refused_gbnf("root ::= \"\\q\"", bad, "unknown escape");
  refused_gbnf("root ::= \"\\", bad, "unknown escape");
  refused_gbnf("root ::= \"\\x4\"", bad, "\"\\x\" without 2 hexadecimal digits");
  refused_gbnf("root ::= [\\u12]", bad, "without 4");
  refused_gbnf("root ::= \"\\U00110000\"", bad, "above U+10FFFF");
  refused_gbnf("root ::= \"\\uD800\"", bad, "no characters");
  refused_gbnf("root ::= [z-a]", bad, "whose end comes before its beginning");
  refused_gbnf("root ::= []", bad, "a class that no character is in");
  refused_gbnf("root ::= [^\\x00-\\U0010FFFF]", bad, "a class that no character is in");
  refused_gbnf("root ::= \"a\"\n\xff", bad, "line 2: not UTF-8");
  refused_gbnf("root ::= <think>", Code::unsupported, "tokens");
  refused_gbnf("root ::= a \"x\"\na ::= \"a\" a", bad, "rule \"root\" has no text that ever ends");
  refused_gbnf("root ::= \"x\" | a\na ::= \"a\" b\nb ::= a | \"b\" a", bad, "rule \"a\" has no text that ever ends");
}

TEST(GbnfRefusals, LeftRecursion) {
  const Code unsupported = Code::unsupported;
  refused_gbnf("root ::= root \"a\" | \"b\"", unsupported, "\"root\" is left-recursive");
  refused_gbnf("root ::= \"x\" e\ne ::= e \"+\" e | \"1\"", unsupported, "\"e\" is left-recursive");
  refused_gbnf("root ::= a\na ::= b \"a\" | \"x\"\nb ::= c\nc ::= a | \"c\"", unsupported, "left-recursive");
  refused_gbnf("root ::= n root \"a\" | \"b\"\nn ::= \"n\"?", unsupported, "\"root\" is left-recursive");
  refused_gbnf("root ::= n m root \"a\" | \"b\"\nn ::= | m\nm ::= (\"m\" n)*", unsupported, "\"root\" is left-recursive");
  refused_gbnf("root ::= (root \"a\")? \"b\"", unsupported, "\"root\" is left-recursive");
  refused_gbnf("root ::= (\"x\" | root)* \"b\"", unsupported, "\"root\" is left-recursive");
  refused_gbnf("root ::= \"a\"\nunused ::= unused | \"b\"", unsupported, "\"unused\" is left-recursive");
}

}  // namespace
}  // namespace aerie::text::test
