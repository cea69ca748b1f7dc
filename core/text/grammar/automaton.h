// The states that a grammar's texts lead to, made as they are met. A state is a set of stacks: where in the rules the text may
// be, and what is to come back to from there; on each byte every stack goes on or ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/grammar/program.h"

namespace aerie::text::grammar {

// What an ambiguous or deep grammar may have: a byte that leads beyond may not come.
inline constexpr size_t kMaxStackDepth = 1024;
inline constexpr size_t kMaxStackWords = size_t{1} << 16;  // of one state, each stack with its length
// What one mask may cost, in words that are looked at or kept: well below a second.
inline constexpr int64_t kMaxWork = int64_t{1} << 24;

struct Configuration {
  std::vector<uint32_t> stacks;  // in order, each once: its length, then positions in Program::elements, the innermost last
  bool complete = false;         // the text so far is one of the grammar
};

class Automaton {
 public:
  struct State {
    std::shared_ptr<const Configuration> configuration;
    std::unique_ptr<std::atomic<const State*>[]> next;  // by class of byte; null: not yet known
    // By which stacks go on, where there are at most 64: most classes differ in nothing. Under the mutex.
    mutable std::vector<std::pair<uint64_t, const State*>> by_stacks = {};
  };
  using Mask = std::shared_ptr<const std::vector<uint32_t>>;

  // `number` tells it from those before.
  Automaton(std::shared_ptr<const Program> program, uint64_t number);

  uint64_t number() const { return number_; }
  // Null where the start alone is beyond the limits.
  const State* start();
  const State* find(const std::shared_ptr<const Configuration>& configuration);
  // The state after a byte; dead(): it may not come; limited(): it may not, for a limit. Null: *work is used up.
  const State* step(const State* from, uint8_t byte, int64_t* work) {
    const uint8_t byte_class = program_->class_of[byte];
    const State* to = from->next[byte_class].load(std::memory_order_acquire);
    return to != nullptr ? to : make_step(from, byte_class, work);
  }
  bool is_dead(const State* s) const { return s == &dead_ || s == &limited_; }
  bool is_limited(const State* s) const { return s == &limited_; }
  // Time to begin with an empty one.
  bool is_full() const { return bytes_.load(std::memory_order_relaxed) > kFull; }

  Mask mask_of(const State* state);  // null: not kept
  void keep_mask(const State* state, Mask mask);

 private:
  static constexpr size_t kFull = size_t{4} << 20;
  static constexpr size_t kMaxMasks = 64;
  struct KeptMask {
    const State* state;
    Mask mask;
    uint64_t used;
  };

  const State* same_step(const State* from, uint64_t stacks);  // that was made before; null: none
  const State* make_step(const State* from, uint8_t byte_class, int64_t* work);
  const State* intern(std::shared_ptr<const Configuration> configuration, uint64_t hash);  // under the mutex

  const std::shared_ptr<const Program> program_;
  const uint64_t number_;
  std::mutex mutex_;
  std::deque<State> states_;
  std::unordered_multimap<uint64_t, const State*> by_hash_;
  std::atomic<size_t> bytes_{0};
  std::vector<KeptMask> masks_;
  uint64_t uses_ = 0;
  State dead_, limited_;
};

}  // namespace aerie::text::grammar
