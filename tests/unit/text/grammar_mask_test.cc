// Masks: they allow the tokens that may be accepted, and those alone.
#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

constexpr const char* kGrammars[] = {
    kJsonGbnf,
    "root ::= [a-z ]+ (\".\" | \"!\")?",
    "root ::= .*",
    "root ::= [^\"\\\\]{0,40} \"x\"",
    "root ::= [ -~]{20} [^a]* [ab]",
    "root ::= ([\\u4e00-\\u9fff] | \"\u00e9\" | \" \"){1,20}",
    "root ::= \"yes\" | \"no\" | \" maybe\" | \"\"",
    "root ::= \"(\" root \")\" root | \" \" \"a\"? root | ",
};

TEST(GrammarMask, IsWhatAcceptTakesInEveryState) {
  for (const TriePtr& trie : tries()) {
    const int32_t vocab = trie->vocab_size(), end = vocab - 1;
    for (const char* gbnf : kGrammars) {
      const GrammarPtr g = made(try_gbnf(gbnf, trie, {end}));
      ASSERT_TRUE(g);
      Dice dice;
      Grammar::Position p = g->begin();
      Mask mask;
      for (int step = 0; step < 40; ++step) {
        ASSERT_EQ(allowed(*g, &p, vocab, &mask), Code::ok);
        for (int32_t t = -1; t <= vocab; ++t) {
          Grammar::Position copy = p;
          const Code code = g->accept(&copy, t);
          ASSERT_TRUE(code == Code::ok || code == Code::mismatch);
          ASSERT_EQ(code == Code::ok, t >= 0 && t < vocab && has(mask, t)) << gbnf << " token " << t << " of " << vocab;
        }
        ASSERT_EQ(has(mask, end), g->complete(p));
        std::vector<int32_t> may = tokens_of(mask);
        std::erase(may, end);
        if (may.empty()) break;
        ASSERT_EQ(g->accept(&p, may[dice(may.size())]), Code::ok);
      }
    }
  }
}

// Whatever the tokens are that spell it, a text is judged as its bytes are.
TEST(GrammarMask, ATextIsTheSameHoweverItIsCut) {
  const std::string texts[] = {"{\"a\u00e9\": [1, {\"\u4e2d\U0001F600\": null}]}",
                               "{\n  \"key\": \"a \\u00e9\",\n  \"x\": -1.5e12\n}"};
  for (const TriePtr& trie : tries()) {
    const GrammarPtr g = made(try_gbnf(kJsonGbnf, trie));
    ASSERT_TRUE(g);
    Dice dice;
    for (const std::string& text : texts) {
      for (int round = 0; round < 8; ++round) {
        Grammar::Position p = g->begin();
        for (size_t at = 0; at < text.size();) {
          std::vector<int32_t> may;  // tokens that spell what comes next
          for (int32_t t = 0; t < trie->vocab_size(); ++t)
            if (!trie->bytes(t).empty() && std::string_view(text).substr(at).starts_with(trie->bytes(t))) may.push_back(t);
          ASSERT_FALSE(may.empty()) << text.substr(at);
          const int32_t t = may[dice(may.size())];
          Mask mask;
          ASSERT_EQ(allowed(*g, &p, trie->vocab_size(), &mask), Code::ok);
          ASSERT_TRUE(has(mask, t)) << trie->bytes(t);
          ASSERT_EQ(g->accept(&p, t), Code::ok);
          at += trie->bytes(t).size();
        }
        ASSERT_TRUE(g->complete(p)) << text;
      }
    }
  }
}

TEST(GrammarMask, SpecialTokensNeverComeAndEndsWhereTheTextMayEnd) {
  const TokenizerPtr t = demo_tokenizer();
  const auto trie = std::make_shared<const TokenTrie>(t);
  std::vector<int32_t> special;
  for (int32_t i = 0; i < t->vocab_size(); ++i)
    if (t->is_special(i)) special.push_back(i);
  ASSERT_FALSE(special.empty());
  const int32_t end = special[0];
  const GrammarPtr g = made(try_gbnf("root ::= \"ab\" [a-z<>|_]*", trie, {end, end}));
  Grammar::Position p = g->begin();
  Mask mask;
  for (const bool may_end : {false, true, true}) {
    ASSERT_EQ(allowed(*g, &p, t->vocab_size(), &mask), Code::ok);
    for (const int32_t s : special) EXPECT_EQ(has(mask, s), s == end && may_end) << s;
    Grammar::Position copy = p;
    EXPECT_EQ(g->accept(&copy, end), may_end ? Code::ok : Code::mismatch);
    if (may_end) {  // nothing comes behind an end
      EXPECT_EQ(allowed(*g, &copy, t->vocab_size(), &mask), Code::ok);
      EXPECT_TRUE(tokens_of(mask).empty());
      EXPECT_EQ(g->accept(&copy, end), Code::mismatch);
      EXPECT_EQ(g->accept(&copy, encode(*t, "a", {.add_bos = false})[0]), Code::mismatch);
      EXPECT_TRUE(g->complete(copy));
    }
    for (const int32_t id : encode(*t, may_end ? "c" : "ab", {.add_bos = false})) ASSERT_EQ(g->accept(&p, id), Code::ok);
  }
  for (const int32_t bad : {-1, t->vocab_size(), INT32_MAX}) {
    const auto refused = try_gbnf("root ::= \"a\"", trie, {end, bad});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
    EXPECT_NE(refused.status().message().find(std::to_string(bad)), std::string::npos);
  }
}

// A token of text that is an end is that alone.
TEST(GrammarMask, AnEndTokenMayBeOneOfText) {
  const GrammarPtr g = made(try_gbnf("root ::= [a-c]+", byte_trie(), {'b'}));
  Grammar::Position p = g->begin();
  EXPECT_EQ(g->accept(&p, 'b'), Code::mismatch);
  EXPECT_EQ(g->accept(&p, 'a'), Code::ok);
  EXPECT_EQ(g->accept(&p, 'b'), Code::ok);
  EXPECT_EQ(g->accept(&p, 'a'), Code::mismatch);
}

TEST(GrammarMask, WithoutEndTokensATextEndsWhereNothingFollows) {
  const GrammarPtr g = made(try_gbnf("root ::= \"a\" \"b\"?"));
  Grammar::Position p = g->begin();
  Mask mask;
  for (const char* next : {"a", "b", ""}) {
    ASSERT_EQ(allowed(*g, &p, 256, &mask), Code::ok);
    EXPECT_EQ(tokens_of(mask), *next ? std::vector<int32_t>{*next} : std::vector<int32_t>{});
    ASSERT_EQ(g->accept(&p, *next), *next ? Code::ok : Code::mismatch);
  }
  EXPECT_TRUE(g->complete(p));
}

TEST(GrammarMask, ARefusedTokenChangesNothing) {
  const GrammarPtr g = made(try_gbnf("root ::= \"ab\" | \"ac\""));
  Grammar::Position p = g->begin();
  ASSERT_EQ(g->accept(&p, 'a'), Code::ok);
  EXPECT_EQ(g->accept(&p, 'x'), Code::mismatch);
  EXPECT_EQ(g->accept(&p, 'c'), Code::ok);
  EXPECT_TRUE(g->complete(p));
}

// A model's vocabulary may be padded, or smaller than the tokenizer's.
TEST(GrammarMask, OfAnyLength) {
  const GrammarPtr g = made(try_gbnf("root ::= [ -~]*"));
  Grammar::Position p = g->begin();
  Mask whole, shorter(2), longer(100);
  ASSERT_EQ(allowed(*g, &p, 256, &whole), Code::ok);
  ASSERT_EQ(g->allowed(&p, shorter), Code::ok);
  ASSERT_EQ(g->allowed(&p, longer), Code::ok);
  EXPECT_EQ(shorter, Mask(whole.begin(), whole.begin() + 2));
  whole.resize(100);
  EXPECT_EQ(longer, whole);
}

// Not a text that ends there.
TEST(GrammarMask, AVocabularyThatCannotGoOnIsSaid) {
  const auto trie = std::make_shared<const TokenTrie>(make_byte_tokenizer(4));
  const GrammarPtr g = made(try_gbnf("root ::= \"a\" [a\\x04] \"\\x04\" | \"\\x04\" | \"b\"", trie));
  Grammar::Position p = g->begin();
  Mask mask;
  for (const Code code : {Code::ok, Code::ok, Code::mismatch}) {
    ASSERT_EQ(allowed(*g, &p, 256, &mask), code);
    EXPECT_EQ(g->accept(&p, 4), Code::mismatch);
    EXPECT_EQ(g->accept(&p, 'a'), code);
  }
}

}  // namespace
}  // namespace aerie::text::test
