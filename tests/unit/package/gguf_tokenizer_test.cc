// The tokenizers inside GGUF files give the ids that the tokenizer.json they were made of gives.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/import/gguf_tokenizer.h"
#include "unit/package/gguf_fixtures.h"

namespace aerie::test {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

Result<std::shared_ptr<const text::Tokenizer>> read(const Gguf& g) {
  const Folder folder;
  spit(folder / "t.gguf", g.bytes());
  const auto file = GgufFile::open(folder / "t.gguf");
  if (!file.ok()) return file.status();
  return gguf_tokenizer(**file);
}

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(slurp(std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/" + name));
}

Gguf of_tokenizer_json(const std::string& name, const std::string& pre) {
  const auto j = golden(name + "/tokenizer.json");
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
  const auto place = [&](const std::string& token, size_t id, int32_t type) {
    for (; tokens.size() <= id; types.push_back(kUnused)) tokens.push_back("[PAD" + std::to_string(tokens.size()) + "]");
    tokens[id] = token;
    types[id] = type;
  };
  for (const auto& [token, id] : j["model"]["vocab"].items()) place(token, id, kNormal);
  for (const auto& t : j["added_tokens"]) place(t["content"], t["id"], t["special"] ? kControl : kUserDefined);
  for (const auto& m : j["model"]["merges"])
    merges.push_back(m.is_string() ? m.get<std::string>() : m[0].get<std::string>() + " " + m[1].get<std::string>());
  if (pre == "smollm") {  // has no tokens for what text hardly has
    for (const int byte : {0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF4, 0xFF})
      types[static_cast<size_t>(std::find(tokens.begin(), tokens.end(), byte_letters()[static_cast<size_t>(byte)]) - tokens.begin())] = kUnused;
  }
  tokens.push_back("[PAD at the end]");  // a padded vocabulary
  types.push_back(kUnused);
  Gguf g;
  g.text("tokenizer.ggml.model", "gpt2");
  g.text("tokenizer.ggml.pre", pre);
  g.texts("tokenizer.ggml.tokens", tokens);
  g.i32s("tokenizer.ggml.token_type", types);
  g.texts("tokenizer.ggml.merges", merges);
  g.u32("tokenizer.ggml.bos_token_id", 0);
  return g;
}

TEST(GgufTokenizer, GivesTheIdsOfItsTokenizerJson) {
  for (const auto& [name, pre] : {std::pair{"gpt2", "gpt-2"}, {"llama3", "llama-bpe"}, {"qwen2", "qwen2"}, {"digits", "smollm"},
                                  {"digits", "starcoder"}, {"digits", "refact"}, {"gpt2", "granite-docling"}, {"o200k", "gpt-4o"},
                                  {"cl100k", "dbrx"}, {"cl100k", "smaug-bpe"}, {"cl100k", "chatglm-bpe"}, {"cl100k", "glm4"}, {"o200k", "minimax-m2"}}) {
    SCOPED_TRACE(std::string(name) + " as " + pre);
    const auto t = read(of_tokenizer_json(name, pre));
    ASSERT_TRUE(t.ok()) << t.status().message();
    const bool bos = std::string(pre) == "llama-bpe";
    EXPECT_EQ((*t)->bos_id(), bos ? 0 : -1);
    Ids strange;  // tokens that swallow spaces, or are found after normalization: GGUF does not say so
    const auto original = golden(std::string(name) + "/tokenizer.json");
    for (const auto& a : original["added_tokens"])
      if (a["lstrip"] || a["rstrip"] || a["normalized"]) strange.push_back(a["id"]);
    int compared = 0;
    for (const auto& row : golden(std::string(name) + "/golden.json")) {
      const auto text = row["text"].get<std::string>();
      const auto plain = row["plain"].get<Ids>(), special = row["special"].get<Ids>();
      if (std::find_first_of(special.begin(), special.end(), strange.begin(), strange.end()) != special.end()) continue;
      if (pre == std::string("smollm") && text.find_first_of("\x04\x06\x13\x14\x16\x1d\xc0\xc1\xf1\xf4\xff") != std::string::npos) continue;
      EXPECT_EQ(*(*t)->encode(text, {.add_bos = true, .parse_special = false}), plain) << text;
      EXPECT_EQ(*(*t)->encode(text, {.add_bos = true, .parse_special = true}), special) << text;
      ++compared;
    }
    EXPECT_GT(compared, 50);
    const auto rare = (*t)->encode("\xf4\x8f\xbf\xbf", {});
    ASSERT_EQ(rare.ok(), pre != std::string("smollm"));
    EXPECT_TRUE(rare.ok() || rare.status().message().find("F4") != std::string::npos);
    EXPECT_EQ((*t)->encode("a\x1d", {}).ok(), pre != std::string("smollm"));
  }
}

// Gemma 4's: SentencePiece's pieces with merges.
TEST(GgufTokenizer, OfGemmaGivesTheIdsOfItsTokenizerJson) {
  Gguf g = of_tokenizer_json("gemma", "");
  g.text("tokenizer.ggml.model", "gemma4");
  g.forget("tokenizer.ggml.pre");
  g.u32("tokenizer.ggml.bos_token_id", 2);
  const auto t = read(g);
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ((*t)->bos_id(), 2);
  int compared = 0;
  for (const auto& row : golden("gemma/golden.json")) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(*(*t)->encode(text, {.add_bos = true, .parse_special = false}), row["plain"].get<Ids>()) << text;
    EXPECT_EQ(*(*t)->encode(text, {.add_bos = true, .parse_special = true}), row["special"].get<Ids>()) << text;
    ++compared;
  }
  EXPECT_GT(compared, 50);
  g.forget("tokenizer.ggml.merges");
  EXPECT_EQ(read(g).status().code(), Code::bad_format);
}

// OLMoE's differs from GPT-2's in that alone.
TEST(GgufTokenizer, OlmosTextIsComposedFirst) {
  const auto olmo = read(of_tokenizer_json("gpt2", "olmo")), gpt2 = read(of_tokenizer_json("gpt2", "gpt-2"));
  ASSERT_TRUE(olmo.ok() && gpt2.ok());
  const std::string apart = "cafe\u0301 isn't 1234", composed = "caf\u00e9 isn't 1234";
  EXPECT_EQ(*(*olmo)->encode(apart, {}), *(*gpt2)->encode(composed, {}));
  EXPECT_EQ(*(*olmo)->encode(composed, {}), *(*gpt2)->encode(composed, {}));
  EXPECT_NE(*(*gpt2)->encode(apart, {}), *(*gpt2)->encode(composed, {}));
}

// llama.cpp's own test: whole vocabularies, texts and the ids they should give (models/ggml-vocab-*.gguf{,.inp,.out}).
TEST(GgufTokenizer, GivesLlamaCppsIds) {
  const char* folder = std::getenv("AERIE_LLAMA_CPP_MODELS");
  if (!folder) GTEST_SKIP() << "AERIE_LLAMA_CPP_MODELS: llama.cpp's folder models (tests/full.sh vocabularies gets it)";
  for (const char* name : {"gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "refact", "starcoder", "gemma-4"}) {
    SCOPED_TRACE(name);
    const std::string path = std::string(folder) + "/ggml-vocab-" + name + ".gguf", between = "\n__ggml_vocab_test__\n";
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto t = gguf_tokenizer(**file);
    ASSERT_TRUE(t.ok()) << t.status().message();
    const Bytes in = slurp(path + ".inp");
    std::string texts(in.begin(), in.end()), line;
    std::ifstream out(path + ".out");
    int compared = 0;
    for (; std::getline(out, line); ++compared) {
      const std::string text = texts.substr(0, texts.find(between));
      texts.erase(0, text.size() + between.size());
      std::istringstream ids(line);
      EXPECT_EQ(*(*t)->encode(text, {.add_bos = false, .parse_special = false}), Ids(std::istream_iterator<int32_t>(ids), {})) << text;
    }
    EXPECT_GT(compared, 40);
  }
}

TEST(GgufTokenizer, BosIsTheFilesAffair) {
  Gguf g = of_tokenizer_json("llama3", "llama-bpe");
  g.boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ((*read(g))->bos_id(), -1);
  g.boolean("tokenizer.ggml.add_bos_token", true);
  g.u32("tokenizer.ggml.bos_token_id", UINT32_MAX);
  EXPECT_EQ((*read(g))->bos_id(), -1);
  g.u32("tokenizer.ggml.bos_token_id", 99999);
  EXPECT_EQ(read(g).status().code(), Code::bad_format);
  g.forget("tokenizer.ggml.bos_token_id");
  EXPECT_NE(read(g).status().message().find("bos_token_id"), std::string::npos);
}

// The last first.
void add_bytes(std::vector<std::string>* tokens, std::vector<int32_t>* types) {
  for (int b = 255; b >= 0; --b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    tokens->push_back(name);
    types->push_back(kByte);
  }
}

Gguf pieces() {
  Gguf g;
  add_pieces(g, {"\u2581", "a", "b", "\u2581a", "ab", "\u2581ab", "<|im_start|>", "<user>"});
  return g;
}

TEST(GgufTokenizer, SentencePiece) {
  const auto t = read(pieces());
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto packaged = text::Tokenizer::deserialize((*t)->serialize());
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  for (const auto& tokenizer : {*t, *packaged}) {
    const auto ids = [&](const char* text, bool special = false) { return *tokenizer->encode(text, {.add_bos = true, .parse_special = special}); };
    // " a" joins before "ab" (its score is higher), then with "b"; a byte token for what is no piece.
    EXPECT_EQ(ids("ab c"), (Ids{1, 264, 259, 3 + 'c'}));
    EXPECT_EQ(ids("aab"), (Ids{1, 262, 263}));
    // A control token is found when it is asked for, one of the user's always.
    // What follows it has a space in front, too, as in llama.cpp.
    EXPECT_EQ(ids("a<|im_start|>b</s>", true), (Ids{1, 262, 265, 259, 261, 2}));
    EXPECT_EQ(ids("a<unk>a\u2581ab", true), (Ids{1, 262, 0, 262, 264}));
    const Ids plain = ids("a<|im_start|>b</s>");
    EXPECT_EQ(std::count(plain.begin(), plain.end(), 265) + std::count(plain.begin(), plain.end(), 2), 0);
    EXPECT_EQ(ids("<user>b<user>"), (Ids{1, 266, 259, 261, 266}));
    EXPECT_EQ(tokenizer->token_bytes(265, 259), "");
    EXPECT_TRUE(tokenizer->is_special(265));
    EXPECT_EQ(tokenizer->token_bytes(266, 1), "<user>");
    EXPECT_FALSE(tokenizer->is_special(266));
    EXPECT_EQ(tokenizer->token_bytes(262, 259), " a");
    EXPECT_EQ(tokenizer->token_bytes(3 + 'c', 259), "c");
  }
}

TEST(GgufTokenizer, SpaceAndBosInFrontAreTheFilesAffair) {
  Gguf g = pieces();
  g.boolean("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(*(*read(g))->encode("ab", {}), (Ids{1, 263}));
  EXPECT_EQ((*read(g))->token_bytes(262, 1), " a");  // the text had it
  g.u32("tokenizer.ggml.bos_token_id", UINT32_MAX);  // none
  EXPECT_EQ((*read(g))->bos_id(), -1);
  g.u32("tokenizer.ggml.bos_token_id", 1);
  EXPECT_EQ((*read(g))->bos_id(), 1);
  g.boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(*(*read(g))->encode("ab", {}), (Ids{263}));
  EXPECT_EQ((*read(g))->bos_id(), -1);
}

// A SentencePiece vocabulary whose pieces all have one score.
Gguf alike(const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
  Gguf g;
  g.text("tokenizer.ggml.model", "llama");
  g.texts("tokenizer.ggml.tokens", tokens);
  g.i32s("tokenizer.ggml.token_type", types);
  g.f32s("tokenizer.ggml.scores", std::vector<float>(tokens.size()));
  return g;
}

// Gemma's: other special tokens, no space in front, runs of spaces that are the user's (written as spaces).
TEST(GgufTokenizer, SpecialTokensAreWhereTheFileSays) {
  std::vector<std::string> tokens = {"<pad>", "<eos>", "<bos>", "<unk>", "  ", "\n\n", "<end_of_turn>", "\u2581", "\u2581a", "a"};
  std::vector<int32_t> types = {kControl, kControl, kControl, kControl, kUserDefined, kUserDefined, kControl, kNormal, kNormal, kNormal};
  add_bytes(&tokens, &types);
  Gguf g = alike(tokens, types);
  g.u32("tokenizer.ggml.bos_token_id", 2);
  g.u32("tokenizer.ggml.eos_token_id", 1);
  g.u32("tokenizer.ggml.unknown_token_id", 3);
  g.boolean("tokenizer.ggml.add_space_prefix", false);
  const auto t = read(g);
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto packaged = text::Tokenizer::deserialize((*t)->serialize());
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  for (const auto& tokenizer : {*t, *packaged}) {
    EXPECT_EQ(tokenizer->bos_id(), 2);
    EXPECT_EQ(*tokenizer->encode("a a   a\n\n<end_of_turn>", {.add_bos = true, .parse_special = true}), (Ids{2, 9, 8, 4, 8, 5, 6}));
    EXPECT_EQ(*tokenizer->encode("\u2581\u2581a", {.add_bos = false}), (Ids{4, 9}));
    EXPECT_EQ(tokenizer->token_bytes(8, 2), " a");
    EXPECT_EQ(tokenizer->token_bytes(4, 2), "  ");
    EXPECT_TRUE(tokenizer->is_special(0));
    EXPECT_FALSE(tokenizer->is_special(4));
  }
  const Folder folder;
  spit(folder / "t.gguf", g.bytes());
  std::vector<int32_t> ends;
  ASSERT_TRUE(gguf_end_ids(**GgufFile::open(folder / "t.gguf"), &ends).ok());
  EXPECT_EQ(ends, (Ids{1, 6}));
}

// Phi-3's added tokens swallow the white space behind them, which GGUF does not say.
// gpt-oss's <|end|> is that of a message; others' is that of a text.
TEST(GgufTokenizer, WhatEndsATextOfHarmony) {
  const Folder folder;
  const auto ends_of = [&](const std::vector<std::string>& tokens) {
    Gguf g;
    g.texts("tokenizer.ggml.tokens", tokens);
    g.u32("tokenizer.ggml.eos_token_id", 1);
    spit(folder / "ends.gguf", g.bytes());
    std::vector<int32_t> ends;
    EXPECT_TRUE(gguf_end_ids(**GgufFile::open(folder / "ends.gguf"), &ends).ok());
    return ends;
  };
  EXPECT_EQ(ends_of({"<|endoftext|>", "<|return|>", "a", "<|end|>", "<|call|>"}), (Ids{1, 4, 0}));
  EXPECT_EQ(ends_of({"<|endoftext|>", "b", "<|return|>", "<|end|>"}), (Ids{1, 0, 3}));
  EXPECT_EQ(ends_of({"<|endoftext|>", "b", "<|call|>", "<|end|>"}), (Ids{1, 0, 3}));
}

TEST(GgufTokenizer, Phi3sTokensSwallowWhiteSpace) {
  Gguf g = pieces();
  const auto ids = [&] { return *(*read(g))->encode("<|im_start|>\n a<user> \nb<s> a", {.add_bos = false, .parse_special = true}); };
  const Ids usual = ids();
  g.text("general.architecture", "phi3");
  EXPECT_EQ(ids(), (Ids{265, 262, 266, 259, 261, 1, 259, 262}));
  EXPECT_GT(usual.size(), ids().size());
}

// Mistral's later vocabularies have control tokens before the bytes.
TEST(GgufTokenizer, BytesMayBeAnywhere) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "[INST]", "a"};
  std::vector<int32_t> types = {2, kControl, kControl, kControl, kNormal};
  add_bytes(&tokens, &types);
  Gguf g = alike(tokens, types);
  const auto t = read(g);
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto packaged = text::Tokenizer::deserialize((*t)->serialize());
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  for (const auto& tokenizer : {*t, *packaged}) {
    EXPECT_EQ(*tokenizer->encode("[INST]ab", {.add_bos = true, .parse_special = true}), (Ids{1, 3, 5 + 255 - ' ', 4, 5 + 255 - 'b'}));
    EXPECT_EQ(tokenizer->token_bytes(5 + 255 - 'b', 4), "b");
  }
  tokens[20] = "no byte";
  g.texts("tokenizer.ggml.tokens", tokens);
  EXPECT_EQ(read(g).status().code(), Code::bad_format);
}

TEST(GgufTokenizer, PiecesWithoutTypesHaveTheUsualOnes) {
  Gguf g = pieces();
  const auto typed = read(g);
  g.forget("tokenizer.ggml.token_type");
  const auto assumed = read(g);
  ASSERT_TRUE(assumed.ok()) << assumed.status().message();
  EXPECT_EQ(*(*assumed)->encode("ab c", {}), *(*typed)->encode("ab c", {}));
}

TEST(GgufTokenizer, DamagedBlobsAreRefusedOrRead) {
  const auto blob = (*read(pieces()))->serialize();
  for (size_t n = 0; n < blob.size(); ++n)
    EXPECT_FALSE(text::Tokenizer::deserialize(std::span(blob).first(n)).ok()) << n;
  int refused = 0;
  for (size_t at = 0; at < blob.size(); ++at) {
    auto other = blob;
    other[at] ^= 0x44;
    const auto t = text::Tokenizer::deserialize(other);
    refused += !t.ok();
    EXPECT_TRUE(!t.ok() || (*t)->encode("ab <user> c", {}).ok());
  }
  EXPECT_GT(refused, 1000);
}

TEST(GgufTokenizer, OthersAreRefusedByName) {
  const auto said = [](const Gguf& g, Code code, const char* word) {
    const Status s = read(g).status();
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_NE(s.message().find(word), std::string::npos) << s.message();
    if (code != Code::unsupported) return;
    EXPECT_NE(s.message().find("--tokenizer"), std::string::npos) << s.message();
  };
  Gguf g = of_tokenizer_json("gpt2", "tekken");
  said(g, Code::unsupported, "tekken");
  g.forget("tokenizer.ggml.pre");
  said(g, Code::unsupported, "default");
  g = of_tokenizer_json("gpt2", "gpt-2");
  g.i32s("tokenizer.ggml.token_type", {1, 1});
  said(g, Code::bad_format, "token_type");
  g = of_tokenizer_json("gpt2", "gpt-2");
  g.texts("tokenizer.ggml.merges", {"no such"});
  said(g, Code::bad_format, "merge");
  g = pieces();
  g.f32s("tokenizer.ggml.scores", {1});
  said(g, Code::bad_format, "scores");
  g = pieces();
  g.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  said(g, Code::unsupported, "remove_extra_whitespaces");
  g = pieces();
  g.u32("tokenizer.ggml.bos_token_id", 2);
  EXPECT_TRUE(read(g).ok());  // </s>: if the file says so
  g.u32("tokenizer.ggml.bos_token_id", 99999);
  said(g, Code::bad_format, "bos_token_id: 99999");
  g = pieces();
  g.text("tokenizer.ggml.model", "llama");
  std::vector<std::string> tokens(300, "x");
  g.texts("tokenizer.ggml.tokens", tokens);
  g.i32s("tokenizer.ggml.token_type", std::vector<int32_t>(300, kNormal));
  g.f32s("tokenizer.ggml.scores", std::vector<float>(300));
  said(g, Code::unsupported, "<0x00>");
  g = of_tokenizer_json("gpt2", "gpt-2");
  tokens = byte_letters();
  g.texts("tokenizer.ggml.merges", {});
  const auto with_last = [&](const std::string& last, int32_t type) {
    std::vector<std::string> all = tokens;
    all.push_back(last);
    g.texts("tokenizer.ggml.tokens", all);
    std::vector<int32_t> types(all.size(), kNormal);
    types.back() = type;
    g.i32s("tokenizer.ggml.token_type", types);
  };
  with_last("aa", kNormal);
  EXPECT_TRUE(read(g).ok()) << read(g).status().message();
  with_last("a", kNormal);
  said(g, Code::bad_format, "twice");
  with_last("\xff", kNormal);
  said(g, Code::bad_format, "UTF-8");
  with_last("aa", 7);
  said(g, Code::bad_format, "type 7");
  with_last(std::string(70000, 'a'), kNormal);
  said(g, Code::bad_format, "70000 bytes");
  g = pieces();
  g.text("tokenizer.ggml.model", "t5");
  said(g, Code::unsupported, "t5");
  g.forget("tokenizer.ggml.model");
  const auto none = read(g);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace aerie::test
