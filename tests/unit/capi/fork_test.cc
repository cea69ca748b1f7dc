// Forks, kept prefixes and the KV budget through aerie.h.
#include <algorithm>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

aerie_statistics statistics(aerie_session* session) {
  aerie_statistics s;
  AERIE_INIT(s);
  EXPECT_EQ(aerie_session_statistics(session, &s, nullptr), AERIE_OK);
  return s;
}

TEST(Fork, GoesOnAsItsSessionWould) {
  Host host, fork;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  std::vector<int32_t> got;
  ASSERT_EQ(host.text(10, &got), AERIE_OK);
  aerie_fork_options options;
  AERIE_INIT(options);
  ASSERT_EQ(aerie_session_fork(host.session, &options, &fork.session, &host.err), AERIE_OK);
  EXPECT_EQ(statistics(fork.session).emitted, 0u);
  std::vector<int32_t> twin = got;
  ASSERT_EQ(fork.more(24, &twin), AERIE_OK);
  EXPECT_NE(twin, plain_text());  // dice of its own
  ASSERT_EQ(host.more(24, &got), AERIE_OK);
  EXPECT_EQ(got, plain_text());
  // The session, its model and runtime go; the fork goes on.
  host.close();
  EXPECT_EQ(fork.more(30, &twin), AERIE_OK);
  EXPECT_EQ(aerie_session_fork(nullptr, nullptr, &fork.session, &fork.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_fork(fork.session, nullptr, nullptr, &fork.err), AERIE_E_INVALID_ARGUMENT);
}

// The number that a fork has for its dice when it is given none, and the same at every run.
TEST(Fork, ItsOwnStreamsAreCountedFrom2ToThe31) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  Host forks[2];
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(aerie_session_fork(host.session, nullptr, &forks[i].session, &host.err), AERIE_OK);
    std::vector<int32_t> text, same;
    ASSERT_EQ(forks[i].more(16, &text), AERIE_OK);
    Settings settings;
    settings.sampling.stream = 0x80000000u + i;
    Host other;
    ASSERT_EQ(settings.create(host.model, &other.session, &other.err), AERIE_OK);
    ASSERT_EQ(other.text(16, &same), AERIE_OK);
    EXPECT_EQ(text, same) << i;
  }
}

TEST(Fork, CountsAsASessionOfTheDrafter) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;  // max_sessions 1
  std::vector<int32_t> got;
  ASSERT_EQ(host.text(10, &got), AERIE_OK);
  aerie_session* fork = nullptr;
  EXPECT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_E_LIMIT);
  EXPECT_EQ(fork, nullptr);
  ASSERT_EQ(host.more(24, &got), AERIE_OK);
  EXPECT_EQ(got, plain_text());
}

struct Budget : Host {
  aerie_batch* batch = nullptr;
  std::vector<aerie_session*> others;
  int asked = 0;
  ~Budget() {
    for (aerie_session* s : others) aerie_session_release(s);
    aerie_batch_release(batch);
  }
  int32_t open_with(int32_t positions, int32_t keep_prefixes, aerie_kv_full_fn full) {
    const aerie_runtime_options o = with_threads(1);
    if (const int32_t c = aerie_runtime_create(&o, &runtime, &err)) return c;
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = positions;
    m.keep_prefixes = keep_prefixes;
    m.kv_full = full;
    m.kv_full_user = this;
    if (const int32_t c = aerie_model_open(runtime, demo_model(), &m, &model, &err)) return c;
    return create(&session);
  }
  int32_t create(aerie_session** out) { return Settings().create(model, out, &err); }
  // A session with a prompt of 40 tokens, in the batch.
  int32_t join() {
    others.push_back(nullptr);
    if (const int32_t c = create(&others.back())) return c;
    const std::vector<int32_t> prompt(40, 300 + static_cast<int32_t>(others.size()));
    if (const int32_t c = aerie_session_append(others.back(), prompt.data(), prompt.size(), &err)) return c;
    return aerie_batch_add(batch, others.back(), &err);
  }
};

TEST(Budget, PrefixesAreKeptUnlessTurnedOff) {
  for (const int32_t keep : {0, -1}) {
    Budget host;
    ASSERT_EQ(host.open_with(1024, keep, nullptr), AERIE_OK) << host.err.message;
    std::vector<int32_t> prompt;
    for (int i = 0; i < 10; ++i) prompt.insert(prompt.end(), kPrompt.begin(), kPrompt.end());
    for (int i = 0; i < 2; ++i) {
      aerie_session_release(host.session);
      ASSERT_EQ(host.create(&host.session), AERIE_OK);
      ASSERT_EQ(aerie_session_append(host.session, prompt.data(), prompt.size(), &host.err), AERIE_OK);
      std::vector<int32_t> out;
      ASSERT_EQ(host.more(4, &out), AERIE_OK);
      const aerie_statistics s = statistics(host.session);
      EXPECT_EQ(s.reused_tokens, keep == 0 && i == 1 ? 96u : 0u);
      EXPECT_EQ(s.reused_tokens + s.prefill_tokens, 99u);
    }
  }
  Budget host;
  EXPECT_EQ(host.open_with(1024, 1, nullptr), AERIE_E_INVALID_ARGUMENT);
}

TEST(Budget, AHostThatHasNoRoomIsAskedAgainUntilTheStepIsCancelled) {
  Budget host;
  const aerie_kv_full_fn full = [](void* user, int32_t) -> int32_t {
    auto& h = *static_cast<Budget*>(user);
    if (++h.asked == 20) aerie_session_cancel(h.session);
    return h.asked < 1000;
  };
  ASSERT_EQ(host.open_with(320, -1, full), AERIE_OK) << host.err.message;
  std::vector<int32_t> prompt(100, 300), out;
  ASSERT_EQ(aerie_session_append(host.session, prompt.data(), prompt.size(), &host.err), AERIE_OK);
  EXPECT_EQ(host.more(400, &out), AERIE_E_CANCELLED);
  EXPECT_GE(host.asked, 20);
  EXPECT_LE(host.asked, 21);
  EXPECT_GT(out.size(), 0u);
  const int32_t* tokens = nullptr;
  size_t n = 0;
  ASSERT_EQ(aerie_session_tokens(host.session, &tokens, &n, &host.err), AERIE_OK);
  EXPECT_EQ(n, prompt.size() + out.size());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), tokens + prompt.size())) << "nothing is lost";
}

// The host is asked on the stepping thread, while its batch is in a step, and lets members go all the same.
TEST(Budget, TheHostReleasesAndRewindsMembersOfTheBatch) {
  Budget host;
  const aerie_kv_full_fn full = [](void* user, int32_t wanted) -> int32_t {
    auto& h = *static_cast<Budget*>(user);
    EXPECT_GT(wanted, 0);
    if (++h.asked > 3) return 0;
    if (h.asked == 1) {
      EXPECT_EQ(aerie_session_rewind(h.others[1], 1, &h.err), AERIE_OK) << h.err.message;
      aerie_step_result r;
      AERIE_INIT(r);
      EXPECT_EQ(aerie_session_step(h.others[1], nullptr, &r, nullptr), AERIE_E_BUSY);
      EXPECT_EQ(aerie_batch_remove(h.batch, h.others[1], nullptr), AERIE_E_BUSY);
      return 1;
    }
    aerie_session_release(h.others.back());
    h.others.pop_back();
    return 1;
  };
  ASSERT_EQ(host.open_with(4 * 128 + 6 * 32, 0, full), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &host.batch, &host.err), AERIE_OK);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(host.join(), AERIE_OK) << host.err.message;
  size_t tokens = 0;
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
    aerie_step_result r;
    AERIE_INIT(r);
    ASSERT_EQ(aerie_session_result(host.others[0], &r, &host.err), AERIE_OK) << host.err.message;
    tokens += static_cast<size_t>(r.n_tokens);
  }
  EXPECT_GT(tokens, 50u);
  EXPECT_GE(host.asked, 2);
  EXPECT_EQ(host.others.size(), 4u - static_cast<size_t>(std::min(host.asked, 3) - 1));
}

// The member that wants room is the library's while its host is asked; it can be told from the others, and those can lose
// their whole text.
TEST(Budget, TheMemberThatWantsRoomIsBusyAndTheOthersMayLoseTheirText) {
  Budget host;
  const aerie_kv_full_fn full = [](void* user, int32_t) -> int32_t {
    auto& h = *static_cast<Budget*>(user);
    if (++h.asked > 1) return 0;
    int busy = 0;
    for (aerie_session* s : h.others) {
      aerie_statistics statistics;
      AERIE_INIT(statistics);
      const bool asks = aerie_session_statistics(s, &statistics, nullptr) == AERIE_E_BUSY;
      busy += asks;
      const int32_t code = asks ? AERIE_E_BUSY : AERIE_OK, token = 300;
      aerie_session* fork = nullptr;
      EXPECT_EQ(aerie_session_append(s, &token, 1, nullptr), code);
      EXPECT_EQ(aerie_session_fork(s, nullptr, &fork, nullptr), code);
      EXPECT_EQ(aerie_session_rewind(s, 0, nullptr), code);
      aerie_session_release(fork);
    }
    EXPECT_EQ(busy, 1);
    return 1;
  };
  ASSERT_EQ(host.open_with(4 * 128 + 6 * 32, 0, full), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &host.batch, &host.err), AERIE_OK);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(host.join(), AERIE_OK) << host.err.message;
  const auto length = [&](aerie_session* s) {
    const int32_t* tokens = nullptr;
    size_t n = 0;
    EXPECT_EQ(aerie_session_tokens(s, &tokens, &n, &host.err), AERIE_OK);
    return n;
  };
  while (host.asked == 0) ASSERT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
  int empty = 0;
  for (int i = 0; i < 3; ++i) {
    empty = 0;
    ASSERT_EQ(aerie_batch_step(host.batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
    for (aerie_session* s : host.others) {
      aerie_step_result r;
      AERIE_INIT(r);
      const bool none = length(s) == 0;
      empty += none;
      EXPECT_EQ(aerie_session_result(s, &r, &host.err), none ? AERIE_E_INVALID_ARGUMENT : AERIE_OK);
    }
  }
  EXPECT_EQ(empty, 3) << "no token comes out of an empty session";
}

}  // namespace
}  // namespace aerie_capi_test
