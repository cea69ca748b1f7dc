// Row-wise ops: movement, embedding, norm, activations. A block never has more than one row, and a row's sum has one
// order whatever the number of rows.
#include "kernels/cuda/element.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ int64_t column() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
// A grid over (columns, rows).
Grid cells(int64_t cols, int64_t rows) { return {(cols + kThreads - 1) / kThreads, many_rows(rows)}; }

__device__ void copy_rows(const CopyRows& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.rows; r += gridDim.y) {
    const int64_t from = op.src_index ? op.src_index[r] : r, to = op.dst_index ? op.dst_index[r] : r;
    if (has_row(op.src, from) && has_row(op.dst, to) && c < op.src.cols) row(op.dst, to)[c] = row(op.src, from)[c];
  }
}

__device__ void embed(const Embed& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y) {
    const int64_t id = op.ids[r];
    if (c < op.out.cols) row(op.out, r)[c] = id >= 0 && id < op.table.rows ? element(op.table, id, c) : 0.0f;
  }
}

// A thread reads its first elements and their weights before it writes: `out` may be `x`, so nothing is read past a write.
__device__ void rms_norm(const RmsNorm& op) {
  constexpr int kHeld = 16;
  if (blockIdx.x >= op.out.rows) return;
  auto* shared = shared_memory<float>();
  const int64_t n = op.x.cols / op.heads, first = blockIdx.y * n;
  const float *x = row(op.x, blockIdx.x) + first, *weight = row(op.weight, 0);
  float* out = row(op.out, blockIdx.x) + first;
  const int64_t mine = threadIdx.x, rest = mine + kHeld * kThreads;
  float held[kHeld], weights[kHeld], sum = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int64_t c = mine + i * kThreads;
    held[i] = c < n ? x[c] : 0.0f;
    weights[i] = c < n ? weight[c] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) sum = fmaf(held[i], held[i], sum);
  for (int64_t c = rest; c < n; c += kThreads) sum = fmaf(x[c], x[c], sum);
  sum = block_sum(sum, shared);
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(n) + op.eps);
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (const int64_t c = mine + i * kThreads; c < n) out[c] = held[i] * scale * weights[i];
  for (int64_t c = rest; c < n; c += kThreads) out[c] = x[c] * scale * weight[c];
}

__device__ float act(Activation kind, float x) {
  switch (kind) {
    case Activation::relu:
      return x < 0.0f ? 0.0f : x;  // keeps a NaN
    case Activation::gelu_tanh: {
      // 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u))
      const float u = 0.7978845608f * (x + 0.044715f * (x * (x * x)));
      return x / (1.0f + exp_own(-2.0f * u));
    }
    default:
      return x / (1.0f + exp_own(-x));
  }
}

__device__ void activate(const Activate& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < op.out.cols) row(op.out, r)[c] = act(op.kind, row(op.x, r)[c]);
}

__device__ void gated_activate(const GatedActivate& op) {
  const int64_t c = column(), f = op.out.cols;
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < f) row(op.out, r)[c] = act(op.kind, row(op.gate_up, r)[c]) * row(op.gate_up, r)[f + c];
}

__device__ void add(const Add& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < op.a.cols) row(op.out, r)[c] = row(op.a, r)[c] + row(op.b, r)[c];
}

}  // namespace

void enqueue(const CopyRows& op, const Place& p) { launch<copy_rows>(p, cells(op.src.cols, op.rows), kThreads, 0, op); }
void enqueue(const Embed& op, const Place& p) { launch<embed>(p, cells(op.out.cols, op.out.rows), kThreads, 0, op); }
void enqueue(const RmsNorm& op, const Place& p) { launch<rms_norm>(p, {bucket(op.out.rows), static_cast<unsigned>(op.heads)}, kThreads, 32 * sizeof(float), op); }
void enqueue(const Activate& op, const Place& p) { launch<activate>(p, cells(op.out.cols, op.out.rows), kThreads, 0, op); }
void enqueue(const GatedActivate& op, const Place& p) {
  launch<gated_activate>(p, cells(op.out.cols, op.out.rows), kThreads, 0, op);
}
void enqueue(const Add& op, const Place& p) { launch<add>(p, cells(op.a.cols, op.out.rows), kThreads, 0, op); }

}  // namespace aerie::kernels::cuda
