// TopK in three launches: each range's largest logit (noise is left out where it would overflow), each range's best k and
// sums, and the best of those.
#include "kernels/cuda/topk_parts.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kRangeThreads = 256;
constexpr int64_t kRange = 4096;  // places of a block
static_assert(kRange >= topk_least_range(kMaxTopK) && kRange % kTopKBlock == 0);

struct TopKTask {
  const float* logits;
  int64_t stride;
  BestWanted wanted;
  BestParts parts;
};

// Grid (ranges, rows).
__device__ void range_tops(const TopKTask& task) {
  if (blockIdx.y >= task.wanted.rows) return;
  auto* shared = shared_memory<float>();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRange, r = blockIdx.y;
  float top = -kInf, bad = 0;
  for (int64_t t = first + threadIdx.x; t < first + kRange; t += kRangeThreads) {
    if (task.wanted.id(t) < 0) continue;
    const float v = task.logits[r * task.stride + t];
    if (!finite(v)) bad = 1;
    top = fmaxf(top, v);
  }
  top = block_max(top, shared);
  bad = block_max(bad, shared);
  if (threadIdx.x == 0) task.parts.ranges[r * task.parts.count + blockIdx.x] = {top, bad};
}

struct RangeMemory {  // shared
  uint64_t keys[kRange];
  BestMemory best;
  float reduce[32];
};

__device__ void range_best(const TopKTask& task) {
  if (blockIdx.y >= task.wanted.rows) return;
  RangeMemory& m = *shared_memory<RangeMemory>();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRange, r = blockIdx.y;
  const LogitRange all = row_range(task.parts, r, m.reduce);
  if (all.bad != 0.0f) return;
  const DrawKey* key = task.wanted.key(r);
  const DrawKey* noise = is_noisy(key, all.top) ? key : nullptr;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t b = warp; b < kRange / kTopKBlock; b += kRangeThreads / 32) {
    const int64_t at = b * kTopKBlock;
    uint64_t keys[kLanePlaces];
    const float* logits = task.logits + r * task.stride + first + at;
    const BlockSum sum = score_block(task.wanted, first + at, noise, [=](int64_t i) { return logits[i]; }, keys);
    for (int i = 0; i < kLanePlaces; ++i) m.keys[at + lane + 32 * i] = keys[i];
    const int64_t block = first / kTopKBlock + b;
    if (lane == 0 && block < task.parts.blocks) task.parts.sums[r * task.parts.blocks + block] = sum;
  }
  sync_block();
  select_best(kRange, task.wanted.k, [&](int64_t i) { return m.keys[i]; }, m.best);
  for (int i = static_cast<int>(threadIdx.x); i < task.wanted.k; i += kRangeThreads)
    task.parts.best[(r * task.parts.count + blockIdx.x) * task.wanted.k + i] = m.best.best[i];
}

// Grid (rows).
__device__ void row_best(const TopKTask& task) {
  if (blockIdx.x >= task.wanted.rows) return;
  RowMemory& m = *shared_memory<RowMemory>();
  const int64_t r = blockIdx.x;
  const bool bad = row_range(task.parts, r, m.reduce).bad != 0.0f;
  merge_row(task.wanted, task.parts, r, bad, m);
}

BestWanted wanted(const TopK& op) {
  return {op.logits.rows, op.logits.cols, op.k, op.vocab_used, op.vocab_map, op.keys, op.out_token, op.out_logp, 1};
}

}  // namespace

size_t topk_workspace(const BestWanted& w) {
  Carve carve(nullptr);
  BestParts(w, kRange, carve);
  return carve.used();
}

void enqueue_topk(const float* logits, int64_t stride, const BestWanted& w, const Place& p) {
  if (w.k <= 0) return;
  Carve carve(p.workspace);
  const BestParts parts(w, kRange, carve);
  // Rows are the grid's y, of 16 bits.
  for (int64_t first = 0; first < w.rows; first += 65535) {
    TopKTask task{logits + first * stride, stride, w, parts};
    task.wanted.rows = std::min<int64_t>(w.rows - first, 65535);
    if (w.keys) task.wanted.keys += first * w.every;
    task.wanted.out_token += first * w.every * w.k;
    task.wanted.out_logp += first * w.every * w.k;
    const int64_t rows = many_rows(task.wanted.rows);
    launch<range_tops>(p, {parts.count, rows}, kRangeThreads, 32 * sizeof(float), task);
    launch<range_best>(p, {parts.count, rows}, kRangeThreads, sizeof(RangeMemory), task);
    launch<row_best>(p, {rows}, kRowThreads, sizeof(RowMemory), task);
  }
}

template <>
size_t workspace(const TopK& op) {
  return topk_workspace(wanted(op));
}
template <>
const char* refuse(const TopK& op) {
  return refuse_k(op.k);
}
void enqueue(const TopK& op, const Place& p) {
  enqueue_topk(static_cast<const float*>(op.logits.data), op.logits.stride, wanted(op), p);
}

}  // namespace aerie::kernels::cuda
