// See draw.h.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/draw.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/noise.h"
#include "kernels/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/draw_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;
using VU = hn::Vec<U>;
constexpr int64_t kN = static_cast<int64_t>(kLanes);

// The words of one philox block a lane; word w of lane l belongs to token 4 * counter[l] + w.
struct Words {
  VU w[4];
};

HWY_INLINE void MulWide(VU a, VU m, VU* hi, VU* lo) {
  const U d;
  const hn::Repartition<uint64_t, U> d64;
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), m);
  *lo = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  *hi = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

HWY_INLINE Words Philox(VU counter, const NoiseKey& key) {
  const U d;
  const auto lo = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto hi = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  const auto p = static_cast<uint64_t>(key.position);
  VU c0 = counter, c1 = hn::Set(d, lo(p)), c2 = hn::Set(d, hi(p) ^ hi(key.stream)), c3 = hn::Set(d, lo(key.stream));
  const VU m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t k0 = lo(key.seed), k1 = hi(key.seed);
  for (int round = 0; round < 10; ++round) {
    VU h0, l0, h1, l1;
    MulWide(c0, m0, &h0, &l0);
    MulWide(c2, m1, &h1, &l1);
    c0 = hn::Xor(hn::Xor(h1, c1), hn::Set(d, k0));
    c1 = l1;
    c2 = hn::Xor(hn::Xor(h0, c3), hn::Set(d, k1));
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// kernels/noise.cc, a vector at a time.
HWY_INLINE VF GumbelOf(VU w) {
  const F d;
  const U du;
  const I di;
  const auto upper = hn::Lt(hn::BitCast(di, w), hn::Zero(di));
  const auto c = hn::BitCast(di, hn::IfThenElse(hn::RebindMask(du, upper), hn::Not(w), w));
  const VF y = hn::Mul(hn::Add(hn::ConvertTo(d, c), hn::Set(d, 0.5f)), hn::Set(d, 0x1p-32f));
  VF f, e;
  SplitPositive(y, &f, &e);
  const auto is_upper = hn::RebindMask(d, upper);
  const auto near_one = hn::Le(y, hn::Set(d, 0.2929f));
  const VF f_near = hn::Sub(hn::Zero(d), y), f_far = hn::Sub(hn::Set(d, 1.0f), hn::Add(y, y));
  f = hn::IfThenElse(is_upper, hn::IfThenElse(near_one, f_near, f_far), f);
  e = hn::IfThenElse(is_upper, hn::IfThenElse(near_one, hn::Zero(d), hn::Set(d, -1.0f)), e);
  const VF exponential = hn::Sub(hn::Zero(d), Log1pReduced(f, e));
  return hn::Sub(hn::Zero(d), LogPositive(exponential));
}

// An upper bound of G for a fraction of its price: -log(-log u) <= -log(1 - u), and the bits of a
// float read as an integer are a lower bound of its base-2 logarithm. The few 1e-5 that rounding may
// take away are kSlack's to give back.
constexpr float kSlack = 1e-3f, kMostNoise = 22.9f;
HWY_INLINE VF GumbelBound(VU w) {
  const F d;
  const U du;
  const I di;
  const VF y = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(hn::Not(w))));  // (1 - u) * 2^31, rounded
  const VF log2 = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::BitCast(du, y))), hn::Set(d, 0x1p-23f));
  return hn::Mul(hn::Sub(hn::Set(d, 158.0f), log2), hn::Set(d, 0.6931472f));
}

void GumbelRow(const NoiseKey& key, int64_t first, int64_t n, float* out) {
  const F d;
  const U du;
  for (int64_t t = 0; t < n; t += 4 * kN) {
    const Words x = Philox(hn::Iota(du, static_cast<uint32_t>((first + t) / 4)), key);
    hn::StoreInterleaved4(GumbelOf(x.w[0]), GumbelOf(x.w[1]), GumbelOf(x.w[2]), GumbelOf(x.w[3]), d, out + t);
  }
}

void GumbelIds(const NoiseKey& key, const int32_t* ids, int64_t n, float* out) {
  const F d;
  const U du;
  for (int64_t i = 0; i < n; i += kN) {
    const VU id = hn::BitCast(du, hn::LoadU(I(), ids + i));
    const Words x = Philox(hn::ShiftRight<2>(id), key);
    const VU one = hn::Set(du, 1), two = hn::Set(du, 2);
    const auto odd = hn::Eq(hn::And(id, one), one), high = hn::Eq(hn::And(id, two), two);
    const VU w = hn::IfThenElse(high, hn::IfThenElse(odd, x.w[3], x.w[2]), hn::IfThenElse(odd, x.w[1], x.w[0]));
    hn::StoreU(GumbelOf(w), d, out + i);
  }
}

int32_t DrawRow(const float* logits, int64_t n, float temperature, const NoiseKey& key, int32_t first) {
  const F d;
  const U du;
  const VF t = hn::Set(d, temperature);
  // Starting from the likeliest token lets most others be passed over without computing their noise:
  // what cannot reach the best score so far cannot win.
  Candidate best{logits[first] / temperature + gumbel(key.seed, key.stream, key.position, first), first};
  constexpr int64_t kStep = 4 * kN;
  HWY_ALIGN float padded[kStep];
  HWY_ALIGN uint32_t words[kStep];
  for (int64_t i = 0; i < n; i += kStep) {
    const float* x = logits + i;
    if (i + kStep > n) {
      std::fill(padded, padded + kStep, -kInf);
      std::memcpy(padded, x, static_cast<size_t>(n - i) * 4);
      x = padded;
    }
    VF s[4];
    VF most = hn::Set(d, -kInf);
    for (int64_t v = 0; v < 4; ++v) {
      s[v] = hn::Div(hn::LoadU(d, x + v * kN), t);
      most = hn::Max(most, s[v]);
    }
    if (hn::AllTrue(d, hn::Lt(hn::Add(most, hn::Set(d, kMostNoise)), hn::Set(d, best.score)))) continue;
    const Words p = Philox(hn::Iota(du, static_cast<uint32_t>(i / 4)), key);
    hn::StoreInterleaved4(p.w[0], p.w[1], p.w[2], p.w[3], du, words);
    for (int64_t v = 0; v < 4; ++v) {
      const VU w = hn::Load(du, words + v * kN);
      const VF bound = hn::Add(hn::Add(s[v], GumbelBound(w)), hn::Set(d, kSlack));
      if (hn::AllTrue(d, hn::Lt(bound, hn::Set(d, best.score)))) continue;
      HWY_ALIGN float score[kN];
      hn::Store(hn::Add(s[v], GumbelOf(w)), d, score);
      for (int64_t l = 0; l < kN; ++l) {
        const Candidate c{score[l], static_cast<int32_t>(i + v * kN + l)};
        if (better(c, best)) best = c;
      }
    }
  }
  return best.id;
}

bool MaxRow(const float* x, int64_t n, Candidate* best) {
  const F d;
  const VF plus = hn::Set(d, kInf);
  VF top[4];
  for (auto& v : top) v = hn::Set(d, -kInf);
  auto good = hn::Eq(top[0], top[0]);
  int64_t i = 0;
  for (; i + 4 * kN <= n; i += 4 * kN) {
    for (int64_t v = 0; v < 4; ++v) {
      const VF value = hn::LoadU(d, x + i + v * kN);
      good = hn::And(good, hn::Lt(value, plus));  // NaN compares false
      top[v] = hn::Max(top[v], value);
    }
  }
  float most = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(top[0], top[1]), hn::Max(top[2], top[3]))));
  bool fine = hn::AllTrue(d, good);
  for (; i < n; ++i) {
    fine = fine && x[i] < kInf;
    most = x[i] > most ? x[i] : most;
  }
  *best = {most, -1};
  if (!fine) return false;
  if (most == -kInf) return true;
  for (i = 0; i + kN <= n; i += kN)
    if (!hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), hn::Set(d, most)))) break;
  while (x[i] != most) ++i;
  best->id = static_cast<int32_t>(i);
  return true;
}

bool FiniteRow(const float* x, int64_t n, float* top) {
  const F d;
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  VF most = hn::Set(d, -kInf);
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const VF v = hn::LoadU(d, x + i);
    good = hn::And(good, hn::Lt(hn::Abs(v), hn::Set(d, kInf)));
    most = hn::Max(most, v);
  }
  bool fine = hn::AllTrue(d, good);
  *top = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    fine = fine && x[i] < kInf && x[i] > -kInf;
    *top = std::max(*top, x[i]);
  }
  return fine;
}

bool UsedRow(const float* x, const int32_t* map, int32_t used, int64_t n, float* out, float* top) {
  const F d;
  const I di;
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  VF most = hn::Set(d, -kInf);
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const auto id = hn::LoadU(di, map + i);
    const auto counts = hn::RebindMask(d, hn::And(hn::Gt(id, hn::Set(di, -1)), hn::Lt(id, hn::Set(di, used))));
    const VF v = hn::IfThenElse(counts, hn::LoadU(d, x + i), hn::Set(d, -kInf));
    good = hn::And(good, hn::Or(hn::Not(counts), hn::Lt(hn::Abs(v), hn::Set(d, kInf))));
    most = hn::Max(most, v);
    hn::StoreU(v, d, out + i);
  }
  bool fine = hn::AllTrue(d, good);
  *top = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    const bool counts = map[i] >= 0 && map[i] < used;
    fine = fine && (!counts || (x[i] < kInf && x[i] > -kInf));
    out[i] = counts ? x[i] : -kInf;
    *top = std::max(*top, out[i]);
  }
  return fine;
}

// 16 virtual lanes.
HWY_INLINE float SumExpBlock(const float* x, int64_t n, float top) {
  const F d;
  const VF t = hn::Set(d, top);
  VF acc[kParts];
  for (auto& a : acc) a = hn::Zero(d);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t p = 0; p < kParts; ++p) acc[p] = hn::Add(acc[p], Exp(hn::Sub(hn::LoadU(d, x + i + p * kLanes), t)));
  if (i < n) {
    HWY_ALIGN float padded[16];
    std::fill(padded, padded + 16, -kInf);
    std::memcpy(padded, x + i, static_cast<size_t>(n - i) * 4);
    for (size_t p = 0; p < kParts; ++p) acc[p] = hn::Add(acc[p], Exp(hn::Sub(hn::Load(d, padded + p * kLanes), t)));
  }
  return SumLanes(acc);
}

// Blocks of 2048 values add up in double, so that a large vocabulary loses nothing.
float SumExpRow(const float* x, int64_t n, float top) {
  double sum = 0;
  for (int64_t first = 0; first < n; first += 2048)
    sum += static_cast<double>(SumExpBlock(x + first, std::min<int64_t>(n - first, 2048), top));
  return static_cast<float>(sum);
}

void SumExpBlocks(const float* x, int64_t n, BlockSum* out) {
  const F d;
  for (int64_t first = 0; first < n; first += kTopKBlock, x += kTopKBlock, ++out) {
    const int64_t count = std::min<int64_t>(n - first, kTopKBlock);
    VF most = hn::Set(d, -kInf);
    int64_t i = 0;
    for (; i + kN <= count; i += kN) most = hn::Max(most, hn::LoadU(d, x + i));
    out->top = hn::GetLane(hn::MaxOfLanes(d, most));
    for (; i < count; ++i) out->top = std::max(out->top, x[i]);
    out->sum = out->top == -kInf ? 0.0f : SumExpBlock(x, count, out->top);
  }
}

void ScaleRow(const float* x, float temperature, const float* noise, int64_t n, float* out) {
  const F d;
  const VF t = hn::Set(d, temperature);
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    VF v = hn::Div(hn::LoadU(d, x + i), t);
    if (noise) v = hn::Add(v, hn::LoadU(d, noise + i));
    hn::StoreU(v, d, out + i);
  }
  for (; i < n; ++i) {
    const float v = x[i] / temperature;
    out[i] = noise ? v + noise[i] : v;
  }
}

int64_t CollectRow(const float* x, int64_t from, int64_t n, float threshold, Candidate* out, int64_t* count,
                   int64_t capacity) {
  const F d;
  const VF t = hn::Set(d, threshold);
  int64_t i = from, have = *count;
  for (; i < n && have + kCollectSlack <= capacity; i += kN) {
    const int64_t lanes = std::min(kN, n - i);
    if (lanes == kN && hn::AllFalse(d, hn::Ge(hn::LoadU(d, x + i), t))) continue;
    for (int64_t l = i; l < i + lanes; ++l)
      if (x[l] >= threshold) out[have++] = {x[l], static_cast<int32_t>(l)};
  }
  *count = have;
  return std::min(i, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(GumbelRow);
HWY_EXPORT(GumbelIds);
HWY_EXPORT(DrawRow);
HWY_EXPORT(MaxRow);
HWY_EXPORT(FiniteRow);
HWY_EXPORT(UsedRow);
HWY_EXPORT(SumExpRow);
HWY_EXPORT(SumExpBlocks);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(CollectRow);

void gumbel_row(const NoiseKey& key, int64_t first, int64_t n, float* out) {
  AERIE_DISPATCH(GumbelRow)(key, first, n, out);
}
void gumbel_ids(const NoiseKey& key, const int32_t* ids, int64_t n, float* out) {
  AERIE_DISPATCH(GumbelIds)(key, ids, n, out);
}
int32_t draw_row(const float* logits, int64_t n, float temperature, const NoiseKey& key, int32_t best) {
  return AERIE_DISPATCH(DrawRow)(logits, n, temperature, key, best);
}
bool max_row(const float* x, int64_t n, Candidate* best) { return AERIE_DISPATCH(MaxRow)(x, n, best); }
bool finite_row(const float* x, int64_t n, float* top) { return AERIE_DISPATCH(FiniteRow)(x, n, top); }
bool used_logits(const float* logits, const int32_t* map, int32_t used, int64_t n, float* out, float* top) {
  return AERIE_DISPATCH(UsedRow)(logits, map, used, n, out, top);
}
float sum_exp_row(const float* x, int64_t n, float top) { return AERIE_DISPATCH(SumExpRow)(x, n, top); }
void sum_exp_blocks(const float* x, int64_t n, BlockSum* out) { AERIE_DISPATCH(SumExpBlocks)(x, n, out); }
void scale_row(const float* x, float temperature, const float* noise, int64_t n, float* out) {
  AERIE_DISPATCH(ScaleRow)(x, temperature, noise, n, out);
}
int64_t collect_row(const float* x, int64_t from, int64_t n, float threshold, Candidate* out, int64_t* count,
                    int64_t capacity) {
  return AERIE_DISPATCH(CollectRow)(x, from, n, threshold, out, count, capacity);
}

}  // namespace aerie::kernels::cpu
#endif
