// Eight sessions of one model on threads of their own: shared drafter handles, a batch that two threads step, a thread
// that cancels, one that saves what others step, one that restores itself. Every text is plain decode's; ThreadSanitizer looks on
// (tests/full.sh tsan).
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

constexpr size_t kTokens = 24;

// Calls that may come when the session is another thread's for a moment, or cancelled: tried again.
bool again(int32_t code) {
  if (code == AERIE_E_BUSY) std::this_thread::yield();
  return code == AERIE_E_BUSY || code == AERIE_E_CANCELLED;
}

struct EightSessions : testing::Test {
  aerie_runtime* runtime = nullptr;
  aerie_model* model = nullptr;
  aerie_drafter_handle *eagle = nullptr, *ngram = nullptr;
  std::array<aerie_session*, 8> sessions{};
  aerie_batch* batch = nullptr;
  std::atomic<bool> stop{false};

  void SetUp() override {
    aerie_error err;
    AERIE_INIT(err);
    const aerie_runtime_options o = with_threads(2);
    ASSERT_EQ(aerie_runtime_create(&o, &runtime, &err), AERIE_OK) << err.message;
    ASSERT_EQ(aerie_runtime_load_plugin_directory(runtime, plugin_directory(), &err), AERIE_OK) << err.message;
    ASSERT_EQ(aerie_model_open(runtime, demo_model(), nullptr, &model, &err), AERIE_OK) << err.message;
    aerie_drafter_options d;
    AERIE_INIT(d);
    d.package = demo_head();
    ASSERT_EQ(aerie_drafter_open(model, &d, &eagle, &err), AERIE_OK) << err.message;
    d.package = nullptr;
    d.plugin = "ngram";
    ASSERT_EQ(aerie_drafter_open(model, &d, &ngram, &err), AERIE_OK) << err.message;
    ASSERT_EQ(aerie_batch_create(model, nullptr, &batch, &err), AERIE_OK) << err.message;
  }
  void TearDown() override {
    for (aerie_session* s : sessions) aerie_session_release(s);
    aerie_batch_release(batch);
    aerie_drafter_release(eagle);
    aerie_drafter_release(ngram);
    aerie_model_release(model);
    aerie_runtime_release(runtime);
  }

  static size_t length(aerie_session* s) {
    const int32_t* tokens = nullptr;
    size_t n = 0;
    return aerie_session_tokens(s, &tokens, &n, nullptr) == AERIE_OK ? n - kPrompt.size() : 0;
  }
  static int32_t step_alone(aerie_session* s, int64_t budget_us) {
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = 3;
    o.budget_us = budget_us;
    aerie_step_result r;
    AERIE_INIT(r);
    return aerie_session_step(s, &o, &r, nullptr);
  }
  // `step` until the text has its tokens. Returns the first code that is no reason to try again.
  int32_t run(size_t i, const std::function<int32_t(aerie_session*)>& step) {
    while (length(sessions[i]) < kTokens)
      if (const int32_t code = step(sessions[i]); code != AERIE_OK && !again(code)) return code;
    return AERIE_OK;
  }
  // The session is saved after every step, and what was saved takes its place.
  int32_t run_restored(size_t i, const aerie_session_options& o) {
    return run(i, [&](aerie_session* s) -> int32_t {
      if (const int32_t code = step_alone(s, 0)) return code;  // a whole cycle: a save discards what is unfinished
      size_t size = 0;
      if (const int32_t code = aerie_session_save(s, nullptr, 0, &size, nullptr)) return code;
      std::vector<uint8_t> bytes(size);
      if (const int32_t code = aerie_session_save(s, bytes.data(), size, &size, nullptr)) return code;
      aerie_session* next = nullptr;
      if (const int32_t code = aerie_session_restore(model, &o, bytes.data(), size, &next, nullptr)) return code;
      aerie_session_release(s);
      sessions[i] = next;
      return AERIE_OK;
    });
  }
};

TEST_F(EightSessions, KeepTheirTexts) {
  const std::array<Settings, 8> o = {
      Settings(nullptr, AERIE_TREE_DEFAULT), Settings(eagle, AERIE_TREE_EAGLE2), Settings(eagle, AERIE_TREE_CHAIN),
      Settings(ngram, AERIE_TREE_AUTO),      Settings(eagle, AERIE_TREE_AUTO),   Settings(nullptr, AERIE_TREE_DEFAULT),
      Settings(eagle, AERIE_TREE_CAST),      Settings(ngram, AERIE_TREE_EAGLE2)};
  ASSERT_EQ(plain_text().size(), kTokens);
  for (size_t i = 0; i < 8; ++i) {
    aerie_session* s = nullptr;
    ASSERT_EQ(o[i].create(model, &s, nullptr), AERIE_OK);
    ASSERT_EQ(aerie_session_append(s, kPrompt.data(), kPrompt.size(), nullptr), AERIE_OK);
    sessions[i] = s;
    if (i < 6) continue;
    ASSERT_EQ(aerie_batch_add(batch, s, nullptr), AERIE_OK);
  }
  std::array<int32_t, 8> codes{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 5; ++i)
    threads.emplace_back([&, i] {
      codes[i] = run(i, [i](aerie_session* s) { return step_alone(s, i % 2 ? 200 : 0); });
    });
  threads.emplace_back([&] { codes[5] = run_restored(5, o[5].options); });
  for (size_t i = 6; i < 8; ++i)
    threads.emplace_back([&, i] {
      codes[i] = run(i, [&](aerie_session*) { return aerie_batch_step(batch, nullptr, nullptr, nullptr); });
    });
  std::thread canceller([&] {
    for (size_t i = 0; i < 500 && !stop; ++i) {
      if (i % 9 == 8) aerie_batch_cancel(batch);
      else if (i % 9 != 5) aerie_session_cancel(sessions[i % 9]);  // 5 is replaced all the time
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  std::thread saver([&] {  // of texts that other threads are stepping
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < 24 && !stop; ++i) {  // each save sets a cycle back: not for ever
      aerie_session* s = sessions[i % 2 ? 6 : 1];
      size_t size = 0;
      if (aerie_session_save(s, nullptr, 0, &size, nullptr) == AERIE_OK) {
        bytes.resize(size + 4096);
        (void)aerie_session_save(s, bytes.data(), bytes.size(), &size, nullptr);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  canceller.join();
  saver.join();
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(codes[i], AERIE_OK) << i;
    const int32_t* tokens = nullptr;
    size_t n = 0;
    ASSERT_EQ(aerie_session_tokens(sessions[i], &tokens, &n, nullptr), AERIE_OK);
    ASSERT_GE(n, kPrompt.size() + kTokens);
    const std::vector<int32_t> got(tokens + kPrompt.size(), tokens + kPrompt.size() + kTokens);
    EXPECT_EQ(got, plain_text()) << "session " << i;
  }
}

}  // namespace
}  // namespace aerie_capi_test
