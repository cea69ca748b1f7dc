// Means of what came of asking a drafter for one more level, learned from cycles that did.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/beliefs.h"

namespace aerie {

// By depth, and by the best of the nodes asked about: the surer it is, the more often it goes on from there. What nothing is
// known about yet is as the level before, the first as `prior`.
class LevelMeans {
 public:
  static constexpr int32_t kDepths = 16;

  explicit LevelMeans(double prior) : prior_(prior) {}
  double of(int32_t depth, double best) const {
    double at = prior_;
    for (int32_t d = 1; d <= depth; ++d) at = after(at, means_[static_cast<size_t>(d)][bucket(best)]);
    return at;
  }
  // all[d].of[b] = of(d, any best of that bucket), d from 1 to `depth`.
  void all(int32_t depth, std::span<kernels::GainByBest> all) const {
    for (size_t b = 0; b < kernels::kGainBuckets; ++b) {
      double at = prior_;
      for (size_t d = 1; d <= static_cast<size_t>(depth); ++d) all[d].of[b] = at = after(at, means_[d][b]);
    }
  }
  void learn(int32_t depth, double best, double came) {
    Mean& m = means_[static_cast<size_t>(depth)][bucket(best)];
    m.count = std::min(m.count + 1, kMemory);
    m.mean += (came - m.mean) / m.count;
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
  static constexpr double kTrust = 4, kMemory = 40;
  static size_t bucket(double best) { return static_cast<size_t>(kernels::gain_bucket(best)); }
  static double after(double at, const Mean& m) { return (m.count * m.mean + kTrust * at) / (m.count + kTrust); }
  double prior_;
  std::array<std::array<Mean, kernels::kGainBuckets>, kDepths + 1> means_;
};

}  // namespace aerie
