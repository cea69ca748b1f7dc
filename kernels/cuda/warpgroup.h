// Products of the tensor cores by four warps together (wgmma), for which there is an instruction in code for sm_90a alone. Each
// warp has its own a (16 rows, as in mma), all have b in shared memory: groups of 8 columns, `next_group` bytes apart; of each
// group the first half of k, then the second, a column after another (16 bytes, the columns of PTX's core matrices).
#pragma once

#include "kernels/cuda/kernel.h"

#ifdef __CUDACC__
namespace aerie::kernels::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define AERIE_WARPGROUPS(...) __VA_ARGS__
constexpr bool kWarpgroups = true;
#else
#define AERIE_WARPGROUPS(...)
constexpr bool kWarpgroups = false;
#endif

// Are they used? (Tests without a GPU try both.)
__device__ constexpr bool warpgroups() { return kWarpgroups; }

// What this thread copied to shared memory is there for them, after a barrier.
__device__ __forceinline__ void show_to_warpgroup_mma() { AERIE_WARPGROUPS(asm volatile("fence.proxy.async.shared::cta;" ::: "memory");) }
// Around a group of products. From the beginning of the first until they have been waited for nobody touches what they read and add to.
__device__ __forceinline__ void begin_warpgroup_mma() { AERIE_WARPGROUPS(asm volatile("wgmma.fence.sync.aligned;" ::: "memory");) }
__device__ __forceinline__ void end_warpgroup_mma() { AERIE_WARPGROUPS(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");) }
// Until only the kLeft groups that ended last may be under way.
template <int kLeft>
__device__ __forceinline__ void wait_for_warpgroup_mma() {
  AERIE_WARPGROUPS(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");)
}

// Of PTX: where it is, how far apart halves of k are, and groups; no swizzle.
__device__ __forceinline__ uint64_t matrix_descriptor(const void* shared, uint32_t next_group) {
  const auto field = [](uint64_t bytes) { return bytes >> 4 & 0x3fff; };
  return field(__cvta_generic_to_shared(shared)) | field(128) << 16 | field(next_group) << 32;
}

// c (16 rows a warp x 8 columns, for each group, in the fragments of mma) += a b.
#define AERIE_SUMS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define AERIE_WARPGROUP_MMA(name, types)                                                                                        \
  template <int kGroups>                                                                                                        \
  __device__ __forceinline__ void name(float(&c)[kGroups][4], const uint32_t (&a)[4], const void* b, uint32_t next_group) {     \
    static_assert(kGroups == 4 || kGroups == 8);                                                                                \
    const uint64_t d = matrix_descriptor(b, next_group);                                                                        \
    if constexpr (kGroups == 4)                                                                                                 \
      AERIE_WARPGROUPS(asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"                                                  \
                                    "wgmma.mma_async.sync.aligned.m64n32k16.f32." types                                         \
                                    " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20, p,"      \
                                    " 1, 1, 0;}"                                                                                \
                                    : AERIE_SUMS(0), AERIE_SUMS(1), AERIE_SUMS(2), AERIE_SUMS(3)                                \
                                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(d), "r"(1)));                             \
    else                                                                                                                        \
      AERIE_WARPGROUPS(asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                  \
                                    "wgmma.mma_async.sync.aligned.m64n64k16.f32." types                                         \
                                    " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"  \
                                    "%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, 0;}"                    \
                                    : AERIE_SUMS(0), AERIE_SUMS(1), AERIE_SUMS(2), AERIE_SUMS(3),                               \
                                      AERIE_SUMS(4), AERIE_SUMS(5), AERIE_SUMS(6), AERIE_SUMS(7)                                \
                                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(d), "r"(1)));                             \
  }
AERIE_WARPGROUP_MMA(warpgroup_mma_bf16, "bf16.bf16")
AERIE_WARPGROUP_MMA(warpgroup_mma_half, "f16.f16")
#undef AERIE_WARPGROUP_MMA
#undef AERIE_SUMS

}  // namespace aerie::kernels::cuda
#endif
