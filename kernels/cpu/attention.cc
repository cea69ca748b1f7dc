// Rotary positions and attention over paged keys and values.
//
// Order: blocks of kPageSlots absolute positions ascending; in a block the scores, their maximum, the
// exponentials and both sums run over positions ascending; blocks merge by online softmax. A position's
// key comes from the page table or from the row's tail; nothing else depends on where it lies.
#include "kernels/cpu/hwy_targets.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE VF LoadKv(const T* p) {
  if constexpr (sizeof(T) == 4) return hn::LoadU(F(), p);
  else return LoadBf16(p);
}
template <class T>
HWY_INLINE float OneKv(const T* p) {
  if constexpr (sizeof(T) == 4) return *p;
  else return std::bit_cast<float>(uint32_t{*p} << 16);
}

template <class T>
HWY_INLINE float Dot(const float* q, const T* k, int64_t n) {
  const F d;
  VF acc[kParts];
  for (auto& a : acc) a = hn::Zero(d);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t p = 0; p < kParts; ++p)
      acc[p] = hn::MulAdd(hn::LoadU(d, q + i + p * kLanes), LoadKv(k + i + p * kLanes), acc[p]);
  float sum = SumLanes(acc);
  for (; i < n; ++i) sum += q[i] * OneKv(k + i);
  return sum;
}

template <class T>
void Row(const Attention& op, int64_t r, int64_t kv_head, float* scratch) {
  const F d;
  const KvCache& c = op.cache;
  const AttentionRows& a = op.rows;
  const int64_t dim = c.head_dim, group = op.heads / c.kv_heads;
  const T* keys = static_cast<const T*>(c.data) + (int64_t{op.layer} * 2 * c.slots) * c.kv_heads * dim;
  const T* values = keys + c.slots * c.kv_heads * dim;
  const int32_t* pages = a.pages + int64_t{a.seq[r]} * a.page_stride;
  const int64_t ctx = a.ctx_len[r], length = ctx + (a.tail_len ? a.tail_len[r] : 0);
  float* part = scratch;  // (dim): the block's weighted values
  for (int64_t g = 0; g < group; ++g) {
    const int64_t head = kv_head * group + g;
    const float* q = static_cast<const float*>(op.q.data) + r * op.q.stride + head * dim;
    float* out = static_cast<float*>(op.out.data) + r * op.out.stride + head * dim;
    std::fill(out, out + dim, 0.0f);
    float top = -std::numeric_limits<float>::infinity(), total = 0;
    for (int64_t first = 0; first < length; first += kPageSlots) {
      const int64_t n = std::min<int64_t>(kPageSlots, length - first);
      int64_t at[kPageSlots];
      HWY_ALIGN float p[kPageSlots];
      float block_top = -std::numeric_limits<float>::infinity();
      for (int64_t j = 0; j < n; ++j) {
        const int64_t pos = first + j;
        const int64_t slot = pos < ctx ? int64_t{pages[pos / kPageSlots]} * kPageSlots + pos % kPageSlots
                                       : a.tail_slots[a.tail_offset[r] + pos - ctx];
        at[j] = (slot * c.kv_heads + kv_head) * dim;
        p[j] = Dot(q, keys + at[j], dim) * op.scale;
        block_top = p[j] > block_top ? p[j] : block_top;
      }
      for (int64_t j = n; j < kPageSlots; ++j) p[j] = -std::numeric_limits<float>::infinity();
      for (size_t j = 0; j < kPageSlots; j += kLanes)
        hn::Store(Exp(hn::Sub(hn::Load(d, p + j), hn::Set(d, block_top))), d, p + j);
      float block_total = 0;
      for (int64_t j = 0; j < n; ++j) block_total += p[j];
      int64_t i = 0;
      for (; i + static_cast<int64_t>(kLanes) <= dim; i += kLanes) {
        VF sum = hn::Zero(d);
        for (int64_t j = 0; j < n; ++j) sum = hn::MulAdd(hn::Set(d, p[j]), LoadKv(values + at[j] + i), sum);
        hn::StoreU(sum, d, part + i);
      }
      for (; i < dim; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += p[j] * OneKv(values + at[j] + i);
        part[i] = sum;
      }
      const float merged = block_top > top ? block_top : top;
      const float keep = exp_own(top - merged), take = exp_own(block_top - merged);
      for (i = 0; i < dim; ++i) out[i] = out[i] * keep + part[i] * take;
      total = total * keep + block_total * take;
      top = merged;
    }
    const float inverse = 1.0f / total;
    for (int64_t i = 0; i < dim && length > 0; ++i) out[i] *= inverse;
  }
}

void attention_row(const Attention& op, int64_t r, int64_t kv_head, float* scratch) {
  if (op.cache.dtype == DType::bf16) Row<uint16_t>(op, r, kv_head, scratch);
  else Row<float>(op, r, kv_head, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(attention_row);

namespace {

uint16_t to_bf16(float v) {
  const auto u = std::bit_cast<uint32_t>(v);
  if (std::isnan(v)) return static_cast<uint16_t>(u >> 16 | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

void rotate(float* x, const float* angles, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    x[i] = a * angles[i] - b * angles[half + i];
    x[i + half] = b * angles[i] + a * angles[half + i];
  }
}

int64_t slot_width(const KvCache& c) { return int64_t{c.kv_heads} * c.head_dim; }

// Rows of a pass are few and cheap here; attention is where rows are worth dealing out.
constexpr int64_t kRopeRows = 16;

}  // namespace

int32_t tasks(const RopeAngles& op, int) { return op.angles.rows > 0; }
void run(const RopeAngles& op, int32_t, int, Scratch&) {
  const int64_t half = op.inv_freq.cols;
  for (int64_t r = 0; r < op.angles.rows; ++r) {
    float* out = static_cast<float*>(op.angles.data) + r * op.angles.stride;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(op.positions[r]) * static_cast<const float*>(op.inv_freq.data)[i];
      out[i] = static_cast<float>(std::cos(angle) * op.scale);
      out[half + i] = static_cast<float>(std::sin(angle) * op.scale);
    }
  }
}

int32_t tasks(const RopeAndStore& op, int) { return static_cast<int32_t>((op.qkv.rows + kRopeRows - 1) / kRopeRows); }
void run(const RopeAndStore& op, int32_t task, int, Scratch&) {
  const KvCache& c = op.cache;
  const int64_t dim = c.head_dim, width = slot_width(c), base = int64_t{op.layer} * 2 * c.slots * width;
  for (int64_t r = task * kRopeRows; r < std::min(op.qkv.rows, (task + 1) * kRopeRows); ++r) {
    float* q = static_cast<float*>(op.qkv.data) + r * op.qkv.stride;
    const float* angles = static_cast<const float*>(op.angles.data) + r * op.angles.stride;
    for (int64_t h = 0; h < op.heads + c.kv_heads; ++h) rotate(q + h * dim, angles, dim / 2);
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

int32_t tasks(const Attention& op, int) { return static_cast<int32_t>(op.out.rows * op.cache.kv_heads); }
void run(const Attention& op, int32_t task, int, Scratch& scratch) {
  auto* memory = static_cast<float*>(scratch.get(static_cast<size_t>(op.cache.head_dim) * 4));
  HWY_DYNAMIC_DISPATCH(attention_row)(op, task / op.cache.kv_heads, task % op.cache.kv_heads, memory);
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
#endif
