// Grammars that ask for too much: an error, or a text that stays within the limits.
#include "unit/text/grammar_fixtures.h"
#include "unit/text/small_stack.h"

namespace aerie::text::test {
namespace {

std::string times(int n, const std::string& s) {
  std::string out;
  while (n-- > 0) out += s;
  return out;
}

void too_large(const std::string& gbnf, const std::string& words) {
  const auto g = try_gbnf(gbnf);
  ASSERT_FALSE(g.ok()) << gbnf.substr(0, 100);
  EXPECT_EQ(g.status().code(), Code::limit) << g.status().message();
  EXPECT_NE(g.status().message().find(words), std::string::npos) << g.status().message();
}

TEST(GrammarLimits, OfSize) {
  too_large("root ::= \"a\"\n | \"b\"{1,1000000}", "line 2: a repetition above");
  too_large("root ::= \"b\"{99999999999999999999,}", "a repetition above");
  too_large("root ::= " + times(20, "\"a\"{65536} "), "too large");
  too_large("root ::= " + times(20, "\"a\"{65536} | "), "too large");
  too_large("root ::= " + times(60, "(\"a\"{60000} | ") + "\"b\"" + times(60, ")"), "too large");
  too_large("root ::= " + times(20, "([a-z] | \"b\"){0,65000} [0-9]{60000} "), "too large");
  too_large("root ::= " + times(200, "("), "nested");
  too_large("root ::= " + times(100000, "("), "nested");
  too_large("root ::= \"" + times(200, times(3000, "x") + "\" | \"") + "\"", "too large");
}

#if !defined(_WIN32) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take more
// docs/embedding.md says what is enough.
TEST(GrammarLimits, WhatIsDeepIsReadOnASmallStack) {
  struct Read {
    bool schema;
    std::string text;
    Code code = Code::internal;
  };
  std::string beginnings;  // each the beginning of the next
  for (int n = 1; n < 1400; ++n) beginnings += (n > 1 ? ",\"" : "\"") + times(n, "a") + "\"";
  std::vector<Read> all = {{true, "{\"enum\":[" + beginnings + "]}"},
                           {true, "{\"const\":" + times(60, "[") + times(60, "]") + "}"},
                           {true, "{\"pattern\":\"" + times(60, "(a|") + "b" + times(60, ")") + "\"}"},
                           {true, times(60, "{\"items\":") + "{}" + times(60, "}")},
                           {false, "root ::= " + times(64, "(\"a\" | ") + "\"b\"" + times(64, ")")}};
  for (Read& read : all) {
    on_small_stack([&] { read.code = (read.schema ? grammar::program_of_json_schema(read.text) : grammar::program_of_gbnf(read.text)).status().code(); });
    EXPECT_EQ(read.code, Code::ok) << read.text.substr(0, 60);
  }
}
#endif

TEST(GrammarLimits, RepetitionsOfRepetitionsAreSmall) {
  const GrammarPtr g = made(try_gbnf("root ::= ((([a-z]{1,1000} \",\"){1,1000} \";\"){1,1000} \".\"){1,1000} \"!\""));
  ASSERT_TRUE(g);
  EXPECT_EQ(match(*g, times(1000, "ab,")), Match::begun);
  EXPECT_EQ(match(*g, times(1001, "ab,")), Match::no);
  EXPECT_TRUE(is_whole(g, times(3, times(20, times(30, "ab,") + ";") + ".") + "!"));
}

TEST(GrammarLimits, LongRepetitionsAreExact) {
  const GrammarPtr g = made(try_gbnf("root ::= \"a\"{2,5000} \"b\""));
  for (const int n : {1, 2, 77, 5000, 5001}) EXPECT_EQ(is_whole(g, times(n, "a") + "b"), n >= 2 && n <= 5000) << n;
}

TEST(GrammarLimits, AmbiguousGrammarsStayRight) {
  // However the letters are shared out among the stars, there is one place for each.
  const GrammarPtr stars = made(try_gbnf("root ::= " + times(200, "\"a\"* ") + "\"b\""));
  ASSERT_TRUE(stars);
  EXPECT_TRUE(is_whole(stars, times(2000, "a") + "b"));
  // Two ways at each letter.
  const GrammarPtr twice = made(try_gbnf("root ::= x*\nx ::= \"a\" | a\na ::= \"a\" | \"ab\""));
  ASSERT_TRUE(twice);
  EXPECT_TRUE(is_whole(twice, times(1000, "aab")));
  EXPECT_FALSE(is_whole(twice, "abb"));
}

TEST(GrammarLimits, ExponentiallyManyWaysToBeginAreAnError) {
  std::string gbnf = "root ::= r0\n";
  for (int i = 0; i < 60; ++i)
    gbnf += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " | r" + std::to_string(i + 1) + " \"x\"\n";
  gbnf += "r60 ::= \"a\"\n";
  const auto g = try_gbnf(gbnf);
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.status().code(), Code::limit);
  EXPECT_NE(g.status().message().find("too many ways to begin"), std::string::npos) << g.status().message();
}

TEST(GrammarLimits, ExponentiallyManyWaysToGoOnMayNotCome) {
  std::string gbnf = "root ::= \"-\"? (r0 | \"z\")\n";
  for (int i = 0; i < 60; ++i)
    gbnf += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + " | \"a\" r" + std::to_string(i + 1) +
            " \"x\"\n";
  gbnf += "r60 ::= \"b\"\n";
  const GrammarPtr g = made(try_gbnf(gbnf));
  ASSERT_TRUE(g);
  Grammar::Position p = g->begin();
  Mask mask;
  int n = 0;
  Code code = Code::ok;
  while ((code = allowed(*g, &p, 256, &mask)) == Code::ok && n < 100) {
    ASSERT_EQ(g->accept(&p, 'a'), Code::ok);
    ++n;
  }
  EXPECT_EQ(code, Code::limit) << n;  // nothing but "a" goes on, and that is too much: said, not a text that ends there
  EXPECT_GT(n, 5);
  EXPECT_EQ(g->accept(&p, 'a'), Code::mismatch);
  EXPECT_TRUE(is_whole(g, "-z"));
}

TEST(GrammarLimits, ACompleteTextIsNotCutInSilence) {
  for (const std::vector<int32_t>& ends : {std::vector<int32_t>{}, {0}}) {
    const GrammarPtr g = made(try_gbnf("root ::= [a-z ] root? root? root?", byte_trie(), ends));
    ASSERT_TRUE(g);
    Grammar::Position p = g->begin();
    Mask mask;
    Code code = Code::ok;
    for (int n = 0; n < 100 && (code = allowed(*g, &p, 256, &mask)) == Code::ok; ++n) ASSERT_EQ(g->accept(&p, 'a'), Code::ok);
    EXPECT_TRUE(g->complete(p));
    EXPECT_EQ(code, Code::limit);
  }
}

TEST(GrammarLimits, NestingIsDeepButBounded) {
  const GrammarPtr g = made(try_gbnf("root ::= \"(\" root \")\" | \"x\""));
  EXPECT_TRUE(is_whole(g, times(900, "(") + "x" + times(900, ")")));
  EXPECT_EQ(match(*g, times(2000, "(")), Match::no);
  Grammar::Position p = g->begin();
  while (g->accept(&p, '(') == Code::ok) {
  }
  Mask mask;  // at the deepest, it can still be closed
  ASSERT_EQ(allowed(*g, &p, 256, &mask), Code::ok);
  EXPECT_EQ(tokens_of(mask), std::vector<int32_t>{'x'});
}

TEST(GrammarLimits, ListsByRecursionAreOfAnyLength) {
  const GrammarPtr g = made(try_gbnf("root ::= item (\",\" root)?\nitem ::= [0-9]+"));
  EXPECT_TRUE(is_whole(g, times(5000, "12,") + "3"));
}

TEST(GrammarLimits, HostileMasksEnd) {
  const auto trie = std::make_shared<const TokenTrie>(demo_tokenizer());
  const std::string grammars[] = {
      "root ::= [a-z ] root root | [a-z ]",
      "root ::= ([a-z]* \" \"?){0,300}",
      "root ::= " + times(120, "([a-z]+ | \" \" [a-z]* | [a-c ]*)* "),
      "root ::= (.{0,500}){0,500}",
      "root ::= a | b | c\na ::= [a-z ] a a | [a-z ] b\nb ::= [a-z] c b | \" \"\nc ::= [a-z ] a b c | [a-z]",
  };
  for (const std::string& gbnf : grammars) {
    const auto g = try_gbnf(gbnf, trie);
    if (!g.ok()) {
      EXPECT_EQ(g.status().code(), Code::limit) << g.status().message();
      continue;
    }
    Grammar::Position p = (*g)->begin();
    Dice dice;
    Mask mask;
    for (int i = 0; i < 12; ++i) {
      const Code code = allowed(**g, &p, trie->vocab_size(), &mask);
      ASSERT_TRUE(code == Code::ok || code == Code::limit);
      const std::vector<int32_t> may = tokens_of(mask);
      if (code != Code::ok || may.empty()) break;
      const int32_t t = may[dice(may.size())];
      ASSERT_EQ((*g)->accept(&p, t), Code::ok);
    }
  }
}

// Rules that are a long way from their bytes, of which each letter has its own.
std::string far_letters(int n) {
  std::string gbnf = "root ::= (((r0 \"~\"?) \"~~\"?) \"~~~\"?)*\n";
  for (int i = 0; i < n; ++i) gbnf += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  gbnf += "r" + std::to_string(n) + " ::= \"\"";
  for (char c = 'A'; c <= 'Z'; ++c) gbnf += std::string(" | \"") + c + "\" | \"" + static_cast<char>(c + 32) + "\"";
  for (const char* c : {"\u00e9", "\u00e8", "\u00e0", "\u00f9", "\u00e7", "\u00fc", "\u00f6", "\u00e4"})
    gbnf += std::string(" | \"") + c + "\"";
  return gbnf;
}

TEST(GrammarLimits, WhetherAMaskIsTooMuchDoesNotHangOnWhatWasAskedBefore) {
  const auto trie = std::make_shared<const TokenTrie>(demo_tokenizer());
  const std::string gbnf = far_letters(40000);
  const GrammarPtr g = made(try_gbnf(gbnf, trie));
  ASSERT_TRUE(g);
  Mask mask;
  for (int i = 0; i < 4; ++i) {
    Grammar::Position p = g->begin();
    ASSERT_EQ(allowed(*g, &p, trie->vocab_size(), &mask), Code::limit) << i;
  }
  // Steps made by accept() count, too.
  Grammar::Position p = g->begin();
  for (int32_t t = 0; t < trie->vocab_size(); ++t) {
    Grammar::Position next = p;
    (void)g->accept(&next, t);
  }
  EXPECT_EQ(allowed(*g, &p, trie->vocab_size(), &mask), Code::limit);
}

// What is charged once for a state is so for several that a mask comes to, and in whatever order they were met.
TEST(GrammarLimits, MasksNearTheLimitAreThoseOfAFreshGrammar) {
  const auto trie = std::make_shared<const TokenTrie>(demo_tokenizer());
  const std::string gbnf = "root ::= [a-z ]* [a-m] [a-z ]{600} | [a-z ]* [d-p] [a-z ]{500} \"x\" | [a-z]* [k-z] [a-z ]{700}";
  const GrammarPtr g = made(try_gbnf(gbnf, trie));
  ASSERT_TRUE(g);
  Dice dice;
  Mask mask, alone;
  std::vector<int32_t> text;
  Code code = Code::ok;
  Grammar::Position p = g->begin();
  for (int i = 0; i < 100 && code == Code::ok; ++i) {
    code = allowed(*g, &p, trie->vocab_size(), &mask);
    if (i % 10 == 0 || code != Code::ok) {
      const GrammarPtr fresh = made(try_gbnf(gbnf, trie));
      Grammar::Position q = fresh->begin();
      for (const int32_t t : text) ASSERT_EQ(fresh->accept(&q, t), Code::ok);
      ASSERT_EQ(allowed(*fresh, &q, trie->vocab_size(), &alone), code) << i;
      ASSERT_EQ(alone, mask) << i;
    }
    if (code != Code::ok) break;
    const std::vector<int32_t> may = tokens_of(mask);
    text.push_back(may[dice(may.size())]);
    ASSERT_EQ(g->accept(&p, text.back()), Code::ok);
  }
  EXPECT_EQ(code, Code::limit);  // else the test says nothing
}

// A text that meets ever new states does not keep them all: what the automaton holds is dropped, and nothing else changes.
TEST(GrammarLimits, StartingOverChangesNothing) {
  const auto trie = std::make_shared<const TokenTrie>(demo_tokenizer());
  const char* gbnf = "root ::= ([a-zA-Z ] | [.,\"'] | \"\\n\"){1,60000}";
  const GrammarPtr g = made(try_gbnf(gbnf, trie));
  ASSERT_TRUE(g);
  Grammar::Position p = g->begin(), old = p;
  Dice dice;
  Mask mask, again;
  ASSERT_EQ(allowed(*g, &old, trie->vocab_size(), &again), Code::ok);
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(allowed(*g, &p, trie->vocab_size(), &mask), Code::ok);
    ASSERT_EQ(mask, again) << i;
    const std::vector<int32_t> may = tokens_of(mask);
    ASSERT_EQ(g->accept(&p, may[dice(may.size())]), Code::ok);
  }
  ASSERT_EQ(allowed(*g, &old, trie->vocab_size(), &mask), Code::ok);
  EXPECT_EQ(mask, again);
}

}  // namespace
}  // namespace aerie::text::test
