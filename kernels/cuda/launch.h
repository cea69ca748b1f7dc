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

// What a kernel finds where its argument is: it runs if `wanted` is null or what it points to is not 0.
template <class A>
struct Argument {
  const int32_t* wanted;
  A value;
};

#ifdef __CUDACC__
template <auto kKernel, int kThreads, class A>
__global__ void __launch_bounds__(kThreads) run_kernel(const Argument<A>* argument) {
#else
template <auto kKernel, int kThreads, class A>
void run_kernel(const void* at) {
  emulation::launch_bounds(kThreads);
  const auto* argument = static_cast<const Argument<A>*>(at);
#endif
  if (argument->wanted && *argument->wanted == 0) return;
  const A a = argument->value;
  kKernel(a);
}

template <auto kKernel, int kMostThreads = 256>
void launch(const Place& p, Grid grid, unsigned threads, size_t shared_bytes,
            const typename ArgumentOf<decltype(kKernel)>::Type& argument) {
  using A = typename ArgumentOf<decltype(kKernel)>::Type;
  static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 32);
  if (grid.empty()) return;
  const Argument<A> full{p.launches->wanted(), argument};
  p.launches->add({reinterpret_cast<gpu::Kernel>(&run_kernel<kKernel, kMostThreads, A>), static_cast<uint32_t>(grid.x),
                   static_cast<uint32_t>(grid.y), static_cast<uint32_t>(grid.z), threads, static_cast<uint32_t>(shared_bytes), 0},
                  &full, sizeof full);
}

}  // namespace aerie::kernels::cuda
