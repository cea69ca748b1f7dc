#include "kernels/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/queue.h"

namespace aerie::kernels {
namespace cuda {
namespace {

// Brings weights over: while the device takes one half of the pinned memory, the other is filled.
class Loader {
 public:
  ~Loader() {
    for (Half& h : halves_) {
      if (h.taken) gpu::destroy(h.taken);
      if (h.memory) gpu::release_pinned(h.memory);
    }
    if (stream_) gpu::destroy(stream_);
  }
  Status copy(void* device, const void* host, size_t bytes) {
    const std::lock_guard lock(mutex_);
    AERIE_TRY(begin());
    for (size_t at = 0, i = 0; at < bytes; at += kHalf, ++i) {
      Half& h = halves_[i % 2];
      const size_t n = std::min(kHalf, bytes - at);
      if (i >= 2) AERIE_TRY(gpu::wait(h.taken));
      std::memcpy(h.memory, static_cast<const char*>(host) + at, n);
      AERIE_TRY(gpu::copy_to_device(static_cast<char*>(device) + at, h.memory, n, stream_));
      AERIE_TRY(gpu::record(h.taken, stream_));
    }
    return gpu::wait(stream_);
  }

 private:
  static constexpr size_t kHalf = size_t{8} << 20;
  struct Half {
    char* memory = nullptr;
    gpu::Event taken = nullptr;
  };
  Status begin() {
    if (!stream_) {
      AERIE_ASSIGN(stream_, gpu::make_stream());
    }
    for (Half& h : halves_) {
      if (!h.memory) {
        AERIE_ASSIGN(void* const memory, gpu::allocate_pinned(kHalf));
        h.memory = static_cast<char*>(memory);
      }
      if (h.taken) continue;
      AERIE_ASSIGN(h.taken, gpu::make_event());
    }
    return {};
  }
  std::mutex mutex_;
  gpu::Stream stream_ = nullptr;
  Half halves_[2];
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaOptions& options, const gpu::Info& info) {
    state_.options = options;
    state_.options.early = options.early && gpu::can_be_early(clock_kernel());
    state_.most_shared = info.most_shared;
    chip_ = info.name;
    isa_ = "sm_" + std::to_string(info.major) + std::to_string(info.minor) + ", " + chip_;
  }
  const char* name() const override { return "cuda"; }
  const char* isa() const override { return isa_.c_str(); }
  const char* chip() const override { return chip_.c_str(); }
  int warm_ups() const override { return state_.options.graphs ? 2 : 1; }  // the second is captured as a graph
  bool far() const override { return true; }
  void* allocate(size_t bytes) override {
    if (!state_.check(gpu::attach(state_.options.device)).ok()) return nullptr;
    const Result<void*> memory = gpu::allocate(std::max<size_t>(bytes, 64));
    return state_.check(memory.status()).ok() ? *memory : nullptr;
  }
  void release(void* memory) override {
    if (!memory) return;
    (void)gpu::attach(state_.options.device);
    gpu::release(memory);
  }
  void* map_host(const void* host, size_t bytes) override {
    void* memory = allocate(bytes);
    if (memory && state_.check(loader_.copy(memory, host, bytes)).ok()) return memory;
    release(memory);
    return nullptr;
  }
  void unmap_host(void* memory) override { release(memory); }
  Status no_memory(const std::string& what) const override {
    return state_.lost ? error(Code::device, what + ": the CUDA device has failed") : Device::no_memory(what);
  }
  Status load_fast_linear() override { return gpu::load_products(); }
  Result<std::unique_ptr<Queue>> make_queue() override { return CudaQueue::make(state_); }

 private:
  DeviceState state_;
  std::string isa_, chip_;
  Loader loader_;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Device>> make_cuda_device(const CudaOptions& options) {
  AERIE_ASSIGN(const cuda::gpu::Info info, cuda::gpu::open(options.device));
  return std::unique_ptr<Device>(new cuda::CudaDevice(options, info));
}

}  // namespace aerie::kernels
