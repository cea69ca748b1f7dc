// Paged key/value memory. A KvPool owns the pages of one cache (a target's or a drafter's); a
// KvSequence is one text's share of it: the pages of its committed positions, and scratch slots for
// the tree of the running cycle.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device.h"
#include "kernels/status.h"

namespace aerie {

struct KvShape {
  int32_t layers = 0, kv_heads = 0, head_dim = 0;
  kernels::DType dtype = kernels::DType::f32;  // f32, bf16 or int8
  // Keys and values of one position, one for each layer and head, as (head_dim) elements and, for int8, a scale.
  int64_t rows_per_slot() const { return int64_t{2} * layers * kv_heads; }
  int64_t data_per_slot() const { return rows_per_slot() * head_dim * kernels::kv_element_bytes(dtype); }
  int64_t bytes_per_slot() const {
    return data_per_slot() + (dtype == kernels::DType::int8 ? rows_per_slot() * int64_t{sizeof(float)} : 0);
  }
};

// Thread-safe.
class KvPool {
 public:
  // Room for `positions` positions (rounded up to pages), taken from the device at once.
  static Result<std::shared_ptr<KvPool>> create(std::shared_ptr<kernels::Device> device, const KvShape& shape,
                                                int64_t positions);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  const kernels::KvCache& cache() const { return cache_; }
  int64_t positions() const { return cache_.slots; }
  int64_t free_positions();
  // Takes `n` pages or none; appends their ids to `pages`.
  Status take(int32_t n, std::vector<int32_t>* pages);
  void give_back(const int32_t* pages, size_t n);

 private:
  KvPool(std::shared_ptr<kernels::Device> device, kernels::KvCache cache);
  std::shared_ptr<kernels::Device> device_;
  kernels::KvCache cache_;
  std::mutex mutex_;
  std::vector<int32_t> free_;  // last in, first out: recently used pages are warm
};

// Not thread-safe; belongs to one session.
class KvSequence {
 public:
  KvSequence(std::shared_ptr<KvPool> pool, int64_t max_positions, int32_t scratch_slots);
  ~KvSequence();
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;

  // Pages for positions [0, n) and the scratch slots. On failure nothing changes.
  Status reserve(int64_t n);
  // Give back pages that hold no position below n.
  void shrink(int64_t n);
  int32_t slot(int64_t position) const {
    return pages_[static_cast<size_t>(position / kernels::kPageSlots)] * kernels::kPageSlots +
           static_cast<int32_t>(position % kernels::kPageSlots);
  }
  int32_t scratch_slot(int32_t i) const {
    return scratch_[static_cast<size_t>(i / kernels::kPageSlots)] * kernels::kPageSlots + i % kernels::kPageSlots;
  }
  const std::vector<int32_t>& pages() const { return pages_; }
  const kernels::KvCache& cache() const { return pool_->cache(); }

 private:
  std::shared_ptr<KvPool> pool_;
  int32_t scratch_pages_;
  std::vector<int32_t> pages_, scratch_;
};

}  // namespace aerie
