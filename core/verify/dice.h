// Dice: where the sampled-draft rule takes its randomness from. The rule asks two kinds of question
// only, "does this event of probability a happen?" and "which of these?", so that a test can
// answer them with every possible outcome in turn and add up the exact law.
#pragma once

#include <cstdint>
#include <span>

namespace aerie {

class Dice {
 public:
  virtual ~Dice() = default;
  // True with the given probability, in [0, 1]. `lane` tells the questions at one position apart.
  virtual bool accept(int64_t position, uint32_t lane, double probability) = 0;
  // An index with probability weights[i] / total; never one of weight 0. total > 0 is their sum.
  virtual int32_t pick(int64_t position, uint32_t lane, std::span<const double> weights, double total) = 0;
};

// Dice from kernels::keyed_uniform: the answer is a function of seed, stream, position and lane, and
// shares no bit with the noise of the walk. `position` is the absolute position of the token in
// question. All that decides the token emitted at a position is keyed by this position, and every
// position is emitted once, so a draw of an earlier cycle that led to nothing is as good as new.
class KeyedDice final : public Dice {
 public:
  KeyedDice(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  bool accept(int64_t position, uint32_t lane, double probability) override;
  int32_t pick(int64_t position, uint32_t lane, std::span<const double> weights, double total) override;

 private:
  uint64_t seed_, stream_;
};

// Index of the interval that u * total, u in [0, 1), falls in; rounding never leads to a weight of 0.
// -1 if every weight is 0.
int32_t pick_by(double u, std::span<const double> weights, double total);

}  // namespace aerie
