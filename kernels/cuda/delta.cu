// Recurrent layers. Sixteen columns of a head's matrix go through a sequence's rows by themselves; of each, four threads have every fourth
// row of the matrix, in memory that no other thread looks at.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/warp.h"
#include "kernels/delta_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kDeltaTurns = 4, kDeltaColumnThreads = kPanel * kDeltaTurns, kDeltaThreads = 2 * kDeltaColumnThreads;  // of 16 columns; of twice as many
constexpr int kDeltaRowThreads = 128;

struct ConvTask {
  enum { kInShared = 1 };
  ShortConv op;
};

// Grid (channels, rows).
__device__ void short_conv(const ConvTask& task) {
  const ShortConv& op = task.op;
  const DeltaShape& s = op.shape;
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kDeltaRowThreads + threadIdx.x;
  if (c >= s.channels()) return;
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y) {
    const float* window = delta_window(s, delta_state(op.cache, op.rows.seqs[op.rows.seq[r]].from, op.at));
    float sum = 0;
    for (int32_t t = 0; t < s.taps; ++t) {
      const float* x = row_before(op.x, op.rows.parent, s, window, static_cast<int32_t>(r), s.taps - 1 - t);
      sum = fmaf(x ? x[c] : 0.0f, row(op.weight, t)[c], sum);
    }
    row(op.out, r)[c] = sum;
  }
}

// Grid (heads, rows).
__device__ void delta_gates(const DeltaGates& op) {
  const int64_t heads = op.out.cols / 2, h = static_cast<int64_t>(blockIdx.x) * kDeltaRowThreads + threadIdx.x;
  if (h >= heads) return;
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y) {
    const float a = row(op.gates, r)[heads + h], b = row(op.gates, r)[h];
    row(op.out, r)[h] = delta_decay(a, row(op.decay, 0)[h], row(op.decay, 1)[h]);
    row(op.out, r)[heads + h] = sigmoid(b);
  }
}

struct DeltaTask {
  enum { kInShared = 1 };
  DeltaRule op;
  float* buffers;  // (sequences, blocks of 16 columns, buffers, key_dim, 16)
};

__host__ __device__ int64_t delta_blocks(const DeltaShape& s) { return s.heads * (s.value_dim / kPanel); }

// The rows of x that came last, by one block.
template <class Op>
__device__ void keep_delta_window(const Op& op, const DeltaSeq& seq) {
  const DeltaShape& s = op.shape;
  const float* before = delta_window(s, delta_state(op.cache, seq.from, op.at));
  float* const window = delta_window(s, delta_state(op.cache, seq.to, op.at));
  for (int32_t back = 0; back < s.taps - 1; ++back) {
    const float* x = row_before(op.x, op.rows.parent, s, before, seq.last, back);
    for (int64_t c = threadIdx.x; c < s.channels(); c += kDeltaThreads) window[(s.taps - 2 - back) * s.channels() + c] = x ? x[c] : 0.0f;
  }
}

// Grid (pairs of blocks of columns, a bucket of sequences).
__device__ void delta_rule(const DeltaTask& task) {
  const DeltaRule& op = task.op;
  const DeltaShape& s = op.shape;
  if (blockIdx.y >= static_cast<unsigned>(op.rows.n_seqs)) return;
  const DeltaSeq seq = op.rows.seqs[blockIdx.y];
  auto* const known_parts = shared_memory<float>();  // (2, kDeltaTurns, 16), and as many of what comes out
  float* const out_parts = known_parts + kDeltaThreads;
  const auto t = static_cast<int32_t>(threadIdx.x), column = t % kPanel, turn = t / kPanel % kDeltaTurns, first = t / kDeltaColumnThreads * kDeltaColumnThreads + column;
  const int64_t blocks = delta_blocks(s), block = static_cast<int64_t>(blockIdx.x) * 2 + t / kDeltaColumnThreads;
  const bool mine = block < blocks;
  const int64_t h = block / (s.value_dim / kPanel), key_head = h / (s.heads / s.key_heads), size = s.key_dim * int64_t{kPanel};
  const float* const from = delta_state(op.cache, seq.from, op.at);
  float* const to = delta_state(op.cache, seq.to, op.at);
  float* const buffers = task.buffers + (blockIdx.y * blocks + block) * op.rows.buffers * size;
  if (blockIdx.x == 0 && to) keep_delta_window(op, seq);
  const auto sum_of = [&](const float* parts) {
    return (parts[first] + parts[first + kPanel]) + (parts[first + 2 * kPanel] + parts[first + 3 * kPanel]);
  };
  for (int32_t n = seq.first_step; n < seq.first_step + seq.steps; ++n) {
    const DeltaStep step = op.rows.steps[n];
    const float *qkv = row(op.qkv, step.row), *q = qkv + key_head * s.key_dim, *k = q + s.keys(), *gates = row(op.gates, step.row);
    const float* const before = step.from >= 0 ? buffers + step.from * size : from ? from + block * size : nullptr;
    float part = 0;
    if (mine && before)
      for (int32_t i = turn; i < s.key_dim; i += kDeltaTurns) part = fmaf(before[i * kPanel + column], k[i], part);
    known_parts[t] = part;
    sync_block();
    part = 0;
    if (mine) {
      const float g = gates[h], delta = (qkv[2 * s.keys() + block * kPanel + column] - g * sum_of(known_parts)) * gates[s.heads + h];
      float* const made = buffers + step.to * size;
      float* const kept = to && step.row == seq.last ? to + block * size : nullptr;
      for (int32_t i = turn; i < s.key_dim; i += kDeltaTurns) {
        const int32_t at = i * kPanel + column;
        const float v = fmaf(k[i], delta, before ? g * before[at] : 0.0f);
        made[at] = v;
        if (kept) kept[at] = v;
        part = fmaf(v, q[i], part);
      }
    }
    out_parts[t] = part;
    sync_block();  // also before known_parts has those of the next row
    if (op.out && mine && turn == 0) row(op.out, step.row)[block * kPanel + column] = sum_of(out_parts);
  }
}

struct KeepTask {
  enum { kInShared = 1 };
  KeepLast op;
};

// Grid (a bucket of sequences).
__device__ void keep_last(const KeepTask& task) {
  if (blockIdx.x >= static_cast<unsigned>(task.op.rows.n_seqs)) return;
  const DeltaSeq seq = task.op.rows.seqs[blockIdx.x];
  if (seq.to >= 0) keep_delta_window(task.op, seq);
}

}  // namespace

template <>
size_t workspace(const DeltaRule& op) {
  Carve carve(nullptr);
  carve.take<float>(op.rows.n_seqs * op.rows.buffers * op.shape.heads * op.shape.head_floats());
  return carve.used();
}

void enqueue(const ShortConv& op, const Place& p) {
  launch<short_conv, kDeltaRowThreads>(p, {(op.out.cols + kDeltaRowThreads - 1) / kDeltaRowThreads, many_rows(op.out.rows)}, kDeltaRowThreads, 0, {op});
}
void enqueue(const DeltaGates& op, const Place& p) {
  launch<delta_gates, kDeltaRowThreads>(p, {(op.out.cols / 2 + kDeltaRowThreads - 1) / kDeltaRowThreads, many_rows(op.out.rows)}, kDeltaRowThreads, 0, op);
}
void enqueue(const DeltaRule& op, const Place& p) {
  launch<delta_rule, kDeltaThreads>(p, {(delta_blocks(op.shape) + 1) / 2, bucket(op.rows.n_seqs)}, kDeltaThreads, 2 * kDeltaThreads * sizeof(float),
                               {op, reinterpret_cast<float*>(p.workspace)});
}
void enqueue(const KeepLast& op, const Place& p) { launch<keep_last, kDeltaThreads>(p, {bucket(op.rows.n_seqs)}, kDeltaThreads, 0, {op}); }

}  // namespace aerie::kernels::cuda
