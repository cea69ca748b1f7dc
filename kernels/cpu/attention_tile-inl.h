// One block of kPageSlots positions for the queries that look at it.
#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/math-inl.h"

#if defined(AERIE_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_ATTENTION_TILE_INL_H_
#undef AERIE_ATTENTION_TILE_INL_H_
#else
#define AERIE_ATTENTION_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F4 = hn::FixedTag<float, 4>;

HWY_INLINE float Load1(KvRow<float> row, int64_t i) { return row.at[i]; }
HWY_INLINE float Load1(KvRow<uint16_t> row, int64_t i) { return std::bit_cast<float>(uint32_t{row.at[i]} << 16); }
HWY_INLINE float Load1(KvRow<int8_t> row, int64_t i) { return static_cast<float>(row.at[i]) * row.scale; }
HWY_INLINE hn::Vec<F4> Load4(KvRow<float> row, int64_t i) { return hn::LoadU(F4(), row.at + i); }
HWY_INLINE hn::Vec<F4> Load4(KvRow<uint16_t> row, int64_t i) {
  const hn::FixedTag<uint32_t, 4> d32;
  return hn::BitCast(F4(), hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(hn::FixedTag<uint16_t, 4>(), row.at + i))));
}
HWY_INLINE hn::Vec<F4> Load4(KvRow<int8_t> row, int64_t i) {
  const auto codes = hn::PromoteTo(hn::FixedTag<int32_t, 4>(), hn::LoadU(hn::FixedTag<int8_t, 4>(), row.at + i));
  return hn::Mul(hn::ConvertTo(F4(), codes), hn::Set(F4(), row.scale));
}

// keys[i * kPageSlots + j] = row[j][i] for j < n: lanes are positions, so that a score needs no
// horizontal sum.
template <class T>
void TransposeKeys(const KvRow<T>* row, int64_t n, int64_t dim, float* HWY_RESTRICT keys) {
  const F4 d;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    int64_t i = 0;
    for (; i + 4 <= dim; i += 4) {
      const auto a = Load4(row[j], i), b = Load4(row[j + 1], i), c = Load4(row[j + 2], i), e = Load4(row[j + 3], i);
      const auto ab0 = hn::InterleaveLower(d, a, b), ce0 = hn::InterleaveLower(d, c, e);
      const auto ab1 = hn::InterleaveUpper(d, a, b), ce1 = hn::InterleaveUpper(d, c, e);
      float* out = keys + i * kPageSlots + j;
      hn::StoreU(hn::ConcatLowerLower(d, ce0, ab0), d, out);
      hn::StoreU(hn::ConcatUpperUpper(d, ce0, ab0), d, out + kPageSlots);
      hn::StoreU(hn::ConcatLowerLower(d, ce1, ab1), d, out + 2 * kPageSlots);
      hn::StoreU(hn::ConcatUpperUpper(d, ce1, ab1), d, out + 3 * kPageSlots);
    }
    for (; i < dim; ++i)
      for (int64_t l = 0; l < 4; ++l) keys[i * kPageSlots + j + l] = Load1(row[j + l], i);
  }
  for (; j < n; ++j)
    for (int64_t i = 0; i < dim; ++i) keys[i * kPageSlots + j] = Load1(row[j], i);
}

// Rows of whole vectors, zeros behind dim.
template <class T>
void ExpandValues(const KvRow<T>* row, int64_t n, int64_t dim, float* HWY_RESTRICT values) {
  const F4 d;
  const int64_t padded = padded_dim(dim);
  for (int64_t j = 0; j < n; ++j) {
    float* out = values + j * padded;
    int64_t i = 0;
    for (; i + 4 <= dim; i += 4) hn::StoreU(Load4(row[j], i), d, out + i);
    for (; i < dim; ++i) out[i] = Load1(row[j], i);
    for (; i < padded; ++i) out[i] = 0.0f;
  }
}

// scores[q][j] = (query q . key j) * scale for positions [first, first + kW vectors).
template <int kQ, int kW>
HWY_INLINE void Scores(const Query* queries, const float* keys, int64_t dim, float scale, size_t first,
                       float (*scores)[kPageSlots]) {
  const F d;
  VF acc[kQ][kW];
  for (auto& row : acc)
    for (auto& a : row) a = hn::Zero(d);
  for (int64_t i = 0; i < dim; ++i) {
    const float* k = keys + i * kPageSlots + first;
    VF key[kW];
    for (int w = 0; w < kW; ++w) key[w] = hn::Load(d, k + w * kLanes);
    for (int q = 0; q < kQ; ++q) {
      const VF x = hn::Set(d, queries[q].q[i]);
      for (int w = 0; w < kW; ++w) acc[q][w] = hn::MulAdd(key[w], x, acc[q][w]);
    }
  }
  for (int q = 0; q < kQ; ++q)
    for (int w = 0; w < kW; ++w) hn::Store(hn::Mul(acc[q][w], hn::Set(d, scale)), d, scores[q] + first + w * kLanes);
}

// values += weight * value over positions ascending, elements [at, at + kW vectors).
template <int kQ, int kW>
HWY_INLINE void Weigh(const Query* queries, const float* const* value, int64_t n, int64_t at,
                      const float (*weight)[kPageSlots]) {
  const F d;
  VF acc[kQ][kW];
  for (int q = 0; q < kQ; ++q)
    for (int w = 0; w < kW; ++w) acc[q][w] = hn::Load(d, queries[q].state + kStateValues + at + w * kLanes);
  for (int64_t j = 0; j < n; ++j) {
    const float* v = value[j] + at;
    VF x[kW];
    for (int w = 0; w < kW; ++w) x[w] = hn::LoadU(d, v + w * kLanes);
    for (int q = 0; q < kQ; ++q) {
      const VF p = hn::Set(d, weight[q][j]);
      for (int w = 0; w < kW; ++w) acc[q][w] = hn::MulAdd(p, x[w], acc[q][w]);
    }
  }
  for (int q = 0; q < kQ; ++q)
    for (int w = 0; w < kW; ++w) hn::Store(acc[q][w], d, queries[q].state + kStateValues + at + w * kLanes);
}

// Scores to weights exp(score - maximum so far); rescales the state when the maximum rises.
HWY_INLINE void Softmax(const Query& query, int64_t padded, float* score) {
  const F d;
  const float inf = std::numeric_limits<float>::infinity();
  for (int64_t j = query.n; j < kPageSlots; ++j) score[j] = -inf;
  VF best = hn::Load(d, score);
  for (size_t j = kLanes; j < kPageSlots; j += kLanes) best = hn::Max(best, hn::Load(d, score + j));
  const float block_top = hn::GetLane(hn::MaxOfLanes(d, best)), before = query.state[0];
  const float top = block_top > before ? block_top : before;
  query.state[0] = top;
  // A NaN score stays one: score - top is a NaN whatever top is.
  for (size_t j = 0; j < kPageSlots; j += kLanes)
    hn::Store(Exp(hn::Sub(hn::Load(d, score + j), hn::Set(d, top))), d, score + j);
  const float keep = exp_own(before - top);
  const VF k = hn::Set(d, keep);
  float* total = query.state + kStateTotal;
  for (size_t l = 0; l < 16; l += kLanes) {
    const VF block = hn::Add(hn::Load(d, score + l), hn::Load(d, score + l + 16));
    hn::Store(hn::Add(hn::Mul(hn::Load(d, total + l), k), block), d, total + l);
  }
  if (keep == 1.0f) return;
  float* values = query.state + kStateValues;
  for (int64_t i = 0; i < padded; i += kLanes) hn::Store(hn::Mul(hn::Load(d, values + i), k), d, values + i);
}

// One block for kQ queries that look at equally many of its positions.
template <int kQ>
void Tile(const Query* queries, const float* keys, const float* const* value, int64_t dim, float scale) {
  // A single query has too few chains to hide the FMA's latency: take more vectors at once.
  constexpr int kWide = kQ == 1 ? 4 : 2;
  constexpr int kScoreWidth = kLanes == 16 ? 2 : kWide;
  HWY_ALIGN float score[kQ][kPageSlots];
  for (size_t first = 0; first < kPageSlots; first += kScoreWidth * kLanes)
    Scores<kQ, kScoreWidth>(queries, keys, dim, scale, first, score);
  const int64_t padded = padded_dim(dim), n = queries[0].n;
  for (int q = 0; q < kQ; ++q) Softmax(queries[q], padded, score[q]);
  constexpr int64_t kStep = kWide * static_cast<int64_t>(kLanes);
  int64_t at = 0;
  for (; at + kStep <= padded; at += kStep) Weigh<kQ, kWide>(queries, value, n, at, score);
  for (; at < padded; at += kLanes) Weigh<kQ, 1>(queries, value, n, at, score);
}

template <class T>
void Block(const Query* queries, int64_t count, const KvRow<T>* key, const KvRow<T>* value, int64_t dim, float scale,
           const AttentionMemory& m) {
  int64_t n = 0;
  for (int64_t i = 0; i < count; ++i) n = std::max(n, queries[i].n);
  TransposeKeys(key, n, dim, m.keys);
  const float* v[kPageSlots];
  if (sizeof(T) != 4 || dim % 16 != 0) {
    ExpandValues(value, n, dim, m.values);
    for (int64_t j = 0; j < n; ++j) v[j] = m.values + j * padded_dim(dim);
  } else {
    for (int64_t j = 0; j < n; ++j) v[j] = reinterpret_cast<const float*>(value[j].at);
  }
  for (int64_t i = 0; i < count;) {
    int64_t same = 1;
    while (same < 4 && i + same < count && queries[i + same].n == queries[i].n) ++same;
    if (same == 4)
      Tile<4>(queries + i, m.keys, v, dim, scale);
    else if (same == 3)
      Tile<3>(queries + i, m.keys, v, dim, scale);
    else if (same == 2)
      Tile<2>(queries + i, m.keys, v, dim, scale);
    else
      Tile<1>(queries + i, m.keys, v, dim, scale);
    i += same;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
