// Rotary positions, and moving rows of the key/value cache. Elementwise: plain loops the compiler
// vectorises, the same bits whatever it does.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/op_kernels.h"

namespace aerie::kernels::cpu {
namespace {

constexpr int64_t kAngleRows = 8, kRopeRows = 16;  // of a task

uint16_t to_bf16(float v) {
  const auto u = std::bit_cast<uint32_t>(v);
  if (v != v) return static_cast<uint16_t>(u >> 16 | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// lo[i], hi[i] turned by angle i.
void rotate(float* __restrict lo, float* __restrict hi, const float* __restrict cosine, const float* __restrict sine,
            int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = lo[i], b = hi[i];
    lo[i] = a * cosine[i] - b * sine[i];
    hi[i] = b * cosine[i] + a * sine[i];
  }
}

int64_t slot_width(const KvCache& c) { return int64_t{c.kv_heads} * c.head_dim; }

}  // namespace

int32_t tasks(const RopeAngles& op, int) {
  return static_cast<int32_t>((op.angles.rows + kAngleRows - 1) / kAngleRows);
}
void run(const RopeAngles& op, int32_t task, int, Scratch&) {
  const int64_t half = op.inv_freq.cols;
  const float* inv_freq = static_cast<const float*>(op.inv_freq.data);
  for (int64_t r = task * kAngleRows; r < std::min(op.angles.rows, (task + 1) * kAngleRows); ++r) {
    float* out = static_cast<float*>(op.angles.data) + r * op.angles.stride;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(op.positions[r]) * inv_freq[i];
      out[i] = static_cast<float>(std::cos(angle) * op.scale);
      out[half + i] = static_cast<float>(std::sin(angle) * op.scale);
    }
  }
}

int32_t tasks(const RopeAndStore& op, int) { return static_cast<int32_t>((op.qkv.rows + kRopeRows - 1) / kRopeRows); }
void run(const RopeAndStore& op, int32_t task, int, Scratch&) {
  const KvCache& c = op.cache;
  const int64_t dim = c.head_dim, half = dim / 2, width = slot_width(c), base = int64_t{op.layer} * 2 * c.slots * width;
  for (int64_t r = task * kRopeRows; r < std::min(op.qkv.rows, (task + 1) * kRopeRows); ++r) {
    float* q = static_cast<float*>(op.qkv.data) + r * op.qkv.stride;
    const float* angles = static_cast<const float*>(op.angles.data) + r * op.angles.stride;
    for (int64_t h = 0; h < op.heads + c.kv_heads; ++h)
      rotate(q + h * dim, q + h * dim + half, angles, angles + half, half);
    if (op.slots[r] < 0) continue;
    const float* k = q + op.heads * dim;  // keys, then values behind them
    for (int64_t which = 0; which < 2; ++which) {
      const int64_t at = base + (which * c.slots + op.slots[r]) * width;
      if (c.dtype == DType::f32) {
        std::memcpy(static_cast<float*>(c.data) + at, k + which * width, static_cast<size_t>(width) * 4);
      } else {
        for (int64_t i = 0; i < width; ++i) static_cast<uint16_t*>(c.data)[at + i] = to_bf16(k[which * width + i]);
      }
    }
  }
}

int32_t tasks(const KvCopy& op, int) { return op.n > 0 ? op.cache.layers : 0; }
void run(const KvCopy& op, int32_t layer, int, Scratch&) {
  const KvCache& c = op.cache;
  const int64_t bytes = slot_width(c) * (c.dtype == DType::f32 ? 4 : 2);
  char* data = static_cast<char*>(c.data);
  for (int64_t which = 0; which < 2; ++which)
    for (int32_t i = 0; i < op.n; ++i) {
      const int64_t base = (int64_t{layer} * 2 + which) * c.slots;
      std::memcpy(data + (base + op.dst[i]) * bytes, data + (base + op.src[i]) * bytes, static_cast<size_t>(bytes));
    }
}

}  // namespace aerie::kernels::cpu
