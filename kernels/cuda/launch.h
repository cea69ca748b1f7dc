// Launching a kernel, which is a device function of one argument: it is noted with that (launches.h).
//
// A kernel may begin before the one in front of it has ended, and waits for it (kernel.h): with what is between two kernels
// hundreds of times a pass, its argument and the first loads of weights are under way meanwhile. The argument came before the
// plan's first kernel began. What else a kernel does before it waits is a device function of its own, kAhead. All that this may
// touch is what no plan ever writes, and the block's shared memory; it may begin copies into that and leave them to the kernel.
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

// Whether a kernel is wanted may be decided while this waits. What is read before that costs time if it is not true any more, and
// nothing else; for levels that are passed over no weights are brought, but by the first kernel behind the decision perhaps.
template <auto kKernel, class A, void (*kAhead)(const A&)>
__device__ __forceinline__ void run_argument(const Argument<A>& full) {
  bool ahead = false;
  if constexpr (kAhead != nullptr) {
    ahead = !full.wanted || load_now(full.wanted) != 0;
    if (ahead) kAhead(full.value);
  }
  wait_for_kernel_before();
  if (full.wanted && load_now(full.wanted) == 0) {
    if (ahead) copy_async_commit(), copy_async_wait<0>();
    return;
  }
  if constexpr (kAhead != nullptr)
    if (!ahead) kAhead(full.value);
  kKernel(full.value);
}

#ifdef __CUDACC__
// How many blocks a multiprocessor should have registers for: what an argument says, 0 if it says nothing. For 1 none is spared
// for another block, at the price of loads that wait for one another.
template <class A>
constexpr int kLeastBlocks = 0;
template <class A>
  requires(A::kBlocks > 0)
constexpr int kLeastBlocks<A> = A::kBlocks;

template <auto kKernel, int kThreads, class A, void (*kAhead)(const A&)>
__global__ void __launch_bounds__(kThreads, kLeastBlocks<A>) run_kernel(const Argument<A>* argument) {
#else
template <auto kKernel, int kThreads, class A, void (*kAhead)(const A&)>
void run_kernel(const void* at) {
  emulation::launch_bounds(kThreads);
  const auto* argument = static_cast<const Argument<A>*>(at);
#endif
  allow_next_kernel();
  // One with kInShared has too much to keep in registers.
  if constexpr (requires { A::kInShared; }) run_argument<kKernel, A, kAhead>(shared_by_block(argument));
  else run_argument<kKernel, A, kAhead>(load_by_block(argument));
}

template <auto kKernel, int kMostThreads = 256, void (*kAhead)(const typename ArgumentOf<decltype(kKernel)>::Type&) = nullptr>
void launch(const Place& p, Grid grid, unsigned threads, size_t shared_bytes,
            const typename ArgumentOf<decltype(kKernel)>::Type& argument) {
  using A = typename ArgumentOf<decltype(kKernel)>::Type;
  static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 32 && sizeof(Argument<A>) <= kMostArgument);
  if (grid.empty()) return;
  const Argument<A> full{p.launches->wanted(), argument};
  p.launches->add({reinterpret_cast<gpu::Kernel>(&run_kernel<kKernel, kMostThreads, A, kAhead>), static_cast<uint32_t>(grid.x),
                   static_cast<uint32_t>(grid.y), static_cast<uint32_t>(grid.z), threads, static_cast<uint32_t>(shared_bytes), 0},
                  &full, sizeof full);
}

}  // namespace aerie::kernels::cuda
