// ThreadPool: fork-join over numbered tasks. Workers spin briefly after a job, so that the ops of a pass
// follow one another without wake-ups, and park when nothing comes. The caller works too and
// waits only for tasks that a worker has already taken: a worker that never gets a core costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

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
  void work();
  bool take(uint32_t generation, int32_t n, int32_t* i);

  std::vector<std::thread> workers_;
  std::mutex owner_;
  std::atomic<bool> stop_{false};
  // A job. generation_ only grows; a worker that read fields of an older job finds
  // the cursor's generation changed and drops them.
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint64_t> cursor_{0};  // generation << 32 | next task
  std::atomic<int32_t> n_{0}, finished_{0};
  std::atomic<Task> fn_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int32_t> parked_{0};
};

// Physical cores this process may use (affinity mask and cgroup quota).
int usable_cores();

}  // namespace aerie::kernels::cpu
