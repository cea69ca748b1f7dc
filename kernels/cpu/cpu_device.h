// The CPU backend: Highway kernels chosen for the running CPU, a thread pool that spins within a
// pass and parks between passes, or the host's own job system.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace aerie::kernels {

// Runs fn(ctx, i) for i in [0, n), returning when all are done. Tasks never wait for each other,
// so an implementation may run them one by one.
using ParallelFor = void (*)(void* user, void (*fn)(void* ctx, int32_t i), void* ctx, int32_t n);

struct CpuOptions {
  int threads = 0;                 // 0: one for each physical core that this process may use (cores.h)
  ParallelFor host_parallel_for = nullptr;  // replaces the pool when set
  void* host_user = nullptr;
  void* (*alloc)(void* user, size_t bytes, size_t alignment) = nullptr;  // null: aligned operator new
  void (*free)(void* user, void* memory) = nullptr;
  void* alloc_user = nullptr;
  std::string isa = {};  // one of supported_isas() by its name (isa.h); empty: the best
};

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options);

// Scalar, single-threaded, obviously right: the oracle of the tests.
std::unique_ptr<Device> make_reference_device();

// Asynchronous device over `inner` whose addresses fault when the host touches them.
std::unique_ptr<Device> make_mock_device(std::unique_ptr<Device> inner);

// Pack row-major f32 weights (N, K) to panel16; `data`/`scales` sized by data_bytes/scale_bytes.
void pack_panel16(const float* w, int64_t n, int64_t k, DType dtype, void* data, void* scales);
// The value a packed element stands for (tests, inspection).
float panel16_at(const Tensor& w, int64_t row, int64_t col);

}  // namespace aerie::kernels
