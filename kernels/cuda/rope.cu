// Rotary positions, and keys and values into the cache.
#include <cmath>

#include "kernels/cuda/chain.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/kv.h"

namespace aerie::kernels::cuda {
namespace {

__device__ void rope_angles(const RopeAngles& op) {
  const int64_t h = op.inv_freq.cols, r = blockIdx.x;
  if (r >= op.angles.rows) return;
  for (int64_t i = threadIdx.x; i < h; i += blockDim.x) {
    const float f = row(op.inv_freq, 0)[i];
    const double angle = static_cast<double>(op.positions[r]) * static_cast<double>(f), scale = f == 0 ? 1 : static_cast<double>(op.scale);
    row(op.angles, r)[i] = static_cast<float>(cos(angle) * scale);
    row(op.angles, r)[h + i] = static_cast<float>(sin(angle) * scale);
  }
}

struct RopeTask {
  enum { kInShared = 1 };
  RopeAndStore op;
  LinearEnd end;  // what makes qkv, if `ends`
  bool ends;
};

// What it reads beside the pieces, near before it is wanted: memory may have a queue by then.
__device__ void rope_ahead(const RopeTask& task) {
  const RopeAndStore& op = task.op;
  if (blockIdx.x < op.qkv.rows) {
    if (static_cast<int>(threadIdx.x) * 32 < op.angles.cols) want_soon(row(op.angles, blockIdx.x) + threadIdx.x * 32);
    if (threadIdx.x == 0) want_soon(op.slots + blockIdx.x);
  }
  if (task.ends && blockIdx.x == 0)
    for (int64_t i = threadIdx.x * 32; i < task.op.cache.head_dim; i += 32 * 32) scales_ahead(task.end, blockIdx.y * int64_t{task.op.cache.head_dim} + i);
}

// One warp for each head of q, k and v, or of q alone, of a row. Lane l has elements l, l + 32, ...
template <int kElements>
__device__ void rope_and_store(const RopeTask& task) {
  const RopeAndStore& op = task.op;
  const int64_t r = blockIdx.x;
  const int32_t d = op.cache.head_dim, h = d / 2, kv = op.cache.kv_heads, head = static_cast<int32_t>(blockIdx.y);
  if (r >= op.qkv.rows) return;
  const int lane = static_cast<int>(threadIdx.x);
  float* x = row(op.qkv, r) + head * d;
  const float* angles = row(op.angles, r);
  float turned[kElements], by[kElements][2];  // and cosines and sines
  const bool turn = head < op.heads + kv;
  const int64_t slot = op.slots[r];
  // What is known before is asked for first.
#pragma unroll
  for (int e = 0; e < kElements; ++e)
    if (const int i = lane + 32 * e; i < d && turn) by[e][0] = angles[i < h ? i : i - h], by[e][1] = angles[i < h ? i + h : i];
  auto* before = shared_memory<float>();
  if (task.ends) {
    constexpr int kWide = 4, kPieces = 8;
    for (int i = lane * kWide; i < d; i += 32 * kWide) {
      Ending<kWide, 1, kPieces> made;
      made.finish(task.end, r, {int64_t{head} * d + i});
#pragma unroll
      for (int w = 0; w < kWide; ++w) before[i + w] = made.v[0][w];
    }
  } else {
#pragma unroll
    for (int e = 0; e < kElements; ++e)
      if (lane + 32 * e < d) before[lane + 32 * e] = x[lane + 32 * e];
  }
  sync_warp();
#pragma unroll
  for (int e = 0; e < kElements; ++e) {
    const int i = lane + 32 * e;
    turned[e] = 0;
    if (i >= d) continue;
    if (!turn) turned[e] = before[i];
    else if (i < h) turned[e] = before[i] * by[e][0] - before[i + h] * by[e][1];
    else turned[e] = before[i] * by[e][0] + before[i - h] * by[e][1];
  }
  if (head < op.heads) {
#pragma unroll
    for (int e = 0; e < kElements; ++e)
      if (lane + 32 * e < d) x[lane + 32 * e] = turned[e];
    return;
  }
  if (slot < 0) return;
  const int which = head < op.heads + kv ? 0 : 1;
  store_row(op.cache, kv_row(op.cache, op.layer, which, (head - op.heads) % kv, slot), turned);
}

// (n, 2 * layers): one slot's keys or values of one layer.
__device__ void kv_copy(const KvCopy& op) {
  if (static_cast<int32_t>(blockIdx.x) >= op.n) return;
  const KvCache& c = op.cache;
  if (op.src[blockIdx.x] < 0) return;
  const int64_t from = kv_row(c, blockIdx.y / 2, blockIdx.y % 2, 0, op.src[blockIdx.x]);
  const int64_t to = kv_row(c, blockIdx.y / 2, blockIdx.y % 2, 0, op.dst[blockIdx.x]);
  const int64_t size = kv_element_bytes(c.dtype) * c.head_dim;
  auto* data = static_cast<char*>(c.data);
  for (int64_t i = threadIdx.x; i < size * c.kv_heads; i += blockDim.x) {
    const int64_t at = i / size * c.slots * size + i % size;  // of head 0's row
    data[to * size + at] = data[from * size + at];
  }
  if (c.dtype == DType::int8)
    for (int64_t i = threadIdx.x; i < c.kv_heads; i += blockDim.x) c.scales[to + i * c.slots] = c.scales[from + i * c.slots];
}

template <int kDim>
void put_heads(const RopeTask& task, const Place& p) {
  launch<rope_and_store<kDim / 32>, 32, rope_ahead>(p, {bucket(task.op.qkv.rows), task.op.qkv.cols / task.op.cache.head_dim}, 32, kDim * sizeof(float), task);
}
void put(const RopeTask& task, const Place& p) {
  if (task.op.cache.head_dim <= kUsualDim) put_heads<kUsualDim>(task, p);
  else put_heads<kMostDim>(task, p);
}

}  // namespace

template <>
const char* refuse(const RopeAndStore& op) {
  return op.cache.head_dim > kMostDim ? "heads of more than 512 elements" : nullptr;
}

void enqueue(const RopeAngles& op, const Place& p) { launch<rope_angles>(p, {bucket(op.angles.rows)}, 64, 0, op); }
void enqueue(const RopeAndStore& op, const Place& p) { put({op, {}, false}, p); }
void enqueue_after(const LinearEnd& end, const RopeAndStore& op, const Place& p) { put({op, end, true}, p); }
void enqueue(const KvCopy& op, const Place& p) { launch<kv_copy>(p, {bucket(op.n), 2 * op.cache.layers}, 128, 0, op); }

}  // namespace aerie::kernels::cuda
