#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include "kernels/fp_env.h"

namespace aerie::kernels::cpu {

namespace {

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

constexpr auto kSpin = std::chrono::microseconds(60);

}  // namespace

ThreadPool::ThreadPool(int threads) : shares_(static_cast<size_t>(std::max(threads, 1))) {
#if defined(_WIN32)
  stay_loaded(reinterpret_cast<const void*>(&kSpin));
#endif
  try {
    workers_.reserve(shares_.size() - 1);
    for (size_t i = 1; i < shares_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::exception&) {
    // What could be started serves.
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  parking_.notify_all(generation_);
  for (std::thread& t : workers_) t.join();
}

namespace {

uint64_t tasks_between(uint32_t first, uint32_t end) { return uint64_t{first} << 32 | end; }

// Takes the first (front) or last task of a share; -1: none left.
int32_t take(std::atomic<uint64_t>& share, bool front) {
  uint64_t range = share.load(std::memory_order_acquire);
  for (;;) {
    const auto first = static_cast<uint32_t>(range >> 32), end = static_cast<uint32_t>(range);
    if (first >= end) return -1;
    const uint64_t rest = front ? tasks_between(first + 1, end) : tasks_between(first, end - 1);
    if (share.compare_exchange_weak(range, rest, std::memory_order_acq_rel, std::memory_order_acquire))
      return static_cast<int32_t>(front ? first : end - 1);
  }
}

}  // namespace

// Take tasks until there are none; how many were done.
int32_t ThreadPool::work_off(size_t self) {
  int32_t done = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {  // one's own first
    std::atomic<uint64_t>& share = shares_[(self + i) % shares_.size()].range;
    for (int32_t task; (task = take(share, i == 0)) >= 0; ++done) fn_(context_, task);
  }
  return done;
}

void ThreadPool::work(size_t self) {
  const FpEnv env;
  uint32_t seen = 0;
  for (;;) {
    uint32_t generation = generation_.load(std::memory_order_acquire);
    if (generation == seen) {
      const auto until = std::chrono::steady_clock::now() + kSpin;
      for (int i = 0; generation == seen; ++i) {
        pause();
        generation = generation_.load(std::memory_order_acquire);
        if (i % 64 == 63 && std::chrono::steady_clock::now() > until) break;
      }
      if (generation == seen) {
        parked_.fetch_add(1, std::memory_order_seq_cst);
        parking_.wait(generation_, seen);
        parked_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = generation;
    // One note for all tasks done: nothing of the job is touched after it.
    if (const int32_t done = work_off(self); done > 0) finished_.fetch_add(done, std::memory_order_release);
  }
}

void ThreadPool::run(int32_t n, Task fn, void* context) {
  std::unique_lock<std::mutex> owner(owner_, std::defer_lock);
  if (n <= 1 || workers_.empty() || !owner.try_lock()) {
    for (int32_t i = 0; i < n; ++i) fn(context, i);
    return;
  }
  fn_ = fn;
  context_ = context;
  finished_.store(0, std::memory_order_relaxed);
  // Over the threads that there are: a share without a thread would wait for thieves.
  const auto all = static_cast<uint64_t>(n), team = static_cast<uint64_t>(threads());
  for (uint64_t t = 0; t < team; ++t)
    shares_[t].range.store(tasks_between(static_cast<uint32_t>(all * t / team), static_cast<uint32_t>(all * (t + 1) / team)),
                           std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) parking_.notify_all(generation_);
  const int32_t mine = work_off(0);
  for (int spins = 0; finished_.load(std::memory_order_acquire) + mine < n; ++spins) {
    if (spins < 2000)
      pause();
    else
      std::this_thread::yield();
  }
}

}  // namespace aerie::kernels::cpu
