// The last release is the end: what a host's hooks point at may be gone from then on.
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

// Every hook counts its calls; after `over` there must be none.
struct Hooks {
  std::atomic<bool> over{false};
  std::atomic<int> calls{0}, late{0}, live{0};
  void heard() {
    ++calls;
    if (over) ++late;
  }
  static Hooks& of(void* user) {
    static_cast<Hooks*>(user)->heard();
    return *static_cast<Hooks*>(user);
  }
  static void log(void* user, int32_t, const char*) { of(user); }
  static void* alloc(void* user, size_t bytes, size_t alignment) {
    ++of(user).live;
    return allocate(bytes, alignment);
  }
  static void release(void* user, void* memory) {
    --of(user).live;
    deallocate(memory);
  }
  static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
    of(user);
    for (int32_t i = 0; i < n; ++i) fn(context, i);
  }
};

void watch(bool own_jobs, const std::array<int, 6>& order) {
  Hooks hooks;
  aerie_runtime_options o = with_threads(2);
  o.log = Hooks::log;
  o.log_user = &hooks;
  o.alloc = Hooks::alloc;
  o.free = Hooks::release;
  o.alloc_user = &hooks;
  if (own_jobs) o.parallel_for = Hooks::run;
  o.parallel_user = &hooks;
  Host host;
  ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
  // A drafter whose own thread logs, a fork with a cycle begun, a batch with a prompt half read, kept prefixes.
  ASSERT_EQ(aerie_runtime_load_plugin(host.runtime, bad_plugin("foreign_log").c_str(), &host.err), AERIE_OK);
  aerie_drafter_options d;
  AERIE_INIT(d);
  d.plugin = "foreign_log";
  aerie_drafter_handle* foreign = nullptr;
  ASSERT_EQ(aerie_drafter_open(host.model, &d, &foreign, &host.err), AERIE_OK) << host.err.message;
  aerie_session* fork = nullptr;
  aerie_batch* batch = nullptr;
  aerie_session_release(std::exchange(host.session, nullptr));  // the head has one place
  ASSERT_EQ(aerie_session_create(host.model, nullptr, &host.session, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_add(batch, fork, &host.err), AERIE_OK);
  aerie_step_options step;
  AERIE_INIT(step);
  step.budget_us = 1;
  ASSERT_EQ(aerie_batch_step(batch, &step, nullptr, &host.err), AERIE_OK);

  const std::function<void()> releases[] = {
      [&] { aerie_runtime_release(std::exchange(host.runtime, nullptr)); },
      [&] { aerie_model_release(std::exchange(host.model, nullptr)); },
      [&] { aerie_drafter_release(std::exchange(host.drafter, nullptr)); aerie_drafter_release(foreign); },
      [&] { aerie_session_release(std::exchange(host.session, nullptr)); },
      [&] { aerie_session_release(fork); },
      [&] { aerie_batch_release(batch); }};
  for (const int i : order) releases[i]();
  hooks.over = true;
  EXPECT_EQ(hooks.live, 0) << "all memory is back when the last release returns";
  EXPECT_GT(hooks.calls, own_jobs ? 100 : 10);
  // Others go on in this process, with the same plugins.
  Host other;
  const aerie_runtime_options plain = with_threads(2);
  ASSERT_EQ(other.open(&plain, true), AERIE_OK);
  out.clear();
  ASSERT_EQ(other.text(24, &out), AERIE_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(hooks.late, 0);
}

TEST(Release, HooksAreSilentAfterTheLastOne) {
  for (const bool own_jobs : {false, true})
    for (const auto& order : {std::array{0, 1, 2, 3, 4, 5}, std::array{5, 4, 3, 2, 1, 0}, std::array{1, 4, 0, 5, 3, 2}})
      watch(own_jobs, order);
}

}  // namespace
}  // namespace aerie_capi_test
