// AMX's eight tile registers, of up to 16 rows of 64 bytes. In assembly, for the intrinsics want compiler options that no target
// of Highway sets.
#pragma once

#include <cstdint>

namespace aerie::kernels::cpu {

struct AmxTiles {
  // Rows and bytes a row of every register; the processor wants 64 bytes in this form.
  struct alignas(64) Shapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  static_assert(sizeof(Shapes) == 64);

  // While one lives the registers have these shapes; then they are empty again, so that nobody saves them.
  explicit AmxTiles(const Shapes& s) { asm volatile("ldtilecfg %0" : : "m"(s)); }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  // Asks for a line that will be loaded, to the second-level cache or the first (near), here and not where a compiler would have it:
  // all lines of a step at once are more than the caches' queues hold.
  void fetch(const void* p) { asm volatile("prefetcht1 %0" : : "m"(*static_cast<const char*>(p))); }
  void fetch_near(const void* p) { asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(p))); }
  void fetch_to_write(const void* p) { asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p))); }
  template <int T>
  void zero() { asm volatile("tilezero %%tmm%c0" : : "i"(T)); }
  // Rows that are `stride` bytes apart.
  template <int T>
  void load(const void* p, int64_t stride) { asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(T) : "memory"); }
  template <int T>
  void store(void* p, int64_t stride) { asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(T) : "memory"); }
  // C[m][n] += sum over k of A[m][k] * B[k / 4][n][k % 4]: bytes, sums of 32 bits.
  template <int C, int A, int B>
  void add_int8() { asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B)); }
  // The same with pairs of bf16 in the place of fours of bytes. The sums of even and of odd k are two FMA chains from zero, k
  // ascending; C + (even + odd). Rounded to nearest, subnormals are zeros.
  template <int C, int A, int B>
  void add_bf16() { asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B)); }
};

}  // namespace aerie::kernels::cpu
