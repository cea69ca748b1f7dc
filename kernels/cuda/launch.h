// Starting kernels: the only place with <<<>>>, so that an emulation can take its place.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/kernel.h"

namespace aerie::kernels::cuda {

struct Grid {
  int64_t x = 1, y = 1, z = 1;
  bool empty() const { return x <= 0 || y <= 0 || z <= 0; }
};

#ifdef __CUDACC__
template <auto kKernel, class... Args>
void launch(gpu::Stream stream, Grid grid, unsigned threads, size_t shared_bytes, const Args&... args) {
  if (grid.empty()) return;
  if (shared_bytes > 48 << 10) {  // more than every kernel may have unasked
    static const cudaError_t allowed = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 99 << 10);
    (void)allowed;  // the launch fails if it was not
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  kKernel<<<blocks, threads, shared_bytes, reinterpret_cast<cudaStream_t>(stream)>>>(args...);
}
#else
// Puts the launch on the emulated stream.
void emulate_launch(gpu::Stream stream, emulation::Index grid, unsigned threads, size_t shared_bytes,
                    std::function<void()> body);
template <auto kKernel, class... Args>
void launch(gpu::Stream stream, Grid grid, unsigned threads, size_t shared_bytes, const Args&... args) {
  if (grid.empty()) return;
  emulate_launch(stream, {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
                 threads, shared_bytes, [=] { kKernel(args...); });
}
#endif

}  // namespace aerie::kernels::cuda
