// The end of attention: parts of a row's softmax are merged, ascending; chunks to spans, spans to outputs.
#include "kernels/cuda/attention_math.h"
#include "kernels/cuda/attention_task.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kEach = 2;  // elements that a thread merges: i, and i + what a head has of threads

// Parts of a softmax, n of them, one after another.
template <int n>
struct Parts {
  float top[n], total[n], value[n][kEach];
  // From `from` on, each `stride` behind the last, the first `count`; others are nothing.
  __device__ void load(const float* from, int64_t stride, int64_t count, const int64_t (&element)[kEach], int64_t dim) {
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float* at = from + j * stride;
      top[j] = j < count ? at[0] : 0.0f, total[j] = j < count ? at[1] : 0.0f;
#pragma unroll
      for (int e = 0; e < kEach; ++e) value[j][e] = j < count && element[e] < dim ? at[2 + element[e]] : 0.0f;
    }
  }
  __device__ void keep(int64_t count) {
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (j < count) continue;
      top[j] = -kInf, total[j] = 0;
      for (float& v : value[j]) v = 0;
    }
  }
};
struct Merged {
  float top = -kInf, total = 0, value[kEach] = {};
  template <int n>
  __device__ void add(const Parts<n>& parts) {
    float before[n], after[n];  // all factors are known before the first sum
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float most = fmaxf(top, parts.top[j]);
      before[j] = exp_below(top - most);
      after[j] = exp_below(parts.top[j] - most);
      top = most;
    }
#pragma unroll
    for (int j = 0; j < n; ++j) {
      total = total * before[j] + parts.total[j] * after[j];
#pragma unroll
      for (int e = 0; e < kEach; ++e) value[e] = value[e] * before[j] + parts.value[j][e] * after[j];
    }
  }
};

// What makes outputs of the sums over all that a row looks at: value * keep / total.
struct Quotient {
  float keep = 1, total;
  __device__ Quotient(const Merged& all, const Tensor& sinks, int64_t head) : total(all.total) {
    if (!sinks) return;
    const float sink = row(sinks, 0)[head], most = fmaxf(all.top, sink);
    keep = exp_below(all.top - most);
    total = total * keep + exp_below(sink - most);
  }
  __device__ float operator()(float value) const { return value * keep / total; }
};

unsigned threads_for(int64_t dim) { return static_cast<unsigned>((dim + 32 * kEach - 1) / (32 * kEach) * 32); }
// Heads of a block. With 64 registers a thread (hence the 1024 that it is launched for) 64 rows of 32 heads run all at once.
unsigned heads_for(int64_t rows) { return rows < 8 ? 1 : 4; }

// Who merges what: grid (rows, blocks of heads).
struct MergePlace {
  int64_t r, head, element[kEach];
  uint32_t at;  // this head's of the block
  __device__ explicit MergePlace(uint32_t threads) : r(blockIdx.x), at(threadIdx.x / threads) {
    head = blockIdx.y * (blockDim.x / threads) + at;
    for (int e = 0; e < kEach; ++e) element[e] = threadIdx.x % threads + e * threads;
  }
};

struct MergeTask {
  enum { kInShared = 1 };
  AttentionTask a;
  uint32_t threads;  // of a head
};

constexpr int kAtOnce = 8;  // chunks whose parts are under way together

// Chunks to spans, and those to `out`, or into the op's `partial`.
__device__ void merge_chunks(const MergeTask& task) {
  const Attention& op = task.a.op;
  const int64_t dim = op.cache.head_dim;
  const MergePlace me(task.threads);
  if (me.r >= op.out.rows) return;
  const bool there = me.head < op.heads;
  const float* from = task.a.partial + (me.r * op.heads + (there ? me.head : 0)) * task.a.chunks * (dim + 2);
  Parts<kAtOnce> parts;
  parts.load(from, dim + 2, task.a.chunks, me.element, dim);  // before it is known which of them are something
  const Seen seen(op.rows, me.r);
  const auto length = seen.length, chunks = static_cast<int32_t>(chunks_of(length));
  const int64_t spans = op.partial ? op.partial.rows / op.out.rows : 0;
  Merged all;
  auto begin = static_cast<int32_t>(chunk_of(seen.from));
  for (int32_t s = seen.from / kSpanSlots, end; s * kSpanSlots < length; ++s, begin = end) {
    Merged span;
    end = static_cast<int32_t>(first_chunk_of_span(s + 1));
    if (end > chunks) end = chunks;
    for (int32_t c = begin; c < end; c += kAtOnce) {
      if (c > 0) parts.load(from + c * (dim + 2), dim + 2, end - c, me.element, dim);
      parts.keep(end - c);
      span.add(parts);
    }
    if (!op.partial) {
      all.add(Parts<1>{{span.top}, {span.total}, {{span.value[0], span.value[1]}}});
      continue;
    }
    if (!there) continue;
    float* to = row(op.partial, me.r * spans + s) + me.head * (dim + 2);
    if (me.element[0] == 0) to[0] = span.top, to[1] = span.total;
    for (int e = 0; e < kEach; ++e)
      if (me.element[e] < dim) to[2 + me.element[e]] = span.value[e];
  }
  if (op.partial) return;
  const Quotient quotient(all, op.sinks, there ? me.head : 0);
  auto* values = shared_memory<float>() + me.at * dim;
  for (int e = 0; e < kEach; ++e) {
    if (me.element[e] >= dim) continue;
    const float value = length == 0 ? 0.0f : quotient(all.value[e]);
    if (there) row(op.out, me.r)[me.head * dim + me.element[e]] = value;
    values[me.element[e]] = value;
  }
  if (!task.a.fragments.to) return;
  sync_block();
  const int64_t i = me.element[0];
  if (i >= dim / 4 || !there) return;
  float x[4];
  for (int e = 0; e < 4; ++e) x[e] = values[word_element(i, e / 2) + e % 2];
  put_word(task.a.fragments, me.r, me.head * dim / 4 + i, x);
}

__device__ void merge_spans(const AttentionMerge& op) {
  const int64_t dim = op.out.cols / op.heads, spans = op.partial.rows / op.out.rows;
  const MergePlace me(blockDim.x);
  if (me.r >= op.out.rows) return;
  const Seen seen(op.rows, me.r);
  Merged all;
  for (int32_t s = seen.from / kSpanSlots; s * kSpanSlots < seen.length; ++s) {
    Parts<1> part;
    part.load(row(op.partial, me.r * spans + s) + me.head * (dim + 2), 0, 1, me.element, dim);
    all.add(part);
  }
  const Quotient quotient(all, op.sinks, me.head);
  for (int e = 0; e < kEach; ++e)
    if (me.element[e] < dim) row(op.out, me.r)[me.head * dim + me.element[e]] = seen.length == 0 ? 0.0f : quotient(all.value[e]);
}

}  // namespace

void enqueue_merge(const AttentionTask& task, const Place& p) {
  const int64_t rows = bucket(task.op.out.rows), dim = task.op.cache.head_dim;
  const unsigned threads = threads_for(dim), heads = heads_for(rows);
  launch<merge_chunks, 1024>(p, {rows, (task.op.heads + heads - 1) / heads}, threads * heads, static_cast<size_t>(dim) * heads * sizeof(float),
                             MergeTask{task, threads});
}

void enqueue(const AttentionMerge& op, const Place& p) {
  launch<merge_spans>(p, {bucket(op.out.rows), op.heads}, threads_for(op.out.cols / op.heads), 0, op);
}

}  // namespace aerie::kernels::cuda
