// Device: memory and queues of one compute backend.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/ops.h"
#include "kernels/status.h"

namespace aerie::kernels {

using Clock = std::chrono::steady_clock;
constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

enum class RunState : uint8_t { idle, pending, done };

// An ordered stream of plans. One plan at a time; used by one thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  // Start a plan. `ops` and all host memory they name stay alive and unchanged until it is done.
  virtual Status submit(std::span<const Op> ops) = 0;
  // Make progress until the plan is done or `deadline` has passed; a synchronous device computes
  // in here (between slices of an op it looks at the clock), an asynchronous one waits.
  // With a deadline already past, at least one slice is run, so repeated calls always finish.
  virtual Result<RunState> advance(Clock::time_point deadline) = 0;
  // From now on deadlines may be overrun by about so much (0 at first). A synchronous device then cuts up long ops only, for
  // threads wait for each other after every slice.
  virtual void set_slack(Clock::duration) {}
  // Drop what is left of the plan; returns once the device touches none of its memory.
  virtual void abandon() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;  // "cpu", "cuda", ...
  virtual const char* isa() const = 0;   // "AVX3_DL, 2 threads", "sm_90, NVIDIA H100 80GB HBM3"
  virtual const char* chip() const { return ""; }  // its model, where it is not this host's processor
  virtual int threads() const { return 1; }  // of this host that a pass is spread over
  // Passes of a kind before one that takes as long as all later ones will.
  virtual int warm_ups() const { return 1; }
  // It has memory and a clock of its own: what the host reads back, both wait for.
  virtual bool far() const { return false; }
  // The host may read its memory where it lies, once a plan has run.
  virtual bool host_reads() const { return false; }
  // 64-byte aligned device memory, contents undefined; null when there is none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  // Give the device read access to host memory (weights in a mapped file). A device that can read
  // host memory returns the same address; others copy. Undo with unmap_host. Null: out of memory.
  virtual void* map_host(const void* host, size_t bytes) = 0;
  virtual void unmap_host(void* memory) = 0;
  // What a null of these means, which was to be for `what`: no memory, or a device that has failed.
  virtual Status no_memory(const std::string& what) const { return error(Code::out_of_memory, what + ": no device memory"); }
  // Before the first Linear that is `fast`. An error: there is no such thing here, and why.
  virtual Status load_fast_linear() {
    return error(Code::unsupported, std::string("device ") + name() + " has one way to multiply, which is exact");
  }
  virtual Result<std::unique_ptr<Queue>> make_queue() = 0;
};

}  // namespace aerie::kernels
