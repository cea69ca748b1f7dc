// What draft passes cost a session of a batch, beside what they would if all sessions asked for each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/policy/level_gain.h"

namespace aerie {

// By level below the first: the fewer sessions go so deep, the greater is the share of a pass that each has to pay. The
// newest passes decide; a level that nobody asks for stays as it was.
class Company {
 public:
  static constexpr int32_t kLevels = LevelGain::kDepths;
  Company() { times_.fill(1); }
  // So many times what a pass of all sessions would cost.
  double times(int32_t level) const { return times_[static_cast<size_t>(level)]; }
  void learn(int32_t level, double times) {
    double& t = times_[static_cast<size_t>(level)];
    t += kNewest * (times - t);
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& t : self.times_) f(t, 0, 1e6);
  }

 private:
  static constexpr double kNewest = 0.05;
  std::array<double, kLevels + 1> times_{};
};

}  // namespace aerie
