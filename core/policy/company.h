// What draft passes cost a session of a batch, beside what they would if all sessions asked for each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/policy/level_gain.h"

namespace aerie {

// By level below the first: the fewer sessions go so deep, the greater is the share of a pass that each has to pay. The
// newest passes decide. Who does not ask forgets: else a level that one had to pay for alone would be too dear for each of them
// for ever, though it pays for all together.
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
  void unasked(int32_t level, int32_t sessions) {
    double& t = times_[static_cast<size_t>(level)];
    t += kForget / sessions * (1 - t);
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& t : self.times_) f(t, 0, 1e6);
  }

 private:
  static constexpr double kNewest = 0.05;
  static constexpr double kForget = 0.01;  // of what all sessions together know
  std::array<double, kLevels + 1> times_{};
};

}  // namespace aerie
