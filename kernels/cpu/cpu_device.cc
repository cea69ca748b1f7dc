// Executor of the CPU backend: ops in order, each as independent tasks.
#include "kernels/cpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <utility>

#include "kernels/cpu/cores.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/fp_env.h"

namespace aerie::kernels {

namespace cpu {

void Scratch::release() {
  ::operator delete(memory_, std::align_val_t{64});
  memory_ = nullptr;
  size_ = 0;
  kept_ = 0;
}

void* Scratch::get(size_t bytes) {
  kept_ = 0;
  if (bytes > size_) {
    release();
    memory_ = ::operator new(bytes, std::align_val_t{64});
    size_ = bytes;
  }
  return memory_;
}

namespace {

// Numbers for runs of ops, never used twice in a process: the scratch of a thread meets many devices.
uint64_t new_runs(size_t n) {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(n, std::memory_order_relaxed);
}

class CpuDevice;

class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(CpuDevice& device) : device_(device) {}
  ~CpuQueue() override { shared_memory_.release(); }
  Status submit(std::span<const Op> ops) override {
    if (state_ == RunState::pending) return error(Code::busy, "cpu queue: a plan is running");
    ops_ = ops;
    op_ = 0;
    task_ = 0;
    begun_ = false;
    first_run_ = new_runs(ops.size());
    from_memory_ = have_weights_from_memory(ops);
    state_ = RunState::pending;
    return {};
  }
  Result<RunState> advance(Clock::time_point deadline) override;
  void set_slack(Clock::duration slack) override { slack_ = slack; }
  void abandon() override { state_ = RunState::idle; }

 private:
  static bool have_weights_from_memory(std::span<const Op> ops);
  int64_t estimate() const;
  int64_t first_round(int32_t tasks, int64_t time) const;
  void next_op() { ++op_, task_ = 0, begun_ = false; }
  Status no_memory() {
    state_ = RunState::idle;
    return error(Code::out_of_memory, "cpu queue: working memory of an op");
  }
  Status make_shared(int64_t time, const FpEnv& env);
  Status run_tasks(int32_t count, int64_t time, const FpEnv& env);

  CpuDevice& device_;
  RunState state_ = RunState::idle;
  std::span<const Op> ops_;
  size_t op_ = 0;
  int32_t task_ = 0;  // of ops_[op_]
  uint64_t first_run_ = 0;
  bool from_memory_ = false;
  Clock::duration slack_{};
  Scratch shared_memory_;    // grows to the largest op's
  void* shared_ = nullptr;   // of ops_[op_], once it has begun
  bool begun_ = false;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuOptions& options, const Isa* isa)
      : options_(options), wanted_(isa), pool_(options.host_parallel_for ? 1 : options.threads > 0 ? options.threads : usable_cores()) {
    threads_ = options.host_parallel_for && options.threads > 0 ? options.threads : pool_.threads();
    if (options.host_parallel_for && options.threads <= 0) threads_ = usable_cores();
    isa_ = isa_to_run().name();
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
  Result<std::unique_ptr<Queue>> make_queue() override {
    std::unique_ptr<Queue> queue(new (std::nothrow) CpuQueue(*this));
    if (!queue) return error(Code::out_of_memory, "cpu queue");
    return queue;
  }

  int threads() const override { return threads_; }
  bool host_reads() const override { return true; }
  const Isa& isa_to_run() const { return wanted_ ? *wanted_ : isa_of_process(); }
  void run(int32_t n, ThreadPool::Task fn, void* context, const FpEnv& env) {
    if (n == 1) return fn(context, 0);
    if (!options_.host_parallel_for || threads_ == 1) return pool_.run(n, fn, context);
    const FpEnv::Host host(env);  // a thread that waits may do other jobs of the host's
    options_.host_parallel_for(options_.host_user, fn, context, n);
  }

 private:
  CpuOptions options_;
  const Isa* const wanted_;  // null: the process's
  ThreadPool pool_;
  int threads_ = 1;
  std::string isa_;
};

struct Batch {
  const Op* op;
  int32_t first;
  int threads;
  uint64_t run;
  const Isa& isa;
  void* shared;
  std::atomic<bool> failed{false};
};

void make_part(void* context, int32_t i) noexcept {
  const FpEnv env;
  const Batch& b = *static_cast<Batch*>(context);
  const RunsIsa isa(b.isa);
  std::visit([&](const auto& op) { cpu::make_shared(op, i, b.threads, b.shared); }, *b.op);
}

// Noexcept for what throws on a thread that is not ours. Only scratch memory can: it grows to the
// largest op once.
void run_one(void* context, int32_t i) noexcept {
  const FpEnv env;  // the host's job system runs tasks on threads of its own
  Batch& b = *static_cast<Batch*>(context);
  const RunsIsa isa(b.isa);
  try {
    TaskScratch scratch;
    scratch.get().enter(b.run, b.shared);
    std::visit([&](const auto& op) { cpu::run(op, b.first + i, b.threads, scratch.get()); }, *b.op);
  } catch (...) {
    b.failed.store(true, std::memory_order_relaxed);
  }
}

// Tasks a thread until the next look at the clock, when one took `task`: what fits into half of the time that is left.
// Far from the deadline there is little waiting for each other, close to it nothing is overrun by more than a task.
int64_t tasks_that_fit(Clock::duration left, Clock::duration task) {
  return std::max<int64_t>(1, left / 2 / std::max(task, Clock::duration(1)));
}

// Handing tasks to another core and hearing from it takes some microseconds.
constexpr int64_t kWorthSharing = 10000;

// A task of an op without estimate takes no longer; most take a few microseconds.
constexpr int64_t kTask = 50000;

int64_t weights_of(const Op& op) {
  if (const auto* linear = std::get_if<Linear>(&op)) return cpu::weights_read(*linear);
  // Of a mixture of experts, all: each pass takes others.
  if (const auto* experts = std::get_if<ExpertLinear>(&op)) return cpu::weights_read(Linear{experts->x, experts->w, {}, {}, {}});
  return 0;
}

// Weights of a plan that has more of them than caches hold.
bool CpuQueue::have_weights_from_memory(std::span<const Op> ops) {
  constexpr int64_t kCaches = 32 << 20;
  int64_t bytes = 0;
  for (const Op& op : ops) bytes += weights_of(op);
  return bytes > kCaches;
}

// Nanoseconds that one thread takes for the op, at best: `time` below.
int64_t CpuQueue::estimate() const {
  return std::visit(
      [this](const auto& op) { return std::max(cpu::estimate(op), from_memory_ ? weights_read(op) / kMemoryBytes : 0); }, ops_[op_]);
}

// Tasks a thread, of so many: what the slack allows, at least the one that says how long they are.
int64_t CpuQueue::first_round(int32_t tasks, int64_t time) const {
  const int64_t slack = std::chrono::duration_cast<std::chrono::nanoseconds>(slack_).count();
  const int64_t task = time < INT64_MAX ? std::max<int64_t>(1, time / std::max(1, tasks)) : kTask;
  return std::max<int64_t>(1, slack / task);
}

// What all tasks of ops_[op_] read.
Status CpuQueue::make_shared(int64_t time, const FpEnv& env) {
  shared_ = nullptr;
  const int threads = device_.threads();
  const int64_t bytes = std::visit([&](const auto& op) { return cpu::shared_bytes(op, threads); }, ops_[op_]);
  if (bytes == 0 || time < kWorthSharing) return {};
  try {
    shared_ = shared_memory_.get(static_cast<size_t>(bytes));
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  Batch batch{&ops_[op_], 0, threads, 0, device_.isa_to_run(), shared_};
  device_.run(std::visit([&](const auto& op) { return cpu::shared_parts(op, threads); }, ops_[op_]), make_part, &batch, env);
  return {};
}

Status CpuQueue::run_tasks(int32_t count, int64_t time, const FpEnv& env) {
  Batch batch{&ops_[op_], task_, device_.threads(), first_run_ + op_, device_.isa_to_run(), shared_};
  if (time < kWorthSharing) {
    for (int32_t i = 0; i < count; ++i) run_one(&batch, i);
  } else {
    device_.run(count, run_one, &batch, env);
  }
  task_ += count;
  return batch.failed.load(std::memory_order_relaxed) ? no_memory() : Status();
}

Result<RunState> CpuQueue::advance(Clock::time_point deadline) {
  if (state_ != RunState::pending) return state_;
  const FpEnv env;
  const RunsIsa isa(device_.isa_to_run());
  const int threads = device_.threads();
  const bool timed = deadline != kNoDeadline;
  Clock::time_point now = timed ? Clock::now() : Clock::time_point();
  for (; op_ < ops_.size(); next_op()) {
    if (const auto* run_if = std::get_if<RunIf>(&ops_[op_])) {
      if (*run_if->wanted == 0) op_ += static_cast<size_t>(run_if->ops);
      continue;
    }
    const int32_t n = std::visit([&](const auto& o) { return cpu::tasks(o, threads); }, ops_[op_]);
    const int64_t time = estimate();
    // A row's context says how long its attention takes: one task says nothing about the next.
    const bool alike = !std::holds_alternative<Attention>(ops_[op_]);
    int64_t round = timed ? first_round(n, time) : n;  // tasks a thread
    if (!std::exchange(begun_, true)) {
      AERIE_TRY(make_shared(time, env));
      // A piece of its own, but with slack, where an op may run in one.
      if (timed && shared_ && slack_ == Clock::duration() && (now = Clock::now()) >= deadline) return state_;
    }
    while (task_ < n) {
      const auto count = static_cast<int32_t>(std::min<int64_t>(n - task_, round * threads));
      AERIE_TRY(run_tasks(count, time, env));
      if (!timed) continue;
      const Clock::time_point start = std::exchange(now, Clock::now());
      if ((task_ < n || op_ + 1 < ops_.size()) && now >= deadline) {
        if (task_ == n) next_op();
        return state_;
      }
      if (alike && task_ < n)  // so the deadline is ahead
        round = std::min<int64_t>(n, tasks_that_fit(deadline - now + slack_, (now - start) * threads / count));
    }
  }
  return state_ = RunState::done;
}

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options) {
  const Isa* isa = nullptr;
  if (!options.isa.empty()) {
    AERIE_ASSIGN(isa, cpu::find_isa(options.isa));
  }
  if (options.threads < 0 || options.threads > 1024)
    return error(Code::invalid_argument, "threads: " + std::to_string(options.threads));
  if ((options.alloc == nullptr) != (options.free == nullptr))
    return error(Code::invalid_argument, "alloc and free: set both or none");
  return std::unique_ptr<Device>(new cpu::CpuDevice(options, isa));
}

}  // namespace aerie::kernels
