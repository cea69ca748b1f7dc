// What the tests of attention on the emulated device share.
#pragma once

#include <algorithm>
#include <numeric>

#include "unit/cuda/cuda_support.h"
#include "unit/kernels/attention_support.h"

namespace aerie::kernels::cuda_test {
using attention_test::Rows;
using attention_test::Shape;

struct Cache : attention_test::Cache {
  using attention_test::Cache::Cache;
  void store(int32_t layer, int32_t slot, uint32_t seed) {  // by the backend's own op
    const int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.dim;
    Floats qkv = random_floats(static_cast<size_t>(width), seed), angles(static_cast<size_t>(shape.dim), 0.0f);
    std::fill(angles.begin(), angles.begin() + shape.dim / 2, 1.0f);
    const Ints slots = {slot};
    run_cuda(RopeAndStore{view(qkv, 1, width), view(angles, 1, shape.dim), shape.heads, kv, layer, slots.data()});
  }
};


inline Floats attend(const Cache& c, const Rows& rows, Floats& q, int64_t spans = 0, bool said = true, const Floats* sinks = nullptr,
                     float cap = 0) {
  const auto n = static_cast<int64_t>(rows.seq.size());
  const int64_t width = int64_t{c.shape.heads} * c.shape.dim, cols = c.shape.heads * (c.shape.dim + 2);
  Floats out(static_cast<size_t>(n * width)), partial(static_cast<size_t>(n * spans * cols), std::nanf(""));
  const Tensor p = spans ? view(partial, n * spans, cols) : Tensor{}, o = view(out, n, width);
  AttentionRows look = rows.view();
  if (!said) look.sequences = 0;
  const Tensor sunk = sinks ? matrix(const_cast<float*>(sinks->data()), 1, c.shape.heads) : Tensor{};
  run_cuda(Attention{view(q, n, width), c.shape.heads, c.kv, 0, look, 0.2f, o, p, sunk, cap});
  if (spans) run_cuda(AttentionMerge{p, c.shape.heads, look, o, sunk});
  return out;
}

// Row r alone has the bits that it has among all.
inline void expect_own_bits(const Cache& c, const Rows& rows, size_t r, const Floats& q, const Floats& all, const Floats* sinks = nullptr,
                            float cap = 0) {
  Rows one = rows;
  for (Ints* v : {&one.seq, &one.ctx, &one.tail_offset, &one.tail_len}) *v = {(*v)[r]};
  const int64_t width = int64_t{c.shape.heads} * c.shape.dim, at = static_cast<int64_t>(r) * width;
  Floats own(q.begin() + at, q.begin() + at + width);
  EXPECT_TRUE(same_bits(attend(c, one, own, 0, true, sinks, cap).data(), all.data() + at, static_cast<size_t>(width) * 4)) << r;
}

// Slots in which whoever looks at them finds no number.
inline void spoil(const Cache& c, int32_t slot) {
  const KvCache& kv = c.kv;
  for (int64_t which = 0; which < 2; ++which)
    for (int64_t head = 0; head < kv.kv_heads; ++head) {
      const int64_t line = kv_row(kv, 0, which, head, slot);
      if (kv.dtype == DType::int8) kv.scales[line] = std::nanf("");
      else if (kv.dtype == DType::bf16) std::fill_n(static_cast<uint16_t*>(kv.data) + line * kv.head_dim, kv.head_dim, uint16_t{0x7fc0});
      else std::fill_n(static_cast<float*>(kv.data) + line * kv.head_dim, kv.head_dim, std::nanf(""));
    }
}

// Two ragged sequences; rows of prefill, decode and trees with tails over a page's end.
inline void ragged(Cache& c, Rows* rows) {
  rows->stride = 4;
  rows->pages = {5, 2, 7, 0, 1, 6, 3, 4};
  for (int32_t s = 0; s < 2; ++s)
    for (int32_t p = 0; p < 90; ++p)
      c.store(0, rows->pages[static_cast<size_t>(s * 4 + p / 32)] * 32 + p % 32, static_cast<uint32_t>(s * 100 + p));
  for (int32_t t = 0; t < 20; ++t) c.store(0, 8 * 32 + t, static_cast<uint32_t>(5000 + t));
  attention_test::add_ragged(rows, 30, 34, 3);
}

// A text of 75 positions in pages, and a second copy of each in some slot behind them.
struct Twice : Cache {
  static constexpr int32_t kContext = 75;
  Rows rows;
  explicit Twice(const Shape& s) : Cache(s, 12, 1) {
    rows.stride = 3;
    rows.pages = {4, 1, 6};
    spare_.resize(32 * 5);
    std::iota(spare_.begin(), spare_.end(), 7 * 32);
    std::shuffle(spare_.begin(), spare_.end(), std::mt19937(4));
    for (int32_t p = 0; p < kContext; ++p)
      for (const int32_t slot : {rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32, spare_[static_cast<size_t>(p)]})
        store(0, slot, static_cast<uint32_t>(p));
  }
  // The last row of so long a text has the same bits in plain decode and with any part of its context in scratch slots.
  void expect_plain_bits(int32_t length, int32_t window) const {
    const int64_t width = int64_t{shape.heads} * shape.dim;
    Floats one = random_floats(static_cast<size_t>(width), 8, 2.0f), many;
    Rows plain = rows, every = rows;
    plain.window = every.window = window;
    plain.add(0, length, {});
    const Floats want = attend(*this, plain, one);
    for (int32_t ctx = 0; ctx <= length; ctx += 1 + ctx % 4) {
      every.add(0, ctx, Ints(spare_.begin() + ctx, spare_.begin() + length));
      many.insert(many.end(), one.begin(), one.end());
    }
    const Floats got = attend(*this, every, many);
    for (size_t r = 0; r < every.seq.size(); ++r)
      ASSERT_TRUE(same_bits(got.data() + r * static_cast<size_t>(width), want.data(), static_cast<size_t>(width) * 4))
          << "window " << window << ", " << length << ", row " << r;
  }

 private:
  Ints spare_;
};

// A cache of random keys and values, `pages` of one sequence in random order.
inline Rows anywhere(Cache& c, int32_t pages) {
  const Floats random = random_floats(c.bytes.size() / 2, 5);
  for (size_t i = 0; i < random.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(random[i]);
    if (c.kv.dtype == DType::bf16) static_cast<uint16_t*>(c.kv.data)[i] = static_cast<uint16_t>(bits >> 16);
    else if (i < c.bytes.size() / 4) static_cast<float*>(c.kv.data)[i] = random[i];
  }
  if (c.kv.dtype == DType::int8) {
    const int64_t lines = c.kv.slots * c.kv.layers * 2 * c.kv.kv_heads;
    for (int64_t i = 0; i < lines * c.kv.head_dim; ++i) static_cast<int8_t*>(c.kv.data)[i] = static_cast<int8_t>(i * 2654435761u >> 13);
    for (int64_t i = 0; i < lines; ++i) c.kv.scales[i] = 0.005f + 0.0001f * static_cast<float>(i * 37 % 100);
  }
  Rows rows;
  rows.stride = pages;
  rows.pages.resize(static_cast<size_t>(pages));
  std::iota(rows.pages.begin(), rows.pages.end(), 0);
  std::shuffle(rows.pages.begin(), rows.pages.end(), std::mt19937(9));
  return rows;
}

}  // namespace aerie::kernels::cuda_test
