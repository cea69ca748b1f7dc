#include "core/cost/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {
constexpr double kLocal = 0.3, kGlobal = 0.2;  // exponents of measured / expected
}

void PassCost::seed(int32_t rows, double ms) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  point_[static_cast<size_t>(rows)] = ms;
  known_ = true;
  rebuild();
}

void PassCost::measured(int32_t rows, double ms) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  if (!known_) return seed(rows, ms);
  const double ratio = std::clamp(ms / curve_[static_cast<size_t>(rows)], 0.5, 2.0);
  double& here = point_[static_cast<size_t>(rows)];
  if (here == 0) here = curve_[static_cast<size_t>(rows)];
  for (double& p : point_) p *= std::pow(ratio, kGlobal);
  here *= std::pow(ratio, kLocal - kGlobal);
  rebuild();
}

void PassCost::rebase(const std::array<double, kMaxCostRows + 1>& from, const std::array<double, kMaxCostRows + 1>& to) {
  if (!known_) return;
  for (size_t n = 1; n < point_.size(); ++n)
    if (from[n] > 0 && to[n] > 0) point_[n] *= to[n] / from[n];
  rebuild();
}

// Straight lines between measured row counts. Before the first one: its value; after the last: the mean cost of a row
// beyond the first measured count goes on.
void PassCost::rebuild() {
  int32_t before = 0;
  for (int32_t n = 1; n <= kMaxCostRows; ++n) {
    const auto at = static_cast<size_t>(n);
    if (point_[at] == 0) continue;
    for (int32_t i = before + 1; i <= n; ++i) {
      const double left = before ? curve_[static_cast<size_t>(before)] : point_[at];
      const double share = before ? static_cast<double>(i - before) / (n - before) : 1.0;
      curve_[static_cast<size_t>(i)] = left + (std::max(point_[at], left) - left) * share;
    }
    before = n;
  }
  int32_t first = 1;
  while (first < before && point_[static_cast<size_t>(first)] == 0) ++first;
  const double last = curve_[static_cast<size_t>(before)];
  const double slope = before > first ? (last - curve_[static_cast<size_t>(first)]) / (before - first) : last * 0.1;
  for (int32_t i = before + 1; i <= kMaxCostRows; ++i) curve_[static_cast<size_t>(i)] = last + slope * (i - before);
  curve_[0] = 0;
}

}  // namespace aerie
