// What the tests of Attention share: a cache, the rows that look at it, and running the op.
#pragma once

#include "unit/kernels/ops_support.h"

namespace aerie::kernels::attention_test {
using namespace aerie::kernels::test;

struct Shape {
  int32_t heads, kv_heads, dim;
  DType dtype = DType::f32;
};

// A cache whose pages lie in random order, with spare slots for tails.
struct Cache {
  Shape shape;
  int64_t pages;
  std::vector<char> bytes;
  KvCache kv;
  Cache(const Shape& s, int64_t page_count, int32_t layers = 2) : shape(s), pages(page_count) {
    const int64_t slots = pages * kPageSlots, rows = layers * 2 * slots * s.kv_heads;
    const int64_t data = rows * s.dim * kv_element_bytes(s.dtype), scales = s.dtype == DType::int8 ? rows * 4 : 0;
    bytes.assign(static_cast<size_t>(data + scales), static_cast<char>(0xff));  // NaN: what is not stored must not be
    // used
    kv = {bytes.data(), slots, layers, s.kv_heads, s.dim, s.dtype, nullptr};
    if (scales) kv.scales = reinterpret_cast<float*>(bytes.data() + data);
  }
  // Key and value of one position of one sequence into a slot, through the op.
  void store(int32_t layer, int32_t slot, uint32_t seed) {
    const int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.dim;
    Floats qkv = random_floats(static_cast<size_t>(width), seed), angles(static_cast<size_t>(shape.dim), 0.0f);
    std::fill(angles.begin(), angles.begin() + shape.dim / 2, 1.0f);
    run_cpu(RopeAndStore{view(qkv, 1, width), view(angles, 1, shape.dim), shape.heads, kv, layer, &slot});
  }
};

// Rows to attend with, described by position and the part that comes from the page table.
struct Rows {
  Ints pages, seq, ctx, tail_offset, tail_len, tail_slots;
  int32_t stride = 0, window = 0;
  AttentionRows view() const {
    const bool one = std::all_of(seq.begin(), seq.end(), [&](int32_t s) { return s == seq[0]; });
    return {pages.data(), stride, seq.data(), ctx.data(), tail_offset.data(), tail_len.data(), tail_slots.data(), one ? 1 : 0, window};
  }
  // Row r alone.
  Rows only(size_t r) const {
    Rows one = *this;
    for (Ints* v : {&one.seq, &one.ctx, &one.tail_offset, &one.tail_len}) *v = {(*v)[r]};
    return one;
  }
  void add(int32_t s, int32_t ctx_len, const Ints& tail) {
    seq.push_back(s);
    ctx.push_back(ctx_len);
    tail_offset.push_back(static_cast<int32_t>(tail_slots.size()));
    tail_len.push_back(static_cast<int32_t>(tail.size()));
    tail_slots.insert(tail_slots.end(), tail.begin(), tail.end());
  }
};

// Rows of two sequences of 90 positions, in pages of 4 each: prefill from `first` to `last` positions, the text's ends, trees whose
// tails (from slot 256 on) lie over a page's end, and `more` that are alike.
inline void add_ragged(Rows* rows, int32_t first, int32_t last, int32_t more) {
  for (int32_t n = first; n <= last; ++n) rows->add(0, n, {});
  rows->add(0, 1, {});
  rows->add(1, 90, {});
  rows->add(1, 0, {256});
  rows->add(0, 60, {257});
  rows->add(0, 60, {257, 261});
  rows->add(0, 60, {257, 260, 258, 259, 262, 263, 270});
  rows->add(0, 64, {257, 259});
  rows->add(1, 3, {256, 258});
  for (int32_t i = 0; i < more; ++i) rows->add(1, 80, {});
}

inline Floats attend_reference(const Cache& c, const Rows& rows, Floats& q, int32_t layer) {
  const auto n = static_cast<int64_t>(rows.seq.size()), width = int64_t{c.shape.heads} * c.shape.dim;
  Floats out(static_cast<size_t>(n * width));
  run_reference(Attention{view(q, n, width), c.shape.heads, c.kv, layer, rows.view(), 0.2f, view(out, n, width), {}});
  return out;
}

inline Floats attend(const Cache& c, const Rows& rows, Floats& q, int32_t layer, int threads = 2) {
  const auto n = static_cast<int64_t>(rows.seq.size());
  const int64_t width = int64_t{c.shape.heads} * c.shape.dim;
  Floats out(static_cast<size_t>(n * width));
  run_cpu(Attention{view(q, n, width), c.shape.heads, c.kv, layer, rows.view(), 0.2f, view(out, n, width), {}},
          threads);
  return out;
}

}  // namespace aerie::kernels::attention_test
