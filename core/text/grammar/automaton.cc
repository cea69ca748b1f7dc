#include "core/text/grammar/automaton.h"

#include <algorithm>
#include <utility>

#include "core/text/grammar/expansion.h"
#include "core/text/grammar/stack_hash.h"

namespace aerie::text::grammar {
namespace {

// What a step costs beside its stacks: what a state takes that has hardly any.
constexpr int64_t kStepWork = 64;

uint64_t hash_of_configuration(const Configuration& c) {
  return hash_of_words(c.stacks.data(), c.stacks.size()) * 2 + c.complete;
}

}  // namespace

Automaton::Automaton(std::shared_ptr<const Program> program, uint64_t number) : program_(std::move(program)), number_(number) {}

const Automaton::State* Automaton::start() {
  Expansion expansion(*program_);
  expansion.add_start();
  auto configuration = std::make_shared<Configuration>();
  if (!expansion.run(configuration.get())) return nullptr;
  return find(std::move(configuration));
}

const Automaton::State* Automaton::find(const std::shared_ptr<const Configuration>& configuration) {
  const uint64_t hash = hash_of_configuration(*configuration);
  const std::lock_guard lock(mutex_);
  return intern(configuration, hash);
}

const Automaton::State* Automaton::intern(std::shared_ptr<const Configuration> configuration, uint64_t hash) {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Configuration& other = *at->second->configuration;
    if (other.complete == configuration->complete && other.stacks == configuration->stacks) return at->second;
  }
  const size_t classes = program_->class_example.size();
  State state{std::move(configuration), std::make_unique<std::atomic<const State*>[]>(classes)};
  const size_t bytes = state.configuration->stacks.size() * sizeof(uint32_t) + classes * sizeof(void*) + 256;
  const State* made = &states_.emplace_back(std::move(state));
  try {
    by_hash_.emplace(hash, made);
  } catch (...) {
    states_.pop_back();
    throw;
  }
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return made;
}

const Automaton::State* Automaton::same_step(const State* from, uint64_t stacks) {
  const std::lock_guard lock(mutex_);
  for (const auto& [same, to] : from->by_stacks)
    if (same == stacks) return to;
  return nullptr;
}

const Automaton::State* Automaton::make_step(const State* from, uint8_t byte_class, int64_t* work) {
  const uint8_t byte = program_->class_example[byte_class];
  const std::vector<uint32_t>& stacks = from->configuration->stacks;
  uint64_t taken = 0;
  size_t n = 0;
  for (size_t at = 0; at < stacks.size(); at += stacks[at] + 1, ++n)
    if (program_->takes(program_->elements[stacks[at + stacks[at]]], byte)) taken |= uint64_t{1} << (n % 64);
  *work -= kStepWork + static_cast<int64_t>(n);
  const State* to = taken == 0 ? &dead_ : n <= 64 ? same_step(from, taken) : nullptr;
  if (to == nullptr) {
    Expansion expansion(*program_);
    for (size_t at = 0; at < stacks.size(); at += stacks[at] + 1) {
      const uint32_t length = stacks[at], position = stacks[at + length];
      if (program_->takes(program_->elements[position], byte)) expansion.add(&stacks[at + 1], length - 1, position + 1);
    }
    auto configuration = std::make_shared<Configuration>();
    to = expansion.run(configuration.get()) ? find(std::move(configuration)) : &limited_;
    *work -= static_cast<int64_t>(stacks.size() + expansion.work() + program_->class_example.size());
    if (n <= 64) {
      const std::lock_guard lock(mutex_);
      from->by_stacks.emplace_back(taken, to);
      bytes_.fetch_add(32, std::memory_order_relaxed);
    }
  }
  if (*work < 0) return nullptr;
  from->next[byte_class].store(to, std::memory_order_release);  // whoever was here at the same time found the same
  return to;
}

Automaton::Mask Automaton::mask_of(const State* state) {
  const std::lock_guard lock(mutex_);
  for (KeptMask& kept : masks_) {
    if (kept.state != state) continue;
    kept.used = ++uses_;
    return kept.mask;
  }
  return nullptr;
}

void Automaton::keep_mask(const State* state, Mask mask) {
  const std::lock_guard lock(mutex_);
  KeptMask kept{state, std::move(mask), ++uses_};
  if (masks_.size() < kMaxMasks) {
    masks_.push_back(std::move(kept));
    return;
  }
  const auto oldest =
      std::min_element(masks_.begin(), masks_.end(), [](const KeptMask& a, const KeptMask& b) { return a.used < b.used; });
  *oldest = std::move(kept);
}

}  // namespace aerie::text::grammar
