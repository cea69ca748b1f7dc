// The language kernels are written in: CUDA C++ with these few functions for whatever moves data between
// threads or uses the tensor cores. Without nvcc, an emulation of the same words (tests only).
//
// Shared memory is the launch's dynamic one, but for a kernel's argument. Blocks are whole warps, and no thread leaves before
// the last barrier of its block.
#pragma once

#ifndef __CUDACC__
#include <functional>

#include AERIE_CUDA_EMULATION
#else

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace aerie::kernels::cuda {

__device__ __forceinline__ void sync_block() { __syncthreads(); }
__device__ __forceinline__ void sync_warp() { __syncwarp(); }

template <class T>
__device__ __forceinline__ T* shared_memory() {
  extern __shared__ uint4 aerie_shared[];
  return reinterpret_cast<T*>(aerie_shared);
}

// The value of another lane of the warp.
template <class T>
__device__ __forceinline__ T shuffle(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
template <class T>
__device__ __forceinline__ T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}

// Bit l: of lane l of the warp.
__device__ __forceinline__ uint32_t ballot(bool v) { return __ballot_sync(0xffffffffu, v); }
__device__ __forceinline__ int lowest_lane(uint32_t lanes) { return __ffs(static_cast<int>(lanes)) - 1; }

template <class T>
__device__ __forceinline__ T atomic_add(T* p, T v) {
  return atomicAdd(p, v);
}
__device__ __forceinline__ uint64_t atomic_add(uint64_t* p, uint64_t v) {
  static_assert(sizeof(unsigned long long) == 8);
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(v));
}

// Programmatic dependent launch, from sm_90 on. Once all blocks of a kernel have begun and allowed it, those of the next
// kernel of the stream may come, for as far as there is room; they wait for the kernel in front of them to end, and for what
// it wrote. Where a launch did not ask for this (gpu.h), both are nothing.
__device__ __forceinline__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// What all threads of a block need, read once for all of them: what thousands of warps read one by one at the same address
// comes from one place of the second-level cache, which gives out a few words a cycle (a kernel of 64 rows that should take 5
// us took 68 on an H100). It was written before the kernel in front of this one began, and may have been in this
// multiprocessor's own cache before that.
template <class T>
__device__ __forceinline__ const T& shared_by_block(const T* at) {
  using Word = unsigned long long;
  constexpr unsigned kWords = sizeof(T) / sizeof(Word);
  static_assert(sizeof(T) % sizeof(Word) == 0 && alignof(T) == alignof(Word));
  __shared__ Word words[kWords];
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) words[i] = __ldcg(reinterpret_cast<const Word*>(at) + i);
  __syncthreads();
  return *reinterpret_cast<const T*>(words);
}
template <class T>
__device__ __forceinline__ T load_by_block(const T* at) {  // the same in registers
  using Word = unsigned long long;
  constexpr unsigned kWords = sizeof(T) / sizeof(Word);
  const Word* words = reinterpret_cast<const Word*>(&shared_by_block(at));
  struct Copy {
    Word words[kWords];
  } copy;
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i) copy.words[i] = words[i];
  return __builtin_bit_cast(T, copy);
}

// Of the device's own clock.
__device__ __forceinline__ int64_t nanoseconds() {
  int64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

// c (16 x 8) += a (16 x 16) b (16 x 8), in the fragments of mma.m16n8k16.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same with halves.
__device__ __forceinline__ void mma_half(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8 x 8 matrices of two-byte elements from shared memory, transposed: lane l names row l % 8 (16 bytes) of matrix l / 8,
// and gets of matrix i in v[i] elements 2 (l % 4) and the next of column l / 4.
__device__ __forceinline__ void load_transposed(uint32_t (&v)[4], const void* row) {
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(from)
               : "memory");
}

// What is there now, whatever this multiprocessor has read before.
__device__ __forceinline__ int32_t load_now(const int32_t* at) { return __ldcg(at); }

// 16 or 8 bytes by one instruction: the compiler makes four stores of a float4 whose address it does not know to be of global memory.
__device__ __forceinline__ void store_run(float* to, const float (&v)[4]) {
  __stcg(reinterpret_cast<float4*>(to), make_float4(v[0], v[1], v[2], v[3]));
}
__device__ __forceinline__ void store_run(float* to, const float (&v)[2]) { __stcg(reinterpret_cast<float2*>(to), make_float2(v[0], v[1])); }
__device__ __forceinline__ void store_run(float* to, const float (&v)[1]) { *to = v[0]; }

// The 128 bytes of memory at an address will be wanted: to the second-level cache.
__device__ __forceinline__ void want_soon(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// 16 bytes from global to shared memory, there after copy_async_wait; zeros, and nothing read, if not valid.
__device__ __forceinline__ void copy_async16(void* shared, const void* global, bool valid) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async16(void* shared, const void* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
// Of what is read once: in the second-level cache it makes way for everything else, if `once`.
__device__ __forceinline__ uint64_t cache_policy(bool once) {
  uint64_t first, normal;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
  return once ? first : normal;
}
__device__ __forceinline__ void copy_async16_by(uint64_t policy, void* shared, const void* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "l"(policy) : "memory");
}
// Ends a group of this thread's copies.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until only the kLeft last groups may be under way.
template <int kLeft>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

__device__ __forceinline__ void copy_async_wait(uint32_t left) {  // the same for all
  switch (left) {
    case 0: return copy_async_wait<0>();
    case 1: return copy_async_wait<1>();
    case 2: return copy_async_wait<2>();
    case 3: return copy_async_wait<3>();
    case 4: return copy_async_wait<4>();
    case 5: return copy_async_wait<5>();
    case 6: return copy_async_wait<6>();
    case 7: return copy_async_wait<7>();
    case 8: return copy_async_wait<8>();
    case 9: return copy_async_wait<9>();
    default: return copy_async_wait<10>();  // or fewer than may be
  }
}

__device__ __forceinline__ float half_to_float(uint16_t h) { return __half2float(__ushort_as_half(h)); }
__device__ __forceinline__ uint16_t float_to_half(float v) { return __half_as_ushort(__float2half_rn(v)); }  // nearest even
__device__ __forceinline__ uint32_t float_to_halves(float v) {  // the same in both halves of a word
  uint32_t halves;
  asm("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(halves) : "f"(v));
  return halves;
}
// Of both halves of the words, to nearest even.
__device__ __forceinline__ uint32_t multiply_halves(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ uint32_t subtract_halves(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
// a * b + c of both halves, rounded once.
__device__ __forceinline__ uint32_t multiply_add_halves(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
// Byte i of the result is the one that digit i of `which` names: 0 to 3 of a, 4 to 7 of b.
__device__ __forceinline__ uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t which) { return __byte_perm(a, b, which); }
#if __CUDA_ARCH__ >= 890
#define AERIE_E4M3_IN_HARDWARE
// Two E4M3 numbers as halves.
__device__ __forceinline__ uint32_t convert_e4m3(uint16_t two) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(two));
  return halves;
}
#endif

}  // namespace aerie::kernels::cuda
#endif
