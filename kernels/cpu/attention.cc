// Attention over paged keys and values.
//
// Order of one output: spans of kSpanSlots absolute positions, ascending (attention_merge.h); in a span, blocks of
// kPageSlots positions, ascending. A score is one FMA chain over the head's elements, an output element of a span one
// FMA chain over the positions, the softmax total of a span 16 lanes (position mod 16) and one tree at the end; a block
// that raises the maximum rescales what the blocks before it left. Where a position's slot lies (page or tail), which
// rows share a block, how many queries are worked on together and whether a row's spans are one task or many change
// none of it.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/attention_merge.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/attention_block-inl.h"
#include "kernels/cpu/attention_tile-inl.h"

#ifndef AERIE_ATTENTION_SHARED
#define AERIE_ATTENTION_SHARED
namespace aerie::kernels::cpu {

// Rows [begin, end), all of one sequence, through one kv head. The result of row r and query head g of the group goes
// to results + (r - begin) * row_stride + g * span_floats(dim).
struct SpanTask {
  int64_t begin, end, kv_head, span;
  float* results;
  int64_t row_stride;
};

}  // namespace aerie::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

template <class T>
void Span(const Attention& op, const SpanTask& t, const AttentionMemory& m) {
  const F d;
  const KvCache& c = op.cache;
  const AttentionRows& a = op.rows;
  const int64_t dim = c.head_dim, padded = padded_dim(dim), group = op.heads / c.kv_heads;
  const KvHead<T> keys(c, op.layer, 0, t.kv_head), values(c, op.layer, 1, t.kv_head);
  const int32_t* pages = a.pages + int64_t{a.seq[t.begin]} * a.page_stride;
  const auto state = [&](int64_t r, int64_t g) {
    return m.states + ((r - t.begin) * group + g) * (kStateValues + padded);
  };
  const auto query = [&](int64_t r, int64_t g, int64_t from, int64_t n) {
    const float* q = static_cast<const float*>(op.q.data) + r * op.q.stride + (t.kv_head * group + g) * dim;
    return Query{q, state(r, g), from, n};
  };
  const int64_t start = t.span * kSpanSlots, end = start + kSpanSlots;
  int64_t shortest = std::numeric_limits<int64_t>::max(), longest = 0, paged = 0, all_paged = shortest;
  int64_t earliest = shortest, all_from = 0;  // from where on any row looks, and all
  for (int64_t r = t.begin; r < t.end; ++r) {
    shortest = std::min(shortest, row_length(a, r));
    longest = std::max(longest, row_length(a, r));
    paged = std::max<int64_t>(paged, a.ctx_len[r]);
    all_paged = std::min<int64_t>(all_paged, a.ctx_len[r]);
    earliest = std::min(earliest, row_first(a, r));
    all_from = std::max(all_from, row_first(a, r));
    for (int64_t g = 0; g < group; ++g) {
      float* s = state(r, g);
      std::fill(s, s + kStateValues + padded, 0.0f);
      s[0] = -std::numeric_limits<float>::infinity();
    }
  }
  const auto page_of = [](int64_t p) { return p / kPageSlots * kPageSlots; };
  const int64_t begin = std::max(start, page_of(earliest));
  // Columns of positions not yet written are read, not used.
  if (shortest - begin < kPageSlots) std::fill(m.keys, m.keys + dim * kPageSlots, 0.0f);
  BlockRows<T> block(keys, values, dim, m);
  int64_t count = 0;
  bool listed = false;
  for (int64_t first = begin; first < std::min(longest, end); first += kPageSlots) {
    const int64_t page = first < paged ? int64_t{pages[first / kPageSlots]} * kPageSlots : 0;
    // A page that all rows see whole is that of nearly all blocks; the list of queries is then as it was.
    const bool whole = first >= all_from && first + kPageSlots <= all_paged;
    if (!whole || !listed) count = 0;
    listed = whole;
    if (whole) {
      int64_t slots[kPageSlots];
      std::iota(slots, slots + kPageSlots, page);
      block.bring(slots, kPageSlots);
      if (count == 0)
        for (int64_t r = t.end; r-- > t.begin;)
          for (int64_t g = 0; g < group; ++g) m.queries[count++] = query(r, g, 0, kPageSlots);
    }
    for (int64_t r = t.end; !whole && r-- > t.begin;) {  // backwards: the longer of two paths that share positions comes first
      const int64_t ctx = a.ctx_len[r] - first, n = std::min<int64_t>(kPageSlots, row_length(a, r) - first);
      const int64_t from = std::max<int64_t>(row_first(a, r) - first, 0);
      if (n <= 0 || from >= kPageSlots) continue;
      int64_t slots[kPageSlots];
      for (int64_t j = 0; j < kPageSlots; ++j) slots[j] = page + j;
      for (int64_t j = std::max<int64_t>(ctx, 0); j < n; ++j) slots[j] = a.tail_slots[a.tail_offset[r] + j - ctx];
      if (!block.holds(slots, n)) {
        if (count > 0) Block(m.queries, count, block.values(), dim, op.scale, op.cap, {}, {}, m);
        count = 0;
        block.bring(slots, n);
      }
      for (int64_t g = 0; g < group; ++g) m.queries[count++] = query(r, g, from, n);
    }
    // The page read next, of this sequence or the one behind it.
    int64_t row = t.end - 1, at = first + kPageSlots;
    if (at >= std::min(paged, end) && ++row < op.out.rows) at = std::max(start, page_of(row_first(a, row)));
    Upcoming next_keys, next_values;
    if (row < op.out.rows && at < a.ctx_len[row]) {
      const int64_t slot = int64_t{a.pages[a.seq[row] * a.page_stride + at / kPageSlots]} * kPageSlots;
      next_keys = keys.page(slot), next_values = values.page(slot);
    }
    Block(m.queries, count, block.values(), dim, op.scale, op.cap, next_keys, next_values, m);
  }
  for (int64_t r = t.begin; r < t.end; ++r) {
    if (row_length(a, r) <= start || row_first(a, r) >= end) continue;
    for (int64_t g = 0; g < group; ++g) {
      const float* s = state(r, g);
      VF total[kParts];
      for (size_t p = 0; p < kParts; ++p) total[p] = hn::Load(d, s + kStateTotal + p * kLanes);
      float* result = t.results + (r - t.begin) * t.row_stride + g * span_floats(dim);
      result[0] = s[0];
      result[1] = SumLanes(total);
      std::copy_n(s + kStateValues, dim, result + 2);
    }
  }
}

void attention_span(const Attention& op, const SpanTask& t, const AttentionMemory& m) {
  if (op.cache.dtype == DType::int8)
    Span<int8_t>(op, t, m);
  else if (op.cache.dtype == DType::bf16)
    Span<uint16_t>(op, t, m);
  else
    Span<float>(op, t, m);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(attention_span);

namespace {

const float* sink_of(const Tensor& sinks, int64_t head) { return sinks ? static_cast<const float*>(sinks.data) + head : nullptr; }

// By any row, as the host knows it.
int64_t most_looked_at(const Attention& op) {
  const int64_t pages = op.rows.page_stride * int64_t{kPageSlots};
  return op.rows.window > 0 ? std::min<int64_t>(pages, op.rows.window + kPageSlots) : pages;
}

// How the op is cut: a task is some rows, one kv head, and one span or all of them.
struct Cut {
  int64_t rows, spans, kv_heads;
  Cut(const Attention& op, int threads)
      : rows(16),
        spans(op.partial ? op.partial.rows / std::max<int64_t>(op.out.rows, 1) : 1),
        kv_heads(op.cache.kv_heads) {
    // Many rows share the stream of keys and values; but there must be work for every thread that is worth a hand-over,
    // and a frame budget must not be overrun by one long task.
    constexpr int64_t kMostMacs = 8 << 20, kLeastMacs = 256 << 10;
    const int64_t context = std::min<int64_t>(most_looked_at(op), op.partial ? kSpanSlots : INT64_MAX);
    const int64_t row_macs = 2 * context * op.cache.head_dim * (op.heads / kv_heads);
    rows = std::clamp<int64_t>(kMostMacs / std::max<int64_t>(row_macs, 1), 1, rows);
    while (threads > 1 && rows > 1 && tasks(op) < 2 * threads && rows * row_macs > kLeastMacs) rows = (rows + 1) / 2;
  }
  int64_t tasks(const Attention& op) const { return (op.out.rows + rows - 1) / rows * spans * kv_heads; }
};

// The spans that rows [begin, end) look at: [first, last).
struct Spans {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  Spans(const Attention& op, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      first = std::min(first, row_first(op.rows, r) / kSpanSlots);
      last = std::max(last, (row_length(op.rows, r) + kSpanSlots - 1) / kSpanSlots);
    }
    first = std::min(first, last);
  }
  int64_t count() const { return last - first; }
};

}  // namespace

// Nanoseconds: 50 multiplications each; keys and values are laid out for them, four each, once for all rows of a sequence.
int64_t estimate(const Attention& op) {
  const int64_t values = std::min(Spans(op, 0, op.out.rows).count() * kSpanSlots, most_looked_at(op)) * op.cache.head_dim;
  int64_t sequences = 1;
  for (int64_t r = 1; r < op.out.rows; ++r) sequences += op.rows.seq[r] != op.rows.seq[r - 1];
  return 2 * values * op.heads * op.out.rows / 50 + values * op.cache.kv_heads * sequences / 4;
}

int32_t tasks(const Attention& op, int threads) { return static_cast<int32_t>(Cut(op, threads).tasks(op)); }

void run(const Attention& op, int32_t task, int threads, Scratch& scratch) {
  const Cut cut(op, threads);
  const int64_t dim = op.cache.head_dim, padded = padded_dim(dim), group = op.heads / cut.kv_heads;
  const int64_t width = group * span_floats(dim), queries = cut.rows * group;
  const int64_t kv_head = task % cut.kv_heads, span = task / cut.kv_heads % cut.spans;
  const int64_t begin = task / cut.kv_heads / cut.spans * cut.rows, end = std::min(op.out.rows, begin + cut.rows);
  const Spans own_spans(op, begin, op.partial ? begin : end);
  const int64_t states = dim * kPageSlots + padded * kPageSlots + queries * (kStateValues + padded);
  const int64_t results = cut.rows * own_spans.count() * width;
  AttentionMemory m{};
  m.keys = static_cast<float*>(scratch.get(static_cast<size_t>(states + results + span_floats(dim)) * 4 +
                                           static_cast<size_t>(queries) * sizeof(Query)));
  m.values = m.keys + dim * kPageSlots;
  m.states = m.values + padded * kPageSlots;
  m.queries = reinterpret_cast<Query*>(m.keys + states);
  float* own = reinterpret_cast<float*>(m.queries + queries);  // (rows, own spans, width)
  float* sum = own + results;
  for (int64_t r = begin; r < end;) {
    int64_t next = r + 1;
    while (next < end && op.rows.seq[next] == op.rows.seq[r]) ++next;
    if (op.partial) {
      const int64_t stride = op.partial.stride;
      float* out = static_cast<float*>(op.partial.data) + (r * cut.spans + span) * stride + kv_head * width;
      AERIE_DISPATCH(attention_span)(op, {r, next, kv_head, span, out, cut.spans * stride}, m);
      r = next;
      continue;
    }
    for (int64_t i = 0; i < own_spans.count(); ++i)
      AERIE_DISPATCH(attention_span)(op, {r, next, kv_head, own_spans.first + i, own + i * width, own_spans.count() * width}, m);
    for (const int64_t first = r; r < next; ++r)
      for (int64_t g = 0; g < group; ++g) {
        const float* results_of = own + (r - first) * own_spans.count() * width + g * span_floats(dim);
        float* out = static_cast<float*>(op.out.data) + r * op.out.stride + (kv_head * group + g) * dim;
        merge_row(
            op.rows, r, dim, sink_of(op.sinks, kv_head * group + g), [&](int64_t s) { return results_of + (s - own_spans.first) * width; }, sum, out);
      }
  }
}

int32_t tasks(const AttentionMerge& op, int) { return static_cast<int32_t>(op.out.rows); }

void run(const AttentionMerge& op, int32_t r, int, Scratch& scratch) {
  const int64_t dim = op.out.cols / op.heads, spans = op.partial.rows / op.out.rows;
  auto* sum = static_cast<float*>(scratch.get(static_cast<size_t>(span_floats(dim)) * 4));
  for (int64_t h = 0; h < op.heads; ++h) {
    const float* first =
        static_cast<const float*>(op.partial.data) + r * spans * op.partial.stride + h * span_floats(dim);
    float* out = static_cast<float*>(op.out.data) + r * op.out.stride + h * dim;
    merge_row(
        op.rows, r, dim, sink_of(op.sinks, h), [&](int64_t s) { return first + s * op.partial.stride; }, sum, out);
  }
}

}  // namespace aerie::kernels::cpu
#endif
