// A stream, the memory its ops work in, and the graphs of plans it has seen.
#pragma once

#include <atomic>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/signature.h"
#include "kernels/device.h"

namespace aerie::kernels::cuda {

// What a device's queues share. A device that failed stays failed: its memory is lost with it.
struct DeviceState {
  int index = 0;
  bool graphs = true;
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
  Status prepare(std::span<const Op> ops);
  Status start();
  Status replay(gpu::Graph* graph);
  Status put_on_stream();
  Status grow(size_t workspace, size_t staging);
  void forget_graphs();
  void take_downloads();

  struct Known {
    gpu::Graph graph = nullptr;  // from the second time on
    uint64_t last = 0;           // use
  };

  DeviceState& device_;
  gpu::Stream stream_ = nullptr;
  gpu::Event done_ = nullptr;
  char* workspace_ = nullptr;  // device
  size_t workspace_size_ = 0;
  char* staging_ = nullptr;  // pinned: what plans upload and download
  size_t staging_size_ = 0;
  std::span<const Op> ops_;
  std::vector<size_t> staged_;  // of each op of ops_: its place in staging_
  bool direct_ = false;         // has a copy too large to be staged
  RunState state_ = RunState::idle;
  Signature signature_;
  std::unordered_map<std::string, Known> known_;
  uint64_t uses_ = 0;
};

}  // namespace aerie::kernels::cuda
