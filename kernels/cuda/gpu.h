// The few things the CUDA backend asks of a GPU's runtime. gpu_cuda.cc asks the CUDA runtime;
// tests link an emulation instead (tests/support/cuda_emulation), with the same kernel sources.
//
// All calls after open() are for one device; any thread may make them after attach().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace aerie::kernels::cuda {
// Bytes of shared memory that a block may ask for on every device we build for: of 99 KiB its argument takes some (kernel.h).
constexpr int kMostShared = 98 << 10, kMostArgument = 1 << 10;
}  // namespace aerie::kernels::cuda

namespace aerie::kernels::cuda::gpu {

struct Info {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  uint32_t most_shared = kMostShared;  // that a block may ask for
};
// The device, made current on this thread. no device, too old a driver or device: an error that says so.
Result<Info> open(int device);
Status attach(int device);

// 256-byte aligned device memory.
Result<void*> allocate(size_t bytes);
void release(void* memory);
// Host memory that the device copies from on its own, and that kernels write.
Result<void*> allocate_pinned(size_t bytes);
void release_pinned(void* memory);

struct StreamTag;
struct EventTag;
struct GraphTag;
using Stream = StreamTag*;
using Event = EventTag*;
using Graph = GraphTag*;

Result<Stream> make_stream();
void destroy(Stream stream);
Result<Event> make_event();
void destroy(Event event);
Status record(Event event, Stream stream);
Result<bool> reached(Event event);  // does not wait
Status wait(Event event);
Status wait(Stream stream);

// Asynchronous with pinned host memory.
Status copy_to_device(void* device, const void* host, size_t bytes, Stream stream);
Status copy_to_host(void* host, const void* device, size_t bytes, Stream stream);

// What is put on the stream between these is not run but recorded.
Status begin_capture(Stream stream);
Result<Graph> end_capture(Stream stream);
Status run(Graph graph, Stream stream);
void destroy(Graph graph);

// A kernel (launch.h) and its grid; `argument`: of what it reads, from the beginning of the plan's arguments on. Without
// padding: launches are compared as bytes.
using Kernel = const void*;
struct Launch {
  Kernel kernel = nullptr;
  uint32_t x = 1, y = 1, z = 1, threads = 1, shared_bytes = 0, argument = 0;
};
static_assert(sizeof(Launch) == sizeof(Kernel) + 6 * sizeof(uint32_t));
// `early`: behind another kernel, which it may begin before (kernel.h). Only where can_be_early. `all_shared`: whatever it asks for,
// the first-level cache gives all it can to shared memory, so that a kernel that asks for much may begin beside it.
Status launch(const Launch& launch, const void* argument, Stream stream, bool early, bool all_shared = false);
// Has the current device code of this kernel (and so of all of them: they are compiled alike) that waits?
bool can_be_early(Kernel kernel);

// out (count, outputs) f32 = rows (count, width) weights (outputs, width)^T, both bf16, row after row, by NVIDIA's cuBLASLt:
// fast for many rows, in an order of sums that depends on how many (products_cublaslt.cc).
struct Product {
  static constexpr size_t kRoom = size_t{32} << 20;
  float* out;
  const uint16_t *weights, *rows;
  int64_t outputs, width, count;
  void* room;  // kRoom bytes
};
Status load_products();  // the library is there
Status multiply(const Product& product, Stream stream);  // not while capturing

}  // namespace aerie::kernels::cuda::gpu
