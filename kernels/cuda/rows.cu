// Row-wise ops: movement, embedding, norm, activations. A block never has more than one row, and a row's sum has one
// order whatever the number of rows.
#include "kernels/cuda/chain.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/kv_ahead.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kCellThreads = 256;

__device__ int64_t column() { return static_cast<int64_t>(blockIdx.x) * kCellThreads + threadIdx.x; }
// A grid over (columns, rows).
Grid cells(int64_t cols, int64_t rows) { return {(cols + kCellThreads - 1) / kCellThreads, many_rows(rows)}; }

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
    if (c < op.out.cols) row(op.out, r)[c] = id >= 0 && id < op.table.rows ? element(op.table, id, c) * op.scale : 0.0f;
  }
}

struct NormTask {
  RmsNorm op;
  Fragments fragments;
  int64_t spare;  // the first of the blocks that
  KvWish wish;    // bring these near
};
constexpr int kNormThreads = 1024, kNormWords = 2;  // of a thread, that it keeps; four elements each, as in fragments

// Memory may have a queue by when they are read.
__device__ void norm_weights_ahead(const NormTask& task) {
  const int64_t n = task.op.x.cols / task.op.heads;
  for (int64_t i = int64_t{threadIdx.x} * 32; i < n; i += int64_t{blockDim.x} * 32) want_soon(row(task.op.weight, 0) + i);
}

// Grid (rows and spare blocks, heads). A thread reads its first elements and their weights before it writes: `out` may be `x`, so
// nothing is read past a write.
__device__ void rms_norm(const NormTask& task) {
  const RmsNorm& op = task.op;
  if (blockIdx.x >= task.spare) {
    const uint32_t warps = blockDim.x / 32;
    return fetch_to_cache(task.wish, static_cast<uint32_t>(blockIdx.x - task.spare) * warps + threadIdx.x / 32, kKvBlocks * warps);
  }
  if (blockIdx.x >= op.out.rows) return;
  auto* shared = shared_memory<float>();
  const auto n = static_cast<int>(op.x.cols / op.heads), words = (n + 15) / 16 * 4, threads = static_cast<int>(blockDim.x);
  const int64_t r = blockIdx.x, first = int64_t{blockIdx.y} * n;
  const float *x = row(op.x, r) + first, *weight = row(op.weight, 0);
  float* out = row(op.out, r) + first;
  const int mine = static_cast<int>(threadIdx.x), rest = mine + kNormWords * threads;
  const auto column = [](int word, int e) { return static_cast<int>(word_element(word, e / 2)) + e % 2; };
  float held[kNormWords][4], weights[kNormWords][4], sum = 0;
#pragma unroll
  for (int h = 0; h < kNormWords; ++h)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int c = column(mine + h * threads, e);
      held[h][e] = c < n ? x[c] : 0.0f;
      weights[h][e] = c < n ? weight[c] : 0.0f;
    }
#pragma unroll
  for (int h = 0; h < kNormWords; ++h)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum = fmaf(held[h][e], held[h][e], sum);
  for (int w = rest; w < words; w += threads)
    for (int e = 0; e < 4; ++e)
      if (const int c = column(w, e); c < n) sum = fmaf(x[c], x[c], sum);
  sum = block_sum(sum, shared);
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(n) + op.eps);
  // f(word, its elements of the result), of this thread's.
  const auto each_word = [&](const auto& f) {
#pragma unroll
    for (int h = 0; h < kNormWords; ++h) {
      if (mine + h * threads >= words) break;
      float y[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) y[e] = held[h][e] * scale * weights[h][e];
      f(mine + h * threads, y);
    }
#pragma unroll 1
    for (int w = rest; w < words; w += threads) {
      float y[4];
      for (int e = 0; e < 4; ++e)
        if (const int c = column(w, e); c < n) y[e] = x[c] * scale * weight[c];
        else y[e] = 0;
      f(w, y);
    }
  };
  const bool halves = task.fragments.scales != nullptr;
  float top = 0;
  if (halves) {
    each_word([&](int, const float(&y)[4]) { top = top_of(top, y); });
    top = block_max(top, shared);
  }
  const HalfScale half(top);
  if (halves && mine == 0) task.fragments.scales[r] = half.scale;
  each_word([&](int word, const float(&y)[4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (const int c = column(word, e); c < n) out[c] = y[e];
    if (!task.fragments.to) return;
    if (!halves) return put_word(task.fragments, r, word, y);
#pragma unroll
    for (int two = 0; two < 2; ++two) put_halves(task.fragments, r, column(word, 2 * two) / 2, half.halves(y[2 * two], y[2 * two + 1]));
  });
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
    case Activation::sigmoid:
      return 1.0f / (1.0f + exp_own(-x));
    case Activation::none:
      return x;
    default:
      return x / (1.0f + exp_own(-x));
  }
}

// Of GatedActivate with a limit. What is not a number stays that.
__device__ float limited_gate(float limit, float gate, float up) {
  const float g = gate > limit ? limit : gate, u = up > limit ? limit : up < -limit ? -limit : up;
  return g / (1.0f + exp_own(-kLimitedGateSlope * g)) * (u + 1.0f);
}

__device__ void activate(const Activate& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < op.out.cols) row(op.out, r)[c] = act(op.kind, row(op.x, r)[c]);
}

struct GatedTask {
  enum { kInShared = 1 };
  enum { kBlocks = 5 };
  GatedActivate op;
  LinearEnd end;  // what makes gate_up, if `ends`
  bool ends;
  Fragments fragments;
};
constexpr int kGatedThreads = 128, kGatedPieces = 3;

__device__ void gated_scales_ahead(const GatedTask& task) {
  const int64_t at = word_element(static_cast<int64_t>(blockIdx.x) * kGatedThreads + threadIdx.x, 0);
  if (task.ends && blockIdx.y == 0 && at < task.op.out.cols) scales_ahead(task.end, at), scales_ahead(task.end, task.op.out.cols + at);
}

// Grid (words of four elements, rows).
__device__ void gated_activate(const GatedTask& task) {
  const GatedActivate& op = task.op;
  const int64_t word = static_cast<int64_t>(blockIdx.x) * kGatedThreads + threadIdx.x, f = op.out.cols;
  if (word >= (f + 15) / 16 * 4) return;
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y) {
    const int64_t at[2] = {word_element(word, 0), word_element(word, 1)};  // two elements each
    Ending<2, 4, kGatedPieces> gate_up;
    const auto& v = gate_up.v;
    if (task.ends) {
      const bool there[2] = {at[0] < f, at[1] < f};
      gate_up.finish(task.end, r, {there[0] ? at[0] : -1, there[1] ? at[1] : -1, there[0] ? f + at[0] : -1, there[1] ? f + at[1] : -1});
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int64_t c = at[i / 2 % 2] + i % 2;
        const float* from = i < 4 || !op.up ? row(op.gate_up, r) + i / 4 * f : row(op.up, r);
        gate_up.v[i / 2][i % 2] = c < f ? from[c] : 0.0f;
      }
    }
    float y[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float gate = v[e / 2][e % 2], up = v[2 + e / 2][e % 2];
      y[e] = op.limit > 0 ? limited_gate(op.limit, gate, up) : act(op.kind, gate) * up;
      if (const int64_t c = at[e / 2] + e % 2; c < f) row(op.out, r)[c] = y[e];
    }
    if (task.fragments.to) put_word(task.fragments, r, word, y);
  }
}

__device__ void add(const Add& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < op.a.cols) row(op.out, r)[c] = (row(op.a, r)[c] + row(op.b, r)[c] * op.scale) * op.times;
}

__device__ void soft_cap(const SoftCap& op) {
  const int64_t c = column();
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y)
    if (c < op.out.cols) row(op.out, r)[c] = capped(row(op.x, r)[c], op.cap);
}

void put(NormTask task, const Place& p) {
  task.spare = bucket(task.op.out.rows);
  const int64_t words = (task.op.x.cols / task.op.heads + 15) / 16 * 4;
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>((words + kNormWords * 32 - 1) / (kNormWords * 32) * 32, 32, kNormThreads));
  launch<rms_norm, kNormThreads, norm_weights_ahead>(p, {task.spare + (task.wish.count > 0 ? kKvBlocks : 0), task.op.heads}, threads, 32 * sizeof(float), task);
}
void put(const GatedTask& task, const Place& p) {
  const int64_t words = (task.op.out.cols + 15) / 16 * 4;
  launch<gated_activate, kGatedThreads, gated_scales_ahead>(p, {(words + kGatedThreads - 1) / kGatedThreads, many_rows(task.op.out.rows)}, kGatedThreads, 0, task);
}

}  // namespace

void enqueue(const CopyRows& op, const Place& p) { launch<copy_rows>(p, cells(op.src.cols, op.rows), kCellThreads, 0, op); }
void enqueue(const Embed& op, const Place& p) { launch<embed>(p, cells(op.out.cols, op.out.rows), kCellThreads, 0, op); }
void enqueue(const RmsNorm& op, const Place& p) { put(NormTask{op, op.heads == 1 ? fragments_for(op.out, 0, p, true) : Fragments{}, 0, kv_wish(0, p)}, p); }
void enqueue(const Activate& op, const Place& p) { launch<activate>(p, cells(op.out.cols, op.out.rows), kCellThreads, 0, op); }
void enqueue(const GatedActivate& op, const Place& p) { put(GatedTask{op, {}, false, fragments_for(op.out, 0, p)}, p); }
void enqueue(const Add& op, const Place& p) { launch<add>(p, cells(op.a.cols, op.out.rows), kCellThreads, 0, op); }
void enqueue(const SoftCap& op, const Place& p) { launch<soft_cap>(p, cells(op.out.cols, op.out.rows), kCellThreads, 0, op); }

void enqueue_after(const LinearEnd& end, const GatedActivate& op, const Place& p) {
  // Fragments would lie where the scales may be that this still reads.
  put(GatedTask{op, end, true, end.scales ? Fragments{} : fragments_for(op.out, 1, p)}, p);
}

}  // namespace aerie::kernels::cuda
