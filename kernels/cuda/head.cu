// LinearTopK: an LM head whose logits never leave a block. A block streams the weights of kTopKBlock outputs past up to 32
// rows, as Linear does, and keeps of each row its best k and its sums, as TopK does: the same bits. Another block for each
// row then takes the best of those, in an order of their own, and adds up the sums in theirs.
#include "kernels/cuda/linear_work.h"
#include "kernels/cuda/topk_parts.h"

namespace aerie::kernels::cuda {
namespace {

struct HeadTask {
  enum { kBlocks = 1 };
  LinearTask linear;
  const float* scales;   // of rows, or null
  const float* weights;  // int8, fp8: scales of outputs
  const float* bias;     // or null
  BestWanted wanted;
  BestParts parts;
};

template <DType kType, int kGroups>
struct HeadBlock {
  using Tile = LinearTile<kType, kGroups>;
  using S = Stage<kType, kGroups>;
  static constexpr int kRows = kGroups * kGroupRows;
  static constexpr uint32_t kLogits = kRows * kTopKBlock * 4;  // bytes, in front of which are the stages
  static_assert(kTopKBlock == kBlockPanels * kPanel);

  static uint32_t stages(uint32_t shared) { return shared < kLogits ? 0 : S::stages(shared - kLogits); }
  static size_t shared(uint32_t stages) { return stages * S::kBytes + kLogits; }

  // Units of a range, which is a panel block.
  __device__ static uint32_t begin(const HeadTask& task, int64_t range) { return static_cast<uint32_t>(range) * task.linear.shape.units; }

  __device__ static void fetch_ahead(const HeadTask& task, int64_t group, int64_t range) {
    Tile(task.linear, group).fetch_ahead(begin(task, range), begin(task, range + 1));
  }

  // Range `range` of the places, rows of groups from `group` on, or of those only row `only`, which then has no noise.
  // `ahead`: fetch_ahead has been called.
  __device__ static void run(const HeadTask& task, int64_t group, int64_t range, int64_t only, bool ahead) {
    auto* logits = reinterpret_cast<float*>(shared_memory<char>() + task.linear.stages * S::kBytes);  // (kRows, kTopKBlock)
    const int64_t first_row = group * kGroupRows, first = range * kTopKBlock;
    Tile tile(task.linear, group);
    tile.run(begin(task, range), begin(task, range + 1), ahead, [&](const LinearPlace& place) {
      tile.each_sum(place.block, [&](int64_t r, int64_t n, float4 sums) {  // the same thread for each piece
        float* to = logits + (r - first_row) * kTopKBlock + (n - first);
        const float sum[4] = {sums.x, sums.y, sums.z, sums.w};
        for (int i = 0; i < 4; ++i) to[i] = place.piece == 0 ? sum[i] : to[i] + sum[i];
      });
    });
    sync_block();
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    for (int at = warp; at < kRows && first_row + at < task.wanted.rows; at += kPanelThreads / 32) {
      const int64_t r = first_row + at;
      if (only >= 0 && r != only) continue;
      keep(task, r, range, only >= 0 ? nullptr : task.wanted.key(r), logits + at * kTopKBlock, lane);
    }
    sync_block();  // the logits have been used
  }

  // As Linear ends.
  __device__ static float logit(const HeadTask& task, int64_t r, int64_t n, float sum) {
    if (task.weights) sum = sum * task.weights[n];
    if (task.scales) sum = sum * task.scales[r];
    return task.bias ? task.bias[n] + sum : sum;
  }

  // By a warp.
  __device__ static void keep(const HeadTask& task, int64_t r, int64_t range, const DrawKey* noise, float* sums, int lane) {
    const int64_t first = range * kTopKBlock;
    const BestWanted& w = task.wanted;
    float top = -kInf, bad = 0;
    for (int i = 0; i < kLanePlaces; ++i) {
      const int64_t at = lane + 32 * i;
      if (w.id(first + at) < 0) continue;
      const float v = sums[at] = logit(task, r, first + at, sums[at]);  // this lane's alone
      if (!finite(v)) bad = 1;
      top = fmaxf(top, v);
    }
    top = warp_max(top);
    bad = warp_max(bad);
    uint64_t keys[kLanePlaces];
    const BlockSum sum = score_block(w, first, noise, [=](int64_t i) { return sums[i]; }, keys);
    if (lane == 0) {
      task.parts.ranges[r * task.parts.count + range] = {top, bad};
      task.parts.sums[r * task.parts.blocks + range] = sum;
    }
    uint64_t* best = task.parts.best + (r * task.parts.count + range) * w.k;
    for (int i = 0; i < w.k; ++i) {
      uint64_t mine = kNoKey;
#pragma unroll
      for (int j = 0; j < kLanePlaces; ++j) mine = keys[j] > mine ? keys[j] : mine;
      const uint64_t next = warp_max(mine);
      if (lane == 0) best[i] = next;
#pragma unroll
      for (int j = 0; j < kLanePlaces; ++j) keys[j] = keys[j] == next ? kNoKey : keys[j];
    }
  }
};

// Grid (tiles of rows, ranges).
template <DType kType, int kGroups>
__device__ void head_ranges_ahead(const HeadTask& task) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kGroups;
  if (group < task.linear.groups) HeadBlock<kType, kGroups>::fetch_ahead(task, group, blockIdx.y);
}
template <DType kType, int kGroups>
__device__ void head_ranges(const HeadTask& task) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kGroups;
  if (group < task.linear.groups) HeadBlock<kType, kGroups>::run(task, group, blockIdx.y, -1, true);
}

// Grid (rows).
template <DType kType>
__device__ void head_rows(const HeadTask& task) {
  if (blockIdx.x >= task.wanted.rows) return;
  RowMemory& m = *shared_memory<RowMemory>();
  const int64_t r = blockIdx.x;
  const LogitRange all = row_range(task.parts, r, m.reduce);
  const DrawKey* key = task.wanted.key(r);
  if (all.bad == 0.0f && key && all.top != -kInf && !is_noisy(key, all.top)) {
    // Only now is it known that this row should have had no noise: once more. A matter of absurd temperatures.
    for (int64_t range = 0; range < task.parts.count; ++range) HeadBlock<kType, 1>::run(task, r / kGroupRows, range, r, false);
    sync_block();
  }
  merge_row(task.wanted, task.parts, r, all.bad != 0.0f, m);
}
static_assert(kRowThreads == kPanelThreads);

template <DType kType, int kGroups>
void ranges(HeadTask task, const Place& p) {
  using Block = HeadBlock<kType, kGroups>;
  task.linear.stages = Block::stages(p.most_shared);
  launch<head_ranges<kType, kGroups>, kPanelThreads, head_ranges_ahead<kType, kGroups>>(
      p, {(bucket(task.linear.groups) + kGroups - 1) / kGroups, task.parts.count}, kPanelThreads, Block::shared(task.linear.stages), task);
}

template <DType kType>
void head(HeadTask task, const Place& p) {
  if (task.linear.groups == 1) ranges<kType, 1>(task, p);
  else if (task.linear.groups == 2 || HeadBlock<kType, 4>::stages(p.most_shared) < 2) ranges<kType, 2>(task, p);
  else ranges<kType, 4>(task, p);
  task.linear.stages = 2;  // it rarely streams
  launch<head_rows<kType>, kRowThreads>(p, {bucket(task.wanted.rows)}, kRowThreads,
                           std::max(sizeof(RowMemory), HeadBlock<kType, 1>::shared(task.linear.stages)), task);
}

LinearWork work(const LinearTopK& op) { return {op.x, op.w, nullptr, op.x.rows, op.w.rows}; }
BestWanted wanted(const LinearTopK& op) {
  return {op.x.rows, op.w.rows, op.k, op.vocab_used, op.vocab_map, op.keys, op.out_token, op.out_logp, op.every};
}

// f32 weights are for oracles: their logits are written, and looked at by TopK.
struct Written {
  Linear linear;
  char* rest;
  size_t bytes;
  Written(const LinearTopK& op, char* at) {
    Carve carve(at);
    linear = {op.x, op.w, op.bias, {}, matrix(carve.take<float>(op.x.rows * op.w.rows), op.x.rows, op.w.rows)};
    rest = at ? at + carve.used() : nullptr;
    bytes = carve.used() + std::max(workspace(linear), topk_workspace(wanted(op)));
  }
};

}  // namespace

template <>
size_t workspace(const LinearTopK& op) {
  if (op.w.dtype == DType::f32) return Written(op, nullptr).bytes;
  Carve carve(nullptr);
  BestParts(wanted(op), kTopKBlock, carve);
  return carve.used();
}
template <>
size_t rows_space(const LinearTopK& op) {
  return rows_bytes(work(op));
}
template <>
const char* refuse(const LinearTopK& op) {
  return refuse_k(op.k);
}
template <>
const char* refuse(const MergeTopK& op) {
  return refuse_k(op.head.k);
}

// Both ops' work: what is between them stays in working memory.
void enqueue(const LinearTopK& op, const Place& p) {
  if (op.x.rows <= 0 || op.k <= 0) return;
  if (op.w.dtype == DType::f32) {
    const Written written(op, p.workspace);
    enqueue(written.linear, Place{p.launches, written.rest});
    return enqueue_topk(static_cast<const float*>(written.linear.out.data), op.w.rows, wanted(op), Place{p.launches, written.rest});
  }
  Carve carve(p.workspace);
  const BestParts parts(wanted(op), kTopKBlock, carve);
  const HeadTask task{prepare(work(op), p), row_scales(op.w, op.x.rows, p.rows), output_scales(op.w), static_cast<const float*>(op.bias.data), wanted(op), parts};
  if (op.w.dtype == DType::bf16) head<DType::bf16>(task, p);
  if (op.w.dtype == DType::fp8) head<DType::fp8>(task, p);
  if (op.w.dtype == DType::int8) head<DType::int8>(task, p);
  if (op.w.dtype == DType::int4) head<DType::int4>(task, p);
  if (op.w.dtype == DType::q4_1) head<DType::q4_1>(task, p);
  if (op.w.dtype == DType::mxfp4) head<DType::mxfp4>(task, p);
}
void enqueue(const MergeTopK&, const Place&) {}

}  // namespace aerie::kernels::cuda
