// One block of kPageSlots positions for the queries that look at it.
#include <algorithm>
#include <limits>
#include <utility>

#include "hwy/highway.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/prefetch.h"

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

// What is read soon, in equal pieces of at most kW vectors of floats.
template <int kW>
class Fetching {
 public:
  HWY_INLINE Fetching(Upcoming soon, const void* any, int64_t steps)
      : at_(soon.bytes > 0 ? soon.at : static_cast<const char*>(any)),
        rate_(static_cast<uint32_t>(soon.bytes + steps - 1) / static_cast<uint32_t>(steps)) {}  // of a page's bytes
  HWY_INLINE void step() {
    constexpr int64_t kLine = 64, kBytes = kW * static_cast<int64_t>(kLanes) * 4;
    for (int64_t i = 0; i < kBytes; i += kLine) AERIE_PREFETCH(at_ + i);
    at_ += rate_;
  }

 private:
  const char* at_;
  int64_t rate_;
};

// scores[q][j] = (query q . key j) * scale for the first `reach` positions, in steps of kW vectors.
template <int kQ, int kW>
HWY_INLINE void Scores(const Query* queries, const float* keys, int64_t dim, float scale, int64_t reach, Upcoming soon,
                       float (*scores)[kPageSlots]) {
  const F d;
  constexpr int64_t kStep = kW * static_cast<int64_t>(kLanes);
  Fetching<kW> fetching(soon, keys, dim * ((reach + kStep - 1) / kStep));
  for (int64_t first = 0; first < reach; first += kStep) {
    VF acc[kQ][kW];
    for (auto& row : acc)
      for (auto& a : row) a = hn::Zero(d);
    for (int64_t i = 0; i < dim; ++i) {
      const float* k = keys + i * kPageSlots + first;
      fetching.step();
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
}

// values = values * keep + weight * value over positions [begin, end) ascending, elements [at, at + kW vectors).
template <int kQ, int kW>
HWY_INLINE void Weigh(const Query* queries, const float* const* value, int64_t begin, int64_t end, int64_t at, Upcoming soon,
                      const float (*weight)[kPageSlots], const float* keep) {
  const F d;
  Fetching<kW> fetching(soon, value[begin], end - begin);
  VF acc[kQ][kW];
  for (int q = 0; q < kQ; ++q) {
    const VF k = hn::Set(d, keep[q]);
    for (int w = 0; w < kW; ++w) acc[q][w] = hn::Mul(hn::Load(d, queries[q].state + kStateValues + at + w * kLanes), k);
  }
  for (int64_t j = begin; j < end; ++j) {
    const float* v = value[j] + at;
    fetching.step();
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

// All elements of it.
template <int kQ>
HWY_INLINE void WeighRows(const Query* queries, const float* const* value, int64_t begin, int64_t end, int64_t padded,
                          Upcoming soon, const float (*weight)[kPageSlots], const float* keep) {
  // A single query has too few chains to hide the FMA's latency: take more vectors at once.
  constexpr int kWide = kQ == 1 || (kLanes == 16 && kQ <= 4) ? 4 : 2;
  constexpr int64_t kStep = kWide * static_cast<int64_t>(kLanes);
  int64_t at = 0;
  for (; at + kStep <= padded; at += kStep)
    Weigh<kQ, kWide>(queries, value, begin, end, at, soon.part(at / kStep, padded / kStep), weight, keep);
  for (; at < padded; at += kLanes) Weigh<kQ, 1>(queries, value, begin, end, at, {}, weight, keep);
}

// score = exp(score - maximum), added to the totals.
template <int kQ>
HWY_INLINE void Weights(const Query* queries, float (*score)[kPageSlots], const float* keep) {
  const F d;
  constexpr size_t kVectors = kPageSlots / kLanes;
  VF weight[kQ * kVectors];
  for (int q = 0; q < kQ; ++q) {
    // A NaN score stays one: score - top is a NaN whatever top is.
    const VF top = hn::Set(d, queries[q].state[0]);
    for (size_t i = 0; i < kVectors; ++i) weight[q * kVectors + i] = hn::Sub(hn::Load(d, score[q] + i * kLanes), top);
  }
  Exp<false>(weight);
  for (int q = 0; q < kQ; ++q) {
    const VF* own = weight + q * kVectors;
    for (size_t i = 0; i < kVectors; ++i) hn::Store(own[i], d, score[q] + i * kLanes);
    float* total = queries[q].state + kStateTotal;
    for (size_t p = 0; p < kParts; ++p) {
      const VF block = hn::Add(own[p], own[p + kParts]);
      hn::Store(hn::Add(hn::Mul(hn::Load(d, total + p * kLanes), hn::Set(d, keep[q])), block), d, total + p * kLanes);
    }
  }
}

// Of all positions of the block: who looks at which comes later.
inline void CapScores(float cap, int64_t count, float (*score)[kPageSlots]) {
  const F d;
  constexpr size_t kVectors = kPageSlots / kLanes;
  for (int64_t q = 0; q < count; ++q) {
    VF s[kVectors];
    for (size_t i = 0; i < kVectors; ++i) s[i] = hn::Load(d, score[q] + i * kLanes);
    Cap(cap, s);
    for (size_t i = 0; i < kVectors; ++i) hn::Store(s[i], d, score[q] + i * kLanes);
  }
}

// Scores to weights exp(score - maximum so far). keep: what the states count for from now on, 1 unless a maximum rises.
// Step after step for all queries: a query's own steps wait for each other.
inline void Softmax(const Query* queries, int64_t count, float (*score)[kPageSlots], float* keep) {
  const F d;
  constexpr auto lanes = static_cast<int64_t>(kLanes);
  for (int64_t q = 0; q < count; ++q) {
    const bool whole = queries[q].from == 0 && queries[q].n == kPageSlots;
    for (int64_t j = 0; !whole && j < kPageSlots; j += lanes) {
      const auto first = [&](int64_t n) HWY_ATTR { return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(n - j, 0, lanes))); };
      const auto seen = hn::AndNot(first(queries[q].from), first(queries[q].n));
      const VF none = hn::Set(d, -std::numeric_limits<float>::infinity());
      hn::Store(hn::IfThenElse(seen, hn::Load(d, score[q] + j), none), d, score[q] + j);
    }
    VF best = hn::Load(d, score[q]);
    for (int64_t j = lanes; j < kPageSlots; j += lanes) best = hn::Max(best, hn::Load(d, score[q] + j));
    const float block_top = hn::GetLane(hn::MaxOfLanes(d, best)), before = queries[q].state[0];
    const float top = block_top > before ? block_top : before;
    keep[q] = before - top;
    queries[q].state[0] = top;
  }
  for (int64_t q = 0; q < count; q += lanes) hn::Store(Exp<false>(hn::Load(d, keep + q)), d, keep + q);
  constexpr int64_t kWide = kLanes == 16 ? 4 : 1;  // queries whose weights registers hold
  int64_t q = 0;
  for (; q + kWide <= count; q += kWide) Weights<kWide>(queries + q, score + q, keep + q);
  for (; q < count; ++q) Weights<1>(queries + q, score + q, keep + q);
}

// The two ends of a block for kQ queries: their scores, and with these as weights their values.
template <int kQ>
void ScoreTile(const Query* queries, const float* keys, int64_t dim, float scale, Upcoming soon, float (*score)[kPageSlots]) {
  int64_t reach = 0;
  for (int q = 0; q < kQ; ++q) reach = std::max(reach, queries[q].n);
  if (kLanes == 16 && reach <= 16)
    Scores<kQ, 1>(queries, keys, dim, scale, reach, soon, score);
  else
    Scores<kQ, kLanes != 16 && kQ == 1 ? 4 : 2>(queries, keys, dim, scale, reach, soon, score);
}

// Where windows begin within the block: what all look at together, before and behind it each by itself.
template <int kQ>
HWY_NOINLINE void WeighFrom(const Query* queries, const float* const* value, int64_t begin, int64_t end, int64_t padded, Upcoming soon,
                            const float (*weight)[kPageSlots], const float* keep) {
  begin = std::min(begin, end);  // nothing, perhaps
  float kept[kQ];
  const auto alone = [&](int q, int64_t first, int64_t last) HWY_ATTR {
    if (first >= last) return;
    WeighRows<1>(queries + q, value, first, last, padded, {}, weight + q, kept + q);
    kept[q] = 1.0f;
  };
  for (int q = 0; q < kQ; ++q) {
    kept[q] = keep[q];
    alone(q, queries[q].from, std::min(begin, queries[q].n));
  }
  if (begin < end) {
    WeighRows<kQ>(queries, value, begin, end, padded, soon, weight, kept);
    for (float& k : kept) k = 1.0f;
  }
  for (int q = 0; q < kQ; ++q) alone(q, std::max(end, queries[q].from), queries[q].n);
}

template <int kQ>
void WeighTile(const Query* queries, const float* const* value, int64_t dim, Upcoming soon,
               const float (*weight)[kPageSlots], const float* keep) {
  int64_t from = queries[0].from, n = queries[0].n;  // of all
  for (int q = 1; q < kQ; ++q) from = std::max(from, queries[q].from), n = std::min(n, queries[q].n);
  const int64_t padded = padded_dim(dim);
  if (from > 0) return WeighFrom<kQ>(queries, value, from, n, padded, soon, weight, keep);
  WeighRows<kQ>(queries, value, 0, n, padded, soon, weight, keep);
  for (int q = 0; q < kQ; ++q) {
    constexpr float kAll = 1.0f;
    if (queries[q].n > n) WeighRows<1>(queries + q, value, n, queries[q].n, padded, {}, weight + q, &kAll);
  }
}

// As many queries at once as registers allow, in equal tiles, since a narrow one has too few chains to hide the FMA's
// latency. fn(first of a tile's, how many, its part of what is read soon)
constexpr int64_t kMaxQueries = kLanes == 16 ? 8 : 4;
template <class Fn>
HWY_INLINE void EachTile(int64_t count, Upcoming soon, const Fn& fn) {
  const int64_t tiles = (count + kMaxQueries - 1) / kMaxQueries;
  for (int64_t i = 0; i < tiles; ++i)
    fn(count * i / tiles, count * (i + 1) / tiles - count * i / tiles, soon.part(i, tiles));
}

// One block, whose keys are in m.keys and whose values at `value`, for all queries that look at it. The keys and values that
// are read next are fetched meanwhile.
inline void Block(const Query* queries, int64_t count, const float* const* value, int64_t dim, float scale, float cap, Upcoming next_keys,
                  Upcoming next_values, const AttentionMemory& m) {
  constexpr int64_t kAtOnce = 32;
  HWY_ALIGN float score[kAtOnce][kPageSlots];
  HWY_ALIGN float keep[kAtOnce] = {};
  const auto tiles = [&]<int... kI>(std::integer_sequence<int, kI...>, int64_t here, Upcoming keys, Upcoming values) {
    constexpr decltype(&ScoreTile<1>) kScore[] = {ScoreTile<kI + 1>...};
    constexpr decltype(&WeighTile<1>) kWeigh[] = {WeighTile<kI + 1>...};
    EachTile(here, keys, [&](int64_t q, int64_t n, Upcoming soon) {
      kScore[n - 1](queries + q, m.keys, dim, scale, soon, score + q);
    });
    if (cap > 0) CapScores(cap, here, score);
    Softmax(queries, here, score, keep);
    EachTile(here, values, [&](int64_t q, int64_t n, Upcoming soon) {
      kWeigh[n - 1](queries + q, value, dim, soon, score + q, keep + q);
    });
  };
  const int64_t parts = (count + kAtOnce - 1) / kAtOnce;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t here = count * (i + 1) / parts - count * i / parts;
    tiles(std::make_integer_sequence<int, kMaxQueries>(), here, next_keys.part(i, parts), next_values.part(i, parts));
    queries += here;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
