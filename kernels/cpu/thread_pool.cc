#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include "kernels/cpu/fp_env.h"

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

int usable_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    // Hyper-threads of one core share its arithmetic: count (package, core) pairs.
    std::set<std::string> seen;
    for (int c = 0; c < CPU_SETSIZE; ++c) {
      if (!CPU_ISSET(c, &set)) continue;
      const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/";
      std::string package, core;
      std::ifstream(at + "physical_package_id") >> package;
      std::ifstream(at + "core_id") >> core;
      seen.insert(core.empty() ? std::to_string(c) : package + ":" + core);
    }
    if (!seen.empty()) cores = static_cast<int>(seen.size());
  }
  std::string quota;
  double period = 0;
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  if (limit >> quota >> period && quota != "max" && period > 0)
    cores = std::min(cores, std::max(1, static_cast<int>(std::stod(quota) / period)));
#endif
  return cores;
}

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // What could be started serves.
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& t : workers_) t.join();
}

bool ThreadPool::take(uint32_t generation, int32_t n, int32_t* i) {
  uint64_t at = cursor_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(at >> 32) == generation && (at & 0xffffffffu) < static_cast<uint32_t>(n)) {
    if (cursor_.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      *i = static_cast<int32_t>(at & 0xffffffffu);
      return true;
    }
  }
  return false;
}

void ThreadPool::work() {
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
        generation_.wait(seen, std::memory_order_acquire);
        parked_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = generation;
    const int32_t n = n_.load(std::memory_order_relaxed);
    const Task fn = fn_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    for (int32_t i = 0; take(generation, n, &i);) {
      fn(context, i);
      finished_.fetch_add(1, std::memory_order_release);
    }
  }
}

void ThreadPool::run(int32_t n, Task fn, void* context) {
  std::unique_lock<std::mutex> owner(owner_, std::defer_lock);
  if (n <= 1 || workers_.empty() || !owner.try_lock()) {
    for (int32_t i = 0; i < n; ++i) fn(context, i);
    return;
  }
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  // Close the old job before its fields change: a late worker's take() fails from here on.
  cursor_.store(uint64_t{generation} << 32 | 0xffffffffu, std::memory_order_release);
  n_.store(n, std::memory_order_relaxed);
  fn_.store(fn, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  cursor_.store(uint64_t{generation} << 32, std::memory_order_release);
  generation_.store(generation, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
  int32_t mine = 0;
  for (int32_t i = 0; take(generation, n, &i); ++mine) fn(context, i);
  for (int spins = 0; finished_.load(std::memory_order_acquire) + mine < n; ++spins) {
    if (spins < 2000) pause();
    else std::this_thread::yield();
  }
}

}  // namespace aerie::kernels::cpu
