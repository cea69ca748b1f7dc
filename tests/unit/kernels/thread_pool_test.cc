#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace aerie::kernels::pool_test {
using cpu::ThreadPool;
using Ms = std::chrono::milliseconds;
using PoolClock = std::chrono::steady_clock;

struct Counted {
  std::vector<std::atomic<int32_t>> hits;
  explicit Counted(int32_t n) : hits(static_cast<size_t>(n)) {}
  static void task(void* context, int32_t i) { static_cast<Counted*>(context)->hits.at(static_cast<size_t>(i))++; }
  bool once() const {
    for (const auto& h : hits)
      if (h.load() != 1) return false;
    return true;
  }
};

bool runs_once(ThreadPool& pool, int32_t n) {
  Counted c(n);
  pool.run(n, Counted::task, &c);
  return c.once();
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int32_t n : {0, 1, 2, 3, 7, 100, 10000}) EXPECT_TRUE(runs_once(pool, n)) << threads << " threads, " << n;
  }
}

// Each job has a context of its own that dies with it: a worker late by one job would write to the wrong one.
TEST(ThreadPool, LateWorkersTouchNoOlderJob) {
  ThreadPool pool(4);
  for (int32_t job = 0; job < 3000; ++job) {
    auto c = std::make_unique<Counted>(1 + job % 9);
    pool.run(1 + job % 9, Counted::task, c.get());
    ASSERT_TRUE(c->once()) << job;
  }
}

TEST(ThreadPool, SeveralCallersShareOnePool) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      for (int32_t job = 0; job < 300; ++job)
        if (!runs_once(pool, 1 + (job * 7 + t) % 20)) ++wrong;
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, 0);
}

// Two tasks that need each other prove two threads; the deadline is for the failure only.
struct Meeting {
  std::atomic<int> here{0};
  std::atomic<bool> met{false};
  static void task(void* context, int32_t) {
    auto& m = *static_cast<Meeting*>(context);
    if (++m.here > 1) return;  // the first one waits; on its own it would come here only afterwards
    const auto until = PoolClock::now() + Ms(5000);
    while (m.here < 2 && PoolClock::now() < until) std::this_thread::yield();
    m.met = m.here == 2;
  }
};

TEST(ThreadPool, WorkersHelpWhileHotAndAfterParking) {
  ThreadPool pool(2);
  for (const int rest_ms : {0, 0, 30, 30}) {
    std::this_thread::sleep_for(Ms(rest_ms));  // far beyond the spin: the worker is parked
    Meeting m;
    pool.run(2, Meeting::task, &m);
    EXPECT_TRUE(m.met) << "after " << rest_ms << " ms";
  }
}

// A caller whose workers are all held by another caller finishes on its own.
TEST(ThreadPool, NeverWaitsForAnotherCallersJob) {
  ThreadPool pool(2);
  struct Hold {
    std::atomic<int> inside{0};
    std::atomic<bool> release{false};
    static void task(void* context, int32_t) {
      auto& h = *static_cast<Hold*>(context);
      ++h.inside;
      const auto until = PoolClock::now() + Ms(60000);  // for the failure only
      while (!h.release && PoolClock::now() < until) std::this_thread::yield();
      --h.inside;
    }
  } hold;
  std::thread other([&] { pool.run(2, Hold::task, &hold); });
  while (hold.inside < 2) std::this_thread::yield();
  EXPECT_TRUE(runs_once(pool, 50));
  EXPECT_EQ(hold.inside, 2) << "the other caller's job is still under way";
  hold.release = true;
  other.join();
}

// Of a job the caller waits for taken tasks only: with eight threads on few cores most workers get no turn before the work is done.
TEST(ThreadPool, OversubscribedPoolsRunEveryTaskOnce) {
  ThreadPool a(8), b(8);
  std::thread other([&] {
    for (int job = 0; job < 300; ++job) EXPECT_TRUE(runs_once(b, 16));
  });
  for (int job = 0; job < 300; ++job) EXPECT_TRUE(runs_once(a, 16));
  other.join();
}

// A task of a task runs inline; the pool has one job at a time.
TEST(ThreadPool, TasksMayRunTheirOwnTasks) {
  ThreadPool pool(3);
  struct Outer {
    ThreadPool* pool;
    std::atomic<int> good{0};
    static void task(void* context, int32_t) {
      auto& o = *static_cast<Outer*>(context);
      if (runs_once(*o.pool, 5)) ++o.good;
    }
  } outer{&pool};
  pool.run(20, Outer::task, &outer);
  EXPECT_EQ(outer.good, 20);
}

TEST(ThreadPool, EndsFromEveryState) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool never_used(4);
    ThreadPool hot(4);
    EXPECT_TRUE(runs_once(hot, 8));
    if (i % 10 == 0) std::this_thread::sleep_for(Ms(1));  // parked
  }
}

}  // namespace aerie::kernels::pool_test
