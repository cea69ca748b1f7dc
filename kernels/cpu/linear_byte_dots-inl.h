// Products of int8 activations with a block of weights of 8 or 4 bits where one instruction adds four of them to a sum: VNNI, or
// ARM's dot product. In assembly, for its intrinsics want a compiler's option that no target of Highway 1.0.3 sets.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/linear_codes-inl.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_tile.h"
#include "kernels/cpu/nibbles-inl.h"

#if defined(AERIE_LINEAR_BYTE_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_BYTE_DOTS_INL_H_
#undef AERIE_LINEAR_BYTE_DOTS_INL_H_
#else
#define AERIE_LINEAR_BYTE_DOTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// AERIE_BYTE_DOTS: 2, every machine of the target has the instruction; 1, one may (byte_dots.h); 0, none is known to.
#undef AERIE_BYTE_DOTS
#if HWY_TARGET == HWY_AVX3_DL || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64 && defined(__ARM_FEATURE_DOTPROD))
#define AERIE_BYTE_DOTS 2
#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define AERIE_BYTE_DOTS 1
#else
#define AERIE_BYTE_DOTS 0
#endif

#if AERIE_BYTE_DOTS
#if HWY_ARCH_ARM
constexpr bool kUnsigned = false;
HWY_INLINE void add_dots(int32x4_t& sum, uint8x16_t w, int32x4_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
  sum = vdotq_s32(sum, vreinterpretq_s8_u8(w), vreinterpretq_s8_s32(x));
#else
  asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(w), "w"(x));
#endif
}
#else
constexpr bool kUnsigned = true;
#if HWY_TARGET == HWY_AVX2
HWY_INLINE void add_dots(__m256i& sum, __m256i w, __m256i x) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));
}
#else
HWY_INLINE void add_dots(__m512i& sum, __m512i w, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
}
HWY_INLINE void add_dots(__m512i& sum, __m512i w, const int8_t* x) {  // the load broadcasts
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
}
#endif
#endif
struct ByteDots {
  template <DType T>
  using Order = Bytes;
  template <DType T>
  using OffsetsOf = Offsets;
  template <DType T>
  static constexpr int32_t kZeroPoint = T == DType::int4 ? 8 : !kUnsigned ? 0 : T == DType::int8 ? 128 : T == DType::mxfp4 ? 12 : 0;
  using D8 = hn::Repartition<uint8_t, D>;
  using Codes = hn::Vec<D8>;

  template <int M, size_t N>
  static HWY_INLINE void add_group(const Codes (&codes)[N], const int8_t* x, VI (&sum)[M][N]) {
    AERIE_UNROLL for (int m = 0; m < M; ++m) {
      if constexpr (kV == 1 && N == 1) {
        add_dots(sum[m][0].raw, codes[0].raw, x + m * kBlock);
      } else {
        int32_t four;
        __builtin_memcpy(&four, x + m * kBlock, 4);
        const VI broadcast = hn::Set(hn::RebindToSigned<D>(), four);
        AERIE_UNROLL for (size_t i = 0; i < N; ++i) add_dots(sum[m][i].raw, codes[i].raw, broadcast.raw);
      }
    }
  }

  template <DType T, bool kTwoSteps, int M, int P>
  static HWY_INLINE void add_block(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate,
                                   VI (&sum)[M][P * kV]) {
    const D8 d8;
    const Nibbles<T, kZeroPoint<T>> nibbles;
    const Codes sign = hn::Set(d8, kUnsigned ? 0x80 : 0);
    AERIE_UNROLL for (int j = 0; j < (is_nibbles(T) ? 4 : 8); ++j) {
      Codes bytes[P * kV], codes[P * kV];
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_FETCH(kTwoSteps, w + p * size + kLine * j, w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
          const size_t i = p * kV + v;
          bytes[i] = hn::LoadU(d8, w + p * size + kLine * j + 4 * kN * v);
          codes[i] = is_nibbles(T) ? nibbles.low(bytes[i]) : hn::Xor(bytes[i], sign);
        }
      }
      add_group(codes, x + 4 * j, sum);
      if constexpr (is_nibbles(T)) {
        AERIE_UNROLL for (size_t i = 0; i < P * kV; ++i) codes[i] = nibbles.high(bytes[i]);
        add_group(codes, x + 16 + 4 * j, sum);
      }
    }
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
