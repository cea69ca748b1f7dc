// LevelHabit: how many levels of its tree a policy that weighs as it goes asks for in nearly every cycle, and in any.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace aerie {

class LevelHabit {
 public:
  void asked(int32_t levels) {
    cycles_ = std::min(cycles_ + 1, kMemory);
    for (int32_t l = 0; l < kLevels; ++l) {
      double& share = share_[static_cast<size_t>(l)];
      share += ((l < levels ? 1 : 0) - share) / cycles_;
    }
  }
  // A pass that nobody asks for is taken to cost several times what reading one back would have.
  int32_t sure() const {
    return asked_in(kSure);
  }
  // For a plan that a device runs by itself: one more than any of the last dozen cycles asked for; before the first, all. An even
  // number, since levels that are passed over take less time than another plan does to make.
  int32_t room() const { return cycles_ == 0 ? kLevels : (asked_in(kRare) + 2) / 2 * 2; }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    f(self.cycles_, 0, kMemory);
    for (auto& share : self.share_) f(share, 0, 1);
  }

 private:
  int32_t asked_in(double share) const {
    return static_cast<int32_t>(std::find_if(share_.begin(), share_.end(), [=](double s) { return s < share; }) - share_.begin());
  }
  static constexpr int32_t kLevels = 64;
  static constexpr double kMemory = 16, kSure = 0.85, kRare = 0.03;
  double cycles_ = 0;
  std::array<double, kLevels> share_{};  // of cycles that asked for this level
};

}  // namespace aerie
