// A host's own constraint, and biases and penalties: what is held of them and for how long, and what a wrong one comes to.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

// Even and odd ids in turn; a state counts its tokens.
struct Alternating {
  int held = 0, released = 0, states = 0;
  int32_t answer = AERIE_OK;  // of allowed
  aerie_constraint functions() {
    aerie_constraint c;
    AERIE_INIT(c);
    c.user = this;
    c.begin = [](void* user, void** state) -> int32_t {
      ++static_cast<Alternating*>(user)->states;
      *state = new size_t(0);
      return AERIE_OK;
    };
    c.copy = [](void* user, const void* state, void** copy) -> int32_t {
      ++static_cast<Alternating*>(user)->states;
      *copy = new size_t(*static_cast<const size_t*>(state));
      return AERIE_OK;
    };
    c.allowed = [](void* user, void* state, uint32_t* mask, size_t n_words) -> int32_t {
      for (size_t i = 0; i < n_words; ++i) mask[i] = *static_cast<size_t*>(state) % 2 == 0 ? 0x55555555u : 0xaaaaaaaau;
      return static_cast<Alternating*>(user)->answer;
    };
    c.accept = [](void*, void* state, int32_t token) -> int32_t {
      auto& n = *static_cast<size_t*>(state);
      if (static_cast<size_t>(token) % 2 != n % 2) return AERIE_E_MISMATCH;
      ++n;
      return AERIE_OK;
    };
    c.destroy = [](void* user, void* state) {
      --static_cast<Alternating*>(user)->states;
      delete static_cast<size_t*>(state);
    };
    c.hold = [](void* user) { ++static_cast<Alternating*>(user)->held; };
    c.release = [](void* user) { ++static_cast<Alternating*>(user)->released; };
    return c;
  }
};

struct ConstraintTest : testing::Test {
  Alternating alternating;  // outlives the session
  Host host;
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  }
  int32_t set(const aerie_constraint& c) { return aerie_session_set_constraint(host.session, &c, &host.err); }
};

TEST_F(ConstraintTest, OfAHostIsHeldUntilTheLastForkIsGoneAndGetsItsStatesBack) {
  ASSERT_EQ(set(alternating.functions()), AERIE_OK) << host.err.message;
  EXPECT_EQ(alternating.held, 1);
  std::vector<int32_t> out, forked;
  ASSERT_EQ(host.text(25, &out), AERIE_OK) << host.err.message;
  aerie_session* fork = nullptr;
  ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_E_LIMIT) << "the drafter has one session";
  aerie_session_release(std::exchange(host.session, nullptr));
  EXPECT_EQ(alternating.released, 1);
  EXPECT_EQ(alternating.states, 0);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(static_cast<size_t>(out[i]) % 2, i % 2);

  ASSERT_EQ(Settings().create(host.model, &host.session, &host.err), AERIE_OK);
  ASSERT_EQ(set(alternating.functions()), AERIE_OK);
  std::vector<int32_t> plain;
  ASSERT_EQ(host.text(25, &plain), AERIE_OK) << host.err.message;
  EXPECT_EQ(plain, out) << "without a drafter";
  ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_OK) << host.err.message;
  aerie_session_release(std::exchange(host.session, fork));
  EXPECT_EQ(alternating.released, 1) << "the fork has it";
  ASSERT_EQ(host.more(40, &plain), AERIE_OK) << host.err.message;
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(static_cast<size_t>(plain[i]) % 2, i % 2);
  ASSERT_EQ(aerie_session_set_constraint(host.session, nullptr, &host.err), AERIE_OK);
  EXPECT_EQ(alternating.released, 2);
  EXPECT_EQ(alternating.states, 0);
}

TEST_F(ConstraintTest, CodeOfItsOwnEndsTheStepAndTheTextGoesOn) {
  ASSERT_EQ(set(alternating.functions()), AERIE_OK);
  std::vector<int32_t> want, out;
  ASSERT_EQ(host.text(24, &want), AERIE_OK);
  ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
  ASSERT_EQ(host.text(8, &out), AERIE_OK);
  for (const int32_t code : std::vector<int32_t>{AERIE_E_LIMIT, AERIE_E_OUT_OF_MEMORY, 99, -1}) {
    alternating.answer = code;
    const int32_t got = host.more(24, &out);
    EXPECT_EQ(got, code == AERIE_E_LIMIT || code == AERIE_E_OUT_OF_MEMORY ? code : AERIE_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(host.err.message, "constraint"), nullptr) << host.err.message;
    alternating.answer = AERIE_OK;
  }
  ASSERT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, want);
}

// What it says is forced are drafts: true ones save passes, and whatever else it says changes nothing.
TEST_F(ConstraintTest, WhatItForcesSavesPassesAndWrongAnswersChangeNothing) {
  static constexpr int32_t kOnly[] = {40, 41, 42, 43};  // after an even and an odd one, over and over
  struct Form {
    int how = 0;
  } form;
  aerie_constraint c = alternating.functions();
  c.user = &form;
  c.hold = c.release = nullptr;
  c.begin = [](void*, void** state) -> int32_t { return *state = new size_t(0), AERIE_OK; };
  c.copy = [](void*, const void* state, void** copy) -> int32_t { return *copy = new size_t(*static_cast<const size_t*>(state)), AERIE_OK; };
  c.destroy = [](void*, void* state) { delete static_cast<size_t*>(state); };
  c.allowed = [](void*, void* state, uint32_t* mask, size_t n_words) -> int32_t {
    const size_t at = *static_cast<size_t*>(state) % 6;
    if (at >= 2) return mask[1] = 1u << (kOnly[at - 2] - 32), AERIE_OK;
    for (size_t i = 0; i < n_words; ++i) mask[i] = at == 0 ? 0x55555555u : 0xaaaaaaaau;
    return AERIE_OK;
  };
  c.accept = [](void*, void* state, int32_t token) -> int32_t {
    auto& n = *static_cast<size_t*>(state);
    if (n % 6 >= 2 ? token != kOnly[n % 6 - 2] : static_cast<size_t>(token) % 2 != n % 6) return AERIE_E_MISMATCH;
    return ++n, AERIE_OK;
  };
  const auto cycles = [&](std::vector<int32_t>* out) {
    EXPECT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
    EXPECT_EQ(set(c), AERIE_OK) << host.err.message;
    aerie_statistics before, after;
    AERIE_INIT(before);
    AERIE_INIT(after);
    EXPECT_EQ(aerie_session_statistics(host.session, &before, &host.err), AERIE_OK);
    EXPECT_EQ(host.text(42, out), AERIE_OK) << host.err.message;
    EXPECT_EQ(aerie_session_statistics(host.session, &after, &host.err), AERIE_OK);
    EXPECT_LE(after.foreseen_accepted - before.foreseen_accepted, after.foreseen_verified - before.foreseen_verified);
    return after.cycles - before.cycles;
  };
  c.forced = nullptr;
  std::vector<int32_t> want, out;
  cycles(&want);
  c.forced = [](void* user, void* state, int32_t* tokens, size_t capacity, size_t* n) -> int32_t {
    const size_t at = *static_cast<size_t*>(state) % 6;
    switch (static_cast<Form*>(user)->how) {
      case 0:
        for (size_t i = std::max<size_t>(at, 2); at >= 2 && i < 6 && *n < capacity; ++i) tokens[(*n)++] = kOnly[i - 2];
        return AERIE_OK;
      case 1: return *n = capacity + 1, AERIE_OK;
      case 2: return *n = SIZE_MAX, AERIE_OK;
      case 3: return AERIE_E_OUT_OF_MEMORY;
      case 4: return tokens[0] = -7, *n = 1, AERIE_OK;
      case 5: return tokens[0] = INT32_MAX, *n = 1, AERIE_OK;
      default:
        for (*n = 0; *n < capacity; ++*n) tokens[*n] = 41;
        return 12345;
    }
  };
  EXPECT_LE(cycles(&out), 15u) << "of 42 tokens 28 are forced";
  EXPECT_EQ(out, want);
  for (form.how = 1; form.how <= 6; ++form.how) {
    cycles(&out);
    EXPECT_EQ(out, want) << form.how;
  }
  // A host that was built before there was such a function.
  form.how = 0;
  c.struct_size = static_cast<uint32_t>(offsetof(aerie_constraint, forced));
  cycles(&out);
  EXPECT_EQ(out, want);
}

TEST_F(ConstraintTest, ThatIsNotWholeIsRefused) {
  const auto refused = [&](auto&& spoil) {
    aerie_constraint c = alternating.functions();
    spoil(c);
    EXPECT_EQ(set(c), AERIE_E_INVALID_ARGUMENT);
    EXPECT_EQ(alternating.states, 0);
    EXPECT_EQ(alternating.held, alternating.released);
  };
  refused([](aerie_constraint& c) { c.begin = nullptr; });
  refused([](aerie_constraint& c) { c.copy = nullptr; });
  refused([](aerie_constraint& c) { c.allowed = nullptr; });
  refused([](aerie_constraint& c) { c.accept = nullptr; });
  refused([](aerie_constraint& c) { c.destroy = nullptr; });
  refused([](aerie_constraint& c) { c.hold = nullptr; });
  refused([](aerie_constraint& c) { c.begin = [](void*, void**) -> int32_t { return AERIE_OK; }; });
  aerie_constraint nothing = alternating.functions();
  nothing.allowed = [](void*, void*, uint32_t*, size_t) -> int32_t { return AERIE_OK; };
  EXPECT_EQ(set(nothing), AERIE_E_MISMATCH);
  EXPECT_EQ(alternating.states, 0);
}

TEST_F(ConstraintTest, BiasesAreCopiedAndMayBeTakenBack) {
  std::vector<int32_t> want, out;
  ASSERT_EQ(host.text(24, &want), AERIE_OK) << host.err.message;
  std::vector<aerie_logit_bias> forbidden;
  for (const int32_t t : want) forbidden.push_back({t, -INFINITY});
  Settings s;
  s.sampling.logit_bias = forbidden.data();
  s.sampling.n_logit_bias = static_cast<int32_t>(forbidden.size());
  ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_set_sampling(host.session, &s.sampling, &host.err), AERIE_OK) << host.err.message;
  for (aerie_logit_bias& b : forbidden) b = {0, 1e6f};  // what was given has been copied
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  for (const int32_t t : out) {
    EXPECT_NE(t, 0);
    EXPECT_EQ(std::find(want.begin(), want.end(), t), want.end());
  }
  out.clear();
  const Settings without;
  ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_set_sampling(host.session, &without.sampling, &host.err), AERIE_OK);
  ASSERT_EQ(host.text(24, &out), AERIE_OK);
  EXPECT_EQ(out, want);

  s.sampling.logit_bias = nullptr;
  EXPECT_EQ(aerie_session_set_sampling(host.session, &s.sampling, &host.err), AERIE_E_INVALID_ARGUMENT);
  s.sampling.n_logit_bias = -1;
  EXPECT_EQ(aerie_session_set_sampling(host.session, &s.sampling, &host.err), AERIE_E_INVALID_ARGUMENT);
}

// One that was compiled before there were penalties.
TEST_F(ConstraintTest, SamplingOfAnOlderHeaderHasNone) {
  std::vector<int32_t> want, out;
  ASSERT_EQ(host.text(24, &want), AERIE_OK);
  Settings s;
  std::memset(&s.sampling.repetition_penalty, 0x7f, sizeof s.sampling - offsetof(aerie_sampling, repetition_penalty));
  s.sampling.struct_size = offsetof(aerie_sampling, repetition_penalty);
  ASSERT_EQ(aerie_session_rewind(host.session, 0, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_set_sampling(host.session, &s.sampling, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.text(24, &out), AERIE_OK);
  EXPECT_EQ(out, want);
}

}  // namespace
}  // namespace aerie_capi_test
