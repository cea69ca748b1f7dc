// What the weight-streaming kernels are told: a Linear's shapes, its rows as fragments, its task.
#pragma once

#include "kernels/cuda/chain.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/linear_ahead.h"
#include "kernels/cuda/linear_rows.h"
#include "kernels/cuda/linear_tile.h"

namespace aerie::kernels::cuda {

// Linear of all outputs, or of the ids'.
struct LinearWork {
  Tensor x, w;
  const int32_t* ids;
  int64_t rows, cols;  // of the result
  LinearShape shape;
  LinearWork(const Tensor& x_, const Tensor& w_, const int32_t* ids_, int64_t rows_, int64_t cols_)
      : x(x_), w(w_), ids(ids_), rows(rows_), cols(cols_), shape(w_.dtype, w_.rows, w_.cols) {}
  bool scaled() const { return has_scales(w.dtype); }  // rows have a scale
  int64_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  int64_t partial_columns() const { return ids || w.dtype == DType::f32 ? cols : shape.columns(); }
};

// Working memory: the sums of all pieces.
inline float* take_partial(const LinearWork& k, Carve& carve) {
  return carve.take<float>((k.w.dtype == DType::f32 ? 1 : k.shape.most_pieces()) * k.rows * k.partial_columns());
}

// Words (kk) of a panel that exist.
inline int64_t panel_words(const Tensor& w) {
  const int64_t padded = k_padded(w.dtype, w.cols);
  return w.dtype == DType::bf16 ? padded / 2 : is_nibbles(w.dtype) ? padded / 8 : padded / 4;
}
// Of a panel.
inline uint32_t unit_bytes(const Tensor& w) {
  return static_cast<uint32_t>(kStepWidth * unit_steps(w.dtype) * panel_words(w) / k_padded(w.dtype, w.cols) * kPanel * 4);
}
// What spare blocks ask for beside an op that leaves memory alone for a while: `beside_attention` bytes for each block of a Linear.
inline LinearWish wish_for(const Linear* linear, uint32_t* bytes, const Place& p) {
  if (!linear || is_fast(*linear) || linear->w.dtype == DType::f32) return {};
  const Tensor& w = linear->w;
  LinearWish wish{static_cast<const char*>(w.data), panel_words(w) * kWordBytes, unit_bytes(w), LinearShape(w.dtype, w.rows, w.cols), 0, 0};
  wish.skip = std::min(p.options.stages, stages_of(w.dtype, (linear->out.rows + kGroupRows - 1) / kGroupRows, p.most_shared)) - 1;
  const uint32_t all = (wish.shape.all_units() + wish.shape.parts - 1) / wish.shape.parts, block_bytes = kBlockPanels * wish.unit_bytes;
  wish.units = all > wish.skip ? std::min(all - wish.skip, *bytes / block_bytes) : 0;
  *bytes -= wish.units * block_bytes;
  return wish;
}
inline LinearWishes wishes_for(const Place& p) {
  if (!p.chain || p.options.beside_attention == 0) return {};
  uint32_t bytes = p.options.beside_attention;
  LinearWishes wishes{wish_for(p.chain->next<Linear>(), &bytes, p), {}};
  if (wishes.next.w && p.chain->next<RmsNorm>(1)) wishes.then = wish_for(p.chain->next<Linear>(2), &bytes, p);
  return wishes;
}

// Of Place::rows.
inline size_t rows_bytes(const LinearWork& k) {
  if (k.w.dtype == DType::f32) return 0;
  return static_cast<size_t>(fragment_bytes(k.w, k.rows) + (k.scaled() ? k.rows * 4 : 0));
}

// One a row of the weights; those of blocks are the tiles' own affair.
inline const float* output_scales(const Tensor& w) {
  return w.dtype == DType::int8 || w.dtype == DType::fp8 ? static_cast<const float*>(w.scales) : nullptr;
}

// Whole but for `partial`. Not for f32 weights.
inline LinearTask task_of(const LinearWork& k, const Place& p) {
  LinearTask task;
  task.shape = k.shape;
  task.w = static_cast<const char*>(k.w.data);
  task.scales = static_cast<const char*>(k.w.scales);
  task.panel_words = panel_words(k.w);
  task.panel_scales = scale_bytes(k.w.dtype, kPanel, k.w.cols);
  task.n = k.cols;
  task.rows = k.rows;
  task.groups = k.groups();
  task.x = p.rows;
  task.ids = k.ids;
  task.once = p.options.once;
  return task;
}

// What turns rows into fragments, by so many threads.
inline PrepareTask rows_task(const LinearWork& k, const Place& p) {
  PrepareTask rows{k.x, {p.rows, int64_t{k.shape.units} * unit_steps(k.w.dtype) * 4, row_scales(k.w, k.rows, p.rows)}};
  rows.x.rows = k.rows;
  rows.x.cols = k.w.cols;
  return rows;
}
inline unsigned prepare_threads(const PrepareTask& rows) {
  return static_cast<unsigned>(std::min<int64_t>(round_up(rows.to.words, 32), kPrepareThreads));
}

// Launches that, if rows are no fragments yet; the task is whole but for `partial`.
inline LinearTask prepare(const LinearWork& k, const Place& p) {
  const LinearTask task = task_of(k, p);
  if (p.chain && p.chain->fragments) return task;
  const PrepareTask rows = rows_task(k, p);
  const unsigned threads = prepare_threads(rows);
  const int64_t blocks = bucket(k.rows);
  if (k.scaled()) launch<prepare_half, kPrepareThreads>(p, {blocks}, threads, 32 * sizeof(float), rows);
  else launch<prepare_bf16, kPrepareThreads>(p, {blocks, (rows.to.words + threads - 1) / threads}, threads, 0, rows);
  return task;
}

}  // namespace aerie::kernels::cuda
