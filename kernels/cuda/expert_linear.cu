// ExpertLinear: the tiles of Linear, for each expert that is taken past the rows that take it. Before that rows become fragments, as
// Linear's do, and a spare block of the same kernel lists each expert's outputs.
//
// Order of an output: Linear's (linear.cu), of a matrix that is cut into fewer parts, for k of them run beside one another: a matter
// of the weights' shape and type, and of k. Up to 32 outputs share a tile, whose columns know nothing of one another.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/expert_rows.h"
#include "kernels/cuda/linear_end.h"
#include "kernels/cuda/linear_tile.h"
#include "kernels/cuda/linear_work.h"

namespace aerie::kernels::cuda {
namespace {

// An op's shapes. The weights here are those of one expert.
struct ExpertWork {
  int64_t outputs, panels_each;
  int32_t k, all, same;  // experts that there are; outputs that have the same row
  LinearWork products, rows;
  explicit ExpertWork(const ExpertLinear& op)
      : outputs(op.out.rows),
        panels_each(op.out.cols / kPanel),
        k(op.k),
        all(static_cast<int32_t>(op.w.rows / op.out.cols)),
        same(op.x.rows == op.out.rows ? 1 : op.k),
        products(op.x, panels(op.w, 0, panels_each), nullptr, outputs, op.out.cols),
        rows(op.x, products.w, nullptr, outputs / same, op.out.cols) {
    products.shape = LinearShape(op.w.dtype, op.out.cols, op.w.cols, std::max<int64_t>(kWantedParts / k, 1));
  }
  // What grids are made for: the same for a bucket of rows, whatever k is.
  int64_t bucket_of_outputs() const { return bucket(outputs / k) * k; }
  int64_t most_taken() const { return std::min<int64_t>(all, bucket_of_outputs()); }
};

struct ExpertMemory {
  float* partial;
  ExpertLists lists;
  ExpertMemory(const ExpertWork& k, Carve& carve) : partial(take_partial(k.products, carve)) {
    lists.taken = carve.take<int32_t>(1);
    lists.expert = carve.take<int32_t>(k.most_taken());
    lists.begin = carve.take<int32_t>(k.most_taken() + 1);
    lists.output = carve.take<int32_t>(k.outputs);
  }
};

struct ExpertRowsTask {
  PrepareTask rows;
  const int32_t* experts;
  int64_t outputs;
  int32_t all;
  ExpertLists lists;
};

// Grid (rows, and one block more; bf16: parts of a row).
template <bool kHalves>
__device__ void prepare_experts(const ExpertRowsTask& task) {
  if (blockIdx.x + 1 == gridDim.x) {
    if (blockIdx.y == 0) make_lists(task.experts, task.outputs, task.all, task.lists);
  } else if constexpr (kHalves) {
    prepare_half(task.rows);
  } else {
    prepare_bf16(task.rows);
  }
}

struct ExpertTask : LinearTask {  // rows: of `partial`
  ExpertLists lists;
  int32_t same = 1;
  uint32_t most_shared = 0;
};

// One part of an expert's weights past the outputs from `outputs` on, at most as many as a tile has.
template <DType kType, int kGroups>
__device__ void expert_tile(const ExpertTask& task, const LinearTask& of_expert, const int32_t* outputs, int32_t count) {
  using S = Stage<kType, kGroups>;
  LinearTask mine = of_expert;
  mine.rows = count;
  const uint32_t stages = S::stages(task.most_shared);
  if (stages < mine.stages) mine.stages = stages;
  LinearTile<kType, kGroups> tile(mine, 0);
  tile.run(GatheredRows<S>(mine, outputs, task.same), mine.shape.part_begin(blockIdx.x), mine.shape.part_begin(blockIdx.x + 1), false,
           [&](const LinearPlace& place) {
             tile.each_sum(place.block, [&](int64_t i, int64_t n, float4 sums) {
               store_run(mine.partial + (int64_t{place.piece} * task.rows + outputs[i]) * mine.shape.columns() + n,
                         {sums.x, sums.y, sums.z, sums.w});
             });
           });
}

// Grid (parts, experts that may be taken).
template <DType kType>
__device__ void expert_tiles(const ExpertTask& task) {
  if (static_cast<int32_t>(blockIdx.y) >= *task.lists.taken) return;
  const int64_t first_panel = task.lists.expert[blockIdx.y] * task.shape.panels;
  LinearTask of_expert = task;
  of_expert.w += first_panel * task.panel_words * kWordBytes;
  if (kBlockScales<kType> > 0) of_expert.scales += first_panel * task.panel_scales;
  const int32_t begin = task.lists.begin[blockIdx.y], end = task.lists.begin[blockIdx.y + 1];
  if (end - begin > 4 * kGroupRows) of_expert.once = false;  // they pass again
  for (int32_t at = begin; at < end; at += 4 * kGroupRows) {
    const int32_t* outputs = task.lists.output + at;
    if (end - at <= kGroupRows) expert_tile<kType, 1>(task, of_expert, outputs, end - at);
    else if (end - at <= 2 * kGroupRows) expert_tile<kType, 2>(task, of_expert, outputs, end - at);
    else expert_tile<kType, 4>(task, of_expert, outputs, end - at < 4 * kGroupRows ? end - at : 4 * kGroupRows);
    sync_block();  // the stages have been used by all
  }
}

struct ExpertEnd {
  LinearEnd end;  // of any expert; its bias has a row for each
  const int32_t* experts;
  int32_t all, same;
};

// Grid (columns, outputs).
template <int kPieces>
__device__ void end_experts(const ExpertEnd& task) {
  const int64_t n = (static_cast<int64_t>(blockIdx.x) * kEndThreads + threadIdx.x) * kEndWide;
  if (n >= task.end.out.cols) return;
  for (int64_t i = blockIdx.y; i < task.end.out.rows; i += gridDim.y) {
    const int64_t e = task.experts[i];
    LinearEnd end = task.end;
    end.residual = {};  // there is none, and no code for it
    end.partial += i * end.columns;
    end.out.data = row(end.out, i);
    if (e < 0 || e >= task.all) {
      for (int w = 0; w < kEndWide; ++w) row(end.out, 0)[n + w] = 0;
      continue;
    }
    if (end.scales) end.scales += i / task.same;
    if (end.weights) end.weights += e * end.columns;
    if (end.bias) end.bias.data = row(end.bias, e);
    Ending<kEndWide, 1, kPieces>().finish(end, 0, {n});
  }
}

struct PlainExpertTask {
  Tensor x, w, bias, out;
  const int32_t* experts;
  int32_t all, same;
};

// f32 weights, as linear_f32. Grid (columns, outputs).
__device__ void expert_linear_f32(const PlainExpertTask& task) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, k = task.w.cols;
  if (n >= task.out.cols) return;
  for (int64_t i = blockIdx.y; i < task.out.rows; i += gridDim.y) {
    const int64_t e = task.experts[i], output = e * task.out.cols + n;
    float sum = 0;
    if (e >= 0 && e < task.all) {
      const float* in = row(task.x, i / task.same);
      const float* v = static_cast<const float*>(task.w.data) + output / kPanel * kPanel * k + output % kPanel;
      for (int64_t at = 0; at < k; ++at) sum = fmaf(v[at * kPanel], in[at], sum);
      if (task.bias) sum = row(task.bias, e)[n] + sum;
    }
    row(task.out, i)[n] = sum;
  }
}

template <DType kType>
void put_tiles(const ExpertTask& task, const ExpertWork& k, const Place& p) {
  const auto bytes = [&]<int kGroups>(std::integral_constant<int, kGroups>) {
    using S = Stage<kType, kGroups>;
    return std::min(task.stages, S::stages(task.most_shared)) * S::kBytes;
  };
  const uint32_t most =
      std::max({bytes(std::integral_constant<int, 1>()), bytes(std::integral_constant<int, 2>()), bytes(std::integral_constant<int, 4>())});
  launch<expert_tiles<kType>, kPanelThreads>(p, {task.shape.parts, k.most_taken()}, kPanelThreads, most, task);
}

void enqueue_f32(const ExpertLinear& op, const ExpertWork& k, const Place& p) {
  constexpr int kThreads = 256;
  const int64_t outputs = std::min<int64_t>(k.bucket_of_outputs(), 65535);
  launch<expert_linear_f32>(p, {(op.out.cols + kThreads - 1) / kThreads, outputs}, kThreads, 0,
                            PlainExpertTask{op.x, op.w, op.bias, op.out, op.experts, k.all, k.same});
}

}  // namespace

template <>
const char* refuse(const ExpertLinear& op) {
  return op.out.cols > 0 && op.w.rows / op.out.cols > kMaxExperts ? "more experts than it knows" : nullptr;
}
template <>
size_t workspace(const ExpertLinear& op) {
  if (op.out.rows <= 0 || op.out.cols <= 0 || op.w.dtype == DType::f32) return 0;
  Carve carve(nullptr);
  ExpertMemory(ExpertWork(op), carve);
  return carve.used();
}
template <>
size_t rows_space(const ExpertLinear& op) {
  return op.out.rows <= 0 || op.out.cols <= 0 ? 0 : rows_bytes(ExpertWork(op).rows);
}

void enqueue(const ExpertLinear& op, const Place& p) {
  if (op.out.rows <= 0 || op.out.cols <= 0) return;
  const ExpertWork k(op);
  if (op.w.dtype == DType::f32) return enqueue_f32(op, k, p);
  Carve carve(p.workspace);
  const ExpertMemory memory(k, carve);

  const ExpertRowsTask rows{rows_task(k.rows, p), op.experts, k.outputs, k.all, memory.lists};
  const unsigned threads = prepare_threads(rows.rows);
  const int64_t blocks = bucket(k.outputs / k.k) * (k.k / k.same) + 1;
  const size_t shared = static_cast<size_t>(std::max(k.all, 32)) * sizeof(int32_t);
  if (k.products.scaled()) launch<prepare_experts<true>, kPrepareThreads>(p, {blocks}, threads, shared, rows);
  else launch<prepare_experts<false>, kPrepareThreads>(p, {blocks, (rows.rows.to.words + threads - 1) / threads}, threads, shared, rows);

  ExpertTask task{task_of(k.products, p), memory.lists, k.same, p.most_shared};
  task.partial = memory.partial;
  task.stages = p.options.stages;
  if (op.w.dtype == DType::bf16) put_tiles<DType::bf16>(task, k, p);
  if (op.w.dtype == DType::fp8) put_tiles<DType::fp8>(task, k, p);
  if (op.w.dtype == DType::int8) put_tiles<DType::int8>(task, k, p);
  if (op.w.dtype == DType::int4) put_tiles<DType::int4>(task, k, p);
  if (op.w.dtype == DType::q4_1) put_tiles<DType::q4_1>(task, k, p);
  if (op.w.dtype == DType::mxfp4) put_tiles<DType::mxfp4>(task, k, p);

  LinearEnd end{.partial = memory.partial, .columns = k.products.partial_columns(), .shape = k.products.shape, .whole = false,
                .scales = rows.rows.to.scales, .weights = output_scales(op.w), .bias = op.bias, .out = op.out};
  Grid grid = end_grid(op.out.cols, op.out.rows);
  grid.y = std::min<int64_t>(k.bucket_of_outputs(), 65535);
  const ExpertEnd ending{end, op.experts, k.all, k.same};
  if (end.shape.most_pieces() <= kFewPieces) launch<end_experts<kFewPieces>, kEndThreads>(p, grid, kEndThreads, 0, ending);
  else launch<end_experts<kManyPieces>, kEndThreads>(p, grid, kEndThreads, 0, ending);
}

}  // namespace aerie::kernels::cuda
