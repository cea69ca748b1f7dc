// Noise streams for forks: a text and its forks draw each from a stream of its own, the same ones at every run that forks
// in the same order.
#pragma once

#include <atomic>
#include <cstdint>

namespace aerie {

// Shared by a text, its forks and theirs. [any thread]
class ForkStreams {
 public:
  // root: the stream of the first text, so that forks of texts with different streams differ too.
  explicit ForkStreams(uint64_t root) : first_(static_cast<uint32_t>(root) * 2654435761u) {}
  // The upper half: hosts count from 0.
  uint32_t next() { return 0x80000000u | (first_ + count_.fetch_add(1, std::memory_order_relaxed)); }

 private:
  uint32_t first_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace aerie
