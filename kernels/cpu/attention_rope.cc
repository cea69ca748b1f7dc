// Rotary positions, and moving rows of the key/value cache. Elementwise, without FMA: the same bits on every ISA.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/narrow_floats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

// Elements i and i + half of each head turned by angle i. angles: cosines, then sines.
void rotate_heads(float* x, int64_t heads, int64_t half, const float* angles) {
  const F d;
  const float *cosine = angles, *sine = angles + half;
  for (int64_t h = 0; h < heads; ++h, x += 2 * half) {
    float *lo = x, *hi = x + half;
    int64_t i = 0;
    for (; i + static_cast<int64_t>(kLanes) <= half; i += kLanes) {
      const VF a = hn::LoadU(d, lo + i), b = hn::LoadU(d, hi + i);
      const VF c = hn::LoadU(d, cosine + i), s = hn::LoadU(d, sine + i);
      hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, lo + i);
      hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, hi + i);
    }
    for (; i < half; ++i) {
      const float a = lo[i], b = hi[i];
      lo[i] = a * cosine[i] - b * sine[i];
      hi[i] = b * cosine[i] + a * sine[i];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(rotate_heads);

namespace {

constexpr int64_t kTaskRows = 8;

// Codes of n values; their scale. See KvCache.
float to_int8(const float* __restrict x, int64_t n, int8_t* __restrict codes) {
  constexpr uint32_t kInfinity = 0x7f800000;
  uint32_t top = 0;  // as bits, where infinities and NaNs are the largest
  for (int64_t i = 0; i < n; ++i) top = std::max(top, std::bit_cast<uint32_t>(x[i]) & 0x7fffffff);
  const bool finite = top < kInfinity;
  const float most = std::bit_cast<float>(top);
  // Below 1e-36 the inverse would overflow; nothing to speak of is lost.
  const float inverse = finite && most > 1e-36f ? 127.0f / most : 0.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: no fraction is left of a sum with it
  for (int64_t i = 0; i < n; ++i)
    codes[i] = finite ? static_cast<int8_t>(static_cast<int32_t>((x[i] * inverse + kRound) - kRound)) : int8_t{0};
  return finite ? most / 127.0f : std::numeric_limits<float>::quiet_NaN();
}

// The key or the value of one position and head to row `r` of the cache.
void store(const KvCache& c, int64_t r, const float* x) {
  const int64_t dim = c.head_dim, at = r * dim;
  switch (c.dtype) {
    case DType::int8: c.scales[r] = to_int8(x, dim, static_cast<int8_t*>(c.data) + at); break;
    case DType::bf16:
      for (int64_t i = 0; i < dim; ++i) static_cast<uint16_t*>(c.data)[at + i] = to_bf16(x[i]);
      break;
    default: std::memcpy(static_cast<float*>(c.data) + at, x, static_cast<size_t>(dim) * 4);
  }
}

// slot dst[i] = slot src[i] of one layer, rows of `bytes`.
void copy_slots(const KvCopy& op, int64_t layer, void* memory, int64_t bytes) {
  char* data = static_cast<char*>(memory);
  for (int64_t head = 0; head < 2 * op.cache.kv_heads; ++head)  // keys', then values'
    for (int32_t i = 0; i < op.n; ++i) {
      if (op.src[i] < 0) continue;
      const int64_t base = kv_row(op.cache, layer, 0, head, 0);
      std::memcpy(data + (base + op.dst[i]) * bytes, data + (base + op.src[i]) * bytes, static_cast<size_t>(bytes));
    }
}

}  // namespace

int32_t tasks(const RopeAngles& op, int) {
  return static_cast<int32_t>((op.angles.rows + kTaskRows - 1) / kTaskRows);
}
void run(const RopeAngles& op, int32_t task, int, Scratch&) {
  const int64_t half = op.inv_freq.cols;
  const float* inv_freq = static_cast<const float*>(op.inv_freq.data);
  for (int64_t r = task * kTaskRows; r < std::min(op.angles.rows, (task + 1) * kTaskRows); ++r) {
    float* out = static_cast<float*>(op.angles.data) + r * op.angles.stride;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(op.positions[r]) * inv_freq[i], scale = inv_freq[i] == 0 ? 1 : op.scale;
      out[i] = static_cast<float>(std::cos(angle) * scale);
      out[half + i] = static_cast<float>(std::sin(angle) * scale);
    }
  }
}

int32_t tasks(const RopeAndStore& op, int) { return static_cast<int32_t>((op.qkv.rows + kTaskRows - 1) / kTaskRows); }
void run(const RopeAndStore& op, int32_t task, int, Scratch&) {
  const KvCache& c = op.cache;
  const int64_t dim = c.head_dim;
  for (int64_t r = task * kTaskRows; r < std::min(op.qkv.rows, (task + 1) * kTaskRows); ++r) {
    float* q = static_cast<float*>(op.qkv.data) + r * op.qkv.stride;
    const float* angles = static_cast<const float*>(op.angles.data) + r * op.angles.stride;
    const bool alone = op.qkv.cols == op.heads * dim;
    AERIE_DISPATCH(rotate_heads)(q, op.heads + (alone ? 0 : c.kv_heads), dim / 2, angles);
    if (alone || op.slots[r] < 0) continue;
    const float* k = q + op.heads * dim;  // keys, then values behind them
    for (int64_t head = 0; head < 2 * c.kv_heads; ++head)
      store(c, kv_row(c, op.layer, 0, head, op.slots[r]), k + head * dim);
  }
}

int32_t tasks(const KvCopy& op, int) { return op.n > 0 ? op.cache.layers : 0; }
void run(const KvCopy& op, int32_t layer, int, Scratch&) {
  const KvCache& c = op.cache;
  copy_slots(op, layer, c.data, c.head_dim * kv_element_bytes(c.dtype));
  if (c.dtype == DType::int8) copy_slots(op, layer, c.scales, 4);
}

}  // namespace aerie::kernels::cpu
#endif
