// The exact walk: first the statistics of every row by many blocks, then one block for each sequence, which goes down its
// path. Greedy walks need no more; a draw passes over its rows' logits again, a filtered one some times more.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/noise_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int64_t kRange = 4096;  // logits of a block of row_ranges
constexpr int kRangeThreads = 256, kWalkThreads = 512;
constexpr double kOne = 1099511627776.0;  // 2^40: weights as integers, so that their sums have no order

struct Range {
  uint64_t best;  // key of the largest logit
  float sum;      // of exp(logit - the largest)
  float bad;      // 1: NaN or +inf among them
};

struct WalkTask {
  Walk op;
  Range* ranges;  // (rows, count)
  int64_t n, count;
};

struct RangeMemory {  // shared
  uint64_t keys[32];
  float floats[32];
};

// Grid (ranges, rows).
__device__ void row_ranges(const WalkTask& task) {
  if (blockIdx.y >= task.op.logits.rows) return;
  RangeMemory& m = *shared_memory<RangeMemory>();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRange, r = blockIdx.y;
  const float* logits = row(task.op.logits, r);
  const int64_t end = first + kRange < task.n ? first + kRange : task.n;
  uint64_t best = kNoKey;
  float bad = 0, sum = 0;
  for (int64_t t = first + threadIdx.x; t < end; t += kRangeThreads) {
    if (!(logits[t] < kInf)) bad = 1;
    const uint64_t key = key_of(logits[t], static_cast<int32_t>(t));
    best = key > best ? key : best;
  }
  best = block_max(best, m.keys);
  bad = block_max(bad, m.floats);
  const float top = best == kNoKey ? 0.0f : score_of(best);
  for (int64_t t = first + threadIdx.x; t < end && bad == 0.0f; t += kRangeThreads) sum += exp_own(logits[t] - top);
  sum = block_sum(sum, m.floats);
  if (threadIdx.x == 0) task.ranges[r * task.count + blockIdx.x] = {best, sum, bad};
}

struct WalkMemory {  // shared
  SelectMemory select;
  uint64_t keys[32];
  double sums[32];
  float floats[32];
  int32_t row;
};

// Of a whole row.
struct RowStats {
  uint64_t best;
  bool bad;
  double sum;  // relative to the best
};
__device__ RowStats row_stats(const WalkTask& task, int64_t r, WalkMemory& m) {
  const Range* ranges = task.ranges + r * task.count;
  RowStats s{kNoKey, false, 0};
  float bad = 0;
  for (int64_t i = threadIdx.x; i < task.count; i += kWalkThreads) {
    s.best = ranges[i].best > s.best ? ranges[i].best : s.best;
    bad = fmaxf(bad, ranges[i].bad);
  }
  s.best = block_max(s.best, m.keys);
  s.bad = block_max(bad, m.floats) != 0.0f || s.best == kNoKey;  // no key: every token is masked
  if (s.bad) return s;
  for (int64_t i = threadIdx.x; i < task.count; i += kWalkThreads)
    if (ranges[i].best != kNoKey)
      s.sum += static_cast<double>(ranges[i].sum) * static_cast<double>(exp_own(score_of(ranges[i].best) - score_of(s.best)));
  s.sum = block_sum(s.sum, m.sums);
  return s;
}

// The key from which on tokens pass the filters, in the order of Hugging Face's warpers: top-k, top-p, min-p, each seeing
// the softmax of what the ones before it left.
template <class KeyAt>
__device__ uint64_t filter(int64_t n, const Sampling& s, float top, const KeyAt& key_at, WalkMemory& m) {
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
    for (int64_t i = threadIdx.x; i < n; i += kWalkThreads)
      if (const uint64_t key = left(i); key != kNoKey) total += weight(key);
    for (int mask = 16; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
    if (threadIdx.x % 32 == 0) m.keys[threadIdx.x / 32] = total;
    sync_block();
    total = 0;
    for (int w = 0; w < kWalkThreads / 32; ++w) total += m.keys[w];
    const double share = ceil(static_cast<double>(s.top_p) * static_cast<double>(total));
    const uint64_t goal = share < 1 ? 1 : static_cast<uint64_t>(share);
    const uint64_t nucleus = select_from(n, goal, left, weight, m.select);
    from = nucleus > from ? nucleus : from;
  }
  return from;
}

__device__ int32_t draw(const float* logits, int64_t n, const Sampling& s, int64_t position, uint64_t best, WalkMemory& m) {
  const float top = score_of(best) / s.temperature;
  // A temperature so small that the best logit overflows is greedy too.
  if (!(s.temperature > 0) || !finite(top)) return id_of(best);
  const auto key_at = [=](int64_t i) { return key_of(logits[i] / s.temperature, static_cast<int32_t>(i)); };
  const bool filtered = (s.top_k > 0 && s.top_k < n) || s.top_p < 1;
  const uint64_t from = filtered ? filter(n, s, top, key_at, m) : 1;
  uint64_t winner = kNoKey;
  for (int64_t first = threadIdx.x; first < (n + 3) / 4; first += kWalkThreads) {  // four tokens share their noise's block
    noise::Words words;
    bool have = false;
    for (int i = 0; i < 4; ++i) {
      const int64_t t = 4 * first + i;
      if (t >= n) continue;
      const uint64_t key = key_at(t);
      if (key == kNoKey || key < from) continue;
      // The best always stays; of equals of its score, min_p keeps all.
      if (s.min_p > 0 && !(exp_own(score_of(key) - top) >= s.min_p) && id_of(key) != id_of(best)) continue;
      if (!have) words = noise::block(s.seed, s.stream, position, static_cast<uint32_t>(first));
      have = true;
      const float g = noise::gumbel_of_word(i == 0 ? words.w[0] : i == 1 ? words.w[1] : i == 2 ? words.w[2] : words.w[3]);
      const uint64_t noisy = key_of(logits[t] / s.temperature + g, static_cast<int32_t>(t));
      winner = noisy > winner ? noisy : winner;
    }
  }
  return id_of(block_max(winner, m.keys));
}

// Grid (sequences).
__device__ void walk(const WalkTask& task) {
  if (static_cast<int32_t>(blockIdx.x) >= task.op.n_seqs) return;
  WalkMemory& m = *shared_memory<WalkMemory>();
  const Walk& op = task.op;
  const WalkSeq& seq = op.seqs[blockIdx.x];
  auto* out = reinterpret_cast<WalkOut*>(static_cast<char*>(op.out) + blockIdx.x * walk_out_bytes(op.max_steps));
  auto* steps = reinterpret_cast<WalkStep*>(out + 1);
  int32_t at = seq.root_row, count = 0, status = 0;
  while (at >= 0 && count < op.max_steps) {
    const float* logits = row(op.logits, at);
    const RowStats stats = row_stats(task, at, m);
    if (stats.bad) {
      count = 0, status = 1;
      break;
    }
    const int32_t x = draw(logits, task.n, seq.sampling, seq.root_position + 1 + count, stats.best, m);
    if (threadIdx.x == 0) {
      const float logp = (logits[x] - score_of(stats.best)) - log_positive(static_cast<float>(stats.sum));
      steps[count] = {at, x, logp, 0};
      int32_t next = op.first_child[at];
      while (next >= 0 && op.token[next] != x) next = op.next_sibling[next];
      m.row = next;
    }
    sync_block();
    at = m.row;
    ++count;
    sync_block();
  }
  if (threadIdx.x == 0) *out = {count, status};
}

WalkTask task_of(const Walk& op, Carve& carve) {
  WalkTask t{op, nullptr, op.vocab_used < op.logits.cols ? op.vocab_used : op.logits.cols, 0};
  t.count = (t.n + kRange - 1) / kRange;
  t.ranges = carve.take<Range>(op.logits.rows * t.count);
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
  launch<row_ranges>(p, {task.count, bucket(op.logits.rows)}, kRangeThreads, sizeof(RangeMemory), task);
  launch<walk, kWalkThreads>(p, {bucket(op.n_seqs)}, kWalkThreads, sizeof(WalkMemory), task);
}

}  // namespace aerie::kernels::cuda
