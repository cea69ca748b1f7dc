// Weights of 4 bits as bytes that instructions multiply.
#include <array>

#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/e2m1.h"

#if defined(AERIE_NIBBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_NIBBLES_INL_H_
#undef AERIE_NIBBLES_INL_H_
#else
#define AERIE_NIBBLES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the nibbles of bytes stand for: of int4 and q4_1 themselves, of mxfp4 the doubled number of the code, kZeroPoint too large.
template <DType T, int kZeroPoint = 0>
class Nibbles {
 public:
  using D8 = hn::Repartition<uint8_t, D>;
  using Codes = hn::Vec<D8>;

  HWY_INLINE Nibbles() : mask_(hn::Set(D8(), 15)), numbers_(hn::Zero(D8())) {
    if constexpr (T == DType::mxfp4) numbers_ = hn::LoadDup128(D8(), kNumbers.data());
  }
  HWY_INLINE Codes low(Codes bytes) const { return number(kMasks ? hn::And(bytes, mask_) : bytes); }
  HWY_INLINE Codes high(Codes bytes) const {
    const hn::Repartition<uint16_t, D> d16;
    return number(kMasks ? hn::ShiftRight<4>(bytes) : hn::BitCast(D8(), hn::ShiftRight<4>(hn::BitCast(d16, bytes))));
  }

 private:
  alignas(16) static constexpr std::array<uint8_t, 16> kNumbers = [] {
    std::array<uint8_t, 16> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(kE2m1Twice[i] + kZeroPoint);
    return numbers;
  }();

#if HWY_TARGET == HWY_AVX3_DL
  // Here an index into the table has six bits, for two of which it repeats itself.
  static constexpr bool kMasks = T != DType::mxfp4;
  HWY_INLINE Codes look_up(Codes at) const { return Codes{_mm512_permutexvar_epi8(at.raw, numbers_.raw)}; }
#else
  static constexpr bool kMasks = true;
  HWY_INLINE Codes look_up(Codes at) const { return hn::TableLookupBytes(numbers_, at); }
#endif
  HWY_INLINE Codes number(Codes nibbles) const {
    if constexpr (T == DType::mxfp4) return look_up(nibbles);
    else return nibbles;
  }

  Codes mask_, numbers_;
};

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
