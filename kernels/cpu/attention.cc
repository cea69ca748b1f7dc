// Attention over paged keys and values.
//
// Order of one output: blocks of kPageSlots absolute positions, ascending. A score is one FMA chain
// over the head's elements, an output element one FMA chain over the positions, the softmax total 16
// lanes (position mod 16) and one tree at the end; a block that raises the maximum rescales what the
// blocks before it left. Where a position's slot lies (page or tail), which rows share a block and how
// many queries are worked on together change none of it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"

#ifndef AERIE_ATTENTION_SHARED
#define AERIE_ATTENTION_SHARED
namespace aerie::kernels::cpu {

// Running state of one query: [0] the maximum, [16, 32) lanes of the total, [32, 32 + dim padded) values.
constexpr int64_t kStateTotal = 16, kStateValues = 32;

struct Query {
  const float* q;  // (dim)
  float* state;
  int64_t n;  // positions of the current block it may look at
};

// A key or a value as it lies in the cache.
template <class T>
struct KvRow {
  const T* at;  // (dim)
};
template <>
struct KvRow<int8_t> {
  const int8_t* at;  // (dim) codes
  float scale;
};

// The keys (which = 0) or values (1) of one kv head in one layer.
template <class T>
class KvHead {
 public:
  KvHead(const KvCache& c, int64_t layer, int64_t which, int64_t kv_head)
      : cache_(c), first_((layer * 2 + which) * c.slots * c.kv_heads + kv_head) {}
  KvRow<T> row(int64_t slot) const {
    const int64_t i = first_ + slot * cache_.kv_heads;
    const T* at = static_cast<const T*>(cache_.data) + i * cache_.head_dim;
    if constexpr (sizeof(T) == 1)
      return {at, cache_.scales[i]};
    else
      return {at};
  }

 private:
  const KvCache& cache_;
  int64_t first_;  // row of slot 0
};

struct AttentionMemory {
  float* keys;     // (dim, kPageSlots): a block's keys, transposed
  float* values;   // (kPageSlots, padded dim), where the cache itself cannot be read as floats
  float* states;   // (queries, kStateValues + padded dim)
  Query* queries;  // (queries)
};
inline int64_t padded_dim(int64_t dim) { return round_up(dim, 16); }

}  // namespace aerie::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

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

// Rows [r0, r1), all of one sequence, through one kv head.
template <class T>
void Rows(const Attention& op, int64_t r0, int64_t r1, int64_t kv_head, const AttentionMemory& m) {
  const F d;
  const KvCache& c = op.cache;
  const AttentionRows& a = op.rows;
  const int64_t dim = c.head_dim, padded = padded_dim(dim), group = op.heads / c.kv_heads;
  const KvHead<T> keys(c, op.layer, 0, kv_head), values(c, op.layer, 1, kv_head);
  const int32_t* pages = a.pages + int64_t{a.seq[r0]} * a.page_stride;
  const auto state = [&](int64_t r, int64_t g) { return m.states + ((r - r0) * group + g) * (kStateValues + padded); };
  const auto length = [&](int64_t r) { return int64_t{a.ctx_len[r]} + (a.tail_len ? a.tail_len[r] : 0); };
  const auto query = [&](int64_t r, int64_t g, int64_t n) {
    return Query{static_cast<const float*>(op.q.data) + r * op.q.stride + (kv_head * group + g) * dim, state(r, g), n};
  };
  int64_t longest = 0;
  for (int64_t r = r0; r < r1; ++r) {
    longest = std::max(longest, length(r));
    for (int64_t g = 0; g < group; ++g) {
      float* s = state(r, g);
      std::fill(s, s + kStateValues + padded, 0.0f);
      s[0] = -std::numeric_limits<float>::infinity();
    }
  }
  std::fill(m.keys, m.keys + dim * kPageSlots, 0.0f);  // columns of positions not yet written are read, not used
  KvRow<T> key[kPageSlots], value[kPageSlots];
  for (int64_t first = 0; first < longest; first += kPageSlots) {
    int64_t count = 0, own = 0;
    for (int64_t r = r0; r < r1; ++r) {
      const int64_t n = std::min<int64_t>(kPageSlots, length(r) - first);
      if (n <= 0) continue;
      if (first + n > a.ctx_len[r]) {
        ++own;  // reaches into its tail
        continue;
      }
      for (int64_t g = 0; g < group; ++g) m.queries[count++] = query(r, g, n);
    }
    if (count > 0) {
      const int64_t slot = int64_t{pages[first / kPageSlots]} * kPageSlots;
      for (int64_t j = 0; j < kPageSlots; ++j) {
        key[j] = keys.row(slot + j);
        value[j] = values.row(slot + j);
      }
      Block(m.queries, count, key, value, dim, op.scale, m);
    }
    for (int64_t r = r0; r < r1 && own > 0; ++r) {
      const int64_t ctx = a.ctx_len[r], n = std::min<int64_t>(kPageSlots, length(r) - first);
      if (n <= 0 || first + n <= ctx) continue;
      --own;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t p = first + j;
        const int64_t slot =
            p < ctx ? int64_t{pages[first / kPageSlots]} * kPageSlots + j : a.tail_slots[a.tail_offset[r] + p - ctx];
        key[j] = keys.row(slot);
        value[j] = values.row(slot);
      }
      for (int64_t g = 0; g < group; ++g) m.queries[g] = query(r, g, n);
      Block(m.queries, group, key, value, dim, op.scale, m);
    }
  }
  for (int64_t r = r0; r < r1; ++r) {
    for (int64_t g = 0; g < group; ++g) {
      const float* s = state(r, g);
      VF total[kParts];
      for (size_t p = 0; p < kParts; ++p) total[p] = hn::Load(d, s + kStateTotal + p * kLanes);
      const float inverse = length(r) > 0 ? 1.0f / SumLanes(total) : 0.0f;
      float* out = static_cast<float*>(op.out.data) + r * op.out.stride + (kv_head * group + g) * dim;
      for (int64_t i = 0; i < dim; ++i) out[i] = s[kStateValues + i] * inverse;
    }
  }
}

void attention_rows(const Attention& op, int64_t r0, int64_t r1, int64_t kv_head, const AttentionMemory& m) {
  if (op.cache.dtype == DType::int8)
    Rows<int8_t>(op, r0, r1, kv_head, m);
  else if (op.cache.dtype == DType::bf16)
    Rows<uint16_t>(op, r0, r1, kv_head, m);
  else
    Rows<float>(op, r0, r1, kv_head, m);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(attention_rows);

namespace {

// Rows of one task: many, so that they share the stream of keys and values; but few enough that there
// is work for every thread and that a frame budget is not overrun by one long task.
int64_t rows_per_task(const Attention& op, int threads) {
  constexpr int64_t kMostRows = 16, kMostMacs = 64 << 20;
  const int64_t context = int64_t{op.rows.page_stride} * kPageSlots;
  const int64_t row_macs = 2 * context * op.cache.head_dim * (op.heads / op.cache.kv_heads);
  int64_t rows = std::clamp<int64_t>(kMostMacs / std::max<int64_t>(row_macs, 1), 1, kMostRows);
  while (rows > 1 && (op.out.rows + rows - 1) / rows * op.cache.kv_heads < 2 * threads) rows = (rows + 1) / 2;
  return rows;
}

}  // namespace

int32_t tasks(const Attention& op, int threads) {
  const int64_t per = rows_per_task(op, threads);
  return static_cast<int32_t>((op.out.rows + per - 1) / per * op.cache.kv_heads);
}

void run(const Attention& op, int32_t task, int threads, Scratch& scratch) {
  const int64_t per = rows_per_task(op, threads), dim = op.cache.head_dim, padded = padded_dim(dim);
  const int64_t queries = per * (op.heads / op.cache.kv_heads);
  const int64_t floats = dim * kPageSlots + padded * kPageSlots + queries * (kStateValues + padded);
  AttentionMemory m{};
  m.keys =
      static_cast<float*>(scratch.get(static_cast<size_t>(floats) * 4 + static_cast<size_t>(queries) * sizeof(Query)));
  m.values = m.keys + dim * kPageSlots;
  m.states = m.values + padded * kPageSlots;
  m.queries = reinterpret_cast<Query*>(m.states + queries * (kStateValues + padded));
  const int64_t kv_head = task % op.cache.kv_heads;
  const int64_t end = std::min(op.out.rows, (task / op.cache.kv_heads + 1) * per);
  for (int64_t r = task / op.cache.kv_heads * per; r < end;) {
    int64_t next = r + 1;
    while (next < end && op.rows.seq[next] == op.rows.seq[r]) ++next;
    HWY_DYNAMIC_DISPATCH(attention_rows)(op, r, next, kv_head, m);
    r = next;
  }
}

}  // namespace aerie::kernels::cpu
#endif
