// Products of int8 activations with a block (32 k) of int8 or int4 weights, summed in int32: exact, so every target
// gives the same.
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_tile.h"

#if defined(AERIE_LINEAR_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_DOTS_INL_H_
#undef AERIE_LINEAR_DOTS_INL_H_
#else
#define AERIE_LINEAR_DOTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kInt4>
constexpr int64_t kBlockBytes = kInt4 ? kPanel * kBlock / 2 : kPanel * kBlock;

using VI = hn::Vec<hn::RebindToSigned<D>>;

// add_block: adds the products of one block, of M rows (x: [row][32]) with P panels whose blocks are at w + p * size. The
// sums begin with the rows' offsets where the dots want unsigned weights.
#if HWY_TARGET == HWY_AVX3_DL
// (Highway 1.0.3 detects VNNI for this target but does not pass -mavx512vnni on, hence no intrinsic.)
HWY_INLINE void add_dots(__m512i& sum, __m512i w, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
}
HWY_INLINE void add_dots(__m512i& sum, __m512i w, const int8_t* x) {  // the load broadcasts
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
}
template <int M, int P>
HWY_INLINE void add_group(const __m512i (&codes)[P], const int8_t* x, VI (&sum)[M][P]) {
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    if constexpr (P == 1) {
      add_dots(sum[m][0].raw, codes[0], x + m * kBlock);
    } else {
      int32_t four;
      __builtin_memcpy(&four, x + m * kBlock, 4);
      const __m512i b = _mm512_set1_epi32(four);
      AERIE_UNROLL for (int p = 0; p < P; ++p) add_dots(sum[m][p].raw, codes[p], b);
    }
  }
}

// The dots want unsigned weights: int8 + 128, or the nibble. The offsets take away what that adds.
template <bool kInt4>
constexpr bool kOffsets = true;
template <bool kInt4, int M, int P>
HWY_INLINE void add_block(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate, VI (&sum)[M][P]) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(kInt4 ? 15 : 0x80));
  AERIE_UNROLL for (int j = 0; j < (kInt4 ? 4 : 8); ++j) {
    __m512i bytes[P], codes[P];
    AERIE_UNROLL for (int p = 0; p < P; ++p) {
      AERIE_PREFETCH(w + p * size + ahead + j * rate);
      bytes[p] = _mm512_loadu_si512(w + p * size + kLine * j);
      codes[p] = kInt4 ? _mm512_and_si512(bytes[p], mask) : _mm512_xor_si512(bytes[p], mask);
    }
    add_group<M, P>(codes, x + 4 * j, sum);
    if constexpr (kInt4) {
      AERIE_UNROLL for (int p = 0; p < P; ++p) codes[p] = _mm512_and_si512(_mm512_srli_epi16(bytes[p], 4), mask);
      add_group<M, P>(codes, x + 16 + 4 * j, sum);
    }
  }
}
#elif HWY_ARCH_X86
// Without VNNI: bytes to pairs in 16 bits (maddubs wants one unsigned side), pairs to fours in 32 (madd with ones).
using Raw = decltype(VI::raw);
#if HWY_TARGET == HWY_AVX3
HWY_INLINE Raw pairs(Raw u, Raw s) { return _mm512_maddubs_epi16(u, s); }
HWY_INLINE Raw fours(Raw s) { return _mm512_madd_epi16(s, _mm512_set1_epi16(1)); }
HWY_INLINE Raw with_sign(Raw x, Raw w) { return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x); }
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Raw pairs(Raw u, Raw s) { return _mm256_maddubs_epi16(u, s); }
HWY_INLINE Raw fours(Raw s) { return _mm256_madd_epi16(s, _mm256_set1_epi16(1)); }
HWY_INLINE Raw with_sign(Raw x, Raw w) { return _mm256_sign_epi8(x, w); }
#else
HWY_INLINE Raw pairs(Raw u, Raw s) { return _mm_maddubs_epi16(u, s); }
HWY_INLINE Raw fours(Raw s) { return _mm_madd_epi16(s, _mm_set1_epi16(1)); }
HWY_INLINE Raw with_sign(Raw x, Raw w) { return _mm_sign_epi8(x, w); }
#endif
HWY_INLINE VI broadcast(const int8_t* x) {  // 4 activations, in every lane
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  return hn::Set(hn::RebindToSigned<D>(), four);
}

template <bool kInt4>
constexpr bool kOffsets = kInt4;
template <bool kInt4, int M, int P>
HWY_INLINE void add_block(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate, VI (&sum)[M][P * kV]) {
  const hn::Repartition<uint8_t, D> d8;
  const hn::Repartition<int16_t, D> d16;
  using V16 = hn::Vec<decltype(d16)>;
  if constexpr (kInt4) {
    // Nibbles are unsigned, and the pairs of a whole block fit 16 bits: 16 * 15 * 127 < 32768. The offsets take 8 away.
    const auto low = hn::Set(d8, 15);
    V16 acc[M][P * kV];
    AERIE_UNROLL for (auto& row : acc)
      AERIE_UNROLL for (auto& a : row) a = hn::Zero(d16);
    for (int j = 0; j < 4; ++j)
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_PREFETCH(w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
          const auto b = hn::Load(d8, w + p * size + kLine * j + 4 * kN * v);
          const Raw w0 = hn::And(b, low).raw;
          const Raw w1 = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, b))), low).raw;
          AERIE_UNROLL for (int m = 0; m < M; ++m) {
            V16& a = acc[m][p * kV + v];
            a = hn::Add(a, V16{pairs(w0, broadcast(x + m * kBlock + 4 * j).raw)});
            a = hn::Add(a, V16{pairs(w1, broadcast(x + m * kBlock + 16 + 4 * j).raw)});
          }
        }
      }
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      AERIE_UNROLL for (size_t i = 0; i < P * kV; ++i) sum[m][i] = hn::Add(sum[m][i], VI{fours(acc[m][i].raw)});
  } else {
    // |w| with the sign moved to x. 128 * 127 * 2 fits 16 bits: exact.
    const hn::Repartition<int8_t, D> di8;
    for (int j = 0; j < 8; ++j)
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_PREFETCH(w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
          const auto b = hn::Load(di8, reinterpret_cast<const int8_t*>(w) + p * size + kLine * j + 4 * kN * v);
          const Raw magnitude = hn::Abs(b).raw;
          AERIE_UNROLL for (int m = 0; m < M; ++m) {
            const Raw two = pairs(magnitude, with_sign(broadcast(x + m * kBlock + 4 * j).raw, b.raw));
            sum[m][p * kV + v] = hn::Add(sum[m][p * kV + v], VI{fours(two)});
          }
        }
      }
  }
}
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
// Sums of 4 lanes over groups of 4 k. Highway 1.0.3 has no target with the dot product: where the compiler was
// told of it (-mcpu=native, every Apple processor) it is used, else products are widened.
struct Sums {
#if defined(__ARM_FEATURE_DOTPROD)
  int32x4_t s = vdupq_n_s32(0);
  HWY_INLINE void add(int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) { s = vdotq_s32(vdotq_s32(s, w0, x0), w1, x1); }
  HWY_INLINE int32x4_t total() const { return s; }
#else
  int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);  // two sums a lane
  HWY_INLINE void add(int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) {  // 128 * 127 * 2 fits int16
    low = vpadalq_s16(low, vmlal_s8(vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), vget_low_s8(w1), vget_low_s8(x1)));
    high = vpadalq_s16(high, vmlal_high_s8(vmull_high_s8(w0, x0), w1, x1));
  }
  HWY_INLINE int32x4_t total() const { return vpaddq_s32(low, high); }
#endif
};
template <bool kInt4>
constexpr bool kOffsets = kInt4;
template <bool kInt4>
struct Block {
  const uint8_t* p;
  HWY_INLINE explicit Block(const uint8_t* bytes) : p(bytes) {}
  HWY_INLINE void add(const int8_t* x, VI* sum) const {
    int8x16_t a[8];  // 4 activations, in every lane
    for (int j = 0; j < 8; ++j) {
      int32_t four;
      __builtin_memcpy(&four, x + 4 * j, 4);
      a[j] = vreinterpretq_s8_s32(vdupq_n_s32(four));
    }
    for (size_t v = 0; v < kV; ++v) {
      Sums s;
      for (int j = 0; j < 4; ++j) {
        const uint8x16_t b = vld1q_u8(p + 64 * j + 16 * v);
        if constexpr (kInt4) {
          const uint8x16_t low = vandq_u8(b, vdupq_n_u8(15)), high = vshrq_n_u8(b, 4);  // 8 too much each
          s.add(vreinterpretq_s8_u8(low), a[j], vreinterpretq_s8_u8(high), a[j + 4]);
        } else {
          s.add(vreinterpretq_s8_u8(b), a[j], vreinterpretq_s8_u8(vld1q_u8(p + 64 * (j + 4) + 16 * v)), a[j + 4]);
        }
      }
      sum[v] = VI{vaddq_s32(sum[v].raw, s.total())};
    }
  }
};
#else
template <bool kInt4>
constexpr bool kOffsets = false;
template <bool kInt4>
struct Block {
  const uint8_t* p;
  HWY_INLINE explicit Block(const uint8_t* bytes) : p(bytes) {}
  HWY_INLINE void add(const int8_t* x, VI* sum) const {
    HWY_ALIGN int32_t lanes[kPanel] = {};
    for (int j = 0; j < (kInt4 ? 4 : 8); ++j)
      for (int l = 0; l < kPanel; ++l)
        for (int i = 0; i < 4; ++i) {
          const uint8_t b = p[64 * j + 4 * l + i];
          if constexpr (kInt4)
            lanes[l] += x[4 * j + i] * (static_cast<int32_t>(b & 15) - 8) + x[16 + 4 * j + i] * (static_cast<int32_t>(b >> 4) - 8);
          else lanes[l] += x[4 * j + i] * static_cast<int32_t>(static_cast<int8_t>(b));
        }
    const hn::RebindToSigned<D> di;
    for (size_t v = 0; v < kV; ++v) sum[v] = hn::Add(sum[v], hn::Load(di, lanes + v * kN));
  }
};
#endif

#if !HWY_ARCH_X86
template <bool kInt4, int M, int P>
HWY_INLINE void add_block(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate,
                          VI (&sum)[M][P * kV]) {
  AERIE_UNROLL for (int p = 0; p < P; ++p) {
    for (int64_t j = 0; j < kBlockBytes<kInt4> / kLine; ++j) AERIE_PREFETCH(w + p * size + ahead + j * rate);
    const Block<kInt4> block(w + p * size);
    AERIE_UNROLL for (int m = 0; m < M; ++m) block.add(x + m * kBlock, &sum[m][static_cast<size_t>(p) * kV]);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
