// What the library says of itself and of a model, and the edges of a text.
#include <cstring>
#include <set>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

TEST(Information, TheVersionIsTheHeaders) {
  EXPECT_EQ(aerie_version(), AERIE_VERSION_MAJOR << 16 | AERIE_VERSION_MINOR << 8 | AERIE_VERSION_PATCH);
}

TEST(Information, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int32_t code = AERIE_OK; code <= AERIE_E_INTERNAL; ++code) {
    ASSERT_NE(aerie_code_name(code), nullptr) << code;
    EXPECT_TRUE(names.insert(aerie_code_name(code)).second) << code << ": " << aerie_code_name(code);
  }
  for (const int32_t code : {-1, AERIE_E_INTERNAL + 1, INT32_MAX, INT32_MIN}) {
    ASSERT_NE(aerie_code_name(code), nullptr) << code;
    EXPECT_EQ(names.count(aerie_code_name(code)), 0u) << code << " is no code of ours";
  }
}

TEST(Information, OfAModelItsShapeAndItsStrings) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  aerie_model_info info;
  AERIE_INIT(info);
  ASSERT_EQ(aerie_model_info_get(host.model, &info, &host.err), AERIE_OK);
  EXPECT_GT(std::strlen(info.name), 0u);
  EXPECT_GT(std::strlen(info.fingerprint), 0u);
  EXPECT_EQ(std::strspn(info.fingerprint, "0123456789abcdef"), std::strlen(info.fingerprint));
  EXPECT_EQ(info.heads % info.kv_heads, 0);
  EXPECT_EQ(info.kv_bytes_per_token, uint64_t{2} * 4 * static_cast<uint64_t>(info.layers * info.kv_heads * info.head_dim));
  ASSERT_GT(info.n_eos, 0);
  for (int32_t i = 0; i < info.n_eos; ++i) {
    EXPECT_GE(info.eos_ids[i], 0);
    EXPECT_LT(info.eos_ids[i], info.vocab_size);
  }
}

TEST(Information, ALoadIsFollowedToItsEnd) {
  struct Progress {
    uint64_t calls = 0, done = 0, total = 0;
    static int32_t tell(void* user, uint64_t done, uint64_t total) {
      auto& p = *static_cast<Progress*>(user);
      EXPECT_GE(done, p.done);
      EXPECT_LE(done, total);
      EXPECT_TRUE(p.calls++ == 0 || total == p.total);
      p.done = done;
      p.total = total;
      return 1;
    }
  } progress;
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK);
  aerie_model_options m;
  AERIE_INIT(m);
  m.progress = Progress::tell;
  m.progress_user = &progress;
  ASSERT_EQ(aerie_model_open(host.runtime, demo_model(), &m, &host.model, &host.err), AERIE_OK) << host.err.message;
  EXPECT_GT(progress.calls, 0u);
  EXPECT_GT(progress.total, 0u);
  EXPECT_EQ(progress.done, progress.total);
}

TEST(Text, WhatGoesPastTheContextIsNotAppended) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  aerie_session_release(host.session);
  host.session = nullptr;
  Settings settings;
  settings.options.max_context = 40;
  ASSERT_EQ(settings.create(host.model, &host.session, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  const std::vector<int32_t> more(31, 300);
  EXPECT_EQ(aerie_session_append(host.session, more.data(), more.size(), &host.err), AERIE_E_LIMIT);
  const int32_t* tokens = nullptr;
  size_t n = 0;
  ASSERT_EQ(aerie_session_tokens(host.session, &tokens, &n, &host.err), AERIE_OK);
  EXPECT_EQ(n, kPrompt.size());
  // The text is what it would have been, to the end of the context, which says so.
  std::vector<int32_t> out;
  ASSERT_EQ(host.more(24, &out), AERIE_OK);
  EXPECT_EQ(out, plain_text());
  ASSERT_EQ(host.more(1000, &out), AERIE_OK);
  EXPECT_EQ(out.size(), 40 - kPrompt.size());
  aerie_step_result r;
  AERIE_INIT(r);
  ASSERT_EQ(aerie_session_result(host.session, &r, &host.err), AERIE_OK);
  EXPECT_EQ(r.state, AERIE_STEP_DONE);
  EXPECT_EQ(r.finish, AERIE_FINISH_CONTEXT);
}

}  // namespace
}  // namespace aerie_capi_test
