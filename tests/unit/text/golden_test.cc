// Ids and text equal those of Hugging Face tokenizers and SentencePiece (tests/golden/text/make_golden.py).
#include "unit/text/text_fixtures.h"

namespace aerie::text::test {
namespace {

class HfGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(HfGolden, SameIdsAndText) {
  const TokenizerPtr fresh = load_hf(GetParam());
  ASSERT_NE(fresh, nullptr);
  const std::vector<uint8_t> blob = fresh->serialize();
  auto packaged = Tokenizer::deserialize(blob);
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  EXPECT_EQ((*packaged)->serialize(), blob);
  const auto golden = nlohmann::json::parse(read_file(kGolden + GetParam() + "/golden.json"));
  ASSERT_GE(golden.size(), 60u);
  for (const TokenizerPtr& t : {fresh, *packaged}) {
    for (const auto& row : golden) {
      const std::string text = row["text"];
      const Ids plain = encode(*t, text), special = encode(*t, text, {.add_bos = true, .parse_special = true});
      EXPECT_EQ(plain, row["plain"].get<Ids>()) << text;
      EXPECT_EQ(special, row["special"].get<Ids>()) << text;
      if (!row["decoded"].is_null()) {
        EXPECT_EQ(stream(t, special), row["decoded"].get<std::string>()) << text;
      }
      Ids without = encode(*t, text, {.add_bos = false, .parse_special = false});
      if (t->bos_id() >= 0) without.insert(without.begin(), t->bos_id());
      EXPECT_EQ(plain, without);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HfGolden, ::testing::Values("gpt2", "gpt2_prefix", "llama3", "qwen2", "o200k", "cl100k", "digits", "spm_prepend",
                                                           "spm_metaspace", "gemma"));

TEST(HfRoundTrip, PlainTextComesBack) {
  for (const char* name : {"gpt2", "llama3", "o200k", "digits"}) {
    const TokenizerPtr t = load_hf(name);
    for (const auto& row : nlohmann::json::parse(read_file(kGolden + "gpt2/golden.json"))) {
      const std::string text = row["text"];
      // Without special tokens every byte survives; a special token's text is no longer special.
      EXPECT_EQ(raw_bytes(*t, encode(*t, text)), text) << name;
    }
  }
}

TEST(HfRoundTrip, InvalidUtf8LosesNoByte) {
  const TokenizerPtr t = load_hf("llama3");
  uint64_t state = 1;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < round % 40; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      static constexpr uint8_t kBytes[] = {'a',  ' ',  '\n', '7',  0xF0, 0x9F, 0x98,
                                           0x80, 0xC0, 0xED, 0xA0, 0xFF, 0xE2, 0};
      text += static_cast<char>(kBytes[(state >> 33) % sizeof kBytes]);
    }
    EXPECT_EQ(raw_bytes(*t, encode(*t, text)), text);
  }
}

TEST(HfSpecial, TextOfASpecialTokenIsNotTheToken) {
  const TokenizerPtr t = load_hf("gpt2");
  const Ids plain = encode(*t, "<|endoftext|>");
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 0), 0);
  EXPECT_EQ(encode(*t, "<|endoftext|>", {.add_bos = true, .parse_special = true}), Ids{0});
  EXPECT_TRUE(t->is_special(0));
  EXPECT_FALSE(t->is_special(1));
  EXPECT_EQ(t->token_bytes(0, -1), "");
  EXPECT_EQ(t->token_bytes(-1, -1), "");
  EXPECT_EQ(t->token_bytes(t->vocab_size(), -1), "");
}

TEST(HfLong, LongPiecesAreNotQuadratic) {
  const TokenizerPtr t = load_hf("llama3");
  for (const char* unit : {"a", "the", " ", "\n", "!", "1", "é"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    EXPECT_EQ(raw_bytes(*t, encode(*t, text)), text) << unit;
  }
}

class SentencePieceModel : public ::testing::TestWithParam<std::pair<const char*, int32_t>> {};

TEST_P(SentencePieceModel, SameIdsAndText) {
  const auto& [name, bos] = GetParam();
  const std::string file = read_file(kGolden + name + "/tokenizer.model");
  const auto fresh = Tokenizer::from_sentencepiece(bytes_of(file));
  ASSERT_TRUE(fresh.ok()) << fresh.status().message();
  auto packaged = Tokenizer::deserialize((*fresh)->serialize());
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  const auto golden = nlohmann::json::parse(read_file(kGolden + name + "/golden.json"));
  ASSERT_GE(golden.size(), 60u);
  for (const TokenizerPtr& t : {*fresh, *packaged}) {
    for (const auto& row : golden) {
      const std::string text = row["text"];
      Ids ids = row["ids"].get<Ids>();
      ids.insert(ids.begin(), bos);
      EXPECT_EQ(encode(*t, text), ids) << text;
      EXPECT_EQ(stream(t, ids), row["decoded"].get<std::string>()) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceModel, ::testing::Values(std::pair("spm", 1), std::pair("gemma_spm", 2)));

// Gemma's: special tokens elsewhere, and runs of spaces that are tokens of the user but come of merges.
TEST(HfSentencePiece, SpecialTokensAreWhereTheModelSays) {
  const TokenizerPtr t = load_hf("gemma");
  EXPECT_EQ(t->bos_id(), 2);
  for (int32_t id = 0; id < 4; ++id) EXPECT_TRUE(t->is_special(id)) << id;
  EXPECT_EQ(t->token_text(1), "<eos>");
  EXPECT_EQ(encode(*t, "<eos>", {.add_bos = true, .parse_special = true}), (Ids{2, 1}));
  const Ids spaces = encode(*t, "   ", {.add_bos = false}), meta = encode(*t, "\u2581\u2581\u2581", {.add_bos = false});
  ASSERT_EQ(spaces.size(), 1u);
  EXPECT_EQ(spaces, meta);
  EXPECT_FALSE(t->is_special(spaces[0]));
  EXPECT_EQ(t->token_bytes(spaces[0], 2), "   ");
}

// A space in front of a text: of every stretch between special tokens, as transformers' older files have it, or of the first.
TEST(HfSentencePiece, SpaceInFront) {
  const Ids dragon = encode(*load_hf("spm_prepend"), "dragon", {.add_bos = false});
  for (const auto& [name, every] : {std::pair{"spm_prepend", true}, {"spm_metaspace", false}}) {
    const TokenizerPtr t = load_hf(name);
    const EncodeOptions options{.add_bos = false, .parse_special = true};
    EXPECT_EQ(encode(*t, "dragon", options), dragon);
    Ids ids = encode(*t, "</s>dragon", options);
    ASSERT_FALSE(ids.empty());
    EXPECT_EQ(ids.front(), 2);
    ids.erase(ids.begin());
    EXPECT_EQ(ids == dragon, every) << name;
    EXPECT_EQ(encode(*t, " dragon", options) == dragon, !every) << name;  // has one already
  }
}

TEST(Stories, SameIdsAsSentencePiece) {
  const TokenizerPtr fresh = load_stories();
  if (fresh == nullptr) GTEST_SKIP() << "no ../shared/models";
  auto packaged = Tokenizer::deserialize(fresh->serialize());
  ASSERT_TRUE(packaged.ok()) << packaged.status().message();
  const auto golden = nlohmann::json::parse(read_file(kGolden + "stories260k/golden.json"));
  ASSERT_GE(golden.size(), 40u);
  for (const TokenizerPtr& t : {fresh, *packaged}) {
    for (const auto& row : golden) {
      const std::string text = row["text"];
      Ids ids = row["ids"].get<Ids>();
      EXPECT_EQ(encode(*t, text, {.add_bos = false, .parse_special = false}), ids) << text;
      ids.insert(ids.begin(), 1);
      EXPECT_EQ(encode(*t, text), ids) << text;
      EXPECT_EQ(stream(t, ids), text);
    }
  }
}

TEST(Stories, DecodesAsRunC) {
  const TokenizerPtr t = load_stories();
  if (t == nullptr) GTEST_SKIP() << "no ../shared/models";
  EXPECT_EQ(t->vocab_size(), 512);
  EXPECT_EQ(t->bos_id(), 1);
  const int32_t the = encode(*t, "The")[1];
  EXPECT_EQ(t->token_bytes(the, 5).front(), ' ');
  EXPECT_NE(t->token_bytes(the, 1).front(), ' ');  // after BOS
  EXPECT_EQ(t->token_bytes(3 + 0x0A, 1), "\n");
  EXPECT_EQ(t->token_bytes(3, 1), std::string_view("\0", 1));
  for (const int32_t control : {0, 1, 2}) {
    EXPECT_TRUE(t->is_special(control));
    EXPECT_EQ(t->token_bytes(control, -1), "");
  }
  const std::string odd = std::string("a\0", 2) + "\xff\xf0\x9f<s></s><0x41>\n<s>\n";
  EXPECT_EQ(raw_bytes(*t, encode(*t, odd)), odd);
  const Ids special = encode(*t, "<s>x</s>", {.add_bos = false, .parse_special = true});
  EXPECT_EQ(special.front(), 1);
  EXPECT_EQ(special.back(), 2);
  std::string text;
  while (text.size() < 1000000) text += "Once upon a time ";
  EXPECT_EQ(raw_bytes(*t, encode(*t, text)), text);
}

}  // namespace
}  // namespace aerie::text::test
