// Linear by a library (gpu.h: multiply), for prompts whose host chose speed over the promise: weights and rows as bf16
// matrices in working memory, f32 sums from the library, bias and residual as Linear adds them.
#include "kernels/cuda/element.h"
#include "kernels/cuda/linear_end.h"
#include "kernels/cuda/linear_fast.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kUnpackThreads = 256;
constexpr int kTile = 64;       // columns that a block unpacks of a panel
constexpr int kTilePitch = 66;  // apart in shared memory, so that columns of a panel do not share a bank

struct FastMemory {
  int64_t width;  // of a row, zeros behind K: 16 bytes are what tensor cores load
  uint16_t *weights, *rows;
  float* sums;
  char* room;
  FastMemory(const Linear& op, Carve& carve)
      : width(round_up(op.w.cols, 8)),
        weights(carve.take<uint16_t>(op.w.rows * width)),
        rows(carve.take<uint16_t>(op.out.rows * width)),
        sums(carve.take<float>(op.out.rows * op.w.rows)),
        room(carve.take<char>(static_cast<int64_t>(gpu::Product::kRoom))) {}
};

struct Bf16Task {
  Tensor from;
  int64_t width;
  uint16_t* out;  // (from.rows, width)
};

// Grid (panels, tiles of columns): read as the panel lies, written as rows lie.
__device__ void unpack(const Bf16Task& task) {
  auto* tile = shared_memory<uint16_t>();  // (kPanel, kTilePitch)
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kPanel, first_col = static_cast<int64_t>(blockIdx.y) * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kPanel * kTile; i += kUnpackThreads) {
    const int64_t r = first_row + i % kPanel, c = first_col + i / kPanel;
    tile[i % kPanel * kTilePitch + i / kPanel] = r < task.from.rows && c < task.from.cols ? to_bf16(element(task.from, r, c)) : uint16_t{0};
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < kPanel * kTile; i += kUnpackThreads) {
    const int64_t r = first_row + i / kTile, c = first_col + i % kTile;
    if (r < task.from.rows && c < task.width) task.out[r * task.width + c] = tile[i / kTile * kTilePitch + i % kTile];
  }
}

// Grid (columns, rows).
__device__ void round_rows(const Bf16Task& task) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kUnpackThreads + threadIdx.x;
  if (c >= task.width) return;
  for (int64_t r = blockIdx.y; r < task.from.rows; r += gridDim.y)
    task.out[r * task.width + c] = c < task.from.cols ? to_bf16(row(task.from, r)[c]) : uint16_t{0};
}

}  // namespace

bool is_fast(const Linear& op) { return op.fast && op.w.dtype != DType::f32; }

size_t fast_workspace(const Linear& op) {
  Carve carve(nullptr);
  FastMemory(op, carve);
  return carve.used();
}

void enqueue_fast(const Linear& op, const Place& p) {
  if (op.out.rows <= 0 || op.w.rows <= 0) return;
  Carve carve(p.workspace);
  const FastMemory m(op, carve);
  Bf16Task rows{op.x, m.width, m.rows};
  rows.from.rows = op.out.rows;
  rows.from.cols = op.w.cols;
  launch<unpack>(p, {(op.w.rows + kPanel - 1) / kPanel, (m.width + kTile - 1) / kTile}, kUnpackThreads, kPanel * kTilePitch * 2,
                 Bf16Task{op.w, m.width, m.weights});
  launch<round_rows>(p, {(m.width + kUnpackThreads - 1) / kUnpackThreads, many_rows(op.out.rows)}, kUnpackThreads, 0, rows);
  p.launches->multiply({m.sums, m.weights, m.rows, op.w.rows, m.width, op.out.rows, m.room});
  const LinearEnd end{.partial = m.sums, .columns = op.w.rows, .bias = op.bias, .residual = op.residual, .out = op.out};
  if (end.columns % kEndWide != 0) launch<add_odd_pieces, kEndThreads>(p, end_grid(op.w.rows, op.out.rows), kEndThreads, 0, end);
  else launch<add_pieces<1>, kEndThreads>(p, end_grid(op.w.rows, op.out.rows), kEndThreads, 0, end);
}

}  // namespace aerie::kernels::cuda
