// The host's own allocator and job system, and calls from several threads.
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Heap {
  std::mutex mutex;
  std::map<void*, size_t> live;
  size_t calls = 0, bad = 0;
  size_t fail_at = SIZE_MAX;  // this call, and all later ones, find no memory
  static void* alloc(void* user, size_t bytes, size_t alignment) {
    auto& h = *static_cast<Heap*>(user);
    const std::lock_guard<std::mutex> lock(h.mutex);
    if (h.calls++ >= h.fail_at) return nullptr;
    void* p = allocate(bytes, alignment);
    h.live[p] = bytes;
    return p;
  }
  static void release(void* user, void* memory) {
    auto& h = *static_cast<Heap*>(user);
    const std::lock_guard<std::mutex> lock(h.mutex);
    if (h.live.erase(memory) != 1) ++h.bad;
    else deallocate(memory);
  }
  aerie_runtime_options options(int32_t threads) {
    aerie_runtime_options o = with_threads(threads);
    o.alloc = alloc;
    o.free = release;
    o.alloc_user = this;
    return o;
  }
};

TEST(Hooks, DeviceMemoryComesFromTheHostAndGoesBack) {
  Heap heap;
  {
    Host host;
    const aerie_runtime_options o = heap.options(2);
    ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
    std::vector<int32_t> out;
    ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
    EXPECT_EQ(out, plain_text());
    size_t bytes = 0;
    for (const auto& [p, n] : heap.live) bytes += n;
    EXPECT_GT(bytes, size_t{2048} * 16 * 2 * 64 * 4) << "the KV cache at least";
    const size_t calls = heap.calls;
    ASSERT_EQ(host.more(80, &out), AERIE_OK);
    EXPECT_EQ(heap.calls, calls) << "a cycle allocates no device memory";
  }
  EXPECT_TRUE(heap.live.empty());
  EXPECT_EQ(heap.bad, 0u);
}

TEST(Hooks, NoDeviceMemoryIsAnErrorWhereverItStrikes) {
  size_t needed = 0;
  for (size_t at = 0;; ++at) {
    Heap heap;
    heap.fail_at = at;
    std::vector<int32_t> out;
    int32_t code;
    {
      Host host;
      const aerie_runtime_options o = heap.options(1);
      code = host.open(&o, true);
      if (code == AERIE_OK) code = host.text(24, &out);
      if (code != AERIE_OK) {
        EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << at << ": " << host.err.message;
        EXPECT_EQ(host.err.code, code);
        EXPECT_NE(host.err.message[0], '\0');
      }
    }
    EXPECT_TRUE(heap.live.empty()) << "leak after failing allocation " << at;
    EXPECT_EQ(heap.bad, 0u);
    if (code == AERIE_OK) {
      EXPECT_EQ(out, plain_text());
      needed = at;
      break;
    }
    ASSERT_LT(at, 1000u);
  }
  EXPECT_GT(needed, 4u);
}

TEST(Hooks, WantOfDeviceMemoryIsNoFailingOfTheDrafter) {
  Heap heap;
  Host host;
  const aerie_runtime_options o = heap.options(1);
  ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  heap.fail_at = heap.calls;
  std::vector<int32_t> out;
  EXPECT_EQ(host.text(24, &out), AERIE_E_OUT_OF_MEMORY);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(host.more(24, &out), AERIE_E_OUT_OF_MEMORY);
  heap.fail_at = SIZE_MAX;
  aerie_session_release(host.session);  // another one of the same drafter
  host.session = nullptr;
  ASSERT_EQ(Settings(host.drafter, AERIE_TREE_EAGLE2).create(host.model, &host.session, &host.err), AERIE_OK);
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
  aerie_statistics s;
  AERIE_INIT(s);
  ASSERT_EQ(aerie_session_statistics(host.session, &s, &host.err), AERIE_OK);
  EXPECT_GT(s.accepted, 0u);
  EXPECT_EQ(s.drafter_failures, 0u);
}

// A job system that runs the tasks one by one, from last to first, and now and then on a thread of its own.
struct Jobs {
  std::atomic<int> calls{0};
  static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
    auto& j = *static_cast<Jobs*>(user);
    if (++j.calls % 16 == 0) {
      std::thread other([&] {
        for (int32_t i = n / 2; i < n; ++i) fn(context, i);
      });
      for (int32_t i = 0; i < n / 2; ++i) fn(context, i);
      other.join();
    } else {
      for (int32_t i = n - 1; i >= 0; --i) fn(context, i);
    }
  }
};

// How often the host's job system was asked for one and the same text.
int asked(int32_t threads) {
  Jobs jobs;
  aerie_runtime_options o = with_threads(threads);
  o.parallel_for = Jobs::run;
  o.parallel_user = &jobs;
  Host host;
  std::vector<int32_t> out;
  EXPECT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  EXPECT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
  return jobs.calls;
}

TEST(Hooks, TheHostsJobSystemGivesTheSameText) { EXPECT_GT(asked(3), 100); }
// A job system whose waiting thread runs another of its jobs, which makes a session while the first is being made.
TEST(Hooks, AJobSystemThatRunsOtherJobsWhileItWaits) {
  struct Stealing {
    Host host;
    int calls = 0, made = 0;
    static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
      auto& me = *static_cast<Stealing*>(user);
      if (me.calls++ == 0 && me.drafter()) {
        aerie_session* s = nullptr;
        me.made += Settings(me.drafter(), AERIE_TREE_CAST).create(me.host.model, &s, nullptr) == AERIE_OK;
        aerie_session_release(s);
      }
      for (int32_t i = 0; i < n; ++i) fn(context, i);
    }
    aerie_drafter_handle* drafter() const { return host.drafter; }
  } jobs;
  aerie_runtime_options o = with_threads(2);
  o.parallel_for = Stealing::run;
  o.parallel_user = &jobs;
  Host& host = jobs.host;
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_runtime_load_plugin_directory(host.runtime, plugin_directory(), &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_model_open(host.runtime, demo_model(), nullptr, &host.model, &host.err), AERIE_OK) << host.err.message;
  aerie_drafter_options d;
  AERIE_INIT(d);
  d.package = demo_head();
  d.max_sessions = 4;
  ASSERT_EQ(aerie_drafter_open(host.model, &d, &host.drafter, &host.err), AERIE_OK) << host.err.message;
  jobs.calls = 0;
  ASSERT_EQ(Settings(host.drafter, AERIE_TREE_CAST).create(host.model, &host.session, &host.err), AERIE_OK) << host.err.message;
  EXPECT_EQ(jobs.made, 1);
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
}

// While a batch waits for its pass, its thread runs another job, which steps a session of its own. That one's kv_full is
// not the batch's: it may not touch what is in the pass.
TEST(Hooks, RoomForAnotherSessionIsNotTakenFromABatchInItsPass) {
  struct Job {
    Host host;
    aerie_session* foreign = nullptr;
    aerie_batch* batch = nullptr;
    bool armed = false, asked = false;
    int32_t rewound = AERIE_OK, stepped = -1;
    static int32_t full(void* user, int32_t) {
      auto& me = *static_cast<Job*>(user);
      me.asked = true;
      me.rewound = aerie_session_rewind(me.host.session, 20, nullptr);
      return 0;
    }
    static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
      auto& me = *static_cast<Job*>(user);
      if (std::exchange(me.armed, false)) {
        aerie_step_result r;
        AERIE_INIT(r);
        me.stepped = aerie_session_step(me.foreign, nullptr, &r, nullptr);
      }
      for (int32_t i = 0; i < n; ++i) fn(context, i);
    }
  } job;
  Host& host = job.host;
  aerie_runtime_options o = with_threads(2);
  o.parallel_for = Job::run;
  o.parallel_user = &job;
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK) << host.err.message;
  aerie_model_options m;
  AERIE_INIT(m);
  m.kv_positions = 640;
  m.keep_prefixes = -1;
  m.kv_full = Job::full;
  m.kv_full_user = &job;
  ASSERT_EQ(aerie_model_open(host.runtime, demo_model(), &m, &host.model, &host.err), AERIE_OK) << host.err.message;
  const Settings settings;
  ASSERT_EQ(settings.create(host.model, &host.session, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(settings.create(host.model, &job.foreign, &host.err), AERIE_OK) << host.err.message;
  const std::vector<int32_t> most(400, 300), more(300, 301);
  ASSERT_EQ(aerie_session_append(host.session, most.data(), most.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_append(job.foreign, more.data(), more.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &job.batch, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_add(job.batch, host.session, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_step(job.batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
  job.armed = true;
  EXPECT_EQ(aerie_batch_step(job.batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
  EXPECT_TRUE(job.asked);
  EXPECT_EQ(job.rewound, AERIE_E_BUSY);
  EXPECT_EQ(job.stepped, AERIE_E_LIMIT);
  aerie_session_release(job.foreign);
  aerie_batch_release(job.batch);
}

// A fork's first write copies a page, for which memory is asked.
TEST(Hooks, AnAllocatorThatThrowsEndsTheStepAlone) {
  struct Arena {
    bool full = false;
    static void* alloc(void* user, size_t bytes, size_t alignment) {
      if (static_cast<Arena*>(user)->full) throw std::runtime_error("the arena is full");
      return allocate(bytes, alignment);
    }
    static void release(void*, void* memory) { deallocate(memory); }
  } arena;
  aerie_runtime_options o = with_threads(1);
  o.alloc = Arena::alloc;
  o.free = Arena::release;
  o.alloc_user = &arena;
  Host host;
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  aerie_session* fork = nullptr;
  aerie_step_result r;
  AERIE_INIT(r);
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_step(host.session, nullptr, &r, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_OK) << host.err.message;
  arena.full = true;
  EXPECT_EQ(aerie_session_step(fork, nullptr, &r, &host.err), AERIE_E_INTERNAL);
  EXPECT_NE(std::string(host.err.message).find("a hook threw: the arena is full"), std::string::npos) << host.err.message;
  arena.full = false;
  EXPECT_EQ(aerie_session_step(fork, nullptr, &r, &host.err), AERIE_OK) << host.err.message;
  EXPECT_GT(r.n_tokens, 0);
  aerie_session_release(fork);
}

TEST(Hooks, AJobSystemOfOneThreadIsNotAsked) { EXPECT_EQ(asked(1), 0); }

// Whatever a hook of a step calls with the session that is stepped, on the thread that steps it.
TEST(Hooks, OneThatCallsItsOwnSessionIsToldThatItIsBusy) {
  struct Meddler : Numbers {
    aerie_session* session = nullptr;
    std::vector<int32_t> codes;
    void meddle() {
      aerie_step_result r;
      AERIE_INIT(r);
      aerie_statistics statistics;
      AERIE_INIT(statistics);
      const int32_t* tokens = nullptr;
      size_t n = 0;
      aerie_session* fork = nullptr;
      const Settings settings;
      codes = {aerie_session_step(session, nullptr, &r, nullptr),
               aerie_session_result(session, &r, nullptr),
               aerie_session_append(session, kPrompt.data(), 1, nullptr),
               aerie_session_rewind(session, 1, nullptr),
               aerie_session_set_sampling(session, &settings.sampling, nullptr),
               aerie_session_set_tree(session, &settings.tree, nullptr),
               aerie_session_set_stop_strings(session, nullptr, 0, nullptr, nullptr),
               aerie_session_tokens(session, &tokens, &n, nullptr),
               aerie_session_save(session, nullptr, 0, &n, nullptr),
               aerie_session_statistics(session, &statistics, nullptr),
               aerie_session_fork(session, nullptr, &fork, nullptr)};
      EXPECT_EQ(fork, nullptr);
    }
  } meddler;
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  meddler.session = host.session;
  aerie_token_source source = meddler.source();
  source.user = &meddler;
  source.hold = source.release = nullptr;
  source.bytes = [](void* user, int32_t token, int32_t, const char** bytes) -> int32_t {
    auto& me = *static_cast<Meddler*>(user);
    if (me.codes.empty()) me.meddle();
    *bytes = me.words[static_cast<size_t>(token)].data();
    return static_cast<int32_t>(me.words[static_cast<size_t>(token)].size());
  };
  const char* never = "no such text";
  ASSERT_EQ(aerie_session_set_stop_strings(host.session, &never, 1, &source, &host.err), AERIE_OK) << host.err.message;
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
  EXPECT_EQ(meddler.codes, std::vector<int32_t>(11, AERIE_E_BUSY));
}

TEST(Threads, ASecondThreadIsToldThatTheSessionIsBusy) {
  struct Intruder {
    aerie_session* session = nullptr;
    int32_t step = -1, append = -1, rewind = -1;
    static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
      auto& me = *static_cast<Intruder*>(user);
      if (me.session && me.step == -1)  // a step is running: this is its thread
        std::thread([&] {
          aerie_step_result r;
          AERIE_INIT(r);
          me.step = aerie_session_step(me.session, nullptr, &r, nullptr);
          me.append = aerie_session_append(me.session, kPrompt.data(), 1, nullptr);
          me.rewind = aerie_session_rewind(me.session, 1, nullptr);
        }).join();
      for (int32_t i = 0; i < n; ++i) fn(context, i);
    }
  } intruder;
  aerie_runtime_options o = with_threads(2);
  o.parallel_for = Intruder::run;
  o.parallel_user = &intruder;
  Host host;
  ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  intruder.session = host.session;
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(intruder.step, AERIE_E_BUSY);
  EXPECT_EQ(intruder.append, AERIE_E_BUSY);
  EXPECT_EQ(intruder.rewind, AERIE_E_BUSY);
  EXPECT_EQ(out, plain_text()) << "and nothing happened to the text";
}

TEST(Threads, CancelFromAnotherThreadLosesNothing) {
  // The cancel comes while a step runs, from another thread, at a chosen op of it.
  struct Canceller {
    aerie_session* session = nullptr;
    int calls = 0, at = 0;
    static void run(void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
      auto& me = *static_cast<Canceller*>(user);
      if (me.session && me.calls++ == me.at) std::thread([&] { aerie_session_cancel(me.session); }).join();
      for (int32_t i = 0; i < n; ++i) fn(context, i);
    }
  };
  // How many ops are shared between threads is the machine's: calls of a text that nobody cancels, here never.
  const auto run = [](int at, Host& host, Canceller& canceller, std::vector<int32_t>& out) {
    canceller.at = at;
    aerie_runtime_options o = with_threads(2);
    o.parallel_for = Canceller::run;
    o.parallel_user = &canceller;
    if (const int32_t code = host.open(&o, true); code != AERIE_OK) return code;
    canceller.session = host.session;
    return host.text(24, &out);
  };
  Canceller counting;
  {
    Host host;
    std::vector<int32_t> out;
    ASSERT_EQ(run(-1, host, counting, out), AERIE_OK) << host.err.message;
  }
  ASSERT_GT(counting.calls, 100);
  for (const int at : {0, 1, counting.calls / 20, counting.calls / 5, counting.calls / 2, counting.calls * 9 / 10}) {
    Host host;
    Canceller canceller;
    std::vector<int32_t> out;
    EXPECT_EQ(run(at, host, canceller, out), AERIE_E_CANCELLED) << at;
    EXPECT_EQ(host.err.code, AERIE_E_CANCELLED);
    ASSERT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
    EXPECT_EQ(out, plain_text()) << "cancelled at " << at;
  }
}

TEST(Threads, CancelledLoad) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK);
  aerie_model_options m;
  AERIE_INIT(m);
  m.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 0; };
  EXPECT_EQ(aerie_model_open(host.runtime, demo_model(), &m, &host.model, &host.err), AERIE_E_CANCELLED);
  EXPECT_EQ(host.model, nullptr);
}

TEST(Threads, SessionsOfOneModelRunSideBySide) {
  Host host;
  const aerie_runtime_options o = with_threads(2);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  std::vector<std::vector<int32_t>> texts(3);
  std::vector<std::thread> threads;
  for (auto& text : texts)
    threads.emplace_back([&host, &text] {
      Host mine;
      if (Settings().create(host.model, &mine.session, &mine.err) == AERIE_OK) mine.text(24, &text);
    });
  for (std::thread& t : threads) t.join();
  for (const auto& text : texts) EXPECT_EQ(text, plain_text());
}

}  // namespace
}  // namespace aerie_capi_test
