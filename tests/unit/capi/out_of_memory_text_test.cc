// aerie/text.h when the heap runs out in it: one error, and the same call goes through once there is memory again, with the
// tokens and the text that there would have been.
#include "aerie/text.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

struct Words {
  aerie_tokenizer* tokenizer = nullptr;
  aerie_decoder* decoder = nullptr;
  std::vector<int32_t> ids;
  std::string text;
  aerie_error err;
  int32_t failures = 0;
  bool reached = false;  // the shortage

  Words() {
    AERIE_INIT(err);
    ids.resize(1000);
    text.reserve(1000);
  }
  ~Words() {
    aerie_decoder_release(decoder);
    aerie_tokenizer_release(tokenizer);
  }
  // What fails is tried once more when there is memory.
  template <class F>
  void insist(const F& call) {
    Shortage::insist(call, err, &failures);
  }
  void open(const void* blob, size_t size) {
    insist([&] { return aerie_tokenizer_create(blob, size, &tokenizer, &err); });
  }
  void encode(const std::string& utf8) {
    size_t n = 0;
    insist([&] { return aerie_tokenizer_encode(tokenizer, utf8.data(), utf8.size(), 0, ids.data(), ids.size(), &n, &err); });
    ids.resize(n);
  }
  void decode(const std::vector<int32_t>& tokens) {
    const char* piece = nullptr;
    size_t bytes = 0;
    insist([&] { return aerie_decoder_create(tokenizer, &decoder, &err); });
    for (const int32_t id : tokens) {
      insist([&] { return aerie_decoder_push(decoder, id, &piece, &bytes, &err); });
      text.append(piece, bytes);
    }
    insist([&] { return aerie_decoder_finish(decoder, &piece, &bytes, &err); });
    text.append(piece, bytes);
  }
};

class OutOfMemoryText : public testing::Test {
 protected:
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
    ASSERT_EQ(aerie_model_blob(host.model, "tokenizer", &blob, &size, &host.err), AERIE_OK);
  }
  // `use` with every length of the shortage at every allocation, or nearly; how often it failed.
  template <class F>
  int32_t everywhere(int64_t stride, F&& use) {
    int32_t failures = 0;
    for (const int64_t length : {int64_t{1}, int64_t{2}, Shortage::kForEver}) {
      bool failed = true;
      for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / stride) {
        SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
        Words words;
        use(words, at, length);
        failed = words.reached || words.failures > 0;
        failures += words.failures;
      }
    }
    return failures;
  }
  Host host;
  const void* blob = nullptr;
  size_t size = 0;
};

TEST_F(OutOfMemoryText, TokensAreTheSame) {
  const std::string text = "Nevertheless, understanding \xE6\xBC\xA2\xE5\xAD\x97 <|endoftext|> \xFF\xFE 12345\n\n\tend";
  Words whole;
  whole.open(blob, size);
  whole.encode(text);
  const int32_t failures = everywhere(16, [&](Words& w, int64_t at, int64_t length) {
    Shortage::begin(at, length);
    w.open(blob, size);
    w.encode(text);
    w.reached = Shortage::end();
    EXPECT_EQ(w.ids, whole.ids);
  });
  EXPECT_GT(failures, 50);
}

TEST_F(OutOfMemoryText, ADecoderLosesAndRepeatsNothing) {
  Words whole;
  whole.open(blob, size);
  std::vector<int32_t> tokens;  // ever longer ones: each needs more memory than those before
  for (int32_t id = 0, longest = 8; id < aerie_tokenizer_vocab_size(whole.tokenizer); ++id) {
    const char* bytes = nullptr;
    const int32_t n = aerie_tokenizer_token_bytes(whole.tokenizer, id, -1, &bytes);
    if (n > longest) tokens.push_back(id), longest = n;
  }
  ASSERT_GT(tokens.size(), 4u);
  whole.decode(tokens);
  const int32_t failures = everywhere(1000, [&](Words& w, int64_t at, int64_t length) {
    w.open(blob, size);
    Shortage::begin(at, length);
    w.decode(tokens);
    w.reached = Shortage::end();
    EXPECT_EQ(w.text, whole.text);
  });
  EXPECT_GE(failures, 3);
}

}  // namespace
}  // namespace aerie_capi_test
