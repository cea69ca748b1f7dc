// A stream, the memory its plans work in, and the graphs of plans it has seen.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "kernels/cuda/graphs.h"
#include "kernels/device.h"

namespace aerie::kernels::cuda {

// What a device's queues share. A device that failed stays failed: its memory is lost with it.
struct DeviceState {
  CudaOptions options;       // early: if the device can
  uint32_t most_shared = 0;  // gpu::Info
  std::atomic<bool> lost{false};
  Status check(Status s) {
    if (s.code() == Code::device) lost.store(true);
    return s;
  }
};

// Memory of a queue, which grows between plans.
class Room {
 public:
  Room(Result<void*> (*take)(size_t), void (*give_back)(void*)) : take_(take), give_back_(give_back) {}
  ~Room() { clear(); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  char* at() const { return at_; }
  bool holds(size_t bytes) const { return bytes <= size_; }
  // What it held is lost. A power of two, so that a text that grows rarely asks again; just `bytes` where there is no more.
  Status grow(size_t bytes, const char* what);

 private:
  void clear();
  Result<void*> (*take_)(size_t);
  void (*give_back_)(void*);
  char* at_ = nullptr;
  size_t size_ = 0;
};

class CudaQueue final : public Queue {
 public:
  static Result<std::unique_ptr<Queue>> make(DeviceState& device);
  ~CudaQueue() override;
  Status submit(std::span<const Op> ops) override;
  Result<RunState> advance(Clock::time_point deadline) override;
  void abandon() override;

 private:
  explicit CudaQueue(DeviceState& device) : device_(device) {}
  struct Sizes;
  Result<Sizes> measure(std::span<const Op> ops);
  Status grow(const Sizes& sizes);
  Status prepare(std::span<const Op> ops);
  Status start();
  Status put_on_stream();
  Status put(const Between& between);
  void take_downloads();

  DeviceState& device_;
  gpu::Stream stream_ = nullptr;
  gpu::Event done_ = nullptr;
  Room workspace_{gpu::allocate, gpu::release};
  // What a plan uploads, then its arguments, are put together in pinned memory and brought over by one copy; behind them
  // is what it downloads.
  Room pinned_{gpu::allocate_pinned, gpu::release_pinned}, arrived_{gpu::allocate, gpu::release};
  size_t arguments_at_ = 0;
  std::span<const Op> ops_;
  std::vector<size_t> staged_;  // of each op of ops_: its place in pinned_
  Launches launches_;
  Graphs graphs_;
  RunState state_ = RunState::idle;
};

}  // namespace aerie::kernels::cuda
