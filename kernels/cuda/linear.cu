// Linear: activations to fragments (linear_rows.h), weights streamed past them (linear_tile.h), the pieces of K added.
//
// Order of an output, whatever the number of rows: within a piece, mma after mma over k ascending (bf16: the rows' high
// parts, then their low parts; others: the rows as halves, and weights that are halves by then), then the pieces ascending,
// then times the scales of weights (int8, fp8) and row (all but bf16), then + bias, then + residual.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/linear_end.h"
#include "kernels/cuda/linear_fast.h"
#include "kernels/cuda/linear_tile.h"
#include "kernels/cuda/linear_work.h"

namespace aerie::kernels::cuda {
namespace {

template <DType kType, int kGroups>
using TileArgument = std::conditional_t<kGroups == 8, ManyRowsTask, LinearTask>;

// Grid (row tiles, parts).
template <DType kType, int kGroups>
__device__ void linear_tile_ahead(const TileArgument<kType, kGroups>& task) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kGroups;
  if (first < task.groups)
    LinearTile<kType, kGroups>(task, first).fetch_ahead(task.shape.part_begin(blockIdx.y), task.shape.part_begin(blockIdx.y + 1));
}
template <DType kType, int kGroups>
__device__ void linear_tile(const TileArgument<kType, kGroups>& task) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kGroups;
  if (first >= task.groups) return;
  LinearTile<kType, kGroups> tile(task, first);
  tile.run(task.shape.part_begin(blockIdx.y), task.shape.part_begin(blockIdx.y + 1), true, [&](const LinearPlace& place) { tile.store(place); });
}
// Grid (rows, blocks of ids).
template <DType kType>
__device__ void linear_ids(const LinearTask& task) {
  if (blockIdx.x >= task.rows) return;
  LinearTile<kType, 1, true> tile(task, blockIdx.x, blockIdx.y);
  tile.run(0, task.shape.units, false, [&](const LinearPlace& place) { tile.store(place); });
}

struct PlainTask {
  Tensor x, w;
  const int32_t* ids;
  float* partial;
  int64_t cols, rows;
};

// f32 weights: for oracles. A thread makes one output, one chain over k.
__device__ void linear_f32(const PlainTask& task) {
  const auto& [x, w, ids, partial, cols, rows] = task;
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= cols) return;
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t output = ids ? ids[r * cols + n] : n;
    if (output < 0) continue;
    const float* in = row(x, r);
    const float* v = static_cast<const float*>(w.data) + output / kPanel * kPanel * w.cols + output % kPanel;
    float sum = 0;
    for (int64_t k = 0; k < w.cols; ++k) sum = fmaf(v[k * kPanel], in[k], sum);
    partial[r * cols + n] = sum;
  }
}

__device__ void add_pieces_ahead(const LinearEnd& e) {
  scales_ahead(e, (static_cast<int64_t>(blockIdx.x) * kEndThreads + threadIdx.x) * kEndWide);
}

template <DType kType, int kGroups>
void tiles(LinearTask task, const Place& p) {
  using S = Stage<kType, kGroups>;
  task.stages = std::min(p.options.stages, S::stages(p.most_shared));
  task.one_by_one = kGroups * kGroupRows <= p.options.one_by_one;
  launch<linear_tile<kType, kGroups>, kPanelThreads, linear_tile_ahead<kType, kGroups>>(
      p, {(bucket(task.groups) + kGroups - 1) / kGroups, task.shape.parts}, kPanelThreads, task.stages * S::kBytes, {task});
}
template <DType kType>
void ids(LinearTask task, const Place& p) {
  using S = Stage<kType, 1>;
  task.stages = std::min(p.options.stages, S::stages(p.most_shared));
  launch<linear_ids<kType>, kPanelThreads>(p, {bucket(task.rows), (task.n + kBlockPanels - 1) / kBlockPanels}, kPanelThreads,
                                           task.stages * S::kBytes, task);
}

template <DType kType>
void tiles(const LinearTask& task, const Place& p) {
  if (task.ids) return ids<kType>(task, p);
  if (task.groups == 1) return tiles<kType, 1>(task, p);
  if (task.groups == 2) return tiles<kType, 2>(task, p);
  if (task.groups <= 4) return tiles<kType, 4>(task, p);
  tiles<kType, 8>(task, p);
}

template <int kPieces>
void put_pieces(const LinearEnd& e, const Place& p) {
  launch<add_pieces<kPieces>, kEndThreads, add_pieces_ahead>(p, end_grid(e.out.cols, e.out.rows), kEndThreads, 0, e);
}

void run(const LinearWork& k, LinearEnd end, const Place& p) {
  if (k.rows <= 0 || k.cols <= 0) return;
  Carve carve(p.workspace);
  float* const partial = take_partial(k, carve);
  end.partial = partial;
  end.columns = k.partial_columns();
  end.shape = k.shape;
  end.whole = k.w.dtype == DType::f32;
  end.scales = row_scales(k.w, k.rows, p.rows);
  end.weights = output_scales(k.w);
  end.ids = k.ids;
  if (k.w.dtype == DType::f32) {
    constexpr int kThreads = 256;
    launch<linear_f32>(p, {(k.cols + kThreads - 1) / kThreads, many_rows(k.rows)}, kThreads, 0,
                       PlainTask{k.x, k.w, k.ids, partial, k.cols, k.rows});
  } else {
    LinearTask task = prepare(k, p);
    task.partial = partial;
    if (k.w.dtype == DType::bf16) tiles<DType::bf16>(task, p);
    if (k.w.dtype == DType::fp8) tiles<DType::fp8>(task, p);
    if (k.w.dtype == DType::int8) tiles<DType::int8>(task, p);
    if (k.w.dtype == DType::int4) tiles<DType::int4>(task, p);
    if (k.w.dtype == DType::q4_1) tiles<DType::q4_1>(task, p);
    if (k.w.dtype == DType::mxfp4) tiles<DType::mxfp4>(task, p);
  }
  if (p.chain) {
    const auto take = [&](const auto* op, const Tensor& of) {
      if (!op || k.ids || !same_rows(end.out, of)) return false;
      p.chain->taken = 1;
      enqueue_after(end, *op, p);
      return true;
    };
    const auto* act = p.chain->next<GatedActivate>();
    const auto* rope = p.chain->next<RopeAndStore>();
    if (act && !act->up && act->out.cols % 2 == 0 && end.residual.data != act->out.data && take(act, act->gate_up)) return;  // two at a time
    if (rope && rope->cache.head_dim % 4 == 0 && take(rope, rope->qkv)) return;  // four
  }
  if (k.ids) launch<add_pieces_of_ids, kEndThreads>(p, end_grid(k.cols, k.rows), kEndThreads, 0, end);
  else if (end.columns % kEndWide != 0) launch<add_odd_pieces, kEndThreads>(p, end_grid(k.cols, k.rows), kEndThreads, 0, end);
  else if (end.whole || end.shape.most_pieces() <= kFewPieces) put_pieces<kFewPieces>(end, p);
  else put_pieces<kManyPieces>(end, p);
}

size_t bytes_of(const LinearWork& k) {
  Carve carve(nullptr);
  take_partial(k, carve);
  return carve.used();
}

LinearWork work(const Linear& op) { return {op.x, op.w, nullptr, op.out.rows, op.w.rows}; }
LinearWork work(const LinearRows& op) { return {op.x, op.w, op.ids, op.out.rows, op.out.cols}; }

}  // namespace

template <>
size_t workspace(const Linear& op) {
  return is_fast(op) ? fast_workspace(op) : bytes_of(work(op));
}
template <>
size_t workspace(const LinearRows& op) {
  return bytes_of(work(op));
}
template <>
size_t rows_space(const Linear& op) {
  return is_fast(op) ? 0 : rows_bytes(work(op));
}
template <>
size_t rows_space(const LinearRows& op) {
  return rows_bytes(work(op));
}

void enqueue(const Linear& op, const Place& p) {
  if (is_fast(op)) enqueue_fast(op, p);
  else run(work(op), {.bias = op.bias, .residual = op.residual, .out = op.out}, p);
}
void enqueue(const LinearRows& op, const Place& p) { run(work(op), {.out = op.out}, p); }

}  // namespace aerie::kernels::cuda
