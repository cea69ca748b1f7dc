// The emulated GPU from outside: how tests set it up and what it found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/cuda_emulation/kernel.h"

namespace aerie::kernels::cuda::emulation {

// One launch: every block in turn. Returns what went wrong, empty if nothing.
std::string run_grid(Index grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body);

// In which order a block's threads go on between barriers, and its blocks run: 0 ascending, 1 descending, else shuffled
// by this seed. No result may depend on it.
void set_order(uint32_t order);

// Of the emulated runtime (gpu_emulated.cc).
struct Faults {
  int devices = 1;            // 0: no device
  bool old_driver = false;
  int64_t memory = INT64_MAX; // bytes of device memory
  int64_t launches = -1;      // so many more succeed, then the device is lost for good; < 0: all
};
void set_faults(const Faults& faults);
int64_t allocated_bytes();
int64_t graph_launches();
int64_t kernel_launches();
int64_t host_waits();  // events recorded: each is the end of work that the host waits for

}  // namespace aerie::kernels::cuda::emulation
