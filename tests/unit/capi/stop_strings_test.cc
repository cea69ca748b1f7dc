// Where a session has its tokens' bytes from, and for how long it holds that.
#include <cstring>
#include <stdexcept>

#include "aerie/text.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct StopStrings : testing::Test {
  Host host;
  Numbers numbers;
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  }
  int32_t set(const std::string& stop, const aerie_token_source& source) {
    const char* const list[] = {stop.c_str()};
    return aerie_session_set_stop_strings(host.session, list, 1, &source, &host.err);
  }
  // The plain text's words up to its n-th.
  std::string said(size_t n) const {
    std::string all;
    for (size_t i = 0; i < n; ++i) all += numbers.words[static_cast<size_t>(plain_text()[i])];
    return all;
  }
};

TEST_F(StopStrings, OfAHostsOwnTokenizerEndTheTextAndHoldItUntilTheLastForkIsGone) {
  const std::string stop = said(12).substr(said(10).size());  // the 11th and 12th token
  ASSERT_EQ(set(stop, numbers.source()), AERIE_OK) << host.err.message;
  EXPECT_EQ(numbers.held, 1);
  aerie_session* fork = nullptr;
  ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_OK);
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_LE(out.size(), 12u) << "the text ends there, or where the same words came first";
  EXPECT_EQ(out, std::vector<int32_t>(plain_text().begin(), plain_text().begin() + static_cast<std::ptrdiff_t>(out.size())));
  host.close();
  EXPECT_EQ(numbers.released, 0) << "the fork reads with it";
  aerie_session_release(fork);
  EXPECT_EQ(numbers.held, 1);
  EXPECT_EQ(numbers.released, 1);
}

// A text that ended at one goes on, as one that ended at a stop token does: it ends at the next.
TEST_F(StopStrings, ThatCameOnceDoNotEndTheTextAgain) {
  const std::string stop = said(4).substr(said(3).size());  // the 4th token, with its comma
  ASSERT_EQ(set("," + stop, numbers.source()), AERIE_OK) << host.err.message;
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  ASSERT_EQ(out.size(), 4u);
  const auto go_on = [&] {
    const int32_t* tokens = nullptr;
    size_t n = 0;
    EXPECT_EQ(aerie_session_tokens(host.session, &tokens, &n, &host.err), AERIE_OK);
    EXPECT_EQ(aerie_session_rewind(host.session, n, &host.err), AERIE_OK);
    EXPECT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
  };
  go_on();
  EXPECT_GT(out.size(), 5u);
  // Nor does one that lies wholly in what came before it was set.
  out.clear();
  ASSERT_EQ(aerie_session_set_stop_strings(host.session, nullptr, 0, nullptr, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
  ASSERT_EQ(host.text(8, &out), AERIE_OK) << host.err.message;
  ASSERT_EQ(set(said(6).substr(said(4).size()), numbers.source()), AERIE_OK) << host.err.message;
  go_on();
  EXPECT_EQ(out, plain_text());
}

// It must not; but what the step had not committed is all that goes.
TEST_F(StopStrings, OfASourceThatThrowsFailTheStepAndTheTextGoesOn) {
  static int left;
  aerie_token_source source = numbers.source();
  source.bytes = [](void* user, int32_t token, int32_t, const char** bytes) -> int32_t {
    if (--left == 0) throw std::runtime_error("no words");
    const std::string& word = static_cast<Numbers*>(user)->words[static_cast<size_t>(token)];
    *bytes = word.data();
    return static_cast<int32_t>(word.size());
  };
  ASSERT_EQ(set(said(24).substr(said(4).size()), source), AERIE_OK) << host.err.message;
  for (const bool in_batch : {false, true}) {
    left = 6;
    std::vector<int32_t> out;
    ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
    ASSERT_EQ(host.text(2, &out), AERIE_OK) << host.err.message;
    aerie_batch* batch = nullptr;
    int32_t code = AERIE_OK;
    aerie_step_result r;
    AERIE_INIT(r);
    if (in_batch) {
      ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
      ASSERT_EQ(aerie_batch_add(batch, host.session, &host.err), AERIE_OK);
    }
    while (code == AERIE_OK) {
      if (in_batch) {
        ASSERT_EQ(aerie_batch_step(batch, nullptr, nullptr, &host.err), AERIE_OK);
      }
      code = in_batch ? aerie_session_result(host.session, &r, &host.err) : aerie_session_step(host.session, nullptr, &r, &host.err);
      for (int32_t i = 0; code == AERIE_OK && i < r.n_tokens; ++i) out.push_back(r.tokens[i].id);
      ASSERT_LT(out.size(), 10u);
    }
    EXPECT_EQ(code, AERIE_E_INTERNAL);
    EXPECT_STREQ(host.err.message, "step: a hook threw: no words");
    aerie_batch_release(batch);
    ASSERT_EQ(host.more(100, &out), AERIE_OK) << host.err.message;
    EXPECT_EQ(out, plain_text()) << "it ends where the stop string does";
  }
}

TEST_F(StopStrings, ReplacedOrClearedLetTheOldSourceGo) {
  Numbers second;
  ASSERT_EQ(set("never", numbers.source()), AERIE_OK);
  ASSERT_EQ(set("never", second.source()), AERIE_OK);
  EXPECT_EQ(numbers.released, 1);
  EXPECT_EQ(second.released, 0);
  ASSERT_EQ(aerie_session_set_stop_strings(host.session, nullptr, 0, nullptr, &host.err), AERIE_OK);
  EXPECT_EQ(second.held, 1);
  EXPECT_EQ(second.released, 1);
}

TEST_F(StopStrings, ThatAreRefusedHoldNothing) {
  aerie_token_source s = numbers.source();
  s.bytes = nullptr;
  EXPECT_EQ(set("x", s), AERIE_E_INVALID_ARGUMENT);
  s = numbers.source();
  s.release = nullptr;
  EXPECT_EQ(set("x", s), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(set("", numbers.source()), AERIE_E_INVALID_ARGUMENT);
  s = numbers.source();
  s.struct_size = 0;
  EXPECT_EQ(set("x", s), AERIE_E_INVALID_ARGUMENT);
  const char* const list[] = {"x"};
  EXPECT_EQ(aerie_session_set_stop_strings(host.session, list, 1, nullptr, &host.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(numbers.held, 0);
  s = numbers.source();
  s.hold = s.release = nullptr;  // the host keeps it alive
  EXPECT_EQ(set("never", s), AERIE_OK);
  EXPECT_EQ(numbers.held + numbers.released, 0);
}

TEST_F(StopStrings, HoldAPackagesTokenizer) {
  const void* blob = nullptr;
  size_t size = 0;
  aerie_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(aerie_model_blob(host.model, "tokenizer", &blob, &size, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_tokenizer_create(blob, size, &tokenizer, &host.err), AERIE_OK) << host.err.message;
  const int32_t last = plain_text()[9];
  const char* bytes = nullptr;
  const int32_t n = aerie_tokenizer_token_bytes(tokenizer, last, plain_text()[8], &bytes);
  ASSERT_GT(n, 0);
  const std::string stop(bytes, static_cast<size_t>(n));
  aerie_token_source source;
  AERIE_INIT(source);
  EXPECT_EQ(aerie_tokenizer_source(nullptr, &source, &host.err), AERIE_E_INVALID_ARGUMENT);
  ASSERT_EQ(aerie_tokenizer_source(tokenizer, &source, &host.err), AERIE_OK);
  ASSERT_EQ(set(stop, source), AERIE_OK) << host.err.message;
  aerie_tokenizer_release(tokenizer);  // the session has it
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_LE(out.size(), 10u);
  aerie_step_result r;
  AERIE_INIT(r);
  ASSERT_EQ(aerie_session_result(host.session, &r, &host.err), AERIE_OK);
  EXPECT_EQ(r.finish, AERIE_FINISH_STOP_STRING);
}

}  // namespace
}  // namespace aerie_capi_test
