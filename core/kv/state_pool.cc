#include "core/kv/state_pool.h"

#include <algorithm>
#include <string>
#include <utility>

namespace aerie {

StatePool::~StatePool() {
  for (float* chunk : cache_.chunk)
    if (chunk) device_->release(chunk);
}

kernels::StateCache StatePool::cache() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cache_;
}

Status StatePool::grow() {
  const auto made = static_cast<int32_t>(holders_.size());
  const int32_t c = kernels::StateCache::chunk_of(made), count = 1 << c;
  if (c >= kernels::StateCache::kChunks) return error(Code::out_of_memory, "states of recurrent layers: " + std::to_string(made) + " are the most there are");
  const int64_t bytes = count * cache_.floats * int64_t{sizeof(float)};
  holders_.reserve(static_cast<size_t>(made + count));  // what may throw comes before what would be lost
  free_.reserve(static_cast<size_t>(made + count));
  auto* const chunk = static_cast<float*>(device_->allocate(static_cast<size_t>(bytes)));
  if (!chunk) return device_->no_memory(std::to_string(count) + " states of recurrent layers, " + std::to_string(bytes) + " bytes");
  cache_.chunk[c] = chunk;
  holders_.resize(static_cast<size_t>(made + count), 0);
  for (int32_t i = made + count; i-- > made;) free_.push_back(i);
  return {};
}

Result<int32_t> StatePool::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) AERIE_TRY(grow());
  const int32_t state = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(state)] = 1;
  return state;
}

void StatePool::retain(int32_t state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++holders_[static_cast<size_t>(state)];
}

void StatePool::give_back(int32_t state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--holders_[static_cast<size_t>(state)] == 0) free_.push_back(state);
}

StateSequence::~StateSequence() {
  if (!pool_) return;
  drop(&now_);
  drop(&before_);
  for (At& k : kept_) drop(&k);
  if (next_ >= 0) pool_->give_back(next_);
}

void StateSequence::drop(At* at) {
  if (at->state >= 0) pool_->give_back(at->state);
  *at = {};
}

void StateSequence::hold(const At& from, At* to) {
  if (from.state >= 0) pool_->retain(from.state);
  drop(to);
  *to = from;
}

Status StateSequence::reserve() {
  if (!pool_ || next_ >= 0) return {};
  AERIE_ASSIGN(next_, pool_->take());
  return {};
}

void StateSequence::advance(int64_t position) {
  if (!pool_) return;
  drop(&before_);
  before_ = std::exchange(now_, {std::exchange(next_, -1), position});
}

void StateSequence::keep() {
  if (!pool_ || now_.state < 0 || kept_[kKept - 1].state == now_.state) return;
  drop(&kept_[0]);
  for (size_t i = 1; i < kKept; ++i) std::swap(kept_[i - 1], kept_[i]);
  hold(now_, &kept_[kKept - 1]);
}

int64_t StateSequence::rewind(int64_t n) {
  if (!pool_ || now_.position <= n) return now_.position;
  drop(&now_);
  if (before_.position > n) drop(&before_);
  size_t kept = kKept;  // of those that stay the last
  while (kept > 0 && kept_[kept - 1].position > n) drop(&kept_[--kept]);
  std::rotate(kept_, kept_ + kept, kept_ + kKept);
  const At& last = kept_[kKept - 1];
  if (before_.state >= 0 && before_.position >= last.position) now_ = std::exchange(before_, {});
  else hold(last, &now_);
  return now_.position;
}

void StateSequence::share(const StateSequence& other) {
  if (!pool_) return;
  hold(other.now_, &now_);
  hold(other.before_, &before_);
  for (size_t i = 0; i < kKept; ++i) hold(other.kept_[i], &kept_[i]);
}

}  // namespace aerie
