// What a plan uploads and downloads, between its place in the queue's memory and its own.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kCopyThreads = 128;

template <class T>
__device__ void copy_as(const Transfer& t) {
  const int64_t n = t.bytes / static_cast<int64_t>(sizeof(T)), step = static_cast<int64_t>(gridDim.x) * kCopyThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x; i < n; i += step)
    static_cast<T*>(t.to)[i] = static_cast<const T*>(t.from)[i];
}

__device__ void transfer(const Transfer& t) {
  const auto all = reinterpret_cast<uintptr_t>(t.to) | reinterpret_cast<uintptr_t>(t.from) | static_cast<uintptr_t>(t.bytes);
  if (all % 16 == 0) copy_as<uint4>(t);
  else if (all % 4 == 0) copy_as<uint32_t>(t);
  else copy_as<char>(t);
}

}  // namespace

void enqueue(const Transfer& t, const Place& p) {
  launch<transfer>(p, {std::min<int64_t>(bucket((t.bytes + 16 * kCopyThreads - 1) / (16 * kCopyThreads)), 256)}, kCopyThreads, 0, t);
}

}  // namespace aerie::kernels::cuda
