// TopK in three launches: each range's largest logit (noise is left out where it would overflow), each range's best k and
// sums, and the best of those. LinearTopK is Linear into working memory and then the same.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/noise_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kRange = 4096;  // places of a block
static_assert(kRange >= topk_least_range(kMaxTopK) && kRange % kTopKBlock == 0);

struct Range {
  float top;
  float bad;  // 1: has a logit that is not finite
};
struct BlockSum {
  float top, sum;
};

struct TopKTask {
  const float* logits;
  int64_t stride, rows, places;
  int32_t k, used;
  const int32_t* map;
  const DrawKey* keys;
  int32_t* out_token;
  float* out_logp;
  int64_t every;   // of keys and results
  Range* ranges;   // (rows, count)
  BlockSum* sums;  // (rows, blocks)
  uint64_t* best;  // (rows, count, k)
  int64_t count, blocks;

  __device__ float logit(int64_t r, int64_t t) const { return logits[r * stride + t]; }
  __device__ int32_t id(int64_t t) const {  // -1: not used
    const int32_t id = map ? map[t] : static_cast<int32_t>(t);
    return id < used ? id : -1;
  }
};

// Grid (ranges, rows).
__global__ void range_tops(const __grid_constant__ TopKTask task) {
  auto* shared = shared_memory<float>();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRange, r = blockIdx.y;
  float top = -kInf, bad = 0;
  for (int64_t t = first + threadIdx.x; t < first + kRange && t < task.places; t += kThreads) {
    if (task.id(t) < 0) continue;
    const float v = task.logit(r, t);
    if (!finite(v)) bad = 1;
    top = fmaxf(top, v);
  }
  top = block_max(top, shared);
  bad = block_max(bad, shared);
  if (threadIdx.x == 0) task.ranges[r * task.count + blockIdx.x] = {top, bad};
}

// Of a whole row.
__device__ Range row_range(const TopKTask& task, int64_t r, float* shared) {
  Range all{-kInf, 0};
  for (int64_t i = threadIdx.x; i < task.count; i += blockDim.x) {
    const Range x = task.ranges[r * task.count + i];
    all = {fmaxf(all.top, x.top), fmaxf(all.bad, x.bad)};
  }
  return {block_max(all.top, shared), block_max(all.bad, shared)};
}

struct RangeMemory {  // shared
  uint64_t keys[kRange];
  BestMemory best;
  float reduce[32];
};

__global__ void __launch_bounds__(kThreads) range_best(const __grid_constant__ TopKTask task) {
  RangeMemory& m = *shared_memory<RangeMemory>();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRange, r = blockIdx.y;
  const Range all = row_range(task, r, m.reduce);
  if (all.bad != 0.0f) return;
  const DrawKey* key = task.keys ? task.keys + r * task.every : nullptr;
  // A temperature so small that the best logit overflows is no temperature.
  const bool noisy = key && key->temperature > 0 && finite(all.top / key->temperature);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  // A warp has whole blocks of kTopKBlock places; lane l those at l, l + 32, ...
  for (int64_t b = warp; b < kRange / kTopKBlock; b += kThreads / 32) {
    const int64_t at = b * kTopKBlock;
    float score[kTopKBlock / 32], top = -kInf;
    for (int i = 0; i < kTopKBlock / 32; ++i) {
      const int64_t t = first + at + lane + 32 * i;
      const int32_t id = t < task.places ? task.id(t) : -1;
      score[i] = -kInf;
      if (id >= 0) {
        score[i] = task.logit(r, t);
        if (noisy)
          score[i] = score[i] / key->temperature + noise::gumbel(key->seed, key->stream, key->position, id);
      }
      top = fmaxf(top, score[i]);
      m.keys[at + lane + 32 * i] = id >= 0 ? key_of(score[i], id) : kNoKey;
    }
    top = warp_max(top);
    float sum = 0;
    for (const float s : score) sum += top == -kInf ? 0.0f : exp_own(s - top);
    sum = warp_sum(sum);
    const int64_t block = first / kTopKBlock + b;
    if (lane == 0 && block < task.blocks) task.sums[r * task.blocks + block] = {top, sum};
  }
  sync_block();
  select_best(kRange, task.k, [&](int64_t i) { return m.keys[i]; }, m.best);
  for (int i = static_cast<int>(threadIdx.x); i < task.k; i += kThreads)
    task.best[(r * task.count + blockIdx.x) * task.k + i] = m.best.best[i];
}

struct RowMemory {  // shared
  BestMemory best;
  float reduce[32];
  double sums[32];
};

// Grid (rows).
__global__ void __launch_bounds__(kThreads) row_best(const __grid_constant__ TopKTask task) {
  RowMemory& m = *shared_memory<RowMemory>();
  const int64_t r = blockIdx.x, to = r * task.every * task.k;
  const Range all = row_range(task, r, m.reduce);
  const auto me = static_cast<int>(threadIdx.x);
  if (all.bad != 0.0f) {
    if (me < task.k) task.out_token[to + me] = -1, task.out_logp[to + me] = -kInf;
    return;
  }
  const uint64_t* keys = task.best + r * task.count * task.k;
  select_best(task.count * task.k, task.k, [&](int64_t i) { return keys[i]; }, m.best);
  const float top = m.best.best[0] == kNoKey ? 0.0f : score_of(m.best.best[0]);
  double sum = 0;
  for (int64_t b = me; b < task.blocks; b += kThreads) {
    const BlockSum x = task.sums[r * task.blocks + b];
    sum += static_cast<double>(x.sum) * static_cast<double>(exp_own(x.top - top));
  }
  sum = block_sum(sum, m.sums);
  if (me >= task.k) return;
  const uint64_t key = m.best.best[me];
  task.out_token[to + me] = key == kNoKey ? -1 : id_of(key);
  task.out_logp[to + me] = key == kNoKey ? -kInf : (score_of(key) - top) - log_positive(static_cast<float>(sum));
}

struct Memory {
  Range* ranges;
  BlockSum* sums;
  uint64_t* best;
  float* logits;
  char* linear;
  size_t bytes;
  int64_t count, blocks;
  Memory(int64_t rows, int64_t places, int64_t k, const Linear* head, char* at) {
    Carve carve(at);
    count = (places + kRange - 1) / kRange;
    blocks = (places + kTopKBlock - 1) / kTopKBlock;
    ranges = carve.take<Range>(rows * count);
    sums = carve.take<BlockSum>(rows * blocks);
    best = carve.take<uint64_t>(rows * count * k);
    logits = head ? carve.take<float>(rows * places) : nullptr;
    linear = head ? carve.take<char>(static_cast<int64_t>(workspace(*head))) : nullptr;
    bytes = carve.used();
  }
};

void run(TopKTask task, const Memory& m, const Place& p) {
  if (task.rows <= 0 || task.k <= 0) return;
  task.ranges = m.ranges;
  task.sums = m.sums;
  task.best = m.best;
  task.count = m.count;
  task.blocks = m.blocks;
  // Rows are the grid's y, of 16 bits.
  for (int64_t first = 0; first < task.rows; first += 65535) {
    TopKTask part = task;
    part.rows = task.rows - first < 65535 ? task.rows - first : 65535;
    part.logits += first * task.stride;
    if (part.keys) part.keys += first * task.every;
    part.out_token += first * task.every * task.k;
    part.out_logp += first * task.every * task.k;
    launch<range_tops>(p.stream, {m.count, part.rows}, kThreads, 32 * sizeof(float), part);
    launch<range_best>(p.stream, {m.count, part.rows}, kThreads, sizeof(RangeMemory), part);
    launch<row_best>(p.stream, {part.rows}, kThreads, sizeof(RowMemory), part);
  }
}

Linear linear(const LinearTopK& op) {
  return {op.x, op.w, op.bias, {}, matrix(nullptr, op.x.rows, op.w.rows)};
}

const char* refuse_k(int32_t k) { return k > kMaxTopK ? "k is larger than 128" : nullptr; }

}  // namespace

template <>
size_t workspace(const TopK& op) {
  return Memory(op.logits.rows, op.logits.cols, op.k, nullptr, nullptr).bytes;
}
template <>
size_t workspace(const LinearTopK& op) {
  const Linear head = linear(op);
  return Memory(op.x.rows, op.w.rows, op.k, &head, nullptr).bytes;
}
template <>
const char* refuse(const TopK& op) {
  return refuse_k(op.k);
}
template <>
const char* refuse(const LinearTopK& op) {
  return refuse_k(op.k);
}
template <>
const char* refuse(const MergeTopK& op) {
  return refuse_k(op.head.k);
}

void enqueue(const TopK& op, const Place& p) {
  run({static_cast<const float*>(op.logits.data), op.logits.stride, op.logits.rows, op.logits.cols, op.k, op.vocab_used,
       op.vocab_map, op.keys, op.out_token, op.out_logp, 1, nullptr, nullptr, nullptr, 0, 0},
      Memory(op.logits.rows, op.logits.cols, op.k, nullptr, p.workspace), p);
}

// Both ops' work: there is nothing to gain here from a second look at `partial`.
void enqueue(const LinearTopK& op, const Place& p) {
  Linear head = linear(op);
  const Memory m(op.x.rows, op.w.rows, op.k, &head, p.workspace);
  head.out.data = m.logits;
  enqueue(head, Place{p.stream, m.linear});
  run({m.logits, op.w.rows, op.x.rows, op.w.rows, op.k, op.vocab_used, op.vocab_map, op.keys, op.out_token, op.out_logp,
       op.every, nullptr, nullptr, nullptr, 0, 0},
      m, p);
}
void enqueue(const MergeTopK&, const Place&) {}

}  // namespace aerie::kernels::cuda
