// Recurrent layers. Sixteen columns of a head's matrix go through a sequence's rows by themselves: no other column takes part.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/delta_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/delta.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

// out = x[0] * w[0] + x[1] * w[1] + ..., n of each, a multiple of 16; a missing row is one of zeros.
void conv_row(const float* const* x, const float* const* w, int taps, int64_t n, float* out) {
  const F d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(kLanes)) {
    VF sum = hn::Zero(d);
    for (int t = 0; t < taps; ++t) sum = hn::MulAdd(x[t] ? hn::LoadU(d, x[t] + i) : hn::Zero(d), hn::LoadU(d, w[t] + i), sum);
    hn::StoreU(sum, d, out + i);
  }
}

// Where the p-th vector of row i is.
constexpr int64_t vector_at(int64_t size, int64_t i, int p) {
  constexpr auto parts = static_cast<int64_t>(kParts);
  return p / parts * size + i * 16 + p % parts * static_cast<int64_t>(kLanes);
}

// One row's turn of N times 16 columns, each (key_dim, 16), `size` behind the one before it: from `from`, null where all is zero, to `to`,
// which may be the same. v, out: 16 N; out may be null.
template <int N>
HWY_INLINE void turn_columns(const float* from, float* to, int64_t size, const float* k, const float* q, const float* v, float g, float beta,
                             int64_t key_dim, float* out) {
  const F d;
  constexpr int kTurns = 4, kVectors = N * static_cast<int>(kParts);
  VF sum[kTurns][kVectors];
  AERIE_UNROLL for (auto& turn : sum)
    AERIE_UNROLL for (VF& s : turn) s = hn::Zero(d);
  if (from)
    for (int64_t i = 0; i < key_dim; i += kTurns)
      AERIE_UNROLL for (int t = 0; t < kTurns; ++t) {
        const VF key = hn::Set(d, k[i + t]);
        AERIE_UNROLL for (int p = 0; p < kVectors; ++p) sum[t][p] = hn::MulAdd(hn::LoadU(d, from + vector_at(size, i + t, p)), key, sum[t][p]);
      }
  const VF decay = hn::Set(d, g), rate = hn::Set(d, beta);
  VF delta[kVectors];
  AERIE_UNROLL for (int p = 0; p < kVectors; ++p) {
    const VF known = hn::Add(hn::Add(sum[0][p], sum[1][p]), hn::Add(sum[2][p], sum[3][p]));
    delta[p] = hn::Mul(hn::Sub(hn::LoadU(d, v + p * kLanes), hn::Mul(decay, known)), rate);
  }
  AERIE_UNROLL for (auto& turn : sum)
    AERIE_UNROLL for (VF& s : turn) s = hn::Zero(d);
  for (int64_t i = 0; i < key_dim; i += kTurns)
    AERIE_UNROLL for (int t = 0; t < kTurns; ++t) {
      const VF key = hn::Set(d, k[i + t]), query = hn::Set(d, q[i + t]);
      AERIE_UNROLL for (int p = 0; p < kVectors; ++p) {
        const VF kept = from ? hn::Mul(decay, hn::LoadU(d, from + vector_at(size, i + t, p))) : hn::Zero(d);
        const VF made = hn::MulAdd(key, delta[p], kept);
        hn::StoreU(made, d, to + vector_at(size, i + t, p));
        sum[t][p] = hn::MulAdd(made, query, sum[t][p]);
      }
    }
  if (!out) return;
  AERIE_UNROLL for (int p = 0; p < kVectors; ++p)
    hn::StoreU(hn::Add(hn::Add(sum[0][p], sum[1][p]), hn::Add(sum[2][p], sum[3][p])), d, out + p * kLanes);
}

// Of 16 columns, or twice as many: where registers have room for their sums k and q are then brought once for both.
void delta_columns(int blocks, const float* from, float* to, int64_t size, const float* k, const float* q, const float* v, float g, float beta,
                   int64_t key_dim, float* out) {
  if (kLanes == 16 && blocks == 2) return turn_columns<2>(from, to, size, k, q, v, g, beta, key_dim, out);
  for (int b = 0; b < blocks; ++b)
    turn_columns<1>(from ? from + b * size : nullptr, to + b * size, size, k, q, v + b * 16, g, beta, key_dim, out ? out + b * 16 : nullptr);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(conv_row);
HWY_EXPORT(delta_columns);

namespace {

float* row(const Tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.stride; }

// Nanoseconds of a row's turn of 16 columns, and of a task: worth a hand-over between cores, short enough for a frame budget.
constexpr int64_t kTurn = 150, kLeastTask = 8000;

int blocks_of_group(const DeltaShape& s) { return s.value_dim % (2 * kPanel) == 0 ? 2 : 1; }
int64_t groups_of(const DeltaShape& s) { return s.heads * (s.value_dim / kPanel / blocks_of_group(s)); }

// Groups of a sequence that a task has.
int64_t groups_each(const DeltaRule& op) {
  const int64_t turns = std::max<int64_t>(1, op.rows.n_steps / std::max(op.rows.n_seqs, 1));
  return std::clamp<int64_t>(kLeastTask / (kTurn * blocks_of_group(op.shape) * turns), 1, groups_of(op.shape));
}

int64_t tasks_of_sequence(const DeltaRule& op) {
  const int64_t each = groups_each(op);
  return (groups_of(op.shape) + each - 1) / each;
}

template <class Op>
void keep_window(const Op& op, const DeltaSeq& seq) {
  const DeltaShape& s = op.shape;
  const float* before = delta_window(s, delta_state(op.cache, seq.from, op.at));
  float* const window = delta_window(s, delta_state(op.cache, seq.to, op.at));
  for (int32_t back = 0; back < s.taps - 1; ++back) {
    const float* x = row_before(op.x, op.rows.parent, s, before, seq.last, back);
    float* const kept = window + (s.taps - 2 - back) * s.channels();
    if (x) std::copy_n(x, s.channels(), kept);
    else std::fill_n(kept, s.channels(), 0.0f);
  }
}

// Blocks of sixteen columns of one head, as many as a group has, through all rows of a sequence.
void run_group(const DeltaRule& op, const DeltaSeq& seq, int64_t group, float* buffers) {
  const DeltaShape& s = op.shape;
  const int n = blocks_of_group(s);
  const int64_t block = group * n, size = s.key_dim * kPanel, h = block / (s.value_dim / kPanel), key_head = h / (s.heads / s.key_heads);
  const float* const from = delta_state(op.cache, seq.from, op.at);
  float* const to = delta_state(op.cache, seq.to, op.at);
  for (int32_t i = seq.first_step; i < seq.first_step + seq.steps; ++i) {
    const DeltaStep& turn = op.rows.steps[i];
    const float* const qkv = row(op.qkv, turn.row);
    const float* const gates = row(op.gates, turn.row);
    const float* const before = turn.from >= 0 ? buffers + turn.from * n * size : from ? from + block * size : nullptr;
    const bool last = to && turn.row == seq.last;
    // Nobody goes on from the last row where a state is kept of it, unless it is the first of a tree.
    float* const made = last && seq.steps == 1 ? to + block * size : buffers + turn.to * n * size;
    AERIE_DISPATCH(delta_columns)
    (n, before, made, size, qkv + s.keys() + key_head * s.key_dim, qkv + key_head * s.key_dim, qkv + 2 * s.keys() + block * kPanel, gates[h],
     gates[s.heads + h], s.key_dim, op.out ? row(op.out, turn.row) + block * kPanel : nullptr);
    if (last && made != to + block * size) std::copy_n(made, n * size, to + block * size);
  }
}

}  // namespace

int32_t tasks(const ShortConv& op, int threads) {
  return static_cast<int32_t>(std::min<int64_t>(op.out.rows, threads == 1 ? 1 : std::max<int64_t>(1, op.out.rows * op.out.cols / 65536)));
}
void run(const ShortConv& op, int32_t task, int threads, Scratch&) {
  const int64_t n = tasks(op, threads), first = op.out.rows * task / n, end = op.out.rows * (task + 1) / n;
  const DeltaShape& s = op.shape;
  const float *x[kMaxTaps], *w[kMaxTaps];
  for (int t = 0; t < s.taps; ++t) w[t] = row(op.weight, t);
  for (int64_t r = first; r < end; ++r) {
    const float* window = delta_window(s, delta_state(op.cache, op.rows.seqs[op.rows.seq[r]].from, op.at));
    for (int t = 0; t < s.taps; ++t) x[t] = row_before(op.x, op.rows.parent, s, window, static_cast<int32_t>(r), s.taps - 1 - t);
    AERIE_DISPATCH(conv_row)(x, w, s.taps, s.channels(), row(op.out, r));
  }
}

int32_t tasks(const DeltaGates& op, int) { return op.out.rows > 0; }
void run(const DeltaGates& op, int32_t, int, Scratch&) {
  const int64_t heads = op.out.cols / 2;
  const float *rate = row(op.decay, 0), *bias = row(op.decay, 1);
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const float* gates = row(op.gates, r);
    float* const out = row(op.out, r);
    for (int64_t h = 0; h < heads; ++h) {
      const float b = gates[h];
      out[h] = delta_decay(gates[heads + h], rate[h], bias[h]);
      out[heads + h] = sigmoid(b);
    }
  }
}

int32_t tasks(const DeltaRule& op, int) { return static_cast<int32_t>(op.rows.n_seqs * tasks_of_sequence(op)); }
void run(const DeltaRule& op, int32_t task, int, Scratch& scratch) {
  const int64_t each = groups_each(op), of_sequence = tasks_of_sequence(op), first = task % of_sequence * each;
  const DeltaSeq& seq = op.rows.seqs[task / of_sequence];
  const int64_t floats = op.rows.buffers * blocks_of_group(op.shape) * op.shape.key_dim * kPanel;
  auto* const buffers = static_cast<float*>(scratch.get(static_cast<size_t>(floats) * sizeof(float)));
  if (first == 0 && seq.to >= 0) keep_window(op, seq);
  for (int64_t g = first; g < std::min(first + each, groups_of(op.shape)); ++g) run_group(op, seq, g, buffers);
}

int32_t tasks(const KeepLast& op, int) { return op.rows.n_seqs > 0; }
void run(const KeepLast& op, int32_t, int, Scratch&) {
  for (int32_t i = 0; i < op.rows.n_seqs; ++i)
    if (op.rows.seqs[i].to >= 0) keep_window(op, op.rows.seqs[i]);
}

}  // namespace aerie::kernels::cpu
#endif
