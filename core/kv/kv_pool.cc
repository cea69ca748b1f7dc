#include "core/kv/kv_pool.h"

#include <memory>
#include <new>
#include <string>

namespace aerie {

using kernels::kPageSlots;

namespace {
struct Release {
  kernels::Device* device;
  void operator()(void* memory) const { device->release(memory); }
};
using DeviceMemory = std::unique_ptr<void, Release>;
}  // namespace

Result<std::shared_ptr<KvPool>> KvPool::create(std::shared_ptr<kernels::Device> device, const KvShape& shape,
                                               int64_t positions, int64_t state_floats) {
  if (positions <= 0 || positions > (int64_t{1} << 31) - kPageSlots)
    return error(Code::invalid_argument, "KV budget of " + std::to_string(positions) + " positions: there are from 1 to " +
                                             std::to_string((int64_t{1} << 31) - kPageSlots));
  const int64_t slots = kernels::round_up(positions, kPageSlots);
  if (shape.bytes_per_slot() > INT64_MAX / slots)
    return error(Code::out_of_memory, "KV cache of " + std::to_string(positions) + " positions is past what can be counted");
  const int64_t bytes = slots * shape.bytes_per_slot();
  DeviceMemory memory(device->allocate(static_cast<size_t>(bytes)), {device.get()});
  if (!memory)
    return device->no_memory("KV cache of " + std::to_string(positions) + " positions, " + std::to_string(bytes) + " bytes");
  std::unique_ptr<KvPool> pool(new KvPool(device, shape, slots, memory.get()));
  (void)memory.release();  // the pool's
  if (state_floats > 0) pool->states_ = std::make_shared<StatePool>(std::move(device), state_floats);
  return std::shared_ptr<KvPool>(std::move(pool));
}

KvPool::KvPool(std::shared_ptr<kernels::Device> device, const KvShape& shape, int64_t slots, void* memory)
    : device_(std::move(device)), shape_(shape), memory_(memory) {
  auto* data = static_cast<char*>(memory);
  auto* scales = reinterpret_cast<float*>(data + slots * shape.data_per_slot());  // of whole pages: aligned
  for (const bool wide : {false, true}) {
    const KvLayers& l = wide ? shape.wide : shape.most();
    kernels::KvCache& c = caches_[wide];
    c = {data, slots, l.layers, l.kv_heads, l.head_dim, shape.dtype, shape.dtype == kernels::DType::int8 ? scales : nullptr};
    data += slots * l.elements_per_slot() * kernels::kv_element_bytes(shape.dtype);
    scales += slots * l.rows_per_slot();
  }
  const auto pages = static_cast<int32_t>(slots / kPageSlots);
  holders_.assign(static_cast<size_t>(pages), 0);
  kept_.assign(static_cast<size_t>(pages), 0);
  free_.reserve(static_cast<size_t>(pages));
  for (int32_t p = pages - 1; p >= 0; --p) free_.push_back(p);
}

KvPool::~KvPool() {
  device_->release(index_);
  device_->release(memory_);
}

Status KvPool::take(int32_t n, std::vector<int32_t>* pages) {
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (static_cast<size_t>(n) <= free_.size()) {
        pages->insert(pages->end(), free_.end() - n, free_.end());
        for (auto p = free_.end() - n; p != free_.end(); ++p) holders_[static_cast<size_t>(*p)] = 1;
        free_.resize(free_.size() - static_cast<size_t>(n));
        return {};
      }
    }
    if (spare_ && spare_()) continue;
    return error(Code::limit, "KV budget (kv_positions) of " + std::to_string(positions()) + " positions does not suffice (" +
                                  std::to_string(free_positions()) + " free, " + std::to_string(n * kPageSlots) +
                                  " wanted)");
  }
}

int64_t KvPool::free_positions() {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t free = free_.size();
  for (size_t p = 0; p < kept_.size(); ++p) free += kept_[p] && holders_[p] == 1;
  return static_cast<int64_t>(free) * kPageSlots;
}

void KvPool::retain(std::span<const int32_t> pages) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int32_t p : pages) ++holders_[static_cast<size_t>(p)];
}

void KvPool::drop(int32_t page) {
  if (--holders_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void KvPool::give_back(std::span<const int32_t> pages) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int32_t p : pages) drop(p);
}

int32_t KvPool::holders(int32_t page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return holders_[static_cast<size_t>(page)];
}

void KvPool::keep(int32_t page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++holders_[static_cast<size_t>(page)];
  kept_[static_cast<size_t>(page)] = 1;
}

void KvPool::unkeep(int32_t page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_[static_cast<size_t>(page)] = 0;
  drop(page);
}

Status KvPool::copy(int32_t from, int32_t to, int32_t n) noexcept {
  const std::lock_guard<std::mutex> lock(copying_);
  Status s;
  try {
    s = copy_slots(from, to, n);
  } catch (const std::bad_alloc&) {
    s = out_of_memory();
  } catch (const std::exception& e) {
    s = a_hook_threw("KV cache", e.what());
  } catch (...) {
    s = a_hook_threw("KV cache", "no std::exception");
  }
  if (!s.ok()) queue_.reset();  // it may be amid its plan
  return s;
}

// Once a fork, and at most a page: not worth a plan that is sliced.
Status KvPool::copy_slots(int32_t from, int32_t to, int32_t n) {
  int32_t slots[2 * kPageSlots];
  for (int32_t i = 0; i < n; ++i) {
    slots[i] = from * kPageSlots + i;
    slots[n + i] = to * kPageSlots + i;
  }
  if (!index_) index_ = device_->allocate(sizeof slots);
  if (!index_) return device_->no_memory("KV cache: copying a page");
  const auto* at = static_cast<const int32_t*>(index_);
  std::vector<kernels::Op> ops = {kernels::Upload{index_, slots, static_cast<int64_t>(sizeof slots)}};
  for (const kernels::KvCache& c : caches()) ops.push_back(kernels::KvCopy{c, at, at + n, n});
  if (!queue_) {
    AERIE_ASSIGN(queue_, device_->make_queue());
  }
  AERIE_TRY(queue_->submit(ops));
  AERIE_ASSIGN(const auto state, queue_->advance(kernels::kNoDeadline));
  return state == kernels::RunState::done ? Status() : error(Code::device, "KV cache: the copy of a page did not finish");
}

}  // namespace aerie
