// Plan: a recorded sequence of ops and the memory they work in. The target's forward and a drafter's
// compute calls record into the same kind of plan; one executor (the device's queue) runs them all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "kernels/status.h"

namespace aerie {

class Plan {
 public:
  // index_bytes: room for everything stage() is given between two clear()s.
  static Result<std::unique_ptr<Plan>> create(std::shared_ptr<kernels::Device> device, size_t index_bytes);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Forget the ops and reuse the memory. Only when no queue runs the plan.
  void clear();
  // Forget the ops, and keep what scratch() has given. Only when no queue runs the plan.
  void clear_ops();
  void add(kernels::Op op);
  // What is added between these two runs only where *wanted, on the device, is not 0 by then.
  void begin_if(const int32_t* wanted);
  void end_if();
  // f32 (rows, cols), 64-byte aligned rows of the whole block; valid until clear(). A failure sticks.
  kernels::Tensor scratch(int64_t rows, int64_t cols);
  // Copies host data into what one Upload at the head of the plan brings over; the device address.
  template <class T>
  const T* stage(std::span<const T> data) {
    return static_cast<const T*>(stage_bytes(data.data(), data.size_bytes()));
  }
  // The first failure of recording; submit() returns it.
  void fail(Status status);
  const Status& status() const { return status_; }
  Status submit(kernels::Queue& queue);

 private:
  Plan(std::shared_ptr<kernels::Device> device, size_t index_bytes);
  const void* stage_bytes(const void* data, size_t bytes);

  struct Block {
    char* data;
    size_t size;
  };
  std::shared_ptr<kernels::Device> device_;
  std::vector<kernels::Op> ops_;
  size_t if_ = 0;                  // its RunIf, of ops_
  std::vector<Block> blocks_;      // scratch; grows while warming up, then is only reused
  size_t block_ = 0, used_ = 0;    // current block, bytes used in it
  std::vector<char> staging_;      // host side of `index_`
  char* index_ = nullptr;          // device side
  size_t staged_ = 0;
  Status status_;
};

}  // namespace aerie
