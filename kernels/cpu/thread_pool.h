// ThreadPool: fork-join over numbered tasks. Workers spin briefly after a job, so that the ops of a pass
// follow one another without wake-ups, and park when nothing comes. The caller works too and
// waits only for tasks that a worker has already taken: a worker that never gets a core costs nothing, its
// share is stolen.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/cpu/parking.h"

namespace aerie::kernels::cpu {

class ThreadPool {
 public:
  using Task = void (*)(void* context, int32_t i);

  // `threads` with the caller's own; fewer if the system has no more to give.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // fn(context, i) for i in [0, n). Several threads may call; whoever finds the workers taken does its
  // own tasks.
  void run(int32_t n, Task fn, void* context);

 private:
  // Tasks [first, end) not yet taken of one thread's share, in one word. Its owner takes from the front, so
  // that neighbouring tasks share what they fetched; who has nothing left steals from the back.
  struct alignas(64) Share {
    std::atomic<uint64_t> range{0};
  };

  void work(size_t self);
  int32_t work_off(size_t self);

  std::vector<std::thread> workers_;
  std::mutex owner_;
  std::atomic<bool> stop_{false};
  // A job. Whoever takes a task may read the fields: they change only once all taken tasks are
  // finished, so a worker late by a job either gets a task of the present one or none.
  Task fn_ = nullptr;
  void* context_ = nullptr;
  std::vector<Share> shares_;  // of each thread, the caller's first
  alignas(64) std::atomic<int32_t> finished_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};  // counts jobs: what workers wait for
  std::atomic<int32_t> parked_{0};
  Parking parking_;
};

}  // namespace aerie::kernels::cpu
