// Paged key/value memory. A KvPool owns the pages of one cache (a target's or a drafter's); a
// KvSequence is one text's share of it: the pages of its committed positions, and scratch slots for
// the tree of the running cycle. Texts that begin alike may hold the same pages; who writes takes a copy first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/kv/state_pool.h"
#include "kernels/device.h"
#include "kernels/status.h"

namespace aerie {

// Layers whose keys and values have heads alike.
struct KvLayers {
  int32_t layers = 0, kv_heads = 0, head_dim = 0;
  // Keys and values of one position, one for each layer and head.
  int64_t rows_per_slot() const { return int64_t{2} * layers * kv_heads; }
  int64_t elements_per_slot() const { return rows_per_slot() * head_dim; }
  bool operator==(const KvLayers&) const = default;
};

struct KvShape {
  int32_t layers = 0, kv_heads = 0, head_dim = 0;
  kernels::DType dtype = kernels::DType::f32;  // f32, bf16 or int8
  KvLayers wide = {};                          // layers with other heads than most
  KvLayers most() const { return {layers, kv_heads, head_dim}; }
  // Of one position: elements, and for int8 a scale of each row of head_dim.
  int64_t data_per_slot() const { return (most().elements_per_slot() + wide.elements_per_slot()) * kernels::kv_element_bytes(dtype); }
  int64_t bytes_per_slot() const {
    const int64_t rows = most().rows_per_slot() + wide.rows_per_slot();
    return data_per_slot() + (dtype == kernels::DType::int8 ? rows * int64_t{sizeof(float)} : 0);
  }
  bool operator==(const KvShape&) const = default;
};

// Thread-safe.
class KvPool {
 public:
  // Room for `positions` positions (rounded up to pages), taken from the device at once. state_floats: of a text's recurrent layers.
  static Result<std::shared_ptr<KvPool>> create(std::shared_ptr<kernels::Device> device, const KvShape& shape,
                                                int64_t positions, int64_t state_floats = 0);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  // One for each kind of layers that there is, with the same slots: that of most, and behind it that of wide ones.
  std::span<const kernels::KvCache> caches() const { return {caches_, caches_[1].layers > 0 ? size_t{2} : size_t{1}}; }
  const kernels::KvCache& cache(bool wide = false) const { return caches_[wide]; }
  const KvShape& shape() const { return shape_; }
  int64_t positions() const { return caches_[0].slots; }
  const std::shared_ptr<StatePool>& states() const { return states_; }  // null: no layer is recurrent
  // Kept prefixes count as free: they go when their room is wanted.
  int64_t free_positions();
  // Takes `n` pages or none; appends their ids to `pages`. Each has one holder, the caller.
  Status take(int32_t n, std::vector<int32_t>* pages);
  // One more holder, who may only read.
  void retain(std::span<const int32_t> pages);
  // A holder less; free without any.
  void give_back(std::span<const int32_t> pages);
  int32_t holders(int32_t page);
  // The same for the holder who only keeps pages for later.
  void keep(int32_t page);
  void unkeep(int32_t page);
  // Called, without a lock, when pages are short: frees some or returns false. Set before the pool is shared.
  void on_shortage(std::function<bool()> spare) { spare_ = std::move(spare); }
  // The first n slots of `from` to `to`, at once.
  Status copy(int32_t from, int32_t to, int32_t n) noexcept;

 private:
  KvPool(std::shared_ptr<kernels::Device> device, const KvShape& shape, int64_t slots, void* memory);
  void drop(int32_t page);  // under mutex_
  Status copy_slots(int32_t from, int32_t to, int32_t n);
  std::shared_ptr<kernels::Device> device_;
  KvShape shape_;
  void* memory_;
  kernels::KvCache caches_[2];  // in memory_: keys and values of both, then for int8 their scales
  std::shared_ptr<StatePool> states_;
  std::mutex mutex_;
  std::vector<int32_t> free_;     // last in, first out: recently used pages are warm
  std::vector<int32_t> holders_;  // by page, the keeper included
  std::vector<char> kept_;        // by page
  std::function<bool()> spare_;
  // Of copies, made for the first one: on a device far away they take longer to make than a page to copy.
  std::mutex copying_;
  void* index_ = nullptr;  // device
  std::unique_ptr<kernels::Queue> queue_;
};

// Pages somebody holds.
class KvPages {
 public:
  KvPages() = default;
  KvPages(std::shared_ptr<KvPool> pool, std::vector<int32_t> pages) : pool_(std::move(pool)), pages_(std::move(pages)) {}
  KvPages(KvPages&&) = default;
  KvPages& operator=(KvPages&& other) noexcept {
    std::swap(pool_, other.pool_);
    pages_.swap(other.pages_);
    return *this;
  }
  ~KvPages() {
    if (pool_) pool_->give_back(pages_);
  }
  const std::vector<int32_t>& ids() const { return pages_; }

 private:
  std::shared_ptr<KvPool> pool_;
  std::vector<int32_t> pages_;
};

// Not thread-safe; belongs to one session.
class KvSequence {
 public:
  KvSequence(std::shared_ptr<KvPool> pool, int64_t max_positions, int32_t scratch_slots);
  ~KvSequence();
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;

  // Pages for positions [0, n), the scratch slots and the next state; those that hold positions from `from` on are this sequence's own
  // then, what stood below `from` copied. On failure nothing changes, but that there
  // may be room for the next state.
  Status reserve(int64_t n, int64_t from = 0);
  // Pages that the same call would take from the pool.
  int32_t missing(int64_t n, int64_t from = 0) const;
  // Positions there are pages for.
  int64_t room() const { return static_cast<int64_t>(pages_.size()) * kernels::kPageSlots; }
  // In place of its own: the pages of another sequence's first n positions, or such as hold the same; of a sequence the state, too.
  void share(const KvSequence& other, int64_t n);
  void share(const KvPages& pages, int64_t n);
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
  StateSequence& state() { return state_; }
  const StateSequence& state() const { return state_; }
  const std::shared_ptr<KvPool>& pool() const { return pool_; }

 private:
  void share(std::span<const int32_t> pages, int64_t n);
  template <class F>
  void each_shared(int64_t from, F&& f) const;  // indices of pages that others hold too
  std::shared_ptr<KvPool> pool_;
  StateSequence state_;
  int32_t scratch_pages_;
  std::vector<int32_t> pages_, scratch_, taken_;
};

}  // namespace aerie
