// Launching a kernel, which is a device function of one argument: it is noted with that (launches.h).
#pragma once

#include <type_traits>

#include "kernels/cuda/kernel.h"
#include "kernels/cuda/launches.h"

namespace aerie::kernels::cuda {

struct Grid {
  int64_t x = 1, y = 1, z = 1;
  bool empty() const { return x <= 0 || y <= 0 || z <= 0; }
};

template <class>
struct ArgumentOf;
template <class A>
struct ArgumentOf<void (*)(const A&)> {
  using Type = A;
};

#ifdef __CUDACC__
template <auto kKernel, int kThreads, class A>
__global__ void __launch_bounds__(kThreads) run_kernel(const A* argument) {
  const A a = *argument;
  kKernel(a);
}
#else
template <auto kKernel, int, class A>
void run_kernel(const void* argument) {
  const A a = *static_cast<const A*>(argument);
  kKernel(a);
}
#endif

template <auto kKernel, int kMostThreads = 256>
void launch(const Place& p, Grid grid, unsigned threads, size_t shared_bytes,
            const typename ArgumentOf<decltype(kKernel)>::Type& argument) {
  using A = typename ArgumentOf<decltype(kKernel)>::Type;
  static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 32);
  if (grid.empty()) return;
  p.launches->add({reinterpret_cast<gpu::Kernel>(&run_kernel<kKernel, kMostThreads, A>), static_cast<uint32_t>(grid.x),
                   static_cast<uint32_t>(grid.y), static_cast<uint32_t>(grid.z), threads, static_cast<uint32_t>(shared_bytes), 0},
                  &argument, sizeof(A));
}

}  // namespace aerie::kernels::cuda
