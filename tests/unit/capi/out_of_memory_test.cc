// The process's own heap runs out, at every allocation in turn: one error, nothing leaked, nothing lost.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace {
// Counted from the start; `from` .. `to` fail.
std::atomic<int64_t> counted{0}, from{INT64_MAX}, to{INT64_MAX};

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  const int64_t n = counted.fetch_add(1, std::memory_order_relaxed);
  if (n >= from.load(std::memory_order_relaxed) && n < to.load(std::memory_order_relaxed)) return nullptr;
  bytes = bytes ? bytes : 1;
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes)
                                                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* p = take(bytes, alignment)) return p;
  throw std::bad_alloc();
}
}  // namespace

void aerie_capi_test::Shortage::begin(int64_t at, int64_t length) {
  to.store(counted.load() + at + length);
  from.store(counted.load() + at);
}
bool aerie_capi_test::Shortage::end() {
  const int64_t begun = from.exchange(INT64_MAX);
  return counted.load() > begun;
}

namespace {
int64_t every() {
#ifdef __SANITIZE_ADDRESS__
  static const int64_t value = std::getenv("AERIE_EVERY_ALLOCATION") ? 1 : 4;
  return value;
#else
  return 1;
#endif
}
}  // namespace
int64_t aerie_capi_test::Shortage::first(int64_t length) { return (length + 1) % every(); }
int64_t aerie_capi_test::Shortage::next(int64_t at, int64_t alike) { return at + (1 + at / alike) * every(); }

void* operator new(std::size_t n) { return take_or_throw(n, 1); }
void* operator new[](std::size_t n) { return take_or_throw(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n, 1); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n, 1); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace aerie_capi_test {
namespace {

TEST(OutOfMemory, AtAnyAllocationGivesOneErrorAndTheSessionGoesOn) {
  plain_text();  // and the plugins loaded once: their tables stay
  {
    Host warm;
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(warm.open(&o, true), AERIE_OK) << warm.err.message;
  }
  int64_t failures = 0, in_steps = 0;
  bool whole = false;
  for (int64_t at = 0; !whole; at += 1 + at / 24) {
    Host host;
    const aerie_runtime_options o = with_threads(1);
    std::vector<int32_t> out;
    out.reserve(64);
    const int64_t before = counted.load();
    Shortage::begin(at, 1);
    int32_t code = host.open(&o, true);
    const bool opened = code == AERIE_OK;
    if (opened) code = host.text(24, &out);
    whole = !Shortage::end();
    ASSERT_LT(counted.load() - before, 1000000);
    if (code != AERIE_OK) {
      ++failures;
      EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << at << ": " << host.err.message;
      EXPECT_EQ(host.err.code, code) << at;
      if (!opened) continue;
      ++in_steps;
      const int32_t* tokens = nullptr;
      size_t n = 0;
      ASSERT_EQ(aerie_session_tokens(host.session, &tokens, &n, &host.err), AERIE_OK);
      if (n == 0) {  // the prompt did not get in: all of it or nothing
        ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
      } else {
        out.assign(tokens + kPrompt.size(), tokens + n);  // tokens of the failed step are not lost
        ASSERT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
      }
    }
    EXPECT_EQ(out, plain_text()) << "allocation " << at;
  }
  EXPECT_GT(failures, 50);
  EXPECT_GT(in_steps, 0);
}

TEST(OutOfMemory, InABatchLosesNothingOfAnySession) {
  plain_text();
  int64_t failures = 0;
  bool whole = false;
  for (int64_t at = 0; !whole; at += 1 + at / 8) {
    Host host;
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
    aerie_session* sessions[2] = {host.session, nullptr};
    aerie_tree_options tree;
    AERIE_INIT(tree);
    tree.policy = AERIE_TREE_EAGLE2;
    tree.nodes = 12;  // small: sanitizers make every row dear
    ASSERT_EQ(aerie_session_set_tree(host.session, &tree, &host.err), AERIE_OK);
    const Settings plain(nullptr, AERIE_TREE_CHAIN);  // `auto` would measure the model first
    ASSERT_EQ(plain.create(host.model, &sessions[1], &host.err), AERIE_OK);
    for (aerie_session* s : sessions)
      ASSERT_EQ(aerie_session_append(s, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
    aerie_batch* batch = nullptr;
    bool joined[2] = {false, false};
    const auto text = [&](aerie_session* s) {
      const int32_t* tokens = nullptr;
      size_t n = 0;
      EXPECT_EQ(aerie_session_tokens(s, &tokens, &n, nullptr), AERIE_OK);
      return std::pair(tokens + kPrompt.size(), n - kPrompt.size());
    };
    Shortage::begin(at, 1);
    for (int calls = 0; text(sessions[0]).second < 24 || text(sessions[1]).second < 24; ++calls) {
      ASSERT_LT(calls, 200);
      int32_t code = AERIE_OK;
      if (!batch) code = aerie_batch_create(host.model, nullptr, &batch, &host.err);
      for (int i = 0; i < 2 && batch; ++i)
        if (!joined[i]) {
          const int32_t added = aerie_batch_add(batch, sessions[i], &host.err);
          joined[i] = added == AERIE_OK;
          if (added != AERIE_OK) code = added;
        }
      aerie_batch_result r;
      AERIE_INIT(r);
      if (batch && code == AERIE_OK) code = aerie_batch_step(batch, nullptr, &r, &host.err);
      if (code != AERIE_OK || r.n_failed > 0) ++failures;
      if (code != AERIE_OK) {
        EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << at << ": " << host.err.message;
      }
    }
    whole = !Shortage::end();
    for (aerie_session* s : sessions) {
      const auto [tokens, n] = text(s);
      EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 24), plain_text()) << "allocation " << at;
    }
    aerie_session_release(sessions[1]);
    aerie_batch_release(batch);
  }
  EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace aerie_capi_test
