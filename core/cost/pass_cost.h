// What a pass over n rows costs on this machine now: measured once, then followed by every real pass.
#pragma once

#include <array>
#include <cstdint>

namespace aerie {

constexpr int32_t kMaxCostRows = 128;

class PassCost {
 public:
  bool known() const { return known_; }
  // A first measurement, or a table's value.
  void seed(int32_t rows, double ms);
  // A real pass. Mostly the whole curve is corrected, a little more its own row count: a machine that slows down slows every
  // pass. One measurement counts as at most twice or half of what was expected (a preempted pass says nothing).
  void measured(int32_t rows, double ms);
  // The expectation itself has changed (a longer context): every row count goes the way of its own; corrections stay.
  void rebase(const std::array<double, kMaxCostRows + 1>& from, const std::array<double, kMaxCostRows + 1>& to);
  // Expected milliseconds of a pass over `rows`; never falls with rows. 0 when nothing is known. 0 <= rows <= 128.
  double ms(int32_t rows) const { return curve_[static_cast<std::size_t>(rows)]; }
  const std::array<double, kMaxCostRows + 1>& curve() const { return curve_; }

 private:
  void rebuild();
  std::array<double, kMaxCostRows + 1> point_{};  // 0: not measured
  std::array<double, kMaxCostRows + 1> curve_{};
  bool known_ = false;
};

}  // namespace aerie
