// Vector math of the CPU kernels, for each Highway target. Plain multiplications and additions in the
// order of kernels/scalar_math.h, so that every ISA gives the scalar functions' bits.
#include "hwy/highway.h"
#include "kernels/cpu/unroll.h"
#include "kernels/ops.h"
#include "kernels/scalar_math.h"

// Include guard for each target.
#if defined(AERIE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_MATH_INL_H_
#undef AERIE_MATH_INL_H_
#else
#define AERIE_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, 16>;
using VF = hn::Vec<F>;
constexpr size_t kLanes = hn::MaxLanes(F());
constexpr size_t kParts = 16 / kLanes;  // vectors that make 16 virtual lanes

// Sum of 16 virtual lanes: i + (i + 8), then + 4, then the last four in pairs; the same on every ISA.
HWY_INLINE float SumLanes(const VF* v) {
  HWY_ALIGN float s[16];
  for (size_t p = 0; p < kParts; ++p) hn::Store(v[p], F(), s + p * kLanes);
  for (int i = 0; i < 8; ++i) s[i] += s[i + 8];
  for (int i = 0; i < 4; ++i) s[i] += s[i + 4];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

HWY_INLINE VF Log1pReduced(VF f, VF e) {
  const F d;
  VF p = hn::Set(d, LogPoly::kP[0]);
  for (int i = 1; i < 9; ++i) p = hn::Add(hn::Mul(p, f), hn::Set(d, LogPoly::kP[i]));
  const VF z = hn::Mul(f, f);
  VF y = hn::Mul(hn::Mul(p, f), z);
  y = hn::Add(y, hn::Mul(e, hn::Set(d, LogPoly::kLn2Lo)));
  y = hn::Sub(y, hn::Mul(hn::Set(d, 0.5f), z));
  y = hn::Add(f, y);
  return hn::Add(y, hn::Mul(e, hn::Set(d, LogPoly::kLn2Hi)));
}

HWY_INLINE void SplitPositive(VF x, VF* f, VF* e) {
  const F d;
  const hn::RebindToSigned<F> di;
  const hn::RebindToUnsigned<F> du;
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  const auto i = hn::Add(hn::BitCast(du, x), hn::Set(du, 0x3f800000u - kSqrtHalf));
  *e = hn::ConvertTo(d, hn::Sub(hn::BitCast(di, hn::ShiftRight<23>(i)), hn::Set(di, 127)));
  *f = hn::Sub(hn::BitCast(d, hn::Add(hn::And(i, hn::Set(du, 0x007fffffu)), hn::Set(du, kSqrtHalf))), hn::Set(d, 1.0f));
}

HWY_INLINE VF LogPositive(VF x) {
  VF f, e;
  SplitPositive(x, &f, &e);
  return Log1pReduced(f, e);
}

// x = exp(x), step after step for all vectors: the steps of one wait for each other. kPositive: some may be above 0. A NaN
// stays one through all of it.
template <bool kPositive = true, size_t N>
HWY_INLINE void Exp(VF (&x)[N]) {
  const F d;
  const hn::RebindToSigned<F> di;
  const VF low = hn::Set(d, ExpPoly::kMin), high = hn::Set(d, ExpPoly::kMax), round = hn::Set(d, ExpPoly::kRound);
  VF r[N], rounded[N], n[N], p[N];
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
    r[i] = x[i];
    if constexpr (kPositive) r[i] = hn::IfThenElse(hn::Gt(r[i], high), high, r[i]);
    r[i] = hn::IfThenElse(hn::Lt(x[i], low), low, r[i]);
  }
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) rounded[i] = hn::Add(hn::Mul(r[i], hn::Set(d, ExpPoly::kLog2e)), round);
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) n[i] = hn::Sub(rounded[i], round);
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) r[i] = hn::Sub(r[i], hn::Mul(n[i], hn::Set(d, ExpPoly::kLn2Hi)));
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) r[i] = hn::Sub(r[i], hn::Mul(n[i], hn::Set(d, ExpPoly::kLn2Lo)));
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::Set(d, ExpPoly::kP[0]);
  AERIE_UNROLL for (int k = 1; k < 6; ++k)
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::Add(hn::Mul(p[i], r[i]), hn::Set(d, ExpPoly::kP[k]));
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::Mul(p[i], hn::Mul(r[i], r[i]));
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::Add(p[i], r[i]);
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::Add(p[i], hn::Set(d, 1.0f));
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
    // n as an integer: what the last bits of `rounded` are more than those of kRound.
    const auto bits = hn::ShiftLeft<23>(hn::Add(hn::Sub(hn::BitCast(di, rounded[i]), hn::BitCast(di, round)), hn::Set(di, 126)));
    p[i] = hn::Mul(p[i], hn::BitCast(d, bits));
  }
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
    VF y = hn::IfThenZeroElse(hn::Lt(x[i], low), hn::Mul(p[i], hn::Set(d, 2.0f)));
    if constexpr (kPositive) y = hn::IfThenElse(hn::Gt(x[i], high), hn::Set(d, std::numeric_limits<float>::infinity()), y);
    x[i] = y;
  }
}

template <bool kPositive = true>
HWY_INLINE VF Exp(VF x) {
  VF one[1] = {x};
  Exp<kPositive>(one);
  return one[0];
}

// x = cap * tanh(x / cap), as scalar_math.h has it.
template <size_t N>
HWY_INLINE void Cap(float cap, VF (&x)[N]) {
  const F d;
  const VF most = hn::Set(d, cap), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  VF e[N], none[N];  // what is added: 0, of what is not finite NaN
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
    none[i] = hn::Sub(x[i], x[i]);
    e[i] = hn::Mul(hn::Div(x[i], most), two);
  }
  Exp(e);
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) x[i] = hn::Add(hn::Mul(hn::Sub(one, hn::Div(two, hn::Add(one, e[i]))), most), none[i]);
}

// bf16 -> f32, kLanes of them.
HWY_INLINE VF LoadBf16(const uint16_t* p) {
  const F d;
  const hn::Rebind<uint16_t, F> d16;
  const hn::RebindToUnsigned<F> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
