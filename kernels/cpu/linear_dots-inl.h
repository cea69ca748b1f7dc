// Products of activations, rounded to integers, with a block (32 k) of weights of 8 or 4 bits, summed in int32: exact.
//
// The ways to do it are classes. add_block: adds the products of one block, of M rows (x: row after row) with P panels whose blocks
// are at w + p * size, and fetches what the panels hold `ahead` bytes from there, `rate` bytes for each line. Order: how the
// activations' codes lie (linear_codes-inl.h). kZeroPoint: weights are taken as so much too large (int4's nibble; where instructions want
// unsigned ones int8 + 128 and mxfp4's number + 12; q4_1's nibbles are what they say), and the sums begin with the rows' offsets
// (OffsetsOf), which take away what that adds.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/linear_byte_dots-inl.h"
#include "kernels/cpu/linear_pairs-inl.h"
#include "kernels/cpu/nibbles-inl.h"
#include "kernels/e2m1.h"

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

// Row after row, panel after panel.
template <class Block>
struct OneByOne : Block {
  template <DType T, bool kTwoSteps, int M, int P>
  static HWY_INLINE void add_block(const uint8_t* w, int64_t size, const int8_t* x, int64_t ahead, int64_t rate,
                                   VI (&sum)[M][P * kV]) {
    AERIE_UNROLL for (int p = 0; p < P; ++p) {
      for (int64_t j = 0; j < kBlockBytes<T> / kLine; ++j)
        AERIE_FETCH(kTwoSteps, w + p * size + kLine * j, w + p * size + ahead + j * rate);
      AERIE_UNROLL for (int m = 0; m < M; ++m)
        Block::template add<T>(w + p * size, x + m * kBlock, &sum[m][static_cast<size_t>(p) * kV]);
    }
  }
};

#if AERIE_BYTE_DOTS == 2
using OtherDots = ByteDots;
#elif HWY_ARCH_X86
using OtherDots = Pairs;
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
// Products widened to 16 bits, sums of 4 lanes over groups of 4 k.
struct Widened {
  template <DType T>
  using Order = Bytes;
  template <DType T>
  using OffsetsOf = Offsets;
  template <DType T>
  static constexpr int32_t kZeroPoint = T == DType::int4 ? 8 : 0;

  struct Sums {
    int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);  // two sums a lane
    HWY_INLINE void add(int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) {  // 128 * 127 * 2 fits int16
      low = vpadalq_s16(low, vmlal_s8(vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), vget_low_s8(w1), vget_low_s8(x1)));
      high = vpadalq_s16(high, vmlal_high_s8(vmull_high_s8(w0, x0), w1, x1));
    }
    HWY_INLINE int32x4_t total() const { return vpaddq_s32(low, high); }
  };

  template <DType T>
  static HWY_INLINE void add(const uint8_t* w, const int8_t* x, VI* sum) {
    int8x16_t a[8];  // 4 activations, in every lane
    for (int j = 0; j < 8; ++j) {
      int32_t four;
      __builtin_memcpy(&four, x + 4 * j, 4);
      a[j] = vreinterpretq_s8_s32(vdupq_n_s32(four));
    }
    const Nibbles<T> nibbles;
    for (size_t v = 0; v < kV; ++v) {
      Sums s;
      for (int j = 0; j < 4; ++j) {
        const typename Nibbles<T>::Codes b{vld1q_u8(w + 64 * j + 16 * v)};
        if constexpr (is_nibbles(T)) {
          s.add(vreinterpretq_s8_u8(nibbles.low(b).raw), a[j], vreinterpretq_s8_u8(nibbles.high(b).raw), a[j + 4]);
        } else {
          s.add(vreinterpretq_s8_u8(b.raw), a[j], vreinterpretq_s8_u8(vld1q_u8(w + 64 * (j + 4) + 16 * v)), a[j + 4]);
        }
      }
      sum[v] = VI{vaddq_s32(sum[v].raw, s.total())};
    }
  }
};
using OtherDots = OneByOne<Widened>;
#else
struct Scalar {
  template <DType T>
  using Order = Bytes;
  template <DType T>
  using OffsetsOf = Offsets;
  template <DType T>
  static constexpr int32_t kZeroPoint = T == DType::int4 ? 8 : 0;

  template <DType T>
  static HWY_INLINE void add(const uint8_t* w, const int8_t* x, VI* sum) {
    HWY_ALIGN int32_t lanes[kPanel] = {};
    for (int j = 0; j < (is_nibbles(T) ? 4 : 8); ++j)
      for (int l = 0; l < kPanel; ++l)
        for (int i = 0; i < 4; ++i) {
          const uint8_t b = w[64 * j + 4 * l + i];
          if constexpr (T == DType::mxfp4) lanes[l] += x[4 * j + i] * kE2m1Twice[b & 15] + x[16 + 4 * j + i] * kE2m1Twice[b >> 4];
          else if constexpr (is_nibbles(T)) lanes[l] += x[4 * j + i] * (b & 15) + x[16 + 4 * j + i] * (b >> 4);
          else lanes[l] += x[4 * j + i] * static_cast<int32_t>(static_cast<int8_t>(b));
        }
    const hn::RebindToSigned<D> di;
    for (size_t v = 0; v < kV; ++v) sum[v] = hn::Add(sum[v], hn::Load(di, lanes + v * kN));
  }
};
using OtherDots = OneByOne<Scalar>;
#endif
#if !AERIE_BYTE_DOTS
using ByteDots = OtherDots;
#endif

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
