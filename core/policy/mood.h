// What the text is like just now, beside what it is like on the whole. Texts have easy stretches (a loop, a quotation) and
// hard ones, and how often the best child came true lately says more about the next one than a confidence does.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/beliefs.h"

namespace aerie {

// The share of best children that came true lately: of the newest fifteen and fifty or so. Of one text.
struct Stretch {
  std::array<double, 2> share{0.5, 0.5};
  int32_t seen = 0;
  void learn(bool taken);
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& s : self.share) f(s, 0, 1);
    f(self.seen, 0, 1000);
  }
};

// The chance of a best child is logistic in its calibrated log-odds and those of the stretch's shares. The weights are
// learned by Newton steps.
class Mood {
 public:
  double chance(double calibrated, const Stretch& stretch) const { return kernels::mood_chance(in(stretch), calibrated); }
  kernels::MoodNow in(const Stretch& stretch) const;
  // A best child that the walk came to: what calibration gave it, and was it taken?
  void learn(double calibrated, const Stretch& stretch, bool taken);

  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& w : self.weight_) f(w, -1e6, 1e6);
    for (auto& row : self.spread_)
      for (auto& s : row) f(s, -1e6, 1e6);
  }

 private:
  using Row = std::array<double, 4>;
  static Row features(double calibrated, const Stretch& stretch);
  Row weight_{0, 1, 0.4, 0.3};
  std::array<Row, 4> spread_{Row{0.2, 0, 0, 0}, Row{0, 0.03, 0, 0}, Row{0, 0, 0.1, 0}, Row{0, 0, 0, 0.1}};  // their covariance
};

}  // namespace aerie
