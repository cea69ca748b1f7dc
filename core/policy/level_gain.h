// What asking a drafter for one more level brings, learned from cycles that did.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/beliefs.h"

namespace aerie {

// In tokens net of what the deeper nodes cost to verify and of later draft passes, for each token that the nodes asked
// about were expected to bring themselves. By depth, and by the best of these nodes: the surer it is, the more often it
// goes on from there. What nothing is known about yet is as the level before.
class LevelGain {
 public:
  static constexpr int32_t kDepths = 16;

  double of(int32_t depth, double best) const {
    double gain = kPrior;
    for (int32_t d = 1; d <= depth; ++d) gain = after(gain, means_[static_cast<size_t>(d)][bucket(best)]);
    return gain;
  }
  // gain[d].of[b] = of(d, any best of that bucket), d from 1 to `depth`.
  void all(int32_t depth, std::span<kernels::GainByBest> gain) const {
    for (size_t b = 0; b < kernels::kGainBuckets; ++b) {
      double g = kPrior;
      for (size_t d = 1; d <= static_cast<size_t>(depth); ++d) gain[d].of[b] = g = after(g, means_[d][b]);
    }
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
  static size_t bucket(double best) { return static_cast<size_t>(kernels::gain_bucket(best)); }
  static double after(double gain, const Mean& m) { return (m.count * m.mean + kTrust * gain) / (m.count + kTrust); }
  std::array<std::array<Mean, kernels::kGainBuckets>, kDepths + 1> means_;
};

}  // namespace aerie
