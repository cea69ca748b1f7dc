// A call that fails leaves what its host passed for results as it was, says why, and gives the same code to a host that does
// not ask why. A call that succeeds leaves the error alone.
#include <cstring>
#include <functional>

#include "aerie/profile.h"
#include "aerie/text.h"
#include "aerie/tools.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

// f(out, err) fails with `code`; a result struct states its size.
template <class T>
void fails(const char* what, int32_t code, const std::function<int32_t(T*, aerie_error*)>& f) {
  SCOPED_TRACE(what);
  T out;
  std::memset(static_cast<void*>(&out), 0xAB, sizeof out);
  if constexpr (requires { out.struct_size; }) out.struct_size = sizeof out;
  const T before = out;
  aerie_error err;
  AERIE_INIT(err);
  EXPECT_EQ(f(&out, &err), code) << err.message;
  EXPECT_EQ(err.code, code);
  EXPECT_NE(err.message[0], '\0');
  EXPECT_EQ(f(&out, nullptr), code);
  EXPECT_EQ(std::memcmp(&out, &before, sizeof out), 0) << "written on failure";
}

struct Outputs : testing::Test {
  Host host;
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  }
};

TEST_F(Outputs, OfARuntimeAndAModelAreUntouched) {
  fails<aerie_runtime*>("threads", AERIE_E_INVALID_ARGUMENT, [](aerie_runtime** out, aerie_error* e) {
    const aerie_runtime_options o = with_threads(-1);
    return aerie_runtime_create(&o, out, e);
  });
  fails<aerie_runtime*>("device", AERIE_E_UNSUPPORTED, [](aerie_runtime** out, aerie_error* e) {
    aerie_runtime_options o = with_threads(1);
    o.device = "abacus";
    return aerie_runtime_create(&o, out, e);
  });
  fails<aerie_runtime*>("an instruction set", AERIE_E_UNSUPPORTED, [](aerie_runtime** out, aerie_error* e) {
    aerie_runtime_options o = with_threads(1);
    o.device = "cpu:AVX9";
    return aerie_runtime_create(&o, out, e);
  });
  fails<aerie_plugin_info>("past the last plugin", AERIE_E_NOT_FOUND,
                           [&](aerie_plugin_info* out, aerie_error* e) { return aerie_runtime_plugin_info(host.runtime, 1000, out, e); });
  fails<aerie_model*>("no file", AERIE_E_NOT_FOUND,
                      [&](aerie_model** out, aerie_error* e) { return aerie_model_open(host.runtime, "/no/such.aerie", nullptr, out, e); });
  fails<aerie_model*>("a drafter's package", AERIE_E_MISMATCH,
                      [&](aerie_model** out, aerie_error* e) { return aerie_model_open(host.runtime, demo_head(), nullptr, out, e); });
  fails<aerie_model*>("cancelled", AERIE_E_CANCELLED, [&](aerie_model** out, aerie_error* e) {
    aerie_model_options o;
    AERIE_INIT(o);
    o.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 0; };
    return aerie_model_open(host.runtime, demo_model(), &o, out, e);
  });
  fails<aerie_model_info>("no model", AERIE_E_INVALID_ARGUMENT,
                          [](aerie_model_info* out, aerie_error* e) { return aerie_model_info_get(nullptr, out, e); });
  struct Blob {
    const void* data;
    size_t size;
  };
  fails<Blob>("no name", AERIE_E_INVALID_ARGUMENT,
              [&](Blob* out, aerie_error* e) { return aerie_model_blob(host.model, nullptr, &out->data, &out->size, e); });
  const auto open_drafter = [&](const char* package, const char* plugin) {
    return [this, package, plugin](aerie_drafter_handle** out, aerie_error* e) {
      aerie_drafter_options o;
      AERIE_INIT(o);
      o.package = package;
      o.plugin = plugin;
      return aerie_drafter_open(host.model, &o, out, e);
    };
  };
  fails<aerie_drafter_handle*>("neither package nor plugin", AERIE_E_INVALID_ARGUMENT, open_drafter(nullptr, nullptr));
  fails<aerie_drafter_handle*>("no such plugin", AERIE_E_NOT_FOUND, open_drafter(nullptr, "nobody"));
  fails<aerie_drafter_handle*>("no such file", AERIE_E_NOT_FOUND, open_drafter("/no/such.aerie", nullptr));
  fails<aerie_drafter_handle*>("another plugin's package", AERIE_E_MISMATCH, open_drafter(demo_head(), "medusa"));
}

TEST_F(Outputs, OfASessionAndABatchAreUntouched) {
  fails<aerie_session*>("options", AERIE_E_INVALID_ARGUMENT, [&](aerie_session** out, aerie_error* e) {
    aerie_session_options o;
    AERIE_INIT(o);
    o.draft_noise = 7;
    return aerie_session_create(host.model, &o, out, e);
  });
  fails<aerie_session*>("the drafter is taken", AERIE_E_LIMIT,
                        [&](aerie_session** out, aerie_error* e) { return Settings(host.drafter).create(host.model, out, e); });
  fails<aerie_session*>("a fork of it too", AERIE_E_LIMIT,
                        [&](aerie_session** out, aerie_error* e) { return aerie_session_fork(host.session, nullptr, out, e); });
  fails<aerie_step_result>("no prompt", AERIE_E_INVALID_ARGUMENT,
                           [&](aerie_step_result* out, aerie_error* e) { return aerie_session_step(host.session, nullptr, out, e); });
  fails<aerie_step_result>("the same asked for again", AERIE_E_INVALID_ARGUMENT,
                           [&](aerie_step_result* out, aerie_error* e) { return aerie_session_result(host.session, out, e); });
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  fails<aerie_step_result>("cancelled", AERIE_E_CANCELLED, [&](aerie_step_result* out, aerie_error* e) {
    aerie_session_cancel(host.session);
    return aerie_session_step(host.session, nullptr, out, e);
  });
  struct Tokens {
    const int32_t* data;
    size_t size;
  };
  fails<Tokens>("no session", AERIE_E_INVALID_ARGUMENT,
                [](Tokens* out, aerie_error* e) { return aerie_session_tokens(nullptr, &out->data, &out->size, e); });
  fails<aerie_statistics>("no session", AERIE_E_INVALID_ARGUMENT,
                          [](aerie_statistics* out, aerie_error* e) { return aerie_session_statistics(nullptr, out, e); });
  fails<aerie_batch*>("no model", AERIE_E_INVALID_ARGUMENT,
                      [](aerie_batch** out, aerie_error* e) { return aerie_batch_create(nullptr, nullptr, out, e); });
  aerie_batch* batch = nullptr;
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
  EXPECT_EQ(aerie_batch_add(batch, host.session, &host.err), AERIE_OK);
  fails<aerie_batch_result>("cancelled", AERIE_E_CANCELLED, [&](aerie_batch_result* out, aerie_error* e) {
    aerie_batch_cancel(batch);
    return aerie_batch_step(batch, nullptr, out, e);
  });
  aerie_batch_release(batch);
  std::vector<int32_t> out;
  ASSERT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text()) << "and none of it did the text any harm";
}

TEST_F(Outputs, OfTextToolsAndProfilesAreUntouched) {
  fails<aerie_tokenizer*>("junk", AERIE_E_BAD_FORMAT,
                          [](aerie_tokenizer** out, aerie_error* e) { return aerie_tokenizer_create("no tokenizer", 12, out, e); });
  fails<aerie_tokenizer*>("nothing", AERIE_E_NOT_FOUND,
                          [](aerie_tokenizer** out, aerie_error* e) { return aerie_tokenizer_create("", 0, out, e); });
  fails<aerie_token_source>("no tokenizer", AERIE_E_INVALID_ARGUMENT,
                            [](aerie_token_source* out, aerie_error* e) { return aerie_tokenizer_source(nullptr, out, e); });
  fails<aerie_decoder*>("no tokenizer", AERIE_E_INVALID_ARGUMENT,
                        [](aerie_decoder** out, aerie_error* e) { return aerie_decoder_create(nullptr, out, e); });
  fails<char*>("no file", AERIE_E_NOT_FOUND,
               [](char** out, aerie_error* e) { return aerie_inspect("/no/such.aerie", AERIE_INSPECT_TEXT, out, e); });
  fails<aerie_profile*>("not a profile", AERIE_E_BAD_FORMAT,
                        [](aerie_profile** out, aerie_error* e) { return aerie_profile_load(demo_model(), out, e); });
  aerie_profile* profile = nullptr;
  ASSERT_EQ(aerie_profile_create(&profile, &host.err), AERIE_OK);
  fails<double>("an empty profile", AERIE_E_INVALID_ARGUMENT,
                [&](double* out, aerie_error* e) { return aerie_profile_target_ms(profile, 1, 1, 1, out, e); });
  fails<const char*>("an empty profile", AERIE_E_INVALID_ARGUMENT,
                     [&](const char** out, aerie_error* e) { return aerie_profile_json(profile, out, nullptr, e); });
  aerie_profile_release(profile);
}

TEST_F(Outputs, OfASuccessHoldNoError) {
  aerie_error err;
  AERIE_INIT(err);
  err.code = 77;
  std::strcpy(err.message, "of before");
  aerie_session* session = nullptr;
  aerie_model_info info;
  AERIE_INIT(info);
  EXPECT_EQ(aerie_session_create(host.model, nullptr, &session, &err), AERIE_OK);
  EXPECT_EQ(aerie_session_append(session, kPrompt.data(), kPrompt.size(), &err), AERIE_OK);
  EXPECT_EQ(aerie_model_info_get(host.model, &info, &err), AERIE_OK);
  aerie_session_release(session);
  EXPECT_EQ(err.code, 77);
  EXPECT_STREQ(err.message, "of before");
}

// "Every *_release accepts NULL", and so do cancels.
TEST(Releases, TakeNothing) {
  aerie_runtime_release(nullptr);
  aerie_model_retain(nullptr);
  aerie_model_release(nullptr);
  aerie_drafter_release(nullptr);
  aerie_session_release(nullptr);
  aerie_session_cancel(nullptr);
  aerie_session_clear_cancel(nullptr);
  aerie_batch_release(nullptr);
  aerie_batch_cancel(nullptr);
  aerie_batch_clear_cancel(nullptr);
  aerie_profile_release(nullptr);
  aerie_profile_cancel(nullptr);
  aerie_profile_clear_cancel(nullptr);
  aerie_tokenizer_release(nullptr);
  aerie_decoder_release(nullptr);
  aerie_string_free(nullptr);
}

}  // namespace
}  // namespace aerie_capi_test
