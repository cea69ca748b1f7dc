// An asynchronous device without hardware: plans run on a thread of its own, on another device, and
// device addresses fault when the host touches them. What works on it will not fail on a GPU for
// reading device memory, for reading results too early, or for passing the wrong kind of address.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/mock/address_map.h"
#include "kernels/mock/translate.h"

namespace aerie::kernels {
namespace {

class MockQueue final : public Queue {
 public:
  MockQueue(const mock::AddressMap& map, std::unique_ptr<Queue> inner)
      : map_(map), inner_(std::move(inner)), thread_([this] { work(); }) {}

  ~MockQueue() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  Status submit(std::span<const Op> ops) override {
    {
      const std::lock_guard lock(mutex_);
      if (state_ == RunState::pending) return error(Code::busy, "mock queue: a plan is running");
    }
    ops_.assign(ops.begin(), ops.end());
    for (size_t i = 0; i < ops_.size(); ++i) AERIE_TRY(mock::translate(map_, &ops_[i]).at("op " + std::to_string(i)));
    {
      const std::lock_guard lock(mutex_);
      state_ = RunState::pending;
      status_ = {};
    }
    wake_.notify_all();
    return {};
  }

  Result<RunState> advance(Clock::time_point deadline) override {
    std::unique_lock lock(mutex_);
    const auto finished = [&] { return state_ != RunState::pending; };
    if (deadline == kNoDeadline)
      done_.wait(lock, finished);
    else
      done_.wait_until(lock, deadline, finished);
    if (!status_.ok()) return status_;
    return state_;
  }

  void abandon() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return state_ != RunState::pending; });
    state_ = RunState::idle;
    status_ = {};
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || state_ == RunState::pending; });
      if (state_ != RunState::pending) return;  // a submitted plan is finished even when stopping
      lock.unlock();
      Status status = inner_->submit(ops_);
      while (status.ok()) {
        const Result<RunState> r = inner_->advance(kNoDeadline);
        if (!r.ok())
          status = r.status();
        else if (*r != RunState::pending)
          break;
      }
      lock.lock();
      status_ = std::move(status);
      state_ = RunState::done;
      done_.notify_all();
    }
  }

  const mock::AddressMap& map_;
  std::unique_ptr<Queue> inner_;
  std::vector<Op> ops_;  // translated; the thread's while a plan is pending
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  RunState state_ = RunState::idle;
  Status status_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

class MockDevice final : public Device {
 public:
  explicit MockDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const char* name() const override { return "mock"; }
  const char* isa() const override { return inner_->isa(); }
  const char* chip() const override { return inner_->chip(); }
  int threads() const override { return inner_->threads(); }
  int warm_ups() const override { return inner_->warm_ups(); }
  bool far() const override { return inner_->far(); }

  void* allocate(size_t bytes) override {
    void* backing = inner_->allocate(bytes);
    if (!backing) return nullptr;
    void* address = map_.add(backing, bytes);
    if (!address) inner_->release(backing);
    return address;
  }
  void release(void* memory) override {
    if (void* backing = memory ? map_.remove(memory) : nullptr) inner_->release(backing);
  }

  void* map_host(const void* host, size_t bytes) override {
    // A copy, as on a GPU; made by a plan, for even this class cannot tell what backs the memory.
    void* address = allocate(bytes);
    if (!address) return nullptr;
    Result<std::unique_ptr<Queue>> queue = make_queue();
    const Op op = Upload{address, host, static_cast<int64_t>(bytes)};
    if (queue.ok() && (*queue)->submit({&op, 1}).ok() && (*queue)->advance(kNoDeadline).ok()) return address;
    release(address);
    return nullptr;
  }
  void unmap_host(void* memory) override { release(memory); }
  Status no_memory(const std::string& what) const override { return inner_->no_memory(what); }
  Status load_fast_linear() override { return inner_->load_fast_linear(); }

  Result<std::unique_ptr<Queue>> make_queue() override {
    AERIE_ASSIGN(std::unique_ptr<Queue> inner, inner_->make_queue());
    return std::unique_ptr<Queue>(new MockQueue(map_, std::move(inner)));
  }

 private:
  std::unique_ptr<Device> inner_;
  mock::AddressMap map_;
};

}  // namespace

std::unique_ptr<Device> make_mock_device(std::unique_ptr<Device> inner) {
  return std::make_unique<MockDevice>(std::move(inner));
}

}  // namespace aerie::kernels
