// Executor of the CPU backend: ops in order, each as independent tasks.
#include "kernels/cpu/cpu_device.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>

#include "kernels/cpu/fp_env.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/cpu/thread_pool.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace aerie::kernels {

namespace cpu {

Scratch::~Scratch() { ::operator delete(memory_, std::align_val_t{64}); }

void* Scratch::get(size_t bytes) {
  if (bytes > size_) {
    ::operator delete(memory_, std::align_val_t{64});
    memory_ = nullptr;
    size_ = 0;
    memory_ = ::operator new(bytes, std::align_val_t{64});
    size_ = bytes;
  }
  return memory_;
}

namespace {

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

class CpuDevice;

class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(CpuDevice& device) : device_(device) {}
  Status submit(std::span<const Op> ops) override {
    if (op_ < ops_.size()) return error(Code::busy, "cpu queue: a plan is running");
    ops_ = ops;
    op_ = 0;
    task_ = 0;
    return {};
  }
  Result<RunState> advance(Clock::time_point deadline) override;
  void abandon() override { op_ = ops_.size(); }

 private:
  CpuDevice& device_;
  std::span<const Op> ops_;
  size_t op_ = 0;
  int32_t task_ = 0;  // of ops_[op_]
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : options_(options), pool_(options.host_parallel_for ? 1 : options.threads > 0 ? options.threads : usable_cores()) {
    threads_ = options.host_parallel_for && options.threads > 0 ? options.threads : pool_.threads();
    if (options.host_parallel_for && options.threads <= 0) threads_ = usable_cores();
    isa_ = hwy::TargetName(best_target());
    isa_ += ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
  }

  const char* name() const override { return "cpu"; }
  const char* isa() const override { return isa_.c_str(); }
  void* allocate(size_t bytes) override {
    if (bytes == 0) bytes = 64;
    if (options_.alloc) return options_.alloc(options_.alloc_user, bytes, 64);
    return ::operator new(bytes, std::align_val_t{64}, std::nothrow);
  }
  void release(void* memory) override {
    if (!memory) return;
    if (options_.free) options_.free(options_.alloc_user, memory);
    else ::operator delete(memory, std::align_val_t{64});
  }
  void* map_host(const void* host, size_t) override { return const_cast<void*>(host); }
  void unmap_host(void*) override {}
  Result<std::unique_ptr<Queue>> make_queue() override { return std::unique_ptr<Queue>(new CpuQueue(*this)); }

  int threads() const { return threads_; }
  void run(int32_t n, ThreadPool::Task fn, void* context) {
    if (n == 1) fn(context, 0);
    else if (options_.host_parallel_for) options_.host_parallel_for(options_.host_user, fn, context, n);
    else pool_.run(n, fn, context);
  }

 private:
  static int64_t best_target() {
    const int64_t t = supported_isas();
    return t & -t;  // Highway numbers the best targets lowest
  }
  CpuOptions options_;
  ThreadPool pool_;
  int threads_ = 1;
  std::string isa_;
};

struct Batch {
  const Op* op;
  int32_t first;
  int threads;
};

void run_one(void* context, int32_t i) {
  const FpEnv env;  // the host's job system runs tasks on threads of its own
  const Batch& b = *static_cast<const Batch*>(context);
  std::visit([&](const auto& op) { cpu::run(op, b.first + i, b.threads, thread_scratch()); }, *b.op);
}

// Tasks between two looks at the clock: a few tens of microseconds each (see tasks()).
constexpr int32_t kTasksPerThread = 3;

Result<RunState> CpuQueue::advance(Clock::time_point deadline) {
  const FpEnv env;
  const int threads = device_.threads();
  const bool timed = deadline != kNoDeadline;
  int unchecked = 0;
  while (op_ < ops_.size()) {
    const Op& op = ops_[op_];
    const int32_t n = std::visit([&](const auto& o) { return cpu::tasks(o, threads); }, op);
    while (task_ < n) {
      const int32_t count = timed ? std::min(n - task_, threads * kTasksPerThread) : n - task_;
      Batch batch{&op, task_, threads};
      device_.run(count, run_one, &batch);
      task_ += count;
      // Single-task ops are tiny; the clock is not asked after each.
      if (timed && (count > 1 || ++unchecked == 8)) {
        unchecked = 0;
        if ((task_ < n || op_ + 1 < ops_.size()) && Clock::now() >= deadline) {
          if (task_ == n) {
            ++op_;
            task_ = 0;
          }
          return RunState::pending;
        }
      }
    }
    ++op_;
    task_ = 0;
  }
  return RunState::done;
}

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options) {
  if (options.threads < 0 || options.threads > 1024)
    return error(Code::invalid_argument, "threads: " + std::to_string(options.threads));
  return std::unique_ptr<Device>(new cpu::CpuDevice(options));
}

void set_isa_mask(int64_t targets) { hwy::SetSupportedTargetsForTest(targets); }

int64_t supported_isas() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace aerie::kernels
