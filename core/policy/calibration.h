// How often a confidence comes true, learned while drafting: by depth, apart for a node's best child and the others
// (whose confidences mean something else), never falling with confidence.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/beliefs.h"

namespace aerie {

class Calibration {
 public:
  Calibration();
  // The share of candidates with this confidence, as children of a node at `depth`, that the target took.
  double probability(float confidence, int32_t depth, bool best) const {
    return kernels::calibrated(curves_, confidence, depth, best);
  }
  const kernels::CalibrationCurves& curves() const { return curves_; }
  // A child of a node that the walk came to: was it the one taken?
  void learn(float confidence, int32_t depth, bool best, bool taken);
  void refit();  // after a cycle's lessons
  // For policy_memory.h; refit() is to follow.
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& row : self.bins_)
      for (auto& bin : row) {
        f(bin.tried, 1e-3, 1e9);
        f(bin.taken, 0, bin.tried * 1.000001);
      }
    if constexpr (!std::is_const_v<Self>) self.touched_ = (1u << kRows) - 1;
  }

 private:
  static constexpr int kRows = kernels::CalibrationCurves::kRows, kBins = kernels::CalibrationCurves::kBins;
  struct Bin {
    double tried, taken;
  };
  std::array<std::array<Bin, kBins>, kRows> bins_;
  kernels::CalibrationCurves curves_;
  uint32_t touched_ = 0;
};

}  // namespace aerie
