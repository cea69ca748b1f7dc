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
// Whether there are products of whole warpgroups (there are at first). No result may depend on it.
void set_warpgroups(bool there);

// Bytes of shared memory that a block may ask for (at first as a Hopper chip has them). No result may depend on it.
constexpr uint32_t kHopperShared = 225 << 10;
void set_most_shared(uint32_t bytes);
uint32_t most_shared_bytes();

// Of the emulated runtime (gpu_emulated.cc).
struct Faults {
  int devices = 1;            // 0: no device
  bool old_driver = false;
  int64_t memory = INT64_MAX; // bytes of device and pinned memory
  bool no_graphs = false;     // there is no memory to make one
  bool no_graph_runs = false; // nor to run one for the first time
  bool no_products = false;   // cuBLASLt is not installed
  int64_t launches = -1;      // so many more succeed, then the device is lost for good; < 0: all
};
void set_faults(const Faults& faults);
int64_t allocated_bytes();
// What the runtime has been asked for so far.
struct Counts {
  int64_t allocations = 0;  // of device and pinned memory
  int64_t captures = 0, graph_launches = 0;
  int64_t graphs = 0;       // that exist
  int64_t kernels = 0;      // run, alone or in graphs
  int64_t products = 0;     // of a library
  int64_t host_waits = 0;   // events recorded: each is the end of work that the host waits for
};
Counts counts();
// Is this thread within a call of the emulated runtime? What it takes from the heap a GPU's would not.
bool inside();

}  // namespace aerie::kernels::cuda::emulation
