// Damaged and hostile input: refused with a reason, never a crash.
#include "core/text/regex_dialect.h"
#include "core/text/splitter.h"
#include "unit/text/text_fixtures.h"

namespace aerie::text::test {
namespace {

TEST(Untrusted, BlobTruncatedAnywhere) {
  std::vector<std::vector<uint8_t>> blobs = {byte_tokenizer()->serialize(), load_hf("llama3")->serialize(), load_hf("spm_prepend")->serialize(),
                                             load_hf("gemma")->serialize()};
  if (const TokenizerPtr t = load_stories()) blobs.push_back(t->serialize());
  for (const auto& blob : blobs) {
    for (size_t n = 0; n < blob.size(); ++n) {
      EXPECT_FALSE(Tokenizer::deserialize(std::span(blob).first(n)).ok()) << n;
    }
    auto longer = blob;
    longer.push_back(0);
    EXPECT_FALSE(Tokenizer::deserialize(longer).ok());
  }
}

TEST(Untrusted, BlobCorruptedAnyhow) {
  uint64_t state = 3;
  const auto random = [&](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  };
  std::vector<std::vector<uint8_t>> blobs = {byte_tokenizer()->serialize(), load_hf("llama3")->serialize(), load_hf("spm_prepend")->serialize(),
                                             load_hf("gemma")->serialize()};
  if (const TokenizerPtr t = load_stories()) blobs.push_back(t->serialize());
  int accepted = 0;
  for (const auto& blob : blobs) {
    for (int round = 0; round < 3000; ++round) {
      auto damaged = blob;
      for (size_t k = random(3) + 1; k > 0; --k) {
        const size_t at = round % 2 == 0 ? random(std::min<size_t>(damaged.size(), 300)) : random(damaged.size());
        damaged[at] = static_cast<uint8_t>(random(256));
      }
      auto t = Tokenizer::deserialize(damaged);
      if (!t.ok()) continue;
      ++accepted;
      // What is accepted must work.
      const std::string text = "The  dragon's <mask> \xFF 123\n caf\xC3\xA9 ";
      auto ids = (*t)->encode(text, {.add_bos = true, .parse_special = true});
      if (!ids.ok()) continue;  // a pattern that came to match nothing
      for (const int32_t id : *ids) ASSERT_TRUE(id >= 0 && id < (*t)->vocab_size());
      (void)stream(*t, *ids);
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Untrusted, ADamagedTokenIsSaid) {
  std::vector<uint8_t> blob = byte_tokenizer()->serialize();
  std::fill_n(blob.begin() + static_cast<std::ptrdiff_t>(blob.size() / 2), 20, uint8_t{0xFF});
  const auto read = Tokenizer::deserialize(blob);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("tokenizer blob: damaged: token "), std::string::npos) << read.status().message();
}

TEST(Untrusted, HugeCountsCostNothing) {
  std::vector<uint8_t> blob = byte_tokenizer()->serialize();
  for (size_t at = 0; at + 4 <= std::min<size_t>(blob.size(), 200); ++at) {
    auto damaged = blob;
    std::fill_n(damaged.begin() + at, 4, uint8_t{0x7F});
    (void)Tokenizer::deserialize(damaged).ok();
  }
  for (const int32_t vocab : {-1, 0, 511, 513, INT32_MAX, INT32_MIN}) {
    const std::string file = read_file(kModels + "tok512.bin");
    EXPECT_FALSE(Tokenizer::from_llama2c(bytes_of(file), vocab).ok()) << vocab;
  }
}

TEST(Untrusted, Llama2cTruncatedAnywhere) {
  const std::string file = read_file(kModels + "tok512.bin");
  if (file.empty()) GTEST_SKIP() << "no ../shared/models";
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_FALSE(Tokenizer::from_llama2c(bytes_of(file).first(n), 512).ok()) << n;
  }
}

// `path` of a good tokenizer.json set to `value` must be refused with `word` in the message.
void refused(const char* path, const nlohmann::json& value, const std::string& word, const std::string& name = "llama3") {
  auto j = nlohmann::json::parse(read_file(kGolden + name + "/tokenizer.json"));
  j[nlohmann::json::json_pointer(path)] = value;
  const auto t = Tokenizer::from_hf_json(j.dump());
  ASSERT_FALSE(t.ok()) << path;
  EXPECT_NE(t.status().message().find(word), std::string::npos) << t.status().message();
}

TEST(HfRefusals, ByName) {
  using nlohmann::json;
  refused("/model/type", "Unigram", "Unigram");
  refused("/model/type", "WordPiece", "WordPiece");
  refused("/model/byte_fallback", true, "byte_fallback");
  refused("/model/dropout", 0.1, "dropout");
  refused("/model/end_of_word_suffix", "</w>", "end_of_word_suffix");
  refused("/normalizer", {{"type", "NFKC"}}, "NFKC");
  refused("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}, "Lowercase");
  refused("/pre_tokenizer", {{"type", "Metaspace"}}, "Metaspace");
  refused("/pre_tokenizer", nullptr, "pre_tokenizer");
  refused("/pre_tokenizer/pretokenizers/0", {{"type", "Whitespace"}}, "Whitespace");
  refused("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "\\w+|\\W+"}}, "\\w");
  // A package could not hold it: it has two bytes for the length.
  refused("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", std::string(70000, 'a')}}, "70000 bytes");
  refused("/pre_tokenizer/pretokenizers/0/behavior", "MergedWithNext", "MergedWithNext");
  refused("/post_processor", {{"type", "RobertaProcessing"}}, "RobertaProcessing");
  refused("/decoder", {{"type", "WordPiece"}}, "WordPiece");
  refused("/decoder", nullptr, "none");
  refused("/added_tokens/0/single_word", true, "single_word");
  refused("/added_tokens/-", {{"id", 1000}, {"content", std::string(1025, 'x')}, {"special", true}}, "1025 bytes");
  refused("/added_tokens/0/id", -1, "no whole number from 0 on");
  refused("/added_tokens/0/id", 1e110, "no whole number from 0 on");
  refused("/model/vocab/a", 1.5, "no whole number from 0 on");
  refused("/post_processor/processors/1/special_tokens/<|endoftext|>/ids/0", 1 << 30, "BOS");
  refused("/added_tokens/0/id", 2000000000, "2000000000");
  refused("/model/vocab/a", 0, "0");
  refused("/model/vocab", json::array(), "vocab");
  refused("/model/merges/0", "a b c", "a b c");
  refused("/model/merges/0", {"a", "nonesuch"}, "nonesuch");
  refused("/model/merges/0", 3, "pair");
  refused("/model/merges/0", {1, 2}, "model.merges: one is not a pair of texts");
  // Whatever is of another type is named.
  refused("/model/ignore_merges", "yes", "ignore_merges: is neither true nor false");
  refused("/model/type", 3, "type: is not a text");
  refused("/decoder/type", nullptr, "type: is not a text");
  refused("/added_tokens/0/content", 5, "content: is not a text");
  refused("/added_tokens/0/special", "yes", "special: is neither true nor false");
  refused("/pre_tokenizer/pretokenizers/0/behavior", 1, "behavior: is not a text");
  refused("/pre_tokenizer/pretokenizers/0/pattern/Regex", 1, "Regex: is not a text");
}

TEST(HfRefusals, OfSentencePieceByName) {
  using nlohmann::json;
  const auto refused = [](const char* path, const json& value, const std::string& word, const char* name = "spm_prepend") {
    test::refused(path, value, word, name);
  };
  const char* meta = "spm_metaspace";
  refused("/model/ignore_merges", true, "ignore_merges");
  refused("/model/byte_fallback", false, "Prepend");
  refused("/model/merges", json::array(), "merges");
  refused("/model/merges/0", {"a", "nonesuch"}, "nonesuch");
  refused("/model/vocab/<0x41>", 100000000, "100000000");
  refused("/model/vocab/a", 0, "there twice");
  refused("/normalizer", {{"type", "NFC"}}, "NFC");
  refused("/normalizer", nullptr, "U+2581");
  refused("/normalizer/normalizers/0/prepend", "_", "Prepend");
  refused("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"split", false}}, "Metaspace");
  refused("/pre_tokenizer", {{"type", "ByteLevel"}}, "ByteLevel");
  refused("/added_tokens/-", {{"id", 261}, {"content", "\u2581\u2581"}, {"normalized", false}, {"special", true}}, "with merges", meta);
  refused("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", "e"}}}, {"behavior", "MergedWithPrevious"}}, "Split");
  refused("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}}, "Split", meta);
  refused("/pre_tokenizer/split", true, "split", meta);
  refused("/pre_tokenizer/replacement", "_", "Metaspace", meta);
  refused("/pre_tokenizer/prepend_scheme", "last", "last", meta);
  refused("/decoder", {{"type", "ByteLevel"}}, "ByteLevel");
  refused("/decoder/decoders/3/start", 2, "Strip");
  refused("/decoder/decoders/1", {{"type", "Fuse"}}, "bytes");
  refused("/post_processor/special_tokens/<s>/ids/0", 300, "BOS");
  refused("/added_tokens/1/special", false, "BOS");
  refused("/added_tokens/0/id", 5, "<unk>");
  refused("/added_tokens/3/single_word", true, "single_word");
  refused("/added_tokens/3/special", "yes", "special: is neither true nor false");
}

TEST(Untrusted, SentencePieceModelDamagedAnywhere) {
  const std::string file = read_file(kGolden + "spm/tokenizer.model");
  ASSERT_FALSE(file.empty());
  size_t read = 0;
  for (size_t n = 0; n < file.size(); ++n) read += Tokenizer::from_sentencepiece(bytes_of(file).first(n)).ok();
  EXPECT_LE(read, 2u);  // fields that need not be there come last
  uint64_t state = 7;
  for (int round = 0; round < 3000; ++round) {
    std::string other = file;
    for (int i = 0; i <= round % 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      other[(state >> 40) % other.size()] ^= static_cast<char>(1u << ((state >> 33) % 8));
    }
    const auto t = Tokenizer::from_sentencepiece(bytes_of(other));
    EXPECT_TRUE(!t.ok() || (*t)->encode("The dragon <tool> opened it.", {}).ok());
  }
}

TEST(Untrusted, SentencePieceModelsOfAnotherKindAreNamed) {
  const std::string file = read_file(kGolden + "spm/tokenizer.model");
  // A setting put behind the others: its message is merged with the one before, as protobuf has it.
  const auto with = [&](std::initializer_list<int> bytes) {
    std::string other = file;
    for (const int b : bytes) other += static_cast<char>(b);
    return Tokenizer::from_sentencepiece(bytes_of(other)).status().message();
  };
  EXPECT_EQ(with({}), "");
  EXPECT_NE(with({0x12, 2, 0x18, 1}).find("unigram"), std::string::npos);
  EXPECT_NE(with({0x12, 5, 0x18, 2, 0xC8, 2, 7}).find("bos_id 7"), std::string::npos);
  EXPECT_NE(with({0x12, 6, 0x18, 2, 0xF2, 2, 1, 'x'}).find("\"x\""), std::string::npos);
  EXPECT_NE(with({0x12, 5, 0x18, 2, 0xC0, 1, 1}).find("treat_whitespace_as_suffix"), std::string::npos);
  EXPECT_NE(with({0x1A, 2, 0x20, 1}).find("remove_extra_whitespaces"), std::string::npos);
  EXPECT_NE(with({0x1A, 4, 0x20, 0, 0x28, 0}).find("escape_whitespaces"), std::string::npos);
  EXPECT_NE(with({0x1A, 5, 0x12, 1, 'x', 0x20, 0}).find("precompiled_charsmap"), std::string::npos);
  EXPECT_NE(with({0x0A, 5, 0x0A, 1, 'q', 0x18, 5}).find("UNUSED"), std::string::npos);
  EXPECT_NE(with({0x0A, 5, 0x0A, 1, 0xFF, 0x18, 1}).find("UTF-8"), std::string::npos);
  EXPECT_NE(with({0x0A, 2, 0x18, 9}).find("type 9"), std::string::npos);
  EXPECT_NE(with({0x0B}).find("truncated"), std::string::npos);
}

TEST(HfRefusals, NotEvenJson) {
  for (const std::string text : {"", "{", "[]", "3", "{}", "{\"model\":3}", "{\"model\":{}}", "\xFF"}) {
    EXPECT_FALSE(Tokenizer::from_hf_json(text).ok()) << text;
  }
  EXPECT_FALSE(Tokenizer::from_hf_json(std::string(200000, '[')).ok());
  auto j = nlohmann::json::parse(read_file(kGolden + "gpt2/tokenizer.json"));
  auto nested = nlohmann::json{{"type", "NFC"}};
  for (int i = 0; i < 200; ++i) nested = {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({nested})}};
  j["normalizer"] = nested;
  EXPECT_FALSE(Tokenizer::from_hf_json(j.dump()).ok());
}

TEST(RegexDialect, RefusesWhatMayDiffer) {
  for (const char* pattern :
       {"",      ".",      "^a",          "a$",       "\\w",      "\\b",     "\\S*\\1",     "(?<=a)b", "(?>a)",
        "(?i)a", "[a&&b]", "[[:alpha:]]", "[^\\S]",   "\\p{Han}", "\\p{Mn}", "(?i:\\p{L})", "(?i:st)", "(?i:\xC3\x9F)",
        "(a",    "a)",     "a{2}?",       "a{99999}", "{2}",      "*",       "a**",         "[b-a]",   "[\\s-z]",
        "\\",    "[",      "[]",          "[a",       "\\p{L",    "\xFF"}) {
    EXPECT_FALSE(to_pcre2(pattern).ok()) << pattern;
  }
  for (const char* pattern : {"a|b", "[a-z]+", "\\p{^L}", "\\P{L}", "(?i:'s)", "a{2,3}", "a{2,}", "x*+", "x+?",
                              "[\\-a]", "[-a]", "[a-]", "\\.", "(?=x)x", "\xE4\xB8\x80"}) {
    auto translated = to_pcre2(pattern);
    EXPECT_TRUE(translated.ok()) << pattern << ": " << translated.status().message();
    EXPECT_TRUE(RegexSplitter::make(pattern).ok()) << pattern;
  }
}

TEST(RegexDialect, KnowsWhatCoversAllText) {
  EXPECT_TRUE(covers_all_text(kGpt2Pattern));
  EXPECT_FALSE(covers_all_text(""));
  EXPECT_FALSE(covers_all_text(R"(\p{L}+|\p{N}+|\s+)"));
  EXPECT_FALSE(covers_all_text(R"(\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+|(?:a|\s+|b))"));
  EXPECT_FALSE(covers_all_text(R"(\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+|[|\s+|])"));
  // As Phi-4 and the conversions of tiktoken's files write it.
  auto j = nlohmann::json::parse(read_file(kGolden + "llama3/tokenizer.json"));
  auto& split = j["pre_tokenizer"]["pretokenizers"][0];
  split["behavior"] = "Removed";
  split["invert"] = true;
  const auto t = Tokenizer::from_hf_json(j.dump());
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ((*t)->serialize(), load_hf("llama3")->serialize());
  auto gpt4o = nlohmann::json::parse(read_file(kGolden + "o200k/tokenizer.json"));
  gpt4o["pre_tokenizer"]["pretokenizers"][0].update({{"behavior", "Removed"}, {"invert", true}});
  EXPECT_TRUE(Tokenizer::from_hf_json(gpt4o.dump()).ok());
  split["pattern"]["Regex"] = R"(\p{L}+)";
  EXPECT_FALSE(Tokenizer::from_hf_json(j.dump()).ok());
}

TEST(RegexDialect, BlowUpIsALimitNotAHang) {
  auto splitter = RegexSplitter::make("(?:a+)+b");
  ASSERT_TRUE(splitter.ok());
  std::vector<std::string_view> pieces;
  const std::string text(60, 'a');
  const Status status = splitter->split(text + "!", &pieces);
  EXPECT_TRUE(status.ok() || status.code() == Code::limit) << status.message();
  auto empty = RegexSplitter::make("a*");
  ASSERT_TRUE(empty.ok());
  EXPECT_FALSE(empty->split("b", &pieces).ok());
}

// Each match of this takes a million steps: two thousand of them took 17 seconds, and a megabyte would take hours.
TEST(RegexDialect, ATextHasStepsInProportionToItsLength) {
  auto splitter = RegexSplitter::make("(?:a|a|a){13}b|a");
  ASSERT_TRUE(splitter.ok());
  std::vector<std::string_view> pieces;
  EXPECT_TRUE(splitter->split(std::string(10, 'a'), &pieces).ok());
  EXPECT_EQ(splitter->split(std::string(2000, 'a'), &pieces).code(), Code::limit);
}

TEST(RegexDialect, LongRunsOfSpacesAreNoBlowUp) {
  for (const char* name : {"llama3", "gpt2"}) {
    const TokenizerPtr t = std::string(name) == "gpt2" ? byte_tokenizer() : load_hf(name);
    ASSERT_TRUE(t);
    for (const size_t run : {size_t{100}, size_t{5000}, size_t{70000}, size_t{400000}})
      for (const char* end : {"a", "\n", "\r\n", "1."}) {
        std::string text;
        while (text.size() < 400000) text += std::string(run, ' ') + end;
        EXPECT_TRUE(t->encode(text, {}).ok()) << name << " runs of " << run << " before " << end;
      }
  }
}

}  // namespace
}  // namespace aerie::text::test
