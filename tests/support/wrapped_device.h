// A device that passes everything on, for those that count, time or delay what is asked of it.
#pragma once

#include <memory>
#include <utility>

#include "kernels/device.h"

namespace aerie::test {

class WrappedQueue : public kernels::Queue {
 public:
  explicit WrappedQueue(std::unique_ptr<kernels::Queue> inner) : inner_(std::move(inner)) {}
  Status submit(std::span<const kernels::Op> ops) override { return inner_->submit(ops); }
  Result<kernels::RunState> advance(kernels::Clock::time_point deadline) override { return inner_->advance(deadline); }
  void set_slack(kernels::Clock::duration slack) override { inner_->set_slack(slack); }
  void abandon() override { inner_->abandon(); }

 protected:
  std::unique_ptr<kernels::Queue> inner_;
};

class WrappedDevice : public kernels::Device {
 public:
  explicit WrappedDevice(std::shared_ptr<kernels::Device> inner) : inner_(std::move(inner)) {}
  const char* name() const override { return inner_->name(); }
  const char* isa() const override { return inner_->isa(); }
  const char* chip() const override { return inner_->chip(); }
  int threads() const override { return inner_->threads(); }
  int warm_ups() const override { return inner_->warm_ups(); }
  bool far() const override { return inner_->far(); }
  bool host_reads() const override { return inner_->host_reads(); }
  void* allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void release(void* memory) override { inner_->release(memory); }
  void* map_host(const void* host, size_t bytes) override { return inner_->map_host(host, bytes); }
  void unmap_host(void* memory) override { inner_->unmap_host(memory); }
  Status no_memory(const std::string& what) const override { return inner_->no_memory(what); }
  Status load_fast_linear() override { return inner_->load_fast_linear(); }
  Result<std::unique_ptr<kernels::Queue>> make_queue() override {
    AERIE_ASSIGN(auto inner, inner_->make_queue());
    return wrap(std::move(inner));
  }

 protected:
  virtual std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) = 0;

 private:
  std::shared_ptr<kernels::Device> inner_;
};

}  // namespace aerie::test
