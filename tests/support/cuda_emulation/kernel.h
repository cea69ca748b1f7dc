// CUDA's words for a compiler that has no CUDA: what kernels/cuda/kernel.h includes instead of the
// toolkit, so that the very same kernel sources run on the CPU. A block's threads are fibers; blocks run
// one after another. What exchanges data within a warp waits until its 32 lanes have come together.
//
// It finds: threads that do not all reach a barrier, lanes of a warp that ask for different things, shared
// memory used before it was written (it starts as NaN) or beyond its end (AddressSanitizer), data of an
// asynchronous copy used before it was waited for, results that depend on the order of threads (set_order).
// It does not find races that no order of whole threads shows, and says nothing about speed. The sums within an mma are
// made in double and rounded once; a tensor core rounds in its own way.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

namespace aerie::kernels::cuda::emulation {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Place {
  Index thread, block, block_size, grid;
};
const Place& place();  // of the fiber that runs

char* shared();
void sync_block();
// Comes together with the other lanes of the warp. The last one to arrive calls combine(user, args), args[l] being lane
// l's `arg`; `kind` must be the same for all.
void meet(const char* kind, void* arg, void (*combine)(void* const* args));
void copy_async(void* to, const void* from, bool valid);
void launch_bounds(unsigned threads);  // the kernel's own
void commit_copies();
void wait_copies(int groups_left);
bool warpgroups();
// All threads of a warpgroup name the same, one after another.
void warpgroup_operand(const void* shared, uint32_t next_group);

}  // namespace aerie::kernels::cuda::emulation

#define threadIdx (::aerie::kernels::cuda::emulation::place().thread)
#define blockIdx (::aerie::kernels::cuda::emulation::place().block)
#define blockDim (::aerie::kernels::cuda::emulation::place().block_size)
#define gridDim (::aerie::kernels::cuda::emulation::place().grid)

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace aerie::kernels::cuda {

inline void sync_block() { emulation::sync_block(); }
inline void sync_warp() {
  emulation::meet("sync_warp", nullptr, [](void* const*) {});
}
template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(emulation::shared());
}

template <class T>
T shuffle(T v, int lane) {
  struct Arg {
    T v, got;
    int from;
  } a{v, v, lane};
  emulation::meet("shuffle", &a, [](void* const* args) {
    for (int l = 0; l < 32; ++l) {
      auto* to = static_cast<Arg*>(args[l]);
      to->got = static_cast<const Arg*>(args[to->from & 31])->v;
    }
  });
  return a.got;
}
template <class T>
T shuffle_xor(T v, int mask) {
  return shuffle(v, static_cast<int>(threadIdx.x % 32) ^ mask);
}

inline uint32_t ballot(bool v) {
  struct Arg {
    bool v;
    uint32_t got;
  } a{v, 0};
  emulation::meet("ballot", &a, [](void* const* args) {
    uint32_t all = 0;
    for (int l = 0; l < 32; ++l) all |= static_cast<uint32_t>(static_cast<const Arg*>(args[l])->v) << l;
    for (int l = 0; l < 32; ++l) static_cast<Arg*>(args[l])->got = all;
  });
  return a.got;
}
inline int lowest_lane(uint32_t lanes) { return std::countr_zero(lanes); }

template <class T>
T atomic_add(T* p, T v) {  // fibers do not interrupt each other
  const T old = *p;
  *p = old + v;
  return old;
}

inline void allow_next_kernel() {}  // there is one at a time
inline void wait_for_kernel_before() {}
template <class T>
const T& shared_by_block(const T* at) {
  return *at;
}
template <class T>
T load_by_block(const T* at) {
  return *at;
}

inline int64_t nanoseconds() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

inline float half_value(int h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const float v = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                  : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return h & 0x8000 ? -v : v;
}
inline const auto kHalfValues = [] {  // an mma looks at hundreds
  std::array<float, 65536> values;
  for (int h = 0; h < 65536; ++h) values[static_cast<size_t>(h)] = half_value(h);
  return values;
}();
inline float half_to_float(uint16_t h) { return kHalfValues[h]; }
inline uint16_t nearest_half(double v) {
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const double a = std::fabs(v);
  if (!(a < 65520.0)) return static_cast<uint16_t>(sign | (std::isnan(v) ? 0x7fff : 0x7c00));
  const int exponent = a < 0x1p-14 ? -14 : std::ilogb(a);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(a, 10 - exponent)));  // 1024 and more: a hidden bit, carried
  return static_cast<uint16_t>(sign | (steps + ((exponent + 14) << 10)));
}
inline uint16_t float_to_half(float v) { return nearest_half(double{v}); }
inline uint32_t float_to_halves(float v) { return float_to_half(v) * 0x10001u; }
// Of both halves of the words; `combine` of doubles, in which what it makes of halves is exact.
template <class Combine, class... Words>
uint32_t combine_halves(const Combine& combine, Words... words) {
  const auto half = [&](int shift) {
    return static_cast<uint32_t>(nearest_half(combine(double{half_to_float(static_cast<uint16_t>(words >> shift))}...)));
  };
  return half(0) | half(16) << 16;
}
inline uint32_t multiply_halves(uint32_t a, uint32_t b) { return combine_halves(std::multiplies(), a, b); }
inline uint32_t subtract_halves(uint32_t a, uint32_t b) { return combine_halves(std::minus(), a, b); }
// Exact before it is rounded where a is an integer of few bits, as weights' codes are.
inline uint32_t multiply_add_halves(uint32_t a, uint32_t b, uint32_t c) {
  return combine_halves([](double x, double y, double z) { return x * y + z; }, a, b, c);
}
inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t which) {
  const uint64_t both = a | uint64_t{b} << 32;
  uint32_t v = 0;
  for (int i = 0; i < 4; ++i) v |= static_cast<uint32_t>(both >> (which >> (4 * i) & 7) * 8 & 255) << (8 * i);
  return v;
}

// c (16 x 8) += a (16 x 16) b (16 x 8), in the fragments of mma.m16n8k16; kElement: the lower or higher half of a word.
template <float (*kElement)(uint32_t word, int high)>
void mma_16(const char* name, float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Arg {
    float* c;
    const uint32_t *a, *b;
  } arg{c, a, b};
  emulation::meet(name, &arg, [](void* const* args) {
    double A[16][16], B[16][8], C[16][8];
    for (int l = 0; l < 32; ++l) {
      const auto* x = static_cast<const Arg*>(args[l]);
      const int g = l / 4, t = l % 4;
      for (int r = 0; r < 4; ++r) {
        for (int h = 0; h < 2; ++h) A[g + r % 2 * 8][2 * t + r / 2 * 8 + h] = kElement(x->a[r], h);
        C[g + r / 2 * 8][2 * t + r % 2] = x->c[r];
      }
      for (int r = 0; r < 2; ++r)
        for (int h = 0; h < 2; ++h) B[2 * t + r * 8 + h][g] = kElement(x->b[r], h);
    }
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 8; ++j) C[i][j] += A[i][k] * B[k][j];
    for (int l = 0; l < 32; ++l) {
      const int g = l / 4, t = l % 4;
      for (int r = 0; r < 4; ++r) static_cast<Arg*>(args[l])->c[r] = static_cast<float>(C[g + r / 2 * 8][2 * t + r % 2]);
    }
  });
}
inline float bf16_of(uint32_t word, int high) {
  const uint32_t bits = high ? word & 0xffff0000u : word << 16;
  float v;
  std::memcpy(&v, &bits, 4);
  return v;
}
inline float half_of(uint32_t word, int high) { return half_to_float(static_cast<uint16_t>(word >> (16 * high))); }
inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma_16<bf16_of>("mma_bf16", c, a, b); }
inline void mma_half(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma_16<half_of>("mma_half", c, a, b); }

// wgmma (kernels/cuda/warpgroup.h), as every mma that it is made of, done at once.
constexpr bool kWarpgroups = true;
inline bool warpgroups() { return emulation::warpgroups(); }
inline void show_to_warpgroup_mma() {}
inline void begin_warpgroup_mma() {}
inline void end_warpgroup_mma() {}
template <int kLeft>
void wait_for_warpgroup_mma() {}
template <int kGroups>
void warpgroup_mma(void (*mma)(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]), float (&c)[kGroups][4], const uint32_t (&a)[4],
                   const void* b, uint32_t next_group) {
  emulation::warpgroup_operand(b, next_group);
  for (int n = 0; n < kGroups; ++n) {
    uint32_t word[2];  // of the columns, this lane's
    for (int half = 0; half < 2; ++half)
      std::memcpy(&word[half], static_cast<const char*>(b) + static_cast<size_t>(n) * next_group + half * 128 + threadIdx.x % 32 * 4, 4);
    mma(c[n], a, word);
  }
}
template <int kGroups>
void warpgroup_mma_bf16(float (&c)[kGroups][4], const uint32_t (&a)[4], const void* b, uint32_t next_group) {
  warpgroup_mma(mma_bf16, c, a, b, next_group);
}
template <int kGroups>
void warpgroup_mma_half(float (&c)[kGroups][4], const uint32_t (&a)[4], const void* b, uint32_t next_group) {
  warpgroup_mma(mma_half, c, a, b, next_group);
}

inline void load_transposed(uint32_t (&v)[4], const void* row) {
  struct Arg {
    uint32_t* v;
    const void* row;
  } arg{v, row};
  emulation::meet("load_transposed", &arg, [](void* const* args) {
    uint16_t m[4][8][8];
    for (int l = 0; l < 32; ++l) std::memcpy(m[l / 8][l % 8], static_cast<const Arg*>(args[l])->row, 16);
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 4; ++i)
        static_cast<Arg*>(args[l])->v[i] = m[i][l % 4 * 2][l / 4] | static_cast<uint32_t>(m[i][l % 4 * 2 + 1][l / 4]) << 16;
  });
}

inline int32_t load_now(const int32_t* at) { return *at; }
inline void store_run(float* to, const float (&v)[4]) { *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]); }
inline void store_run(float* to, const float (&v)[2]) { *reinterpret_cast<float2*>(to) = make_float2(v[0], v[1]); }
inline void store_run(float* to, const float (&v)[1]) { *to = v[0]; }
inline void want_soon(const void* at) { (void)*static_cast<const volatile char*>(at); }  // that it is there

inline void copy_async16(void* shared, const void* global, bool valid) {
  emulation::copy_async(shared, global, valid);
}
inline void copy_async16(void* shared, const void* global) { copy_async16(shared, global, true); }
inline uint64_t cache_policy(bool) { return 0; }
inline void copy_async16_by(uint64_t, void* shared, const void* global) { copy_async16(shared, global, true); }
inline void copy_async_commit() { emulation::commit_copies(); }
template <int kLeft>
void copy_async_wait() {
  emulation::wait_copies(kLeft);
}
inline void copy_async_wait(uint32_t left) { emulation::wait_copies(static_cast<int>(left)); }
}  // namespace aerie::kernels::cuda
