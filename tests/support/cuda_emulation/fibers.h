// Coroutines on stacks of their own: one for each emulated CUDA thread of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace aerie::kernels::cuda::emulation {

// Runs n fibers on this thread. `body(i)` is fiber i; it gives way with pause().
class Fibers {
 public:
  static constexpr int kMost = 1024;
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  void start(int n, const std::function<void(int)>& body);
  // Lets fiber i go on, and those that it pauses for, until one pauses or ends. True: it has ended.
  bool resume(int i);
  // Within a fiber: back to resume().
  void pause();
  // Likewise: fiber `next` goes on.
  void pause_for(int next);
  // Forget fibers that will not be resumed again.
  void drop();

  struct State;

 private:
  static constexpr int kHost = -1;
  static void entry();
  void leave_for(int next);
  std::unique_ptr<State> state_;
};

}  // namespace aerie::kernels::cuda::emulation
