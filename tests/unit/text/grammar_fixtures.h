// Shared by the tests of core/text/grammar.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/package/package.h"
#include "core/platform/utf8.h"
#include "core/text/grammar/grammar.h"
#include "unit/text/text_fixtures.h"

namespace aerie::text::test {

using grammar::Grammar;
using grammar::TokenTrie;
using GrammarPtr = std::shared_ptr<Grammar>;
using TriePtr = std::shared_ptr<const TokenTrie>;

// The demo model's: byte-level BPE, 4096 tokens.
inline TokenizerPtr demo_tokenizer() {
  auto package = Package::open(std::string(AERIE_SOURCE_DIR) + "/samples/models/demo.aerie");
  EXPECT_TRUE(package.ok()) << package.status().message();
  if (!package.ok()) return nullptr;
  auto tokenizer = Tokenizer::deserialize((*package)->blob("tokenizer"));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? *tokenizer : nullptr;
}

// Vocabularies of each kind: single bytes, byte-level BPE, SentencePiece (where ../shared is).
inline std::vector<TriePtr> tries() {
  std::vector<TriePtr> out;
  for (const TokenizerPtr& t : {byte_tokenizer(), demo_tokenizer(), load_hf("spm_prepend"), load_stories()})
    if (t) out.push_back(std::make_shared<const TokenTrie>(t));
  return out;
}

inline TriePtr byte_trie() {
  static const auto& trie = *new TriePtr(std::make_shared<const TokenTrie>(byte_tokenizer()));
  return trie;
}

inline Result<GrammarPtr> try_grammar(Result<grammar::Program> program, TriePtr trie, std::vector<int32_t> ends = {}) {
  if (!program.ok()) return program.status();
  return Grammar::make(std::move(program).value(), std::move(trie), std::move(ends));
}
inline Result<GrammarPtr> try_gbnf(std::string_view gbnf, TriePtr trie = byte_trie(), std::vector<int32_t> ends = {}) {
  return try_grammar(grammar::program_of_gbnf(gbnf), std::move(trie), std::move(ends));
}
inline Result<GrammarPtr> try_schema(std::string_view schema, TriePtr trie = byte_trie(), std::vector<int32_t> ends = {}) {
  return try_grammar(grammar::program_of_json_schema(schema), std::move(trie), std::move(ends));
}
inline GrammarPtr made(Result<GrammarPtr> grammar) {
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  return grammar.ok() ? *grammar : nullptr;
}

// Of a grammar over single bytes: may the text begin so, and is it all of one?
enum class Match { no, begun, whole };
inline Match match(Grammar& g, std::string_view text) {
  Grammar::Position p = g.begin();
  for (const char c : text)
    if (g.accept(&p, static_cast<uint8_t>(c)) != Code::ok) return Match::no;
  return g.complete(p) ? Match::whole : Match::begun;
}
inline bool is_whole(const GrammarPtr& g, std::string_view text) { return match(*g, text) == Match::whole; }

using Mask = std::vector<uint32_t>;
inline bool has(const Mask& mask, int32_t token) { return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0; }
inline Code allowed(Grammar& g, Grammar::Position* p, int32_t vocab, Mask* out) {
  out->assign((static_cast<size_t>(vocab) + 31) / 32, 0);
  return g.allowed(p, *out);
}
inline std::vector<int32_t> tokens_of(const Mask& mask) {
  std::vector<int32_t> out;
  for (int32_t t = 0; t < static_cast<int32_t>(32 * mask.size()); ++t)
    if (has(mask, t)) out.push_back(t);
  return out;
}

struct Dice {
  uint64_t state = 1;
  size_t operator()(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  }
};

// A text by tokens drawn from the masks, of at most `most`; whether it came to be whole, where an end is drawn as any token is.
struct Walk {
  std::string text;
  bool whole = false;
};
inline Walk walk(Grammar& g, const TokenTrie& trie, Dice& dice, int most, int32_t end) {
  Walk out;
  Grammar::Position p = g.begin();
  Mask mask;
  for (int i = 0; i < most; ++i) {
    const Code code = allowed(g, &p, trie.vocab_size(), &mask);
    EXPECT_EQ(code, Code::ok) << out.text;
    std::vector<int32_t> may = tokens_of(mask);
    if (code != Code::ok || may.empty()) break;
    // Short tokens half of the time: else texts are hardly anything but long words.
    int32_t t = may[dice(may.size())];
    for (int k = 0; k < 3 && dice(2) == 0; ++k)
      if (const int32_t other = may[dice(may.size())]; trie.bytes(other).size() < trie.bytes(t).size()) t = other;
    if (has(mask, end) && dice(3) == 0) t = end;
    EXPECT_EQ(g.accept(&p, t), Code::ok) << out.text;
    if (t == end) break;
    out.text += trie.bytes(t);
  }
  out.whole = g.complete(p);
  return out;
}

inline constexpr const char* kJsonGbnf = R"(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)";

}  // namespace aerie::text::test
