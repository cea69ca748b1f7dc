// What asking a drafter for one more level brings, learned from cycles that did.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace aerie {

// In tokens net of what the deeper nodes cost to verify and of later draft passes, for each token that the nodes asked
// about were expected to bring themselves. By depth, and by the best of these nodes: the surer it is, the more often it
// goes on from there. What nothing is known about yet is as the level before.
class LevelGain {
 public:
  static constexpr int32_t kDepths = 16;

  double of(int32_t depth, double best) const {
    double gain = kPrior;
    for (int32_t d = 1; d <= depth; ++d) {
      const Mean& m = at(d, best);
      gain = (m.count * m.mean + kTrust * gain) / (m.count + kTrust);
    }
    return gain;
  }
  void learn(int32_t depth, double best, double gain) {
    Mean& m = means_[static_cast<size_t>(depth)][bucket(best)];
    m.count = std::min(m.count + 1, kMemory);
    m.mean += (gain - m.mean) / m.count;
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& depth : self.means_)
      for (auto& m : depth) {
        f(m.mean, -1e6, 1e6);
        f(m.count, 0, kMemory);
      }
  }

 private:
  struct Mean {
    double mean = 0, count = 0;
  };
  static constexpr double kPrior = 0.4, kTrust = 4, kMemory = 40;
  static size_t bucket(double best) { return best < 0.4 ? 0 : best < 0.6 ? 1 : best < 0.75 ? 2 : best < 0.87 ? 3 : best < 0.95 ? 4 : 5; }
  const Mean& at(int32_t depth, double best) const { return means_[static_cast<size_t>(depth)][bucket(best)]; }
  std::array<std::array<Mean, 6>, kDepths + 1> means_;
};

}  // namespace aerie
