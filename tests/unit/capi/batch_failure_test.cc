// What fails in one session of a batch is that session's: the others have their tokens in the same step.
#include <stdexcept>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

TEST(BatchFailure, AHookThatThrowsFailsItsOwnSessionAlone) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  const Settings plain(nullptr, AERIE_TREE_CHAIN);
  aerie_session* sessions[3] = {};
  aerie_batch* batch = nullptr;
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
  for (aerie_session*& s : sessions) {
    ASSERT_EQ(plain.create(host.model, &s, &host.err), AERIE_OK);
    ASSERT_EQ(aerie_session_append(s, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
    ASSERT_EQ(aerie_batch_add(batch, s, &host.err), AERIE_OK);
  }
  int left = 4;  // words until the one in the middle throws
  aerie_token_source words;
  AERIE_INIT(words);
  words.user = &left;
  words.bytes = [](void* user, int32_t, int32_t, const char** bytes) -> int32_t {
    if (--*static_cast<int*>(user) == 0) throw std::runtime_error("no words");
    *bytes = "a";
    return 1;
  };
  const char* const stop[] = {"b"};
  ASSERT_EQ(aerie_session_set_stop_strings(sessions[1], stop, 1, &words, &host.err), AERIE_OK);

  int failures = 0;
  std::vector<int32_t> said[3];
  for (int step = 0; step < 12; ++step) {
    aerie_batch_result all;
    AERIE_INIT(all);
    ASSERT_EQ(aerie_batch_step(batch, nullptr, &all, &host.err), AERIE_OK) << host.err.message;
    for (int i = 0; i < 3; ++i) {
      aerie_step_result r;
      AERIE_INIT(r);
      const int32_t code = aerie_session_result(sessions[i], &r, &host.err);
      if (i == 1 && code != AERIE_OK) {
        ++failures;
        EXPECT_EQ(code, AERIE_E_INTERNAL);
        EXPECT_EQ(all.n_failed, 1);
        EXPECT_EQ(all.n_tokens, 2);
        continue;
      }
      EXPECT_EQ(code, AERIE_OK) << "session " << i << ", step " << step << ": " << host.err.message;
      for (int32_t k = 0; k < r.n_tokens; ++k) said[i].push_back(r.tokens[k].id);
    }
  }
  EXPECT_EQ(failures, 1);
  for (const std::vector<int32_t>& text : said) {
    ASSERT_GT(text.size(), 8u);
    EXPECT_EQ(text, std::vector<int32_t>(plain_text().begin(), plain_text().begin() + static_cast<int64_t>(text.size())));
  }
  for (aerie_session* s : sessions) aerie_session_release(s);
  aerie_batch_release(batch);
}

}  // namespace
}  // namespace aerie_capi_test
