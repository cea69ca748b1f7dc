#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

int64_t kv_index(const KvCache& c, int64_t layer, int which, int64_t slot, int64_t head) {
  return (((layer * 2 + which) * c.kv_heads + head) * c.slots + slot) * c.head_dim;
}

float load(const KvCache& c, int64_t i) {
  if (c.dtype == DType::int8)
    return static_cast<float>(static_cast<const int8_t*>(c.data)[i]) * c.scales[i / c.head_dim];
  return c.dtype == DType::bf16 ? from_bf16(static_cast<const uint16_t*>(c.data)[i])
                                : static_cast<const float*>(c.data)[i];
}

// A row of one head, whose first element is element i of the cache.
void store(const KvCache& c, int64_t i, const float* row) {
  if (c.dtype == DType::int8) {
    float top = 0;
    bool finite = true;
    for (int64_t j = 0; j < c.head_dim; ++j) {
      top = std::max(top, std::fabs(row[j]));
      finite = finite && std::isfinite(row[j]);
    }
    const float inverse = finite && top > 1e-36f ? 127.0f / top : 0.0f;  // no overflow
    c.scales[i / c.head_dim] = finite ? top / 127.0f : NAN;
    for (int64_t j = 0; j < c.head_dim; ++j)
      static_cast<int8_t*>(c.data)[i + j] = static_cast<int8_t>(finite ? std::nearbyint(row[j] * inverse) : 0.0f);
  }
  for (int64_t j = 0; j < c.head_dim; ++j) {
    if (c.dtype == DType::bf16) static_cast<uint16_t*>(c.data)[i + j] = to_bf16(row[j]);
    if (c.dtype == DType::f32) static_cast<float*>(c.data)[i + j] = row[j];
  }
}

// Elements [to, to + head_dim) = [from, from + head_dim), as they are stored.
void copy(const KvCache& c, int64_t to, int64_t from) {
  const int64_t size = kv_element_bytes(c.dtype);
  char* data = static_cast<char*>(c.data);
  std::memcpy(data + to * size, data + from * size, static_cast<size_t>(c.head_dim * size));
  if (c.dtype == DType::int8) c.scales[to / c.head_dim] = c.scales[from / c.head_dim];
}

// x[i], x[i + h] <- the pair turned by angle i. `angles`: cos[h], sin[h].
void rotate(float* x, const float* angles, int64_t h) {
  for (int64_t i = 0; i < h; ++i) {
    const float a = x[i], b = x[i + h];
    x[i] = a * angles[i] - b * angles[h + i];
    x[i + h] = b * angles[i] + a * angles[h + i];
  }
}

// What row r looks at: positions [first, first + slots.size()), and where they lie.
struct Seen {
  int64_t first = 0;
  std::vector<int64_t> slots;
};
Seen seen_by(const AttentionRows& a, int64_t r) {
  Seen seen;
  for (int64_t j = 0; j < a.ctx_len[r]; ++j)
    seen.slots.push_back(int64_t{a.pages[int64_t{a.seq[r]} * a.page_stride + j / kPageSlots]} * kPageSlots + j % kPageSlots);
  for (int64_t j = 0; a.tail_len && j < a.tail_len[r]; ++j) seen.slots.push_back(a.tail_slots[a.tail_offset[r] + j]);
  if (a.window > 0) seen.first = std::max<int64_t>(static_cast<int64_t>(seen.slots.size()) - a.window, 0);
  seen.slots.erase(seen.slots.begin(), seen.slots.begin() + seen.first);
  return seen;
}
// Calls fn(span, its slots) for each that there is.
template <class Fn>
void each_span(const Seen& seen, Fn&& fn) {
  const auto end = seen.first + static_cast<int64_t>(seen.slots.size());
  for (int64_t s = seen.first / kSpanSlots; s * kSpanSlots < end; ++s) {
    const auto at = [&](int64_t p) { return seen.slots.begin() + (std::clamp(p, seen.first, end) - seen.first); };
    fn(s, std::vector<int64_t>(at(s * kSpanSlots), at((s + 1) * kSpanSlots)));
  }
}

struct Softmax {
  double top = -INFINITY, total = 0;  // largest score, sum of exp(score - top)
  std::vector<double> values;         // sum of exp(score - top) * v
};
Softmax attend(const Attention& op, int64_t r, int64_t head, const std::vector<int64_t>& slots) {
  const int64_t d = op.cache.head_dim, kv_head = head / (op.heads / op.cache.kv_heads);
  Softmax sum;
  sum.values.resize(static_cast<size_t>(d));
  std::vector<double> p(slots.size());
  for (size_t j = 0; j < slots.size(); ++j) {
    const int64_t k = kv_index(op.cache, op.layer, 0, slots[j], kv_head);
    for (int64_t i = 0; i < d; ++i) p[j] += static_cast<double>(at(op.q, r, head * d + i)) * load(op.cache, k + i);
    p[j] *= op.scale;
    if (op.cap > 0) p[j] = std::isfinite(p[j]) ? op.cap * std::tanh(p[j] / op.cap) : NAN;
    sum.top = std::max(sum.top, p[j]);
  }
  for (size_t j = 0; j < slots.size(); ++j) {
    const double weight = std::exp(p[j] - sum.top);
    const int64_t v = kv_index(op.cache, op.layer, 1, slots[j], kv_head);
    sum.total += weight;
    for (int64_t i = 0; i < d; ++i) sum.values[static_cast<size_t>(i)] += weight * load(op.cache, v + i);
  }
  return sum;
}

// The value of a head's element, from the sum over all that the row looks at.
float divided(const Tensor& sinks, int64_t head, double top, double total, double value) {
  if (!sinks) return static_cast<float>(value / total);
  const double sink = at(sinks, 0, head), most = std::max(top, sink), keep = std::exp(top - most);
  return static_cast<float>(value * keep / (total * keep + std::exp(sink - most)));
}

}  // namespace

void run(const RopeAngles& op) {
  const int64_t h = op.inv_freq.cols;
  for (int64_t r = 0; r < op.angles.rows; ++r)
    for (int64_t i = 0; i < h; ++i) {
      const double angle = static_cast<double>(op.positions[r]) * at(op.inv_freq, 0, i);
      const double scale = at(op.inv_freq, 0, i) == 0 ? 1 : op.scale;
      at(op.angles, r, i) = static_cast<float>(std::cos(angle) * scale);
      at(op.angles, r, h + i) = static_cast<float>(std::sin(angle) * scale);
    }
}

void run(const RopeAndStore& op) {
  const int64_t d = op.cache.head_dim, kv = op.cache.kv_heads;
  for (int64_t r = 0; r < op.qkv.rows; ++r) {
    for (int64_t head = 0; head < op.heads; ++head) rotate(&at(op.qkv, r, head * d), &at(op.angles, r, 0), d / 2);
    for (int64_t head = 0; head < kv && op.qkv.cols > op.heads * d; ++head) {
      std::vector<float> k(&at(op.qkv, r, (op.heads + head) * d), &at(op.qkv, r, (op.heads + head) * d) + d);
      const float* v = &at(op.qkv, r, (op.heads + kv + head) * d);
      rotate(k.data(), &at(op.angles, r, 0), d / 2);
      if (op.slots[r] < 0) continue;
      store(op.cache, kv_index(op.cache, op.layer, 0, op.slots[r], head), k.data());
      store(op.cache, kv_index(op.cache, op.layer, 1, op.slots[r], head), v);
    }
  }
}

void run(const Attention& op) {
  const int64_t d = op.cache.head_dim, spans = op.partial ? op.partial.rows / std::max<int64_t>(op.out.rows, 1) : 0;
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const Seen all = seen_by(op.rows, r);
    for (int64_t head = 0; head < op.heads; ++head) {
      if (!op.partial) {
        const Softmax sum = attend(op, r, head, all.slots);
        for (int64_t i = 0; i < d; ++i)
          at(op.out, r, head * d + i) =
              all.slots.empty() ? 0.0f : divided(op.sinks, head, sum.top, sum.total, sum.values[static_cast<size_t>(i)]);
        continue;
      }
      each_span(all, [&](int64_t s, const std::vector<int64_t>& slots) {
        if (s >= spans) return;
        const Softmax sum = attend(op, r, head, slots);
        float* to = &at(op.partial, r * spans + s, head * (d + 2));
        to[0] = static_cast<float>(sum.top);
        to[1] = static_cast<float>(sum.total);
        for (int64_t i = 0; i < d; ++i) to[2 + i] = static_cast<float>(sum.values[static_cast<size_t>(i)]);
      });
    }
  }
}

void run(const AttentionMerge& op) {
  const int64_t d = op.out.cols / op.heads, spans = op.partial.rows / std::max<int64_t>(op.out.rows, 1);
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const Seen all = seen_by(op.rows, r);
    for (int64_t head = 0; head < op.heads; ++head) {
      double top = -INFINITY, total = 0;
      std::vector<double> values(static_cast<size_t>(d));
      const auto span = [&](int64_t s) { return &at(op.partial, r * spans + s, head * (d + 2)); };
      each_span(all, [&](int64_t s, const auto&) { top = std::max(top, static_cast<double>(span(s)[0])); });
      each_span(all, [&](int64_t s, const auto&) {
        const double weight = std::exp(span(s)[0] - top);
        total += weight * span(s)[1];
        for (int64_t i = 0; i < d; ++i) values[static_cast<size_t>(i)] += weight * span(s)[2 + i];
      });
      for (int64_t i = 0; i < d; ++i)
        at(op.out, r, head * d + i) = all.slots.empty() ? 0.0f : divided(op.sinks, head, top, total, values[static_cast<size_t>(i)]);
    }
  }
}

void run(const KvCopy& op) {
  for (int64_t layer = 0; layer < op.cache.layers; ++layer)
    for (int which = 0; which < 2; ++which)
      for (int32_t n = 0; n < op.n; ++n) {
        if (op.src[n] < 0) continue;
        for (int64_t head = 0; head < op.cache.kv_heads; ++head)
          copy(op.cache, kv_index(op.cache, layer, which, op.dst[n], head),
               kv_index(op.cache, layer, which, op.src[n], head));
      }
}

}  // namespace aerie::kernels::reference
