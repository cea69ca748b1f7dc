// Candidates and the exact walk. Scores, noise and softmax in vectors with plain arithmetic (bits equal
// on every ISA); filters on the host side of the row, sorted with ties to the lower id.
#include "kernels/cpu/hwy_targets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/draw.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

using U = hn::RebindToUnsigned<F>;
using VU = hn::Vec<U>;

HWY_INLINE void MulWide(VU a, uint32_t m, VU* hi, VU* lo) {
  const U d;
  const hn::Repartition<uint64_t, U> d64;
  const VU b = hn::Set(d, m);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), b);
  *lo = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  *hi = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// kernels/noise.cc, a vector at a time.
HWY_INLINE VF GumbelOf(VU w) {
  const F d;
  const U du;
  const hn::RebindToSigned<F> di;
  const auto upper = hn::Ne(hn::And(w, hn::Set(du, 0x80000000u)), hn::Zero(du));
  const auto c = hn::BitCast(di, hn::IfThenElse(upper, hn::Not(w), w));
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

// out[t] = G(seed, stream, position, t) for t < n, n rounded up to 4 * kLanes.
void gumbel_row(uint64_t seed, uint64_t stream, int64_t position, int64_t n, float* out) {
  const U d;
  const auto p = static_cast<uint64_t>(position);
  const auto lo = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto hi = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  for (int64_t t = 0; t < n; t += 4 * static_cast<int64_t>(kLanes)) {
    VU c0 = hn::Iota(d, static_cast<uint32_t>(t / 4)), c1 = hn::Set(d, lo(p)), c2 = hn::Set(d, hi(p) ^ hi(stream)),
       c3 = hn::Set(d, lo(stream));
    uint32_t k0 = lo(seed), k1 = hi(seed);
    for (int round = 0; round < 10; ++round) {
      VU h0, l0, h1, l1;
      MulWide(c0, 0xD2511F53u, &h0, &l0);
      MulWide(c2, 0xCD9E8D57u, &h1, &l1);
      c0 = hn::Xor(hn::Xor(h1, c1), hn::Set(d, k0));
      c1 = l1;
      c2 = hn::Xor(hn::Xor(h0, c3), hn::Set(d, k1));
      c3 = l0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const F df;
    hn::StoreInterleaved4(GumbelOf(c0), GumbelOf(c1), GumbelOf(c2), GumbelOf(c3), df, out + t);
  }
}

// Largest value; *good false if any is NaN or +inf (or, with `finite`, -inf).
float max_row(const float* x, int64_t n, bool finite, bool* good) {
  const F d;
  const float inf = std::numeric_limits<float>::infinity();
  VF top = hn::Set(d, -inf);
  VF bad = hn::Zero(d);
  const VF one = hn::Set(d, 1.0f), plus = hn::Set(d, inf), minus = hn::Set(d, -inf);
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= n; i += kLanes) {
    const VF v = hn::LoadU(d, x + i);
    bad = hn::IfThenElse(hn::Lt(v, plus), bad, one);  // NaN compares false
    if (finite) bad = hn::IfThenElse(hn::Eq(v, minus), one, bad);
    top = hn::Max(top, v);
  }
  HWY_ALIGN float t[16], b[16];
  hn::Store(top, d, t);
  hn::Store(bad, d, b);
  float best = -inf;
  *good = true;
  for (size_t l = 0; l < kLanes; ++l) {
    best = std::max(best, t[l]);
    *good = *good && b[l] == 0.0f;
  }
  for (; i < n; ++i) {
    *good = *good && x[i] < inf && !(finite && x[i] == -inf);
    best = std::max(best, x[i]);
  }
  return best;
}

// sum of exp(x[i] - top), 16 virtual lanes, then the tail.
float sum_exp_row(const float* x, int64_t n, float top) {
  const F d;
  VF acc[kParts];
  for (auto& a : acc) a = hn::Zero(d);
  const VF t = hn::Set(d, top);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t p = 0; p < kParts; ++p) acc[p] = hn::Add(acc[p], Exp(hn::Sub(hn::LoadU(d, x + i + p * kLanes), t)));
  float sum = SumLanes(acc);
  for (; i < n; ++i) sum += exp_own(x[i] - top);
  return sum;
}

// out[i] = x[i] / temperature (+ noise[i])
void scale_row(const float* x, float temperature, const float* noise, int64_t n, float* out) {
  const F d;
  const VF t = hn::Set(d, temperature);
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= n; i += kLanes) {
    VF v = hn::Div(hn::LoadU(d, x + i), t);
    if (noise) v = hn::Add(v, hn::LoadU(d, noise + i));
    hn::StoreU(v, d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] / temperature + (noise ? noise[i] : 0.0f);
}

// The k best of x in order, ties to the lower index; returns how many there are.
int32_t best_row(const float* x, int64_t n, int32_t k, int32_t* index, float* value) {
  const F d;
  int32_t have = 0;
  float worst = -std::numeric_limits<float>::infinity();
  const auto offer = [&](int64_t i) {
    if (have == k && !(x[i] > worst)) return;
    int32_t at = have < k ? have++ : k - 1;
    for (; at > 0 && value[at - 1] < x[i]; --at) {
      value[at] = value[at - 1];
      index[at] = index[at - 1];
    }
    value[at] = x[i];
    index[at] = static_cast<int32_t>(i);
    if (have == k) worst = value[k - 1];
  };
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= n; i += kLanes) {
    if (have == k && hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + i), hn::Set(d, worst)))) continue;
    for (size_t l = 0; l < kLanes; ++l) offer(i + static_cast<int64_t>(l));
  }
  for (; i < n; ++i) offer(i);
  return have;
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(gumbel_row);
HWY_EXPORT(max_row);
HWY_EXPORT(sum_exp_row);
HWY_EXPORT(scale_row);
HWY_EXPORT(best_row);

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Candidate {
  float score;
  int32_t id;
};
bool better(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }

// Working memory of one row: scores, noise, candidates.
struct RowMemory {
  float *score, *noise;
  Candidate* candidates;
  RowMemory(Scratch& scratch, int64_t n) {
    const int64_t padded = round_up(n, 64);
    score = static_cast<float*>(scratch.get(static_cast<size_t>(padded) * (4 + 4 + sizeof(Candidate))));
    noise = score + padded;
    candidates = reinterpret_cast<Candidate*>(noise + padded);
  }
};

// Top-k, top-p, min-p over scores (already divided by the temperature); returns how many remain in `c`,
// best first. Each filter sees the softmax of what the one before it left.
int64_t filter(const float* score, int64_t n, float top, const Sampling& s, Candidate* c) {
  int64_t count = 0;
  for (int64_t t = 0; t < n; ++t)
    if (score[t] != -kInf) c[count++] = {score[t], static_cast<int32_t>(t)};
  const auto weight = [&](int64_t i) { return std::exp(static_cast<double>(c[i].score) - top); };
  if (s.top_k > 0 && s.top_k < count) {
    std::nth_element(c, c + s.top_k, c + count, better);
    count = s.top_k;
  }
  if (s.top_p < 1) {
    double total = 0;
    // Ascending by id when nothing was cut, as nth_element left it otherwise: the same for the same row.
    for (int64_t i = 0; i < count; ++i) total += weight(i);
    int64_t sorted = 0, kept = 0;
    double above = 0;
    while (kept < count && (kept == 0 || above < static_cast<double>(s.top_p) * total)) {
      if (kept == sorted) {  // sort no more than is needed
        const int64_t more = std::min(count, std::max<int64_t>(64, sorted * 4));
        std::partial_sort(c + sorted, c + more, c + count, better);
        sorted = more;
      }
      above += weight(kept++);
    }
    count = kept;
  }
  if (s.min_p > 0) {
    const auto end = std::remove_if(c, c + count, [&](const Candidate& k) {
      return std::exp(static_cast<double>(k.score) - top) < static_cast<double>(s.min_p);
    });
    count = std::max<int64_t>(1, end - c);
  }
  return count;
}

// The token the target draws at one row; -1: a logit is not finite.
int32_t draw(const float* logits, int64_t n, const Sampling& s, int64_t position, RowMemory& m, float* top) {
  bool good = true;
  *top = HWY_DYNAMIC_DISPATCH(max_row)(logits, n, false, &good);
  if (!good || *top == -kInf) return -1;
  const auto argmax = [&](const float* x) {
    int32_t index = -1;
    float value = 0;
    HWY_DYNAMIC_DISPATCH(best_row)(x, n, 1, &index, &value);
    return index;
  };
  const float best = *top / s.temperature;
  if (!(s.temperature > 0) || !(std::fabs(best) < kInf)) return argmax(logits);
  HWY_DYNAMIC_DISPATCH(gumbel_row)(s.seed, s.stream, position, n, m.noise);
  if (s.top_k <= 0 && !(s.top_p < 1) && !(s.min_p > 0)) {
    HWY_DYNAMIC_DISPATCH(scale_row)(logits, s.temperature, m.noise, n, m.score);
    return argmax(m.score);
  }
  HWY_DYNAMIC_DISPATCH(scale_row)(logits, s.temperature, nullptr, n, m.score);
  const int64_t count = filter(m.score, n, best, s, m.candidates);
  Candidate winner{-kInf, -1};
  for (int64_t i = 0; i < count; ++i) {
    const Candidate c{m.candidates[i].score + m.noise[m.candidates[i].id], m.candidates[i].id};
    if (winner.id < 0 || better(c, winner)) winner = c;
  }
  return winner.id;
}

}  // namespace

int32_t tasks(const TopK& op, int) { return static_cast<int32_t>(op.logits.rows); }
void run(const TopK& op, int32_t r, int, Scratch& scratch) {
  const float* logits = static_cast<const float*>(op.logits.data) + r * op.logits.stride;
  const int64_t n = op.vocab_map ? op.logits.cols : std::min<int64_t>(op.logits.cols, op.vocab_used);
  int32_t* token = op.out_token + int64_t{r} * op.k;
  float* logp = op.out_logp + int64_t{r} * op.k;
  std::fill(token, token + op.k, -1);
  std::fill(logp, logp + op.k, -kInf);
  int64_t noise_n = n;
  if (op.vocab_map) noise_n = op.vocab_used;
  RowMemory m(scratch, std::max(n, noise_n));
  const DrawKey* key = op.keys && op.keys[r].temperature > 0 ? &op.keys[r] : nullptr;
  bool good = true;
  HWY_DYNAMIC_DISPATCH(max_row)(logits, n, true, &good);
  if (!good) return;
  const float* score = logits;
  if (key) HWY_DYNAMIC_DISPATCH(gumbel_row)(key->seed, key->stream, key->position, noise_n, m.noise);
  if (op.vocab_map) {
    for (int64_t t = 0; t < n; ++t) {
      const int32_t id = op.vocab_map[t];
      const bool used = id >= 0 && id < op.vocab_used;
      m.score[t] = !used ? -kInf : key ? logits[t] / key->temperature + m.noise[id] : logits[t];
    }
    score = m.score;
  } else if (key) {
    HWY_DYNAMIC_DISPATCH(scale_row)(logits, key->temperature, m.noise, n, m.score);
    score = m.score;
  }
  int32_t have = HWY_DYNAMIC_DISPATCH(best_row)(score, n, op.k, token, logp);
  while (have > 0 && logp[have - 1] == -kInf) token[--have] = -1;
  if (have == 0) return;
  const float top = logp[0];
  const float total = top + log_positive(HWY_DYNAMIC_DISPATCH(sum_exp_row)(score, n, top));
  for (int32_t i = 0; i < have; ++i) {
    logp[i] -= total;
    if (op.vocab_map) token[i] = op.vocab_map[token[i]];
  }
}

int32_t tasks(const Walk& op, int) { return op.n_seqs; }
void run(const Walk& op, int32_t q, int, Scratch& scratch) {
  const int64_t n = std::min<int64_t>(op.vocab_used, op.logits.cols);
  const WalkSeq& seq = op.seqs[q];
  auto* out = reinterpret_cast<WalkOut*>(static_cast<char*>(op.out) + q * walk_out_bytes(op.max_steps));
  auto* steps = reinterpret_cast<WalkStep*>(out + 1);
  *out = {0, 0};
  RowMemory m(scratch, n);
  for (int32_t row = seq.root_row; row >= 0 && out->count < op.max_steps;) {
    const float* logits = static_cast<const float*>(op.logits.data) + row * op.logits.stride;
    float top = 0;
    const int32_t x = draw(logits, n, seq.sampling, seq.root_position + 1 + out->count, m, &top);
    if (x < 0) {
      *out = {0, 1};
      return;
    }
    const float total = top + log_positive(HWY_DYNAMIC_DISPATCH(sum_exp_row)(logits, n, top));
    steps[out->count++] = {row, x, logits[x] - total, 0};
    row = op.first_child[row];
    while (row >= 0 && op.token[row] != x) row = op.next_sibling[row];
  }
}

}  // namespace aerie::kernels::cpu
#endif
