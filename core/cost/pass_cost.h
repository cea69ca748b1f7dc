// What a pass over n rows costs on this machine now: measured once, then followed by every real pass.
#pragma once

#include <array>
#include <cstdint>

namespace aerie {

constexpr int32_t kMaxCostRows = 128;

class PassCost {
 public:
  using Curve = std::array<double, kMaxCostRows + 1>;

  bool known() const { return known_; }
  // A first measurement, or a table's value.
  void seed(int32_t rows, double ms);
  // A real pass: an exponential mean of measured over expected. Mostly the whole curve is corrected, a little more its own
  // row count: a machine that slows down slows every pass, and what is not confirmed by other row counts goes over to all of
  // them. One measurement counts as at most twice or half of what was expected (a preempted pass says nothing).
  void measured(int32_t rows, double ms);
  // The expectation itself has changed (a longer context): every row count goes the way of its own; corrections stay.
  void rebase(const Curve& from, const Curve& to);
  // Expected milliseconds of a pass over `rows`; never falls with rows. 0 when nothing is known. 0 <= rows <= 128.
  double ms(int32_t rows) const { return curve_[static_cast<std::size_t>(rows)]; }
  const Curve& curve() const { return curve_; }

 private:
  void rebuild();
  Curve base_{};   // expected where seeded or seen; 0: not
  Curve local_{};  // log of a row count's own correction
  double global_ = 0;  // log of the correction of all
  Curve curve_{};
  bool known_ = false;
};

}  // namespace aerie
