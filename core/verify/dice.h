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

// Dice from kernels::keyed_uniform: the answer is a function of seed, stream, root, position and lane,
// and shares no bit with the noise of the walk. `position` is the absolute position of the token in
// question; `root_position`, that of the cycle's root, gives every cycle fresh dice, so that even a
// drafter that remembers what was drawn from it and never emitted cannot have seen an answer to come.
// Nodes of one depth share their dice: a walk visits one of them only.
class KeyedDice final : public Dice {
 public:
  KeyedDice(uint64_t seed, uint64_t stream, int64_t root_position = 0)
      : seed_(seed), stream_(stream), root_position_(root_position) {}
  bool accept(int64_t position, uint32_t lane, double probability) override;
  int32_t pick(int64_t position, uint32_t lane, std::span<const double> weights, double total) override;

 private:
  double uniform(int64_t position, uint32_t lane) const;
  uint64_t seed_, stream_;
  int64_t root_position_;
};

// Index of the interval that u * total, u in [0, 1), falls in; rounding never leads to a weight of 0.
// -1 if every weight is 0.
int32_t pick_by(double u, std::span<const double> weights, double total);

}  // namespace aerie
