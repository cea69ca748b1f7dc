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
  char* workspace_ = nullptr;  // device
  size_t workspace_size_ = 0;
  // What a plan uploads, then its arguments, are put together in pinned memory and brought over by one copy; behind them
  // is what it downloads.
  char* pinned_ = nullptr;
  char* arrived_ = nullptr;  // device
  size_t pinned_size_ = 0;
  size_t arguments_at_ = 0;
  std::span<const Op> ops_;
  std::vector<size_t> staged_;  // of each op of ops_: its place in pinned_
  Launches launches_;
  Graphs graphs_;
  RunState state_ = RunState::idle;
};

}  // namespace aerie::kernels::cuda
