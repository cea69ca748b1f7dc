// What a grammar costs a text, a table: grammar_cost PACKAGE.aerie. The tokenizer is the package's; times are the best of 20.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/package/package.h"
#include "core/text/grammar/grammar.h"
#include "tests/bench/or_fail.h"

namespace {

using namespace aerie::text::grammar;
using aerie::bench::take;

constexpr int kRounds = 20;

template <class F>
double microseconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

struct Best {
  double fresh = std::numeric_limits<double>::infinity(), known = fresh;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: grammar_cost PACKAGE.aerie\n"), 2;
  const auto package = take(aerie::Package::open(argv[1]));
  const auto tokenizer = take(aerie::text::Tokenizer::deserialize(package->blob("tokenizer")));
  std::shared_ptr<const TokenTrie> trie;
  const double sorted = microseconds([&] { trie = std::make_shared<const TokenTrie>(tokenizer); });
  std::printf(
      "%d tokens, sorted in %.0f ms\n\n| schema | state | tokens allowed | mask, first | again "
      "|\n|---|---|---|---|---|\n",
      trie->vocab_size(), sorted / 1000);
  const std::string text = "{\"name\": \"Ada and the other one\", \"list\": [1, \"two\"]}";
  const auto ids = take(tokenizer->encode(text, {.add_bos = false}));
  for (const std::string schema : {"{}", R"({"properties":{"name":{"type":"string","maxLength":100},"list":{}}})"}) {
    const std::pair<const char*, std::string> states[] = {
        {"start", ""}, {"in a string", text.substr(0, 16)}, {"in a list", text.substr(0, 44)}};
    std::vector<Best> masks(std::size(states));
    std::vector<size_t> allowed(std::size(states));
    Best accept;
    for (int round = 0; round < kRounds; ++round) {
      const auto grammar = take(Grammar::make(take(program_of_json_schema(schema)), trie, {}));
      const auto read = [&](const std::vector<int32_t>& tokens, Grammar::Position* p) {
        for (const int32_t t : tokens)
          if (grammar->accept(p, t) != aerie::Code::ok) std::abort();
      };
      for (size_t i = 0; i < std::size(states); ++i) {
        Grammar::Position p = grammar->begin();
        read(take(tokenizer->encode(states[i].second, {.add_bos = false})), &p);
        std::vector<uint32_t> mask((static_cast<size_t>(trie->vocab_size()) + 31) / 32);
        masks[i].fresh = std::min(masks[i].fresh, microseconds([&] { (void)grammar->allowed(&p, mask); }));
        masks[i].known = std::min(masks[i].known, microseconds([&] { (void)grammar->allowed(&p, mask); }));
        allowed[i] = 0;
        for (const uint32_t word : mask) allowed[i] += static_cast<size_t>(__builtin_popcount(word));
      }
      const auto fresh = take(Grammar::make(take(program_of_json_schema(schema)), trie, {}));
      const auto whole = [&] {
        Grammar::Position p = fresh->begin();
        for (const int32_t t : ids) (void)fresh->accept(&p, t);
      };
      accept.fresh = std::min(accept.fresh, microseconds(whole) / static_cast<double>(ids.size()));
      accept.known = std::min(accept.known, microseconds(whole) / static_cast<double>(ids.size()));
    }
    for (size_t i = 0; i < std::size(states); ++i)
      std::printf("| `%s` | %s | %zu | %.0f us | %.1f us |\n", schema.c_str(), states[i].first, allowed[i],
                  masks[i].fresh, masks[i].known);
    std::printf("| | accept, a token | | %.1f us | %.2f us |\n", accept.fresh, accept.known);
  }
}
