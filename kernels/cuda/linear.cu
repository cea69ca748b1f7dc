// Linear: activations to fragments (linear_rows.h), weights streamed past them (linear_tile.h), the slices of K added.
//
// Order of an output, whatever the number of rows: within a slice, mma after mma over k ascending (bf16: the rows' high
// parts, then their low parts; int4: an exact sum of each block of 32, times the weights' scale; int8: exact), then the
// slices ascending, then times the scales of weights (int8) and row, then + bias, then + residual.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/linear_rows.h"
#include "kernels/cuda/linear_tile.h"

namespace aerie::kernels::cuda {
namespace {

template <DType kType, int kGroups>
__global__ void __launch_bounds__(kLinearThreads) linear_tile(const __grid_constant__ LinearTask task) {
  LinearTile<kType, kGroups>(task).run();
}

struct LinearEnd {
  const float* partial;
  int64_t slices, columns;  // a slice is (rows, columns)
  const float* scales;      // of rows, or null
  const float* weights;     // int8: scales of outputs; `partial` is i32 then
  Tensor bias, residual, out;
  const int32_t* ids;       // LinearRows: a negative id's output is 0
};

__global__ void add_slices(LinearEnd e) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= e.out.cols) return;
  for (int64_t r = blockIdx.y; r < e.out.rows; r += gridDim.y) {
    if (e.ids && e.ids[r * e.out.cols + n] < 0) {
      row(e.out, r)[n] = 0;
      continue;
    }
    const float* p = e.partial + r * e.columns + n;
    float v = *p;
    if (e.weights) {
      int32_t sum = 0;
      for (int64_t s = 0; s < e.slices; ++s) sum += std::bit_cast<int32_t>(p[s * e.out.rows * e.columns]);
      v = static_cast<float>(sum) * e.weights[e.ids ? e.ids[r * e.out.cols + n] : n];
    } else {
      for (int64_t s = 1; s < e.slices; ++s) v += p[s * e.out.rows * e.columns];
    }
    if (e.scales) v = v * e.scales[r];
    if (e.bias) v = row(e.bias, 0)[n] + v;
    if (e.residual) v = row(e.residual, r)[n] + v;
    row(e.out, r)[n] = v;
  }
}

// f32 weights: for oracles. A thread makes one output, one chain over k.
__global__ void linear_f32(Tensor x, Tensor w, const int32_t* ids, float* partial, int64_t cols, int64_t rows) {
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

// Linear of all outputs, or of the ids'.
struct Work {
  Tensor x, w;
  const int32_t* ids;
  int64_t rows, cols;  // of the result
  bool is_int() const { return w.dtype == DType::int8 || w.dtype == DType::int4; }
  LinearShape shape() const { return LinearShape(w.dtype, w.rows, w.cols); }
  int64_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  int64_t partial_columns() const { return ids || w.dtype == DType::f32 ? cols : shape().columns(); }
};

struct Memory {
  float* partial;
  char* x = nullptr;
  float* scales = nullptr;
  size_t bytes;
  Memory(const Work& k, char* at) {
    Carve carve(at);
    const LinearShape shape = k.shape();
    const bool tiled = k.w.dtype != DType::f32;
    partial = carve.take<float>((tiled ? shape.slices : 1) * k.rows * k.partial_columns());
    if (tiled) x = carve.take<char>(k.groups() * shape.units * kUnitSteps * 32 * (k.is_int() ? 8 : 16));
    if (k.is_int()) scales = carve.take<float>(k.groups() * kGroupRows);
    bytes = carve.used();
  }
};

template <DType kType, int kGroups>
void tiles(const Work& k, const LinearTask& task, gpu::Stream stream) {
  using S = Stage<kType, kGroups>;
  const int64_t across = k.ids ? k.rows : (task.groups + kGroups - 1) / kGroups;
  const int64_t panels = k.ids ? k.cols : task.shape.panels;
  launch<linear_tile<kType, kGroups>>(stream, {across, (panels + kBlockPanels - 1) / kBlockPanels, task.shape.slices},
                                      kLinearThreads, S::kStages * S::kBytes, task);
}

template <DType kType>
void tiles(const Work& k, const LinearTask& task, gpu::Stream stream) {
  if (k.ids || task.groups == 1) return tiles<kType, 1>(k, task, stream);
  if (task.groups == 2) return tiles<kType, 2>(k, task, stream);
  if (task.groups <= 4) return tiles<kType, 4>(k, task, stream);
  tiles<kType, 8>(k, task, stream);
}

void run(const Work& k, LinearEnd end, const Place& p) {
  if (k.rows <= 0 || k.cols <= 0) return;
  const Memory m(k, p.workspace);
  const Grid cells{(k.cols + 255) / 256, k.rows < 65535 ? k.rows : 65535};
  end.partial = m.partial;
  end.columns = k.partial_columns();
  end.slices = 1;
  end.scales = m.scales;
  end.weights = k.w.dtype == DType::int8 ? static_cast<const float*>(k.w.scales) : nullptr;
  end.ids = k.ids;
  if (k.w.dtype == DType::f32) {
    launch<linear_f32>(p.stream, cells, 256, 0, k.x, k.w, k.ids, m.partial, k.cols, k.rows);
  } else {
    LinearTask task;
    task.shape = k.shape();
    end.slices = task.shape.slices;
    task.w = static_cast<const char*>(k.w.data);
    task.scales = static_cast<const uint16_t*>(k.w.scales);
    const int64_t padded = k_padded(k.w.dtype, k.w.cols);
    task.panel_words = k.w.dtype == DType::bf16 ? padded / 2 : k.w.dtype == DType::int8 ? padded / 4 : padded / 8;
    task.n = k.cols;
    task.rows = k.rows;
    task.groups = k.groups();
    task.x = m.x;
    task.partial = m.partial;
    task.ids = k.ids;
    const int64_t steps = task.shape.units * kUnitSteps;
    Tensor x = k.x;
    x.rows = k.rows;
    x.cols = k.w.cols;
    if (k.is_int())
      launch<prepare_int8>(p.stream, {task.groups * kGroupRows}, kPrepareThreads, 32 * sizeof(float), x, steps,
                           reinterpret_cast<uint2*>(m.x), m.scales);
    else
      launch<prepare_bf16>(p.stream, {task.groups * kGroupRows}, kPrepareThreads, 0, x, steps,
                           reinterpret_cast<uint4*>(m.x));
    if (k.w.dtype == DType::bf16) tiles<DType::bf16>(k, task, p.stream);
    if (k.w.dtype == DType::int8) tiles<DType::int8>(k, task, p.stream);
    if (k.w.dtype == DType::int4) tiles<DType::int4>(k, task, p.stream);
  }
  launch<add_slices>(p.stream, cells, 256, 0, end);
}

Work work(const Linear& op) { return {op.x, op.w, nullptr, op.out.rows, op.w.rows}; }
Work work(const LinearRows& op) { return {op.x, op.w, op.ids, op.out.rows, op.out.cols}; }

}  // namespace

template <>
size_t workspace(const Linear& op) {
  return Memory(work(op), nullptr).bytes;
}
template <>
size_t workspace(const LinearRows& op) {
  return Memory(work(op), nullptr).bytes;
}

void enqueue(const Linear& op, const Place& p) { run(work(op), {nullptr, 0, 0, nullptr, nullptr, op.bias, op.residual, op.out, nullptr}, p); }
void enqueue(const LinearRows& op, const Place& p) { run(work(op), {nullptr, 0, 0, nullptr, nullptr, {}, {}, op.out, nullptr}, p); }

}  // namespace aerie::kernels::cuda
