#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

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

#if defined(__linux__)
// Whole cores of one limit; 0: none set.
int whole_cores(double quota, double period) {
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(quota / period)) : 0;
}

double number_in(const std::string& path) {
  double v = 0;
  return std::ifstream(path) >> v ? v : 0;
}

// The tightest CPU quota of this process's control groups, v2 or v1; 0: none. A container sees its
// own group as the root, so the root counts too.
int cgroup_cores() {
  int least = 0;
  const auto limit = [&](int cores) {
    if (cores > 0) least = least > 0 ? std::min(least, cores) : cores;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const bool v2 = second == first + 1;
    std::istringstream kinds(line.substr(first + 1, second - first - 1));
    bool cpu = v2;
    for (std::string kind; std::getline(kinds, kind, ',');) cpu = cpu || kind == "cpu";
    if (!cpu) continue;
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      if (v2) {
        double quota = 0, period = 0;  // "max 100000" leaves the quota at 0
        std::ifstream("/sys/fs/cgroup" + path + "/cpu.max") >> quota >> period;
        limit(whole_cores(quota, period));
      } else {
        const std::string at = "/sys/fs/cgroup/cpu" + path + "/cpu.cfs_";
        limit(whole_cores(number_in(at + "quota_us"), number_in(at + "period_us")));
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}
#endif

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
  if (const int quota = cgroup_cores(); quota > 0) cores = std::min(cores, quota);
#endif
  return cores;
}

ThreadPool::ThreadPool(int threads) : shares_(static_cast<size_t>(std::max(threads, 1))) {
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
  generation_.notify_all();
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
        generation_.wait(seen, std::memory_order_seq_cst);
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
  if (parked_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
  const int32_t mine = work_off(0);
  for (int spins = 0; finished_.load(std::memory_order_acquire) + mine < n; ++spins) {
    if (spins < 2000)
      pause();
    else
      std::this_thread::yield();
  }
}

}  // namespace aerie::kernels::cpu
