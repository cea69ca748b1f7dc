// The exact walk. What a row draws depends on its logits, its walk's sampling and its depth, and not on whether the walk comes
// by: so all rows draw at once, and the walk itself only follows. First every row is told its walk and its parent; then many
// blocks go through its logits, which without filters is all there is to draw from; then one block puts these together, or
// filters. A row is in one walk at most.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/noise_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int64_t kLogitsRange = 4096;  // logits of a block of row_ranges
constexpr int kLogitsThreads = 256, kDrawThreads = 512;
constexpr double kOne = 1099511627776.0;  // 2^40: weights as integers, so that their sums have no order

struct Range {
  uint64_t best;    // key of the largest logit
  uint64_t winner;  // of the largest logit / temperature + noise, where the row draws so
  float sum;        // of exp(logit - the largest)
  float bad;        // 1: NaN or +inf among them
};

struct RowDraw {
  int32_t token;
  float logprob;
  int32_t bad;
};

struct WalkTask {
  Walk op;
  int32_t *walk_of, *parent;  // of each row: -1 none; walk_of only of the rows that walks begin with
  Range* ranges;              // (rows, count)
  RowDraw* draws;             // of each row
  int64_t n, count;
};

// One block.
__device__ void note_rows(const WalkTask& task) {
  const Walk& op = task.op;
  for (int64_t r = threadIdx.x; r < op.logits.rows; r += kDrawThreads) task.walk_of[r] = task.parent[r] = -1;
  sync_block();
  for (int64_t q = threadIdx.x; q < op.n_seqs; q += kDrawThreads) task.walk_of[op.seqs[q].root_row] = static_cast<int32_t>(q);
  for (int64_t r = threadIdx.x; r < op.logits.rows; r += kDrawThreads)
    for (int32_t c = op.first_child[r]; c >= 0; c = op.next_sibling[c]) task.parent[c] = static_cast<int32_t>(r);
}

// How a row draws: with what sampling, at what position. All threads of a block get the same.
struct Drawing {
  bool wanted;  // it is in a walk
  Sampling sampling;
  int64_t position;
};
__device__ Drawing drawing_of(const WalkTask& task, int64_t r) {
  auto at = static_cast<int32_t>(r);
  for (int32_t depth = 0; at >= 0 && depth < task.op.max_steps; ++depth, at = task.parent[at])
    if (const int32_t q = task.walk_of[at]; q >= 0) {
      const WalkSeq& seq = task.op.seqs[q];
      return {true, seq.sampling, seq.root_position + 1 + depth};
    }
  return {false, {}, 0};
}
__device__ bool filters(const Sampling& s, int64_t n) { return (s.top_k > 0 && s.top_k < n) || s.top_p < 1 || s.min_p > 0; }

// This thread's share of tokens [first, end), such as `stays`: the key of the largest logit / temperature + noise. Four tokens share
// a block of noise; first is a multiple of 4.
template <class Stays>
__device__ uint64_t noisy_best(const float* logits, int64_t first, int64_t end, const Drawing& d, const Stays& stays) {
  uint64_t winner = kNoKey;
  for (int64_t four = first / 4 + threadIdx.x; four < (end + 3) / 4; four += blockDim.x) {
    noise::Words words;
    bool have = false;
    for (int i = 0; i < 4; ++i) {
      const int64_t t = 4 * four + i;
      if (t >= end || !stays(t)) continue;
      if (!have) words = noise::block(d.sampling.seed, d.sampling.stream, d.position, static_cast<uint32_t>(four));
      have = true;
      const float g = noise::gumbel_of_word(i == 0 ? words.w[0] : i == 1 ? words.w[1] : i == 2 ? words.w[2] : words.w[3]);
      const uint64_t noisy = key_of(logits[t] / d.sampling.temperature + g, static_cast<int32_t>(t));
      winner = noisy > winner ? noisy : winner;
    }
  }
  return winner;
}

struct LogitsMemory {  // shared
  uint64_t keys[32];
  float floats[32];
};

// Grid (rows, ranges).
__device__ void row_ranges(const WalkTask& task) {
  if (blockIdx.x >= task.op.logits.rows) return;
  LogitsMemory& m = *shared_memory<LogitsMemory>();
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kLogitsRange, r = blockIdx.x;
  const Drawing d = drawing_of(task, r);
  if (!d.wanted) return;
  const float* logits = row(task.op.logits, r);
  const int64_t end = first + kLogitsRange < task.n ? first + kLogitsRange : task.n;
  uint64_t best = kNoKey;
  float bad = 0, sum = 0;
  for (int64_t t = first + threadIdx.x; t < end; t += kLogitsThreads) {
    if (!(logits[t] < kInf)) bad = 1;
    const uint64_t key = key_of(logits[t], static_cast<int32_t>(t));
    best = key > best ? key : best;
  }
  best = block_max(best, m.keys);
  bad = block_max(bad, m.floats);
  const float top = best == kNoKey ? 0.0f : score_of(best);
  for (int64_t t = first + threadIdx.x; t < end && bad == 0.0f; t += kLogitsThreads) sum += exp_own(logits[t] - top);
  sum = block_sum(sum, m.floats);
  uint64_t winner = kNoKey;
  if (d.sampling.temperature > 0 && !filters(d.sampling, task.n) && bad == 0.0f)
    winner = noisy_best(logits, first, end, d, [&](int64_t t) { return key_of(logits[t], 0) != kNoKey; });
  winner = block_max(winner, m.keys);
  if (threadIdx.x == 0) task.ranges[r * task.count + blockIdx.y] = {best, winner, sum, bad};
}

struct DrawMemory {  // shared
  SelectMemory select;
  uint64_t keys[32];
  double sums[32];
  float floats[32];
};

// Of a whole row.
struct RowStats {
  uint64_t best, winner;
  bool bad;
  double sum;  // relative to the best
};
__device__ RowStats row_stats(const WalkTask& task, int64_t r, DrawMemory& m) {
  const Range* ranges = task.ranges + r * task.count;
  RowStats s{kNoKey, kNoKey, false, 0};
  float bad = 0;
  for (int64_t i = threadIdx.x; i < task.count; i += kDrawThreads) {
    s.best = ranges[i].best > s.best ? ranges[i].best : s.best;
    s.winner = ranges[i].winner > s.winner ? ranges[i].winner : s.winner;
    bad = fmaxf(bad, ranges[i].bad);
  }
  s.best = block_max(s.best, m.keys);
  s.winner = block_max(s.winner, m.keys);
  s.bad = block_max(bad, m.floats) != 0.0f || s.best == kNoKey;  // no key: every token is masked
  if (s.bad) return s;
  for (int64_t i = threadIdx.x; i < task.count; i += kDrawThreads)
    if (ranges[i].best != kNoKey)
      s.sum += static_cast<double>(ranges[i].sum) * static_cast<double>(exp_own(score_of(ranges[i].best) - score_of(s.best)));
  s.sum = block_sum(s.sum, m.sums);
  return s;
}

// The key from which on tokens pass the filters, in the order of Hugging Face's warpers: top-k, top-p, min-p, each seeing
// the softmax of what the ones before it left.
template <class KeyAt>
__device__ uint64_t filter(int64_t n, const Sampling& s, float top, const KeyAt& key_at, DrawMemory& m) {
  uint64_t from = 1;
  if (s.top_k > 0 && s.top_k < n) from = select_from(n, static_cast<uint64_t>(s.top_k), key_at, one_each, m.select);
  if (s.top_p < 1) {
    const auto weight = [=](uint64_t key) {
      return static_cast<uint64_t>(static_cast<double>(exp_own(score_of(key) - top)) * kOne);
    };
    const auto left = [&](int64_t i) {
      const uint64_t key = key_at(i);
      return key >= from ? key : kNoKey;
    };
    uint64_t total = 0;
    for (int64_t i = threadIdx.x; i < n; i += kDrawThreads)
      if (const uint64_t key = left(i); key != kNoKey) total += weight(key);
    for (int mask = 16; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
    if (threadIdx.x % 32 == 0) m.keys[threadIdx.x / 32] = total;
    sync_block();
    total = 0;
    for (int w = 0; w < kDrawThreads / 32; ++w) total += m.keys[w];
    const double share = ceil(static_cast<double>(s.top_p) * static_cast<double>(total));
    const uint64_t goal = share < 1 ? 1 : static_cast<uint64_t>(share);
    const uint64_t nucleus = select_from(n, goal, left, weight, m.select);
    from = nucleus > from ? nucleus : from;
  }
  return from;
}

__device__ int32_t draw(const float* logits, int64_t n, const Drawing& d, const RowStats& stats, DrawMemory& m) {
  const Sampling& s = d.sampling;
  const float top = score_of(stats.best) / s.temperature;
  // A temperature so small that the best logit overflows is greedy too.
  if (!(s.temperature > 0) || !finite(top)) return id_of(stats.best);
  if (!filters(s, n)) return id_of(stats.winner);
  const auto key_at = [=](int64_t i) { return key_of(logits[i] / s.temperature, static_cast<int32_t>(i)); };
  const uint64_t from = filter(n, s, top, key_at, m);
  const auto stays = [&](int64_t t) {
    const uint64_t key = key_at(t);
    if (key == kNoKey || key < from) return false;
    // The best always stays; of equals of its score, min_p keeps all.
    return !(s.min_p > 0) || exp_own(score_of(key) - top) >= s.min_p || id_of(key) == id_of(stats.best);
  };
  return id_of(block_max(noisy_best(logits, 0, n, d, stays), m.keys));
}

// Grid (rows).
__device__ void row_draws(const WalkTask& task) {
  if (blockIdx.x >= task.op.logits.rows) return;
  DrawMemory& m = *shared_memory<DrawMemory>();
  const int64_t r = blockIdx.x;
  const Drawing d = drawing_of(task, r);
  if (!d.wanted) return;
  const float* logits = row(task.op.logits, r);
  const RowStats stats = row_stats(task, r, m);
  if (stats.bad) {
    if (threadIdx.x == 0) task.draws[r] = {-1, 0, 1};
    return;
  }
  const int32_t token = draw(logits, task.n, d, stats, m);
  if (threadIdx.x == 0)
    task.draws[r] = {token, (logits[token] - score_of(stats.best)) - log_positive(static_cast<float>(stats.sum)), 0};
}

// Grid (sequences), one thread of each block: every step waits for the one before.
__device__ void walk(const WalkTask& task) {
  if (static_cast<int32_t>(blockIdx.x) >= task.op.n_seqs || threadIdx.x != 0) return;
  const Walk& op = task.op;
  auto* out = reinterpret_cast<WalkOut*>(static_cast<char*>(op.out) + blockIdx.x * walk_out_bytes(op.max_steps));
  auto* steps = reinterpret_cast<WalkStep*>(out + 1);
  int32_t count = 0;
  for (int32_t at = op.seqs[blockIdx.x].root_row; at >= 0 && count < op.max_steps; ++count) {
    const RowDraw d = task.draws[at];
    if (d.bad != 0) {
      *out = {0, 1};
      return;
    }
    steps[count] = {at, d.token, d.logprob, 0};
    at = op.first_child[at];
    while (at >= 0 && op.token[at] != d.token) at = op.next_sibling[at];
  }
  *out = {count, 0};
}

WalkTask task_of(const Walk& op, Carve& carve) {
  WalkTask t{};
  t.op = op;
  t.n = op.vocab_used < op.logits.cols ? op.vocab_used : op.logits.cols;
  t.count = (t.n + kLogitsRange - 1) / kLogitsRange;
  t.walk_of = carve.take<int32_t>(op.logits.rows);
  t.parent = carve.take<int32_t>(op.logits.rows);
  t.ranges = carve.take<Range>(op.logits.rows * t.count);
  t.draws = carve.take<RowDraw>(op.logits.rows);
  return t;
}

}  // namespace

template <>
size_t workspace(const Walk& op) {
  Carve carve(nullptr);
  task_of(op, carve);
  return carve.used();
}

void enqueue(const Walk& op, const Place& p) {
  Carve carve(p.workspace);
  const WalkTask task = task_of(op, carve);
  const int64_t rows = bucket(op.logits.rows);
  launch<note_rows, kDrawThreads>(p, {}, kDrawThreads, 0, task);
  launch<row_ranges>(p, {rows, task.count}, kLogitsThreads, sizeof(LogitsMemory), task);
  launch<row_draws, kDrawThreads>(p, {rows}, kDrawThreads, sizeof(DrawMemory), task);
  launch<walk>(p, {bucket(op.n_seqs)}, 32, 0, task);
}

}  // namespace aerie::kernels::cuda
