#include "core/text/grammar/automaton.h"

#include <algorithm>
#include <utility>

#include "core/text/grammar/expansion.h"
#include "core/text/grammar/stack_hash.h"

namespace aerie::text::grammar {
namespace {

// What a step costs beside its stacks: what a state takes that has hardly any.
constexpr int64_t kStepWork = 64;
// Looking at stacks for a class of bytes is cheaper than words are to keep.
constexpr int64_t kLooksPerWord = 8;

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
  const std::vector<uint32_t>& stacks = configuration->stacks;
  size_t n = 0;
  for (size_t at = 0; at < stacks.size(); at += stacks[at] + 1) ++n;
  const size_t bytes = stacks.size() * sizeof(uint32_t) + classes * sizeof(void*) + 256;
  State state{std::move(configuration), static_cast<int64_t>(classes + n * classes / kLooksPerWord),
              std::make_unique<std::atomic<const Step*>[]>(classes)};
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

const Automaton::Step* Automaton::known_step(const State* from, uint8_t byte_class, uint64_t stacks, bool few) const {
  if (!few) return from->next[byte_class].load(std::memory_order_relaxed);
  for (const auto& [same, step] : from->by_stacks)
    if (same == stacks) return step;
  return nullptr;
}

const Automaton::Step* Automaton::make_step(const State* from, uint8_t byte_class) {
  const uint8_t byte = program_->class_example[byte_class];
  const std::vector<uint32_t>& stacks = from->configuration->stacks;
  uint64_t taken = 0;
  size_t n = 0;
  for (size_t at = 0; at < stacks.size(); at += stacks[at] + 1, ++n)
    if (program_->takes(program_->elements[stacks[at + stacks[at]]], byte)) taken |= uint64_t{1} << (n % 64);
  const bool few = n <= 64;
  const Step* step = taken == 0 ? &dead_step_ : nullptr;
  if (step == nullptr && few) {
    const std::lock_guard lock(mutex_);
    step = known_step(from, byte_class, taken, few);
  }
  if (step == nullptr) {
    Expansion expansion(*program_);
    for (size_t at = 0; at < stacks.size(); at += stacks[at] + 1) {
      const uint32_t length = stacks[at], position = stacks[at + length];
      if (program_->takes(program_->elements[position], byte)) expansion.add(&stacks[at + 1], length - 1, position + 1);
    }
    auto configuration = std::make_shared<Configuration>();
    const State* to = expansion.run(configuration.get()) ? find(std::move(configuration)) : &limited_;
    const int64_t work = kStepWork + static_cast<int64_t>(stacks.size() + expansion.work()) + to->work;
    const std::lock_guard lock(mutex_);
    step = known_step(from, byte_class, taken, few);  // made by another thread meanwhile: there must be one, with one number
    if (step == nullptr) {
      step = &steps_.emplace_back(Step{to, work, static_cast<uint32_t>(steps_.size() + 1)});
      if (few) from->by_stacks.emplace_back(taken, step);
      else from->next[byte_class].store(step, std::memory_order_release);
      bytes_.fetch_add(64, std::memory_order_relaxed);
    }
  }
  from->next[byte_class].store(step, std::memory_order_release);
  return step;
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
