// What a pass over n rows costs on this machine now: measured once, then followed by every real pass.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace aerie {

constexpr int32_t kMaxCostRows = 128;

// What a measured row count may be off by against the others: the standard deviation of its logarithm.
constexpr double kMeasuredWell = 0.03, kMeasuredQuickly = 0.12;

class PassCost {
 public:
  using Curve = std::array<double, kMaxCostRows + 1>;

  bool known() const { return known_; }
  // A first measurement, or a table's value.
  void seed(int32_t rows, double ms, double unsure = kMeasuredWell);
  // A real pass: what it took beside what was expected corrects the whole curve (a machine that slows down slows every pass)
  // and, the less is known of it, its own row count. That own correction lasts while other row counts are passed: a machine
  // that measured one badly is told so once. One measurement counts as at most twice or half of what was expected (a
  // preempted pass says nothing).
  void measured(int32_t rows, double ms);
  // Some time has passed, in which the machine may have become busy, or idle.
  void resume();
  // Rows are now of so many sequences: a pass takes so much longer for each of them, and row counts may compare otherwise than
  // they did. What a sequence adds is learned from passes over several.
  void regroup(int32_t sequences);
  // The expectation itself has changed (a longer context): every row count goes the way of its own; corrections stay.
  void rebase(const Curve& from, const Curve& to);
  // Expected milliseconds of a pass over `rows`; never falls with rows. 0 when nothing is known. 0 <= rows <= 128.
  double ms(int32_t rows) const { return curve_[static_cast<std::size_t>(rows)]; }
  const Curve& curve() const { return curve_; }

 private:
  void rebuild();
  void correct_own(size_t at) { own_[at] = base_[at] * std::exp(local_[at]); }
  int32_t further(int32_t rows) const { return std::min(rows, sequences_) - 1; }  // sequences in a pass, the first one aside
  double first_ms() const;           // of the least row count, before the correction of all; likewise:
  double extra(int32_t rows) const;  // what further sequences add
  Curve base_{};       // expected where seeded or seen; 0: not
  Curve local_{};      // log of a row count's own correction
  Curve own_{};        // base_ with it
  double global_ = 0;  // log of the correction of all
  Curve unsure_{};     // variances of the local ones
  double global_unsure_ = 0;  // variance
  int32_t sequences_ = 1;
  double each_ = 0, each_unsure_ = 0;  // what each sequence but the first adds, of the pass over one row; its variance
  Curve curve_{};
  bool known_ = false;
};

}  // namespace aerie
