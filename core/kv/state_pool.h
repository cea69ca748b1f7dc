// States of recurrent layers. A StatePool owns their memory; a StateSequence is one text's share of it: the state of what was read, room for
// the next one, the one before it, and a few of earlier that it can go back to. A state that is there is never written again, so texts may hold the same one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device.h"
#include "kernels/status.h"

namespace aerie {

// Thread-safe. Memory that is given back is kept for the next text.
class StatePool {
 public:
  StatePool(std::shared_ptr<kernels::Device> device, int64_t floats) : device_(std::move(device)) { cache_.floats = floats; }
  ~StatePool();
  StatePool(const StatePool&) = delete;
  StatePool& operator=(const StatePool&) = delete;

  kernels::StateCache cache();
  int64_t floats() const { return cache_.floats; }
  // One with one holder, the caller.
  Result<int32_t> take();
  void retain(int32_t state);
  void give_back(int32_t state);

 private:
  Status grow();  // under mutex_
  const std::shared_ptr<kernels::Device> device_;
  std::mutex mutex_;
  kernels::StateCache cache_;
  std::vector<int32_t> free_, holders_;
};

// Not thread-safe; belongs to one session. Without a pool all of it does nothing.
class StateSequence {
 public:
  explicit StateSequence(std::shared_ptr<StatePool> pool) : pool_(std::move(pool)) {}
  ~StateSequence();
  StateSequence(const StateSequence&) = delete;
  StateSequence& operator=(const StateSequence&) = delete;

  explicit operator bool() const { return pool_ != nullptr; }
  const std::shared_ptr<StatePool>& pool() const { return pool_; }
  // Room for the next state.
  Status reserve();
  int32_t now() const { return now_.state; }    // -1: nothing has been read
  int32_t next() const { return next_; }        // where a pass leaves the next one
  int64_t position() const { return now_.position; }  // rows that have been read
  // The state before the last advance, and of how many rows; -1: there is none.
  int32_t before() const { return before_.state; }
  int64_t position_before() const { return before_.position; }
  // The next state is there, of so many rows.
  void advance(int64_t position);
  // Rewinds may come back to the state of now: of those kept so the last few are.
  void keep();
  // To the last state of at most n rows that there is, of which it has the number of rows then. Those of more are dropped.
  int64_t rewind(int64_t n);
  void share(const StateSequence& other);

 private:
  static constexpr size_t kKept = 2;
  struct At {
    int32_t state = -1;
    int64_t position = 0;
  };
  void drop(At* at);
  void hold(const At& from, At* to);
  std::shared_ptr<StatePool> pool_;
  At now_, before_;
  int32_t next_ = -1;
  At kept_[kKept];  // in the order of positions; what is not there comes first
};

}  // namespace aerie
