// What the parts of Attention share, whatever the target: where keys and values lie, and what a query carries along.
#pragma once

#include "kernels/ops.h"

namespace aerie::kernels::cpu {

// Running state of one query: [0] the maximum, [16, 32) lanes of the total, [32, 32 + dim padded) values.
constexpr int64_t kStateTotal = 16, kStateValues = 32;

struct Query {
  const float* q;  // (dim)
  float* state;
  int64_t from, n;  // it may look at positions [from, n) of the current block
};

// A key or a value as it lies in the cache.
template <class T>
struct KvRow {
  const T* at;  // (dim)
};
template <>
struct KvRow<int8_t> {
  const int8_t* at;  // (dim) codes
  float scale;
};

// Memory that is read soon: fetched line by line while something else is computed. As much at once would keep whoever
// asks for it waiting, and does not let the CPU's own prefetchers run ahead.
struct Upcoming {
  const char* at = nullptr;
  int64_t bytes = 0;
  Upcoming part(int64_t i, int64_t of) const {
    if (of <= 1 || bytes == 0) return *this;  // as a rule
    const int64_t size = bytes / of;
    return {at + size * i, i + 1 < of ? size : bytes - size * i};
  }
};

// The keys (which = 0) or values (1) of one kv head in one layer.
template <class T>
class KvHead {
 public:
  KvHead(const KvCache& c, int64_t layer, int64_t which, int64_t kv_head)
      : dim_(c.head_dim) {
    const int64_t first = kv_row(c, layer, which, kv_head, 0);
    data_ = static_cast<const T*>(c.data) + first * dim_;
    scales_ = c.scales + (sizeof(T) == 1 ? first : 0);
  }
  KvRow<T> row(int64_t slot) const {
    const T* at = data_ + slot * dim_;
    if constexpr (sizeof(T) == 1)
      return {at, scales_[slot]};
    else
      return {at};
  }
  Upcoming page(int64_t slot) const {
    return {reinterpret_cast<const char*>(row(slot).at), int64_t{kPageSlots} * dim_ * static_cast<int64_t>(sizeof(T))};
  }

 private:
  int64_t dim_;
  const T* data_;
  const float* scales_;
};

struct AttentionMemory {
  float* keys;     // (dim, kPageSlots): a block's keys, transposed
  float* values;   // (kPageSlots, padded dim), where the cache itself cannot be read as floats
  float* states;   // (queries, kStateValues + padded dim)
  Query* queries;  // (queries)
};
inline int64_t padded_dim(int64_t dim) { return round_up(dim, 16); }

}  // namespace aerie::kernels::cpu
