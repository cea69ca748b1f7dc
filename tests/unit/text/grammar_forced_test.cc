// What a grammar forces: tokens that may come, of bytes that nothing else may stand for; and layouts of JSON, which force most.
#include "unit/text/grammar_fixtures.h"

namespace aerie::text::test {
namespace {

std::string spelled(const TokenTrie& trie, std::span<const int32_t> tokens) {
  std::string out;
  for (const int32_t t : tokens) out += trie.bytes(t);
  return out;
}

std::vector<int32_t> forced(Grammar& g, Grammar::Position* p, size_t most = 64) {
  auto tokens = g.forced(p, most);
  EXPECT_TRUE(tokens.ok());
  return tokens.ok() ? *tokens : std::vector<int32_t>();
}

TriePtr demo_trie() { return std::make_shared<const TokenTrie>(demo_tokenizer()); }

constexpr const char* kPerson =
    R"({"properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["red", "blue"]}}},
        "required": ["name", "age", "tags"]})";

GrammarPtr person(const TriePtr& trie, grammar::JsonLayout layout) {
  return made(try_grammar(grammar::program_of_json_schema(kPerson, layout), trie));
}

// However a text was cut into tokens, and wherever in it.
TEST(GrammarForced, IsWhatAloneMayComeByteByByte) {
  const GrammarPtr byte_by_byte[] = {made(try_gbnf(kJsonGbnf)), person(byte_trie(), grammar::JsonLayout::one_line),
                                     person(byte_trie(), grammar::JsonLayout::free)};
  size_t seen = 0;
  for (const TriePtr& trie : tries()) {
    const GrammarPtr grammars[] = {made(try_gbnf(kJsonGbnf, trie)), person(trie, grammar::JsonLayout::one_line),
                                   person(trie, grammar::JsonLayout::free)};
    for (size_t i = 0; i < std::size(grammars); ++i) {
      Dice dice;
      for (int round = 0; round < 6; ++round) {
        Grammar::Position p = grammars[i]->begin(), q = byte_by_byte[i]->begin();
        Mask mask;
        for (int step = 0; step < 60; ++step) {
          const std::vector<int32_t> tokens = forced(*grammars[i], &p);
          Grammar::Position ahead = p, byte_ahead = q;
          for (const int32_t t : tokens) {
            ASSERT_EQ(grammars[i]->accept(&ahead, t), Code::ok);
            for (const char c : trie->bytes(t)) {
              ASSERT_EQ(allowed(*byte_by_byte[i], &byte_ahead, byte_trie()->vocab_size(), &mask), Code::ok);
              EXPECT_EQ(tokens_of(mask), std::vector<int32_t>{static_cast<uint8_t>(c)});
              ASSERT_EQ(byte_by_byte[i]->accept(&byte_ahead, static_cast<uint8_t>(c)), Code::ok);
            }
            ++seen;
          }
          EXPECT_EQ(forced(*grammars[i], &p, 1), std::vector<int32_t>(tokens.begin(), tokens.begin() + std::min<size_t>(tokens.size(), 1)));
          ASSERT_EQ(allowed(*grammars[i], &p, trie->vocab_size(), &mask), Code::ok);
          const std::vector<int32_t> may = tokens_of(mask);
          if (may.empty()) break;
          const int32_t t = may[dice(may.size())];
          ASSERT_EQ(grammars[i]->accept(&p, t), Code::ok);
          for (const char c : trie->bytes(t)) ASSERT_EQ(byte_by_byte[i]->accept(&q, static_cast<uint8_t>(c)), Code::ok);
        }
      }
    }
  }
  EXPECT_GT(seen, 300u);
}

TEST(GrammarForced, IsSpelledAsTheTokenizerWould) {
  const TokenizerPtr tokenizer = demo_tokenizer();
  const TriePtr trie = demo_trie();
  const GrammarPtr g = person(trie, grammar::JsonLayout::one_line);
  Grammar::Position p = g->begin();
  EXPECT_EQ(forced(*g, &p), encode(*tokenizer, "{\"name\": \"", {.add_bos = false, .parse_special = false}));
  for (const int32_t t : encode(*tokenizer, "{\"name\": \"Ada\"", {.add_bos = false, .parse_special = false}))
    ASSERT_EQ(g->accept(&p, t), Code::ok);
  // Behind the last of these bytes a digit comes, which a token may have together with the space: it is left out.
  EXPECT_EQ(spelled(*trie, forced(*g, &p)), ", \"age\":");
  for (const int32_t t : encode(*tokenizer, ", \"age\": 7, \"tags\": [\"r", {.add_bos = false, .parse_special = false}))
    ASSERT_EQ(g->accept(&p, t), Code::ok);
  EXPECT_EQ(spelled(*trie, forced(*g, &p)), "ed\"");
}

// SentencePiece puts a space in front of a text, and not amid one.
TEST(GrammarForced, HasNoSpaceInFrontAmidAText) {
  for (const char* name : {"spm_prepend", "spm_metaspace", "gpt2_prefix"}) {
    const TokenizerPtr tokenizer = load_hf(name);
    for (const std::string text : {"name", " name", "\": ", "x y"})
      EXPECT_EQ(raw_bytes(*tokenizer, encode(*tokenizer, text, {.add_bos = false, .parse_special = false, .goes_on = true})), text) << name;
  }
  const TriePtr trie = std::make_shared<const TokenTrie>(load_hf("spm_prepend"));
  const GrammarPtr g = made(try_gbnf("root ::= \"a\" [0-9] \"the old man\"", trie));
  Grammar::Position p = g->begin();
  EXPECT_EQ(spelled(*trie, forced(*g, &p)), "") << "the digit may belong to it";
  for (const char* token : {"a", "7"}) {
    const auto ids = encode(*load_hf("spm_prepend"), token, {.add_bos = false, .parse_special = false, .goes_on = true});
    for (const int32_t t : ids) ASSERT_EQ(g->accept(&p, t), Code::ok);
  }
  EXPECT_EQ(spelled(*trie, forced(*g, &p)), "the old man") << "with it the text is whole";
}

TEST(GrammarForced, EndsWhereTheTextMayEnd) {
  const TriePtr trie = demo_trie();
  const GrammarPtr g = made(try_gbnf("root ::= \"yes\" (\", sir\")?", trie, {7}));
  Grammar::Position p = g->begin();
  const std::vector<int32_t> yes = forced(*g, &p);
  EXPECT_EQ(spelled(*trie, yes), "yes");
  for (const int32_t t : yes) ASSERT_EQ(g->accept(&p, t), Code::ok);
  EXPECT_TRUE(forced(*g, &p).empty());
  ASSERT_EQ(g->accept(&p, 7), Code::ok);
  EXPECT_TRUE(forced(*g, &p).empty()) << "it has ended";
}

// No character is cut: what tells two of them apart may be a byte of many.
TEST(GrammarForced, CutsNoCharacter) {
  const TriePtr trie = demo_trie();
  const GrammarPtr g = made(try_gbnf("root ::= \"- \u00e9.\" | \"- \u00e8.\"", trie));
  Grammar::Position p = g->begin();
  EXPECT_EQ(spelled(*trie, forced(*g, &p)).find('\xc3'), std::string::npos);
}

// Without end, so that nobody waits for it.
TEST(GrammarForced, IsBounded) {
  const TriePtr trie = demo_trie();
  const GrammarPtr g = made(try_gbnf("root ::= \"ab, \"{5000} \"!\"", trie));
  Grammar::Position p = g->begin();
  const std::vector<int32_t> tokens = forced(*g, &p, 100000);
  EXPECT_GT(tokens.size(), 50u);
  EXPECT_LT(spelled(*trie, tokens).size(), 1000u);
  EXPECT_EQ(forced(*g, &p, 5).size(), 5u);
}

TEST(JsonLayout, IsOneSpellingOfEachValue) {
  struct Case {
    const char *schema, *one_line, *compact;
  };
  const Case cases[] = {
      {kPerson, R"({"name": "A, b", "age": 3, "tags": ["red", "blue"]})", R"({"name":"A, b","age":3,"tags":["red","blue"]})"},
      {kPerson, R"({"name": "", "age": -1, "tags": []})", R"({"name":"","age":-1,"tags":[]})"},
      {"{}", R"({"a": [1, {"b": null}], "c": {}})", R"({"a":[1,{"b":null}],"c":{}})"},
      {R"({"const": {"x": [1, 2], "y": {}}})", R"({"x": [1, 2], "y": {}})", R"({"x":[1,2],"y":{}})"},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "items": {"type": "null"}, "minItems": 2})",
       "[1, true, null]", "[1,true,null]"},
      {R"({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "integer"}})", R"({"a": 1, "b": 2})", R"({"a":1,"b":2})"},
  };
  for (const Case& c : cases) {
    const GrammarPtr one = made(try_grammar(grammar::program_of_json_schema(c.schema, grammar::JsonLayout::one_line), byte_trie()));
    const GrammarPtr compact = made(try_grammar(grammar::program_of_json_schema(c.schema, grammar::JsonLayout::compact), byte_trie()));
    const GrammarPtr free = made(try_schema(c.schema));
    EXPECT_TRUE(is_whole(one, c.one_line)) << c.one_line;
    EXPECT_TRUE(is_whole(compact, c.compact)) << c.compact;
    EXPECT_FALSE(is_whole(one, c.compact)) << c.compact;
    EXPECT_FALSE(is_whole(compact, c.one_line)) << c.one_line;
    EXPECT_TRUE(is_whole(free, c.one_line));
    EXPECT_TRUE(is_whole(free, c.compact));
    std::string spread = c.one_line;
    spread.insert(1, " ");
    EXPECT_FALSE(is_whole(one, spread)) << spread;
  }
}

}  // namespace
}  // namespace aerie::text::test
