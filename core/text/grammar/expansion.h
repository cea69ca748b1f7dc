// Stacks whose innermost position is at a rule, or at the end of one, followed until it is at bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/text/grammar/automaton.h"

namespace aerie::text::grammar {

class Expansion {
 public:
  explicit Expansion(const Program& program) : program_(program) {}

  // A stack to follow: `n` words of `from`, then one more unless that is at an end.
  void add(const uint32_t* from, size_t n, uint32_t position);
  void add_start();
  // Follows them all. False: beyond the limits.
  bool run(Configuration* out);
  size_t work() const { return words_.size(); }

 private:
  struct Stack {
    uint32_t at, length;
  };
  bool take(uint32_t length);  // the last `length` words are a stack: is it new?
  void enter(uint32_t rule, Stack under);

  const Program& program_;
  std::vector<uint32_t> words_;
  std::vector<Stack> stacks_;    // each once, in the order they were found
  std::vector<uint32_t> table_;  // of hashes: the index of a stack and one, 0: free
  bool complete_ = false, too_much_ = false;
};

}  // namespace aerie::text::grammar
