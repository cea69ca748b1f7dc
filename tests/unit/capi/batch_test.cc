// Batches through aerie.h: what each session says, whose it is, and threads that get in each other's way.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Member {
  aerie_session* session = nullptr;
  std::vector<int32_t> text;
};

struct BatchHost : Host {
  aerie_batch* batch = nullptr;
  std::vector<Member> members;

  ~BatchHost() {
    for (Member& m : members) aerie_session_release(m.session);
    aerie_batch_release(batch);
  }
  // Runtime, model and batch; the fixture's own session stays outside.
  int32_t start(int32_t threads, bool with_drafter) {
    const aerie_runtime_options o = with_threads(threads);
    if (const int32_t c = open(&o, with_drafter)) return c;
    return aerie_batch_create(model, nullptr, &batch, &err);
  }
  int32_t join(uint64_t seed, aerie_drafter_handle* with = nullptr) {
    const Settings s(with, AERIE_TREE_CHAIN, seed);  // `auto` drafts only where that pays
    members.emplace_back();
    Member& m = members.back();
    if (const int32_t c = s.create(model, &m.session, &err)) return c;
    if (const int32_t c = aerie_session_append(m.session, kPrompt.data(), kPrompt.size(), &err)) return c;
    return aerie_batch_add(batch, m.session, &err);
  }
  int32_t take(Member& m) {
    aerie_step_result r;
    AERIE_INIT(r);
    const int32_t c = aerie_session_result(m.session, &r, &err);
    if (c == AERIE_OK)
      for (int32_t i = 0; i < r.n_tokens; ++i) m.text.push_back(r.tokens[i].id);
    return c;
  }
  std::vector<int32_t> first(const Member& m, size_t n) const {
    return {m.text.begin(), m.text.begin() + static_cast<std::ptrdiff_t>(std::min(n, m.text.size()))};
  }
};

TEST(Batch, EachSessionSaysWhatItSaysAlone) {
  BatchHost host;
  ASSERT_EQ(host.start(2, true), AERIE_OK) << host.err.message;
  aerie_session_release(host.session);  // the drafter serves one session
  host.session = nullptr;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(host.join(5, i == 1 ? host.drafter : nullptr), AERIE_OK) << host.err.message;
  for (bool more = true; more;) {
    aerie_batch_result sum;
    AERIE_INIT(sum);
    ASSERT_EQ(aerie_batch_step(host.batch, nullptr, &sum, &host.err), AERIE_OK) << host.err.message;
    size_t before = 0, after = 0;
    for (const Member& m : host.members) before += m.text.size();
    for (Member& m : host.members) ASSERT_EQ(host.take(m), AERIE_OK) << host.err.message;
    for (const Member& m : host.members) after += m.text.size();
    EXPECT_EQ(sum.n_sessions, 3);
    EXPECT_EQ(static_cast<size_t>(sum.n_tokens), after - before);
    EXPECT_EQ(sum.n_failed + sum.n_ended, 0);
    more = false;
    for (const Member& m : host.members) more = more || m.text.size() < 24;
  }
  for (const Member& m : host.members) EXPECT_EQ(host.first(m, 24), plain_text());
  aerie_statistics s;
  AERIE_INIT(s);
  ASSERT_EQ(aerie_session_statistics(host.members[1].session, &s, &host.err), AERIE_OK);
  EXPECT_GT(s.verified, 0u) << "nothing was drafted";
}

TEST(Batch, Membership) {
  BatchHost host, stranger;
  ASSERT_EQ(host.start(1, false), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.join(5), AERIE_OK) << host.err.message;
  aerie_session* s = host.members[0].session;
  aerie_step_result r;
  AERIE_INIT(r);
  EXPECT_EQ(aerie_session_result(s, &r, &host.err), AERIE_OK);
  EXPECT_EQ(r.state, AERIE_STEP_PENDING);
  EXPECT_EQ(aerie_session_step(s, nullptr, &r, &host.err), AERIE_E_BUSY);
  EXPECT_NE(std::strstr(host.err.message, "batch"), nullptr) << host.err.message;
  EXPECT_EQ(aerie_batch_add(host.batch, s, &host.err), AERIE_E_BUSY);
  EXPECT_EQ(aerie_batch_add(host.batch, nullptr, &host.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_batch_add(nullptr, s, &host.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_batch_remove(host.batch, host.session, &host.err), AERIE_E_NOT_FOUND);
  ASSERT_EQ(stranger.start(1, false), AERIE_OK);
  EXPECT_EQ(aerie_batch_add(host.batch, stranger.session, &host.err), AERIE_E_MISMATCH);
  aerie_step_options o;
  AERIE_INIT(o);
  o.max_tokens = -1;
  EXPECT_EQ(aerie_batch_step(host.batch, &o, nullptr, &host.err), AERIE_E_INVALID_ARGUMENT);
  aerie_batch_cancel(host.batch);
  EXPECT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_E_CANCELLED);
  aerie_session_cancel(s);
  EXPECT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_OK);
  EXPECT_EQ(host.take(host.members[0]), AERIE_E_CANCELLED);
  while (host.members[0].text.size() < 10) {
    ASSERT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_OK);
    ASSERT_EQ(host.take(host.members[0]), AERIE_OK);
  }
  // Out in mid-pass, on alone, in again, and on after the batch is gone.
  o.max_tokens = 0;
  o.budget_us = 1;
  ASSERT_EQ(aerie_batch_step(host.batch, &o, nullptr, &host.err), AERIE_OK);
  ASSERT_EQ(host.take(host.members[0]), AERIE_OK);
  std::swap(host.session, host.members[0].session);
  ASSERT_EQ(aerie_batch_remove(host.batch, s, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.more(16, &host.members[0].text), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_batch_add(host.batch, s, &host.err), AERIE_OK) << host.err.message;
  aerie_batch_release(host.batch);
  host.batch = nullptr;
  ASSERT_EQ(host.more(24, &host.members[0].text), AERIE_OK) << host.err.message;
  EXPECT_EQ(host.members[0].text, plain_text());
}

// Without a pause, while others may have the batch or cancel.
template <class F>
void step_until(const std::atomic<bool>& stop, aerie_batch* batch, const F& stepped) {
  aerie_error err;
  AERIE_INIT(err);
  while (!stop) {
    const int32_t code = aerie_batch_step(batch, nullptr, nullptr, &err);
    EXPECT_TRUE(code == AERIE_OK || code == AERIE_E_BUSY || code == AERIE_E_CANCELLED) << err.message;
    stepped(code);
  }
}

// Others cancel, use, take out and release sessions, and in the end the batch, while one thread steps.
TEST(Batch, ThreadsThatGetInTheWay) {
  BatchHost host;
  ASSERT_EQ(host.start(2, false), AERIE_OK) << host.err.message;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(host.join(5), AERIE_OK) << host.err.message;
  std::atomic<bool> stop{false};
  std::atomic<int> steps{0};
  std::thread stepper([&] { step_until(stop, host.batch, [&](int32_t code) { steps += code == AERIE_OK; }); });
  while (steps == 0) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    aerie_session_cancel(host.members[static_cast<size_t>(i) % 3].session);
    aerie_session* s = host.members[3].session;
    const int32_t out = aerie_batch_remove(host.batch, s, &host.err);
    if (out == AERIE_OK)
      while (aerie_batch_add(host.batch, s, &host.err) == AERIE_E_BUSY) std::this_thread::yield();
    else EXPECT_EQ(out, AERIE_E_BUSY);
    const int32_t code = aerie_session_rewind(host.members[2].session, kPrompt.size(), &host.err);
    EXPECT_TRUE(code == AERIE_OK || code == AERIE_E_BUSY) << host.err.message;
    if (i == 100) {
      aerie_session_release(host.members[0].session);
      host.members[0].session = nullptr;
    }
  }
  // On a busy machine all of that may have been over before a step was.
  for (int i = 0; i < 10000 && steps == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop = true;
  stepper.join();
  for (const Member& m : host.members) {  // each is where it is, with its own text
    if (!m.session) continue;
    ASSERT_EQ(aerie_batch_remove(host.batch, m.session, &host.err), AERIE_OK) << host.err.message;
    const int32_t* tokens = nullptr;
    size_t n = 0;
    ASSERT_EQ(aerie_session_tokens(m.session, &tokens, &n, &host.err), AERIE_OK);
    for (size_t k = 0; kPrompt.size() + k < n && k < 24; ++k) ASSERT_EQ(tokens[kPrompt.size() + k], plain_text()[k]) << k;
  }
}

// Releases all members but one while a thread does nothing but step. How many steps began during each release.
std::vector<int64_t> steps_during_releases() {
  BatchHost host;
  EXPECT_EQ(host.start(1, false), AERIE_OK) << host.err.message;
  for (int i = 0; i < 9; ++i) EXPECT_EQ(host.join(5), AERIE_OK) << host.err.message;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0};
  std::thread stepper([&] { step_until(stop, host.batch, [&](int32_t) { ++calls; }); });
  while (calls == 0) std::this_thread::yield();
  std::vector<int64_t> steps;
  for (size_t i = 0; i + 1 < host.members.size(); ++i) {
    const int64_t before = calls;
    aerie_session_release(std::exchange(host.members[i].session, nullptr));
    steps.push_back(calls - before);
  }
  stop = true;
  stepper.join();
  return steps;
}

// Such a thread has the batch nearly all the time; who waits to release a member gets it between two steps. (The median: where
// other programs want the CPUs the system lets a thread wait at any moment, also before it waits for the batch.)
TEST(Batch, AMemberIsReleasedWhileAnotherThreadStepsWithoutAPause) {
  std::vector<int64_t> steps;
  for (int i = 0; i < 3; ++i)
    for (const int64_t n : steps_during_releases()) steps.push_back(n);
  std::sort(steps.begin(), steps.end());
  EXPECT_LT(steps[steps.size() / 2], 10) << "at most " << steps.back();
}

}  // namespace
}  // namespace aerie_capi_test
