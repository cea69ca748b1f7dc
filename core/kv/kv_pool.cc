#include "core/kv/kv_pool.h"

#include <string>

namespace aerie {

using kernels::kPageSlots;

Result<std::shared_ptr<KvPool>> KvPool::create(std::shared_ptr<kernels::Device> device, const KvShape& shape,
                                               int64_t positions) {
  if (positions <= 0 || positions > (int64_t{1} << 31) - kPageSlots)
    return error(Code::invalid_argument, "KV budget of " + std::to_string(positions) + " positions");
  kernels::KvCache cache;
  cache.slots = kernels::round_up(positions, kPageSlots);
  cache.layers = shape.layers;
  cache.kv_heads = shape.kv_heads;
  cache.head_dim = shape.head_dim;
  cache.dtype = shape.dtype;
  const int64_t bytes = cache.slots * shape.bytes_per_slot();
  cache.data = device->allocate(static_cast<size_t>(bytes));
  if (!cache.data)
    return error(Code::out_of_memory, "KV cache of " + std::to_string(positions) + " positions needs " +
                                          std::to_string(bytes) + " bytes");
  if (shape.dtype == kernels::DType::int8)  // behind the codes, of whole pages: aligned
    cache.scales = reinterpret_cast<float*>(static_cast<char*>(cache.data) + cache.slots * shape.data_per_slot());
  return std::shared_ptr<KvPool>(new KvPool(std::move(device), cache));
}

KvPool::KvPool(std::shared_ptr<kernels::Device> device, kernels::KvCache cache)
    : device_(std::move(device)), cache_(cache) {
  const auto pages = static_cast<int32_t>(cache_.slots / kPageSlots);
  free_.reserve(static_cast<size_t>(pages));
  for (int32_t p = pages - 1; p >= 0; --p) free_.push_back(p);
}

KvPool::~KvPool() { device_->release(cache_.data); }

Status KvPool::take(int32_t n, std::vector<int32_t>* pages) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (static_cast<size_t>(n) > free_.size())
    return error(Code::limit, "KV budget of " + std::to_string(cache_.slots) + " positions is used up (" +
                                  std::to_string(free_.size() * kPageSlots) + " free, " +
                                  std::to_string(n * kPageSlots) + " wanted)");
  pages->insert(pages->end(), free_.end() - n, free_.end());
  free_.resize(free_.size() - static_cast<size_t>(n));
  return {};
}

int64_t KvPool::free_positions() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(free_.size()) * kPageSlots;
}

void KvPool::give_back(const int32_t* pages, size_t n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.insert(free_.end(), pages, pages + n);
}

KvSequence::KvSequence(std::shared_ptr<KvPool> pool, int64_t max_positions, int32_t scratch_slots)
    : pool_(std::move(pool)), scratch_pages_((scratch_slots + kPageSlots - 1) / kPageSlots) {
  pages_.reserve(static_cast<size_t>(max_positions / kPageSlots + 1));
  scratch_.reserve(static_cast<size_t>(scratch_pages_));
}

KvSequence::~KvSequence() {
  pool_->give_back(pages_.data(), pages_.size());
  pool_->give_back(scratch_.data(), scratch_.size());
}

Status KvSequence::reserve(int64_t n) {
  const auto want = static_cast<int32_t>((n + kPageSlots - 1) / kPageSlots);
  const auto have = static_cast<int32_t>(pages_.size());
  if (scratch_.empty() && scratch_pages_ > 0) AERIE_TRY(pool_->take(scratch_pages_, &scratch_));
  if (want > have) AERIE_TRY(pool_->take(want - have, &pages_));
  return {};
}

void KvSequence::shrink(int64_t n) {
  const auto keep = static_cast<size_t>((n + kPageSlots - 1) / kPageSlots);
  if (keep >= pages_.size()) return;
  pool_->give_back(pages_.data() + keep, pages_.size() - keep);
  pages_.resize(keep);
}

}  // namespace aerie
