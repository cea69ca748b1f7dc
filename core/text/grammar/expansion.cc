#include "core/text/grammar/expansion.h"

#include <algorithm>

#include "core/text/grammar/stack_hash.h"

namespace aerie::text::grammar {

// The most words that are looked at to find those of a state.
constexpr size_t kMaxExpansionWords = 4 * kMaxStackWords;

bool Expansion::take(uint32_t length) {
  const uint32_t at = static_cast<uint32_t>(words_.size()) - length;
  if (length > kMaxStackDepth || words_.size() > kMaxExpansionWords) return too_much_ = true, false;
  if (2 * (stacks_.size() + 1) > table_.size()) {
    table_.assign(std::max<size_t>(64, 2 * table_.size()), 0);
    for (uint32_t i = 0; i < stacks_.size(); ++i) {
      size_t slot = hash_of_words(&words_[stacks_[i].at], stacks_[i].length) & (table_.size() - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = i + 1;
    }
  }
  size_t slot = hash_of_words(&words_[at], length) & (table_.size() - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (table_.size() - 1)) {
    const Stack& other = stacks_[table_[slot] - 1];
    if (other.length == length && std::equal(&words_[other.at], &words_[other.at] + length, &words_[at])) {
      words_.resize(at);
      return false;
    }
  }
  stacks_.push_back({at, length});
  table_[slot] = static_cast<uint32_t>(stacks_.size());
  return true;
}

void Expansion::add(const uint32_t* from, size_t n, uint32_t position) {
  const bool ends = program_.elements[position] == kEnd;
  if (n == 0 && ends) {
    complete_ = true;
    return;
  }
  words_.insert(words_.end(), from, from + n);
  if (!ends) words_.push_back(position);
  (void)take(static_cast<uint32_t>(n) + !ends);
}

void Expansion::add_start() { enter(0, {0, 0}); }

void Expansion::enter(uint32_t rule, Stack under) {
  for (uint32_t i = program_.rules[rule]; i < program_.rules[rule + 1] && !too_much_; ++i) {
    const uint32_t position = program_.alternatives[i];
    const bool ends = program_.elements[position] == kEnd;
    if (under.length == 0 && ends) {
      complete_ = true;
      continue;
    }
    words_.resize(words_.size() + under.length);
    std::copy_n(words_.begin() + under.at, under.length, words_.end() - under.length);
    if (!ends) words_.push_back(position);
    (void)take(under.length + !ends);
  }
}

bool Expansion::run(Configuration* out) {
  std::vector<Stack> at_bytes;
  size_t total = 0;
  for (size_t i = 0; i < stacks_.size() && !too_much_; ++i) {  // grows as we go
    const Stack s = stacks_[i];
    const uint32_t top = words_[s.at + s.length - 1];
    const Element e = program_.elements[top];
    if (kind_of(e) != ElementKind::rule) {
      at_bytes.push_back(s);
      total += s.length + 1;
      continue;
    }
    // What is to come back to replaces the position; where that is an end, there is nothing to come back to, and lists that
    // are written by recursion need no deeper stacks as they grow.
    words_.resize(words_.size() + s.length - 1);
    std::copy_n(words_.begin() + s.at, s.length - 1, words_.end() - (s.length - 1));
    Stack under{static_cast<uint32_t>(words_.size()) - (s.length - 1), s.length - 1};
    if (program_.elements[top + 1] != kEnd) {
      words_.push_back(top + 1);
      ++under.length;
    }
    enter(value_of(e), under);
  }
  if (too_much_ || total > kMaxStackWords) return false;
  std::sort(at_bytes.begin(), at_bytes.end(), [&](Stack a, Stack b) {
    return std::lexicographical_compare(&words_[a.at], &words_[a.at] + a.length, &words_[b.at], &words_[b.at] + b.length);
  });
  out->stacks.reserve(total);
  for (const Stack s : at_bytes) {
    out->stacks.push_back(s.length);
    out->stacks.insert(out->stacks.end(), words_.begin() + s.at, words_.begin() + s.at + s.length);
  }
  out->complete = complete_;
  return true;
}

}  // namespace aerie::text::grammar
