#include <new>

#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels {
namespace {

constexpr std::align_val_t kAlign{64};

class ReferenceQueue final : public Queue {
 public:
  Status submit(std::span<const Op> ops) override {
    if (state_ == RunState::pending) return error(Code::busy, "a plan is already running");
    ops_ = ops;
    next_ = 0;
    state_ = RunState::pending;
    return {};
  }

  Result<RunState> advance(Clock::time_point deadline) override {
    while (state_ == RunState::pending) {
      if (next_ == ops_.size()) {
        state_ = RunState::done;
        break;
      }
      const Op& op = ops_[next_++];
      std::visit([](const auto& o) { reference::run(o); }, op);
      if (const auto* run_if = std::get_if<RunIf>(&op); run_if && *run_if->wanted == 0) next_ += static_cast<size_t>(run_if->ops);
      if (next_ < ops_.size() && deadline != kNoDeadline && Clock::now() >= deadline) break;
    }
    return state_;
  }

  void abandon() override { state_ = RunState::idle; }

 private:
  std::span<const Op> ops_;
  size_t next_ = 0;
  RunState state_ = RunState::idle;
};

class ReferenceDevice final : public Device {
 public:
  const char* name() const override { return "reference"; }
  const char* isa() const override { return "scalar"; }
  bool host_reads() const override { return true; }
  void* allocate(size_t bytes) override { return ::operator new(bytes ? bytes : 1, kAlign, std::nothrow); }
  void release(void* memory) override { ::operator delete(memory, kAlign); }
  void* map_host(const void* host, size_t) override { return const_cast<void*>(host); }
  void unmap_host(void*) override {}
  Result<std::unique_ptr<Queue>> make_queue() override { return std::unique_ptr<Queue>(new ReferenceQueue); }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() { return std::make_unique<ReferenceDevice>(); }

}  // namespace aerie::kernels
