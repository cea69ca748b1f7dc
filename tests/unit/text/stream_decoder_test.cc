#include "unit/text/text_fixtures.h"

namespace aerie::text::test {
namespace {

constexpr std::string_view kBad = "\xEF\xBF\xBD";  // U+FFFD

struct Case {
  std::string_view in, out;
};

TEST(StreamDecoder, InvalidBytesBecomeReplacements) {
  // One replacement for each maximal subpart, as browsers, Python and Rust do it.
  const Case cases[] = {
      {"\xC0\xAF", "??"},            // overlong
      {"\xE0\x80\x80", "???"},       // overlong
      {"\xF0\x80\x80\x80", "????"},  // overlong
      {"\xED\xA0\x80", "???"},       // surrogate
      {"\xF4\x90\x80\x80", "????"},  // past U+10FFFF
      {"\xF5", "?"},
      {"\xFF", "?"},
      {"\x80", "?"},
      {"\xE2\x82", "?"},    // truncated at the end
      {"\xE2\x82z", "?z"},  // truncated by a letter
      {"\xF0\x9F\x98", "?"},
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", "?\xF0\x9F\x98\x80"},
      {"\xC3\xC3\xA9", "?\xC3\xA9"},
      {"a\xE2\x82\xACz", "a\xE2\x82\xACz"},
  };
  for (const Case& c : cases) {
    Ids ids;
    for (const char byte : c.in) ids.push_back(static_cast<uint8_t>(byte));
    std::string want;
    for (const char x : c.out) want += x == '?' ? std::string(kBad) : std::string(1, x);
    EXPECT_EQ(stream(byte_tokenizer(), ids), want);
  }
}

TEST(StreamDecoder, NeverEmitsPartOfACharacter) {
  StreamDecoder decoder(byte_tokenizer());
  const std::string family = "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";
  std::vector<std::string> steps;
  for (const char byte : family) {
    std::string out;
    decoder.push(static_cast<uint8_t>(byte), &out);
    steps.push_back(out);
  }
  const std::vector<std::string> want = {"", "", "", "\xF0\x9F\x91\xA9", "", "", "\xE2\x80\x8D",
                                         "", "", "", "\xF0\x9F\x91\xA7"};
  EXPECT_EQ(steps, want);
}

TEST(StreamDecoder, CertainlyInvalidIsNotHeldBack) {
  StreamDecoder decoder(byte_tokenizer());
  std::string out;
  decoder.push(0xED, &out);
  EXPECT_EQ(out, "");
  decoder.push(0xA0, &out);  // a surrogate: neither byte can become a character
  EXPECT_EQ(out, std::string(kBad) + std::string(kBad));
}

TEST(StreamDecoder, FinishAndReset) {
  StreamDecoder decoder(byte_tokenizer());
  std::string out;
  decoder.push(0xF0, &out);
  decoder.push(0x9F, &out);
  decoder.finish(&out);
  EXPECT_EQ(out, kBad);
  decoder.finish(&out);
  EXPECT_EQ(out, kBad);
  decoder.push(0xF0, &out);
  decoder.reset();
  decoder.push('x', &out);
  EXPECT_EQ(out, std::string(kBad) + "x");
  decoder.push(-5, &out);
  decoder.push(1 << 30, &out);
  EXPECT_EQ(out, std::string(kBad) + "x");
}

TEST(StreamDecoder, ResetTellsTheTokenBefore) {
  const TokenizerPtr t = load_stories();
  if (t == nullptr) GTEST_SKIP() << "no ../shared/models";
  const int32_t the = encode(*t, "The")[1];
  StreamDecoder decoder(t);
  std::string out;
  decoder.reset(1);
  decoder.push(the, &out);
  const std::string bare = out;
  decoder.push(the, &out);
  EXPECT_EQ(out, bare + " " + bare);
}

TEST(StreamDecoder, FuzzStreamEqualsWhole) {
  uint64_t state = 7;
  const auto random = [&](uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33) % n;
  };
  const std::string parts[] = {"a",    "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xE2\x82", "\xF0\x9F",
                               "\xFF", "\xA0",     "\xED"};
  const TokenizerPtr bytes = byte_tokenizer(), words = load_hf("llama3");
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (uint32_t i = random(12); i > 0; --i) text += parts[random(9)];
    Ids ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    // The same bytes cut into other tokens, and pushed in one go (a held byte never shows).
    const std::string streamed = stream(bytes, ids);
    EXPECT_EQ(stream(words, encode(*words, text)), streamed);
    StreamDecoder decoder(bytes);
    std::string shown;
    for (const int32_t id : ids) {
      std::string step;
      decoder.push(id, &step);
      EXPECT_NO_THROW((void)nlohmann::json(step).dump());  // dump throws on invalid UTF-8
      shown += step;
    }
    decoder.finish(&shown);
    EXPECT_EQ(shown, streamed);
    // The whole decoded at once: nlohmann replaces invalid bytes the same way.
    const std::string whole =
        nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
            .get<std::string>();
    EXPECT_EQ(streamed, whole);
  }
}

}  // namespace
}  // namespace aerie::text::test
