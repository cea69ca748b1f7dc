#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

int64_t kv_index(const KvCache& c, int64_t layer, int which, int64_t slot, int64_t head) {
  return (((layer * 2 + which) * c.slots + slot) * c.kv_heads + head) * c.head_dim;
}

float load(const KvCache& c, int64_t i) {
  return c.dtype == DType::bf16 ? from_bf16(static_cast<const uint16_t*>(c.data)[i])
                                : static_cast<const float*>(c.data)[i];
}

void store(const KvCache& c, int64_t i, float v) {
  if (c.dtype == DType::bf16)
    static_cast<uint16_t*>(c.data)[i] = to_bf16(v);
  else
    static_cast<float*>(c.data)[i] = v;
}

// x[i], x[i + h] <- the pair turned by angle i. `angles`: cos[h], sin[h].
void rotate(float* x, const float* angles, int64_t h) {
  for (int64_t i = 0; i < h; ++i) {
    const float a = x[i], b = x[i + h];
    x[i] = a * angles[i] - b * angles[h + i];
    x[i + h] = b * angles[i] + a * angles[h + i];
  }
}

}  // namespace

void run(const RopeAngles& op) {
  const int64_t h = op.inv_freq.cols;
  for (int64_t r = 0; r < op.angles.rows; ++r)
    for (int64_t i = 0; i < h; ++i) {
      const double angle = static_cast<double>(op.positions[r]) * at(op.inv_freq, 0, i);
      at(op.angles, r, i) = static_cast<float>(std::cos(angle) * op.scale);
      at(op.angles, r, h + i) = static_cast<float>(std::sin(angle) * op.scale);
    }
}

void run(const RopeAndStore& op) {
  const int64_t d = op.cache.head_dim, kv = op.cache.kv_heads;
  for (int64_t r = 0; r < op.qkv.rows; ++r) {
    for (int64_t head = 0; head < op.heads; ++head) rotate(&at(op.qkv, r, head * d), &at(op.angles, r, 0), d / 2);
    for (int64_t head = 0; head < kv; ++head) {
      std::vector<float> k(&at(op.qkv, r, (op.heads + head) * d), &at(op.qkv, r, (op.heads + head) * d) + d);
      const float* v = &at(op.qkv, r, (op.heads + kv + head) * d);
      rotate(k.data(), &at(op.angles, r, 0), d / 2);
      if (op.slots[r] < 0) continue;
      for (int64_t i = 0; i < d; ++i) {
        store(op.cache, kv_index(op.cache, op.layer, 0, op.slots[r], head) + i, k[static_cast<size_t>(i)]);
        store(op.cache, kv_index(op.cache, op.layer, 1, op.slots[r], head) + i, v[i]);
      }
    }
  }
}

void run(const Attention& op) {
  const int64_t d = op.cache.head_dim;
  const AttentionRows& a = op.rows;
  for (int64_t r = 0; r < op.out.rows; ++r) {
    std::vector<int64_t> slots;
    for (int64_t j = 0; j < a.ctx_len[r]; ++j)
      slots.push_back(int64_t{a.pages[int64_t{a.seq[r]} * a.page_stride + j / kPageSlots]} * kPageSlots +
                      j % kPageSlots);
    for (int64_t j = 0; a.tail_len && j < a.tail_len[r]; ++j) slots.push_back(a.tail_slots[a.tail_offset[r] + j]);
    for (int64_t head = 0; head < op.heads; ++head) {
      const int64_t kv_head = head / (op.heads / op.cache.kv_heads);
      std::vector<double> p(slots.size());
      double top = -INFINITY, total = 0;
      for (size_t j = 0; j < slots.size(); ++j) {
        const int64_t k = kv_index(op.cache, op.layer, 0, slots[j], kv_head);
        for (int64_t i = 0; i < d; ++i) p[j] += static_cast<double>(at(op.q, r, head * d + i)) * load(op.cache, k + i);
        p[j] *= op.scale;
        top = std::max(top, p[j]);
      }
      for (double& v : p) total += v = std::exp(v - top);
      for (int64_t i = 0; i < d; ++i) {
        double sum = 0;
        for (size_t j = 0; j < slots.size(); ++j)
          sum += p[j] * load(op.cache, kv_index(op.cache, op.layer, 1, slots[j], kv_head) + i);
        at(op.out, r, head * d + i) = slots.empty() ? 0.0f : static_cast<float>(sum / total);
      }
    }
  }
}

void run(const KvCopy& op) {
  for (int64_t layer = 0; layer < op.cache.layers; ++layer)
    for (int which = 0; which < 2; ++which)
      for (int32_t n = 0; n < op.n; ++n)
        for (int64_t i = 0; i < int64_t{op.cache.kv_heads} * op.cache.head_dim; ++i) {
          const int64_t from = kv_index(op.cache, layer, which, op.src[n], 0) + i;
          const int64_t to = kv_index(op.cache, layer, which, op.dst[n], 0) + i;
          if (op.cache.dtype == DType::bf16)
            static_cast<uint16_t*>(op.cache.data)[to] = static_cast<uint16_t*>(op.cache.data)[from];
          else
            store(op.cache, to, load(op.cache, from));
        }
}

}  // namespace aerie::kernels::reference
