// Products of rounded activations with a block of weights of 8 or 4 bits on an x86 CPU without VNNI, whose instructions multiply
// bytes or words and add up pairs of products.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/linear_byte_dots-inl.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_tile.h"
#include "kernels/cpu/nibbles-inl.h"

#if defined(AERIE_LINEAR_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_PAIRS_INL_H_
#undef AERIE_LINEAR_PAIRS_INL_H_
#else
#define AERIE_LINEAR_PAIRS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if AERIE_BYTE_DOTS != 2 && HWY_ARCH_X86
// Here AVX-512, too, keeps sums where they are said to be (AERIE_KEEP).
#undef AERIE_KEEP_SUM
#if HWY_TARGET == HWY_AVX3
#define AERIE_KEEP_SUM(v) asm volatile("" : "+v"((v).raw))
#else
#define AERIE_KEEP_SUM(v) AERIE_KEEP(v)
#endif

// Of bytes, one side unsigned, the pairs in 16 bits; of words, in 32.
using Raw = decltype(VI::raw);
#if HWY_TARGET == HWY_AVX3
HWY_INLINE Raw byte_pairs(Raw u, Raw s) { return _mm512_maddubs_epi16(u, s); }
HWY_INLINE Raw word_pairs(Raw a, Raw b) { return _mm512_madd_epi16(a, b); }
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Raw byte_pairs(Raw u, Raw s) { return _mm256_maddubs_epi16(u, s); }
HWY_INLINE Raw word_pairs(Raw a, Raw b) { return _mm256_madd_epi16(a, b); }
#else
HWY_INLINE Raw byte_pairs(Raw u, Raw s) { return _mm_maddubs_epi16(u, s); }
HWY_INLINE Raw word_pairs(Raw a, Raw b) { return _mm_madd_epi16(a, b); }
#endif
HWY_INLINE Raw broadcast(const void* x) {  // 4 codes of 8 bits, or 2 of 16, in every lane
  int32_t codes;
  __builtin_memcpy(&codes, x, 4);
  return hn::Set(hn::RebindToSigned<D>(), codes).raw;
}

// Offsets, of the two pairs that share a lane: the even one's below.
struct OffsetsOfPairs {
  int32_t zero_point;
  int32_t* at;
  int64_t apart;  // from block to block
  HWY_INLINE void keep(int64_t b, const void* codes, int32_t, float) const {
    const auto* x = static_cast<const __m128i*>(codes);
    const __m128i weights = _mm_set1_epi8(static_cast<char>(zero_point));
    __m128i sums = _mm_add_epi16(_mm_maddubs_epi16(weights, _mm_loadu_si128(x)), _mm_maddubs_epi16(weights, _mm_loadu_si128(x + 1)));
    sums = _mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0x4e));
    sums = _mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0xb1));
    at[b * apart] = _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), sums));
  }
};

struct Pairs {
  // int8 weights: pairs of products of bytes would not fit 16 bits unless the activations had but seven, and adding them up in 32
  // takes a multiplication more. Two multiplications of words take as long, for activations of 16 bits.
  template <DType T>
  using Order = std::conditional_t<is_nibbles(T), Bytes, PairedWords>;
  template <DType T>
  static constexpr int32_t kZeroPoint = T == DType::int4 ? 8 : T == DType::mxfp4 ? 12 : 0;
  template <DType T>
  static constexpr bool kOffsetsOfPairs = T == DType::mxfp4;
  template <DType T>
  using OffsetsOf = std::conditional_t<kOffsetsOfPairs<T>, OffsetsOfPairs, Offsets>;
  using D8 = hn::Repartition<uint8_t, D>;
  using D16 = hn::Repartition<int16_t, D>;
  using V8 = hn::Vec<D8>;
  using V16 = hn::Vec<D16>;

  template <DType T, bool kTwoSteps, int M, int P>
  static HWY_INLINE void add_block(const uint8_t* w, int64_t size, const typename Order<T>::Code* x, int64_t ahead, int64_t rate,
                                   VI (&sum)[M][P * kV]) {
    if constexpr (is_nibbles(T)) add_nibbles<T, kTwoSteps, M, P>(w, size, x, ahead, rate, sum);
    else if constexpr (M == 1) add_int8_to_one<kTwoSteps, P>(w, size, x, ahead, rate, sum[0]);
    else add_int8<kTwoSteps, M, P>(w, size, x, ahead, rate, sum);
  }

 private:
  static HWY_INLINE V8 load(const uint8_t* w, int64_t size, int p, size_t v) { return hn::Load(D8(), w + p * size + 4 * kN * v); }
  // Of the four weights in a lane: the first and third, the second and fourth.
  static HWY_INLINE V16 even(V16 fours) { return hn::ShiftRight<8>(hn::ShiftLeft<8>(fours)); }
  static HWY_INLINE V16 odd(V16 fours) { return hn::ShiftRight<8>(fours); }

  // Each row's codes from x on, 4 or 2 of them, with the panels' weights of these.
  template <int M, size_t N>
  static HWY_INLINE void add_group(const V8 (&fours)[N], const int8_t* x, V16 (&sum)[M][N]) {
    AERIE_UNROLL for (int m = 0; m < M; ++m) {
      const Raw four = broadcast(x + m * kBlock);
      AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
        sum[m][i] = hn::Add(sum[m][i], V16{byte_pairs(fours[i].raw, four)});
        AERIE_KEEP_SUM(sum[m][i]);
      }
    }
  }
  template <int M, size_t N>
  static HWY_INLINE void add_group(const V16 (&twos)[N], const int16_t* x, VI (&sum)[M][N]) {
    AERIE_UNROLL for (int m = 0; m < M; ++m) {
      const Raw two = broadcast(x + m * kBlock);
      AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
        sum[m][i] = hn::Add(sum[m][i], VI{word_pairs(twos[i].raw, two)});
        AERIE_KEEP_SUM(sum[m][i]);
      }
    }
  }

  // Nibbles are unsigned, and the pairs of a whole block fit 16 bits: 16 * 15 * 127 < 32768. Of int4 the offsets take 8 away. Of mxfp4
  // they would not fit, 24 for 15; but what is left without the 12 would: with offsets of 16 bits to begin with (OffsetsOfPairs), sums
  // that wrap around on the way are right in the end.
  template <DType T, bool kTwoSteps, int M, int P>
  static HWY_INLINE void add_nibbles(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate, VI (&sum)[M][P * kV]) {
    const Nibbles<T, kZeroPoint<T>> nibbles;
    V8 codes[P * kV];
    V16 acc[M][P * kV];
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      AERIE_UNROLL for (size_t i = 0; i < P * kV; ++i) acc[m][i] = kOffsetsOfPairs<T> ? hn::BitCast(D16(), sum[m][i]) : hn::Zero(D16());
    AERIE_ROLLED for (int j = 0; j < 4; ++j) {
      const uint8_t* at = w + kLine * j;
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_FETCH(kTwoSteps, at + p * size, w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) codes[p * kV + v] = nibbles.low(load(at, size, p, v));
      }
      add_group(codes, x + 4 * j, acc);
      if (kV > 1) asm("" : "+r"(at));  // few registers: load again rather than keep
      AERIE_UNROLL for (int p = 0; p < P; ++p)
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) codes[p * kV + v] = nibbles.high(load(at, size, p, v));
      add_group(codes, x + 16 + 4 * j, acc);
    }
    const Raw ones = hn::Set(D16(), 1).raw;
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      AERIE_UNROLL for (size_t i = 0; i < P * kV; ++i) {
        const VI pairs{word_pairs(acc[m][i].raw, ones)};
        sum[m][i] = kOffsetsOfPairs<T> ? pairs : hn::Add(sum[m][i], pairs);
      }
  }

  template <bool kTwoSteps, int M, int P>
  static HWY_INLINE void add_int8(const uint8_t* w, int64_t size, const int16_t* x, int64_t ahead, int64_t rate, VI (&sum)[M][P * kV]) {
    V16 twos[P * kV];
    AERIE_UNROLL for (int j = 0; j < 8; ++j) {
      const uint8_t* at = w + kLine * j;
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_FETCH(kTwoSteps, at + p * size, w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) twos[p * kV + v] = even(hn::BitCast(D16(), load(at, size, p, v)));
      }
      add_group(twos, x + 4 * j, sum);
      if (kV > 1) asm("" : "+r"(at));  // few registers: load again rather than keep
      AERIE_UNROLL for (int p = 0; p < P; ++p)
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) twos[p * kV + v] = odd(hn::BitCast(D16(), load(at, size, p, v)));
      add_group(twos, x + 4 * j + 2, sum);
    }
  }

  // The same, vector after vector: with one row it is the weights that take the instructions.
  template <bool kTwoSteps, int P>
  static HWY_INLINE void add_int8_to_one(const uint8_t* w, int64_t size, const int16_t* x, int64_t ahead, int64_t rate,
                                         VI (&sum)[P * kV]) {
    AERIE_PAIRWISE for (int j = 0; j < 8; ++j) {
      const Raw first = broadcast(x + 4 * j), second = broadcast(x + 4 * j + 2);
      AERIE_UNROLL for (int p = 0; p < P; ++p) {
        AERIE_FETCH(kTwoSteps, w + kLine * j + p * size, w + p * size + ahead + j * rate);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
          V16 fours = hn::BitCast(D16(), load(w + kLine * j, size, p, v));
          AERIE_KEEP(fours);
          VI& s = sum[p * kV + v];
          s = hn::Add(s, hn::Add(VI{word_pairs(even(fours).raw, first)}, VI{word_pairs(odd(fours).raw, second)}));
          AERIE_KEEP_SUM(s);
        }
      }
    }
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
