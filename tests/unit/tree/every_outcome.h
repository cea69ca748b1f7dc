// Exact laws of the sampled-draft rule: dice that answer with every possible outcome in turn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/verify/dice.h"

namespace aerie::tree_test {

using Law = std::vector<double>;

// Dice that answer with every possible outcome in turn: one run per leaf of the tree of outcomes.
class EveryOutcome final : public Dice {
 public:
  bool accept(int64_t, uint32_t, double probability) override {
    EXPECT_TRUE(probability >= 0 && probability <= 1);
    return choose({probability, 1 - probability}) == 0;
  }
  int32_t pick(int64_t, uint32_t, std::span<const double> weights, double total) override {
    Law p(weights.begin(), weights.end());
    for (double& w : p) w /= total;
    return choose(p);
  }
  // Runs `once` for every outcome; probability() is that of the outcome just run.
  void run(const std::function<void()>& once) {
    script_.clear();
    do {
      at_ = 0;
      probability_ = 1;
      once();
    } while (advance());
  }
  double probability() const { return probability_; }

 private:
  struct Choice {
    Law p;
    int32_t taken;
  };
  static int32_t next(const Law& p, int32_t from) {
    while (from < static_cast<int32_t>(p.size()) && !(p[static_cast<size_t>(from)] > 0)) ++from;
    return from;
  }
  int32_t choose(const Law& p) {
    if (at_ == script_.size()) script_.push_back({p, next(p, 0)});
    const Choice& c = script_[at_++];
    probability_ *= c.p[static_cast<size_t>(c.taken)];
    return c.taken;
  }
  bool advance() {
    while (!script_.empty()) {
      Choice& c = script_.back();
      c.taken = next(c.p, c.taken + 1);
      if (c.taken < static_cast<int32_t>(c.p.size())) return true;
      script_.pop_back();
    }
    return false;
  }
  std::vector<Choice> script_;
  size_t at_ = 0;
  double probability_ = 1;
};

inline Law random_law(std::mt19937& rng, int vocab, bool zeros) {
  Law p(static_cast<size_t>(vocab));
  do {
    for (double& x : p) x = zeros && rng() % 3 == 0 ? 0 : std::pow(static_cast<double>(rng() % 1000 + 1), 2);
  } while (std::accumulate(p.begin(), p.end(), 0.0) == 0);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

inline double distance(const Law& a, const Law& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace aerie::tree_test
