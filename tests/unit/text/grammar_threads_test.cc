// One grammar and copies of one position on several threads at once: each finds what it would alone.
#include <thread>

#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

std::string text_from(Grammar& g, const TokenTrie& trie, Grammar::Position p, uint64_t seed) {
  Dice dice{seed};
  Mask mask;
  std::string text;
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(allowed(g, &p, trie.vocab_size(), &mask), Code::ok);
    const std::vector<int32_t> may = tokens_of(mask);
    if (may.empty()) break;
    const int32_t t = may[dice(may.size())];
    Grammar::Position draft = p;  // as a session looks ahead
    EXPECT_EQ(g.accept(&draft, t), Code::ok);
    p = draft;
    text += trie.bytes(t);
  }
  return text;
}

TEST(GrammarThreads, ForksGoOnAsTheyWouldAlone) {
  const auto trie = std::make_shared<const TokenTrie>(demo_tokenizer());
  // The second meets so many states that the automaton begins anew now and then.
  for (const char* gbnf : {kJsonGbnf, "root ::= ([a-zA-Z ] | [.,\"'] | \"\\n\"){1,60000}"}) {
    const GrammarPtr alone = made(try_gbnf(gbnf, trie)), shared = made(try_gbnf(gbnf, trie));
    ASSERT_TRUE(alone && shared);
    Grammar::Position start = shared->begin();
    Mask mask;
    ASSERT_EQ(allowed(*shared, &start, trie->vocab_size(), &mask), Code::ok);
    ASSERT_EQ(shared->accept(&start, tokens_of(mask)[0]), Code::ok);
    Grammar::Position start_alone = alone->begin();
    ASSERT_EQ(alone->accept(&start_alone, tokens_of(mask)[0]), Code::ok);
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < texts.size(); ++i)
      threads.emplace_back([&, i, p = start] { texts[i] = text_from(*shared, *trie, p, i / 2); });  // two by two the same way
    for (std::thread& t : threads) t.join();
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], text_from(*alone, *trie, start_alone, i / 2)) << i;
  }
}

}  // namespace
}  // namespace aerie::text::test
