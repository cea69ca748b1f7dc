// The results of spans, and how they become one: plain loops, the same bits whatever the compiler does with them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cpu {

// What a span leaves of one query and head, see Attention::partial: {maximum, total, values (dim)}.
constexpr int64_t span_floats(int64_t dim) { return dim + 2; }

// Positions that row r looks at.
inline int64_t row_length(const AttentionRows& a, int64_t r) {
  return int64_t{a.ctx_len[r]} + (a.tail_len ? a.tail_len[r] : 0);
}

// The first of them.
inline int64_t row_first(const AttentionRows& a, int64_t r) {
  return a.window > 0 ? std::max<int64_t>(row_length(a, r) - a.window, 0) : 0;
}

// sum: the spans before this one, merged.
inline void merge_span(float* __restrict sum, const float* __restrict span, int64_t dim) {
  const float top = span[0] > sum[0] ? span[0] : sum[0];
  const float keep = exp_own(sum[0] - top), take = exp_own(span[0] - top);
  sum[0] = top;
  for (int64_t i = 1; i < span_floats(dim); ++i) sum[i] = sum[i] * keep + span[i] * take;
}

// out (dim) = values / total of row r's spans, number s of them at span(s) (floats). sum: working memory. sink: null, or the head's.
template <class SpanAt>
void merge_row(const AttentionRows& a, int64_t r, int64_t dim, const float* sink, const SpanAt& span, float* sum, float* out) {
  const int64_t length = row_length(a, r), first = row_first(a, r) / kSpanSlots;
  if (length <= 0) {
    std::fill(out, out + dim, 0.0f);
    return;
  }
  const float* all = span(first);
  if (length > (first + 1) * kSpanSlots) {
    std::copy_n(all, span_floats(dim), sum);
    for (int64_t s = first + 1; s * kSpanSlots < length; ++s) merge_span(sum, span(s), dim);
    all = sum;
  }
  float inverse = 1.0f / all[1];
  if (sink) {
    const float top = *sink > all[0] ? *sink : all[0], keep = exp_own(all[0] - top);
    inverse = keep / (all[1] * keep + exp_own(*sink - top));
  }
  for (int64_t i = 0; i < dim; ++i) out[i] = all[2 + i] * inverse;
}

}  // namespace aerie::kernels::cpu
