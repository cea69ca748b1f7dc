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
// What one mask may cost, in words that are looked at or kept: some 20 ns each where all is new, so below 0.1 s. A sensible
// grammar's masks cost up to 0.1 million.
inline constexpr int64_t kMaxWork = 3'000'000;

struct Configuration {
  std::vector<uint32_t> stacks;  // in order, each once: its length, then positions in Program::elements, the innermost last
  bool complete = false;         // the text so far is one of the grammar
};

class Automaton {
 public:
  struct State;
  // What follows on a byte, once for all classes of bytes on which the same stacks go on, if the state has at most 64.
  struct Step {
    const State* to;
    int64_t work = 0;     // what it takes to make it: of the state and the grammar alone, whoever made it first
    uint32_t number = 0;  // of the automaton's
  };
  struct State {
    std::shared_ptr<const Configuration> configuration;
    int64_t work = 0;  // what it takes to look at its stacks, once for each class
    std::unique_ptr<std::atomic<const Step*>[]> next = nullptr;  // by class of byte; null: not yet known
    // By which stacks go on, where there are at most 64: most classes differ in nothing. Under the mutex.
    mutable std::vector<std::pair<uint64_t, const Step*>> by_stacks = {};
  };
  // What a mask has cost so far. Each step that it comes to is charged once, also where it was made long ago: whether a mask is
  // too much must not hang on what other texts of the grammar have met.
  class Meter {
   public:
    explicit Meter(const State* begin) : left_(kMaxWork - begin->work) {}
    // False: used up.
    bool charge(const Step& step) {
      if (step.number >= seen_.size()) seen_.resize(2 * size_t{step.number} + 64);
      if (!seen_[step.number]) {
        seen_[step.number] = true;
        left_ -= step.work;
      }
      return left_ >= 0;
    }

   private:
    std::vector<bool> seen_;
    int64_t left_;
  };
  using Mask = std::shared_ptr<const std::vector<uint32_t>>;

  // `number` tells it from those before.
  Automaton(std::shared_ptr<const Program> program, uint64_t number);

  uint64_t number() const { return number_; }
  // Null where the start alone is beyond the limits.
  const State* start();
  const State* find(const std::shared_ptr<const Configuration>& configuration);
  // What follows on a byte; is_dead(to): it may not come; is_limited(to): it may not, for a limit.
  const Step& step(const State* from, uint8_t byte) {
    const uint8_t byte_class = program_->class_of[byte];
    const Step* known = from->next[byte_class].load(std::memory_order_acquire);
    return known != nullptr ? *known : *make_step(from, byte_class);
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

  const Step* known_step(const State* from, uint8_t byte_class, uint64_t stacks, bool few) const;  // null: none; under the mutex
  const Step* make_step(const State* from, uint8_t byte_class);
  const State* intern(std::shared_ptr<const Configuration> configuration, uint64_t hash);  // under the mutex

  const std::shared_ptr<const Program> program_;
  const uint64_t number_;
  std::mutex mutex_;
  std::deque<State> states_;
  std::deque<Step> steps_;
  std::unordered_multimap<uint64_t, const State*> by_hash_;
  std::atomic<size_t> bytes_{0};
  std::vector<KeptMask> masks_;
  uint64_t uses_ = 0;
  State dead_, limited_;
  const Step dead_step_{&dead_};
};

}  // namespace aerie::text::grammar
