// Contexts of several spans, for the tests of Attention.
#pragma once

#include <numeric>

#include "unit/kernels/attention_support.h"

namespace aerie::kernels::attention_test {

constexpr int32_t kContext = 2 * kSpanSlots + 950;  // of the first sequence; the second has half

inline const Shape kLong[] = {{4, 2, 16}, {3, 1, 10, DType::bf16}, {2, 2, 24, DType::int8}};

// Pages of two sequences in a shuffled order, and behind them 40 slots for tails.
struct LongCache : Cache {
  static constexpr int32_t kPages = (kContext + kPageSlots - 1) / kPageSlots;
  Rows rows;
  int32_t tails = 2 * kPages * kPageSlots;  // the first slot of a tail
  explicit LongCache(const Shape& s) : Cache(s, 2 * kPages + 2, 1) {
    rows.stride = kPages;
    rows.pages.resize(2 * kPages);
    std::iota(rows.pages.begin(), rows.pages.end(), 0);
    std::shuffle(rows.pages.begin(), rows.pages.end(), std::mt19937(9));
    for (int32_t p = 0; p < kContext; ++p) store(0, slot(0, p), static_cast<uint32_t>(p));
    for (int32_t p = 0; p < kContext / 2; ++p) store(0, slot(1, p), static_cast<uint32_t>(50000 + p));
  }
  // A row of so many positions of the first sequence, the last n of them in a tail.
  void add_with_tail(Rows* to, int32_t length, int32_t n) {
    Ints tail;
    for (int32_t i = 0; i < n; ++i) {
      tail.push_back(tails + 39 - i);
      store(0, tail.back(), static_cast<uint32_t>(length - n + i));
    }
    to->add(0, length - n, tail);
  }
  int32_t slot(int32_t sequence, int32_t p) const {
    return rows.pages[static_cast<size_t>(sequence * kPages + p / kPageSlots)] * kPageSlots + p % kPageSlots;
  }
};

// What `attend` gives, by tasks of one span each and their merge. `spans`: room for so many.
template <class RunOp>
Floats attend_split(const Cache& c, const Rows& rows, Floats& q, int64_t spans, const RunOp& run) {
  const auto n = static_cast<int64_t>(rows.seq.size());
  const int64_t width = int64_t{c.shape.heads} * c.shape.dim, cols = c.shape.heads * (c.shape.dim + 2);
  Floats out(static_cast<size_t>(n * width)), partial(static_cast<size_t>(n * spans * cols), std::nanf(""));
  const Tensor p = view(partial, n * spans, cols), o = view(out, n, width);
  run(Attention{view(q, n, width), c.shape.heads, c.kv, 0, rows.view(), 0.2f, o, p});
  run(AttentionMerge{p, c.shape.heads, rows.view(), o});
  return out;
}

// Lengths at, before and behind the ends of blocks and spans; tails that lie across them.
inline void ragged(LongCache& c) {
  for (int32_t t = 0; t < 40; ++t) c.store(0, c.tails + t, static_cast<uint32_t>(90000 + t));
  for (const int32_t end : {1, 33, kSpanSlots, 2 * kSpanSlots, kContext - 1})
    for (const int32_t length : {end - 1, end, end + 1}) c.rows.add(0, length, {});
  for (const int32_t length : {5, kSpanSlots - 1, kContext / 2}) c.rows.add(1, length, {});
  for (const int32_t ctx : {kSpanSlots - 7, kSpanSlots, 2 * kSpanSlots - 1, 2 * kSpanSlots - 25})
    for (const int32_t n : {1, 2, 30}) {
      Ints tail(static_cast<size_t>(n));
      for (int32_t i = 0; i < n; ++i) tail[static_cast<size_t>(i)] = c.tails + (i * 7 + ctx) % 40;
      c.rows.add(ctx < kContext / 2 && n == 2 ? 1 : 0, ctx, tail);
    }
}

}  // namespace aerie::kernels::attention_test
