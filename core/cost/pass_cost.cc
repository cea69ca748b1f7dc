#include "core/cost/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {
constexpr double kGlobal = 0.3, kLocal = 0.08;  // of the newest pass's log ratio
constexpr double kForget = 0.08;                // of a row count's own correction at each of its passes
}  // namespace

void PassCost::seed(int32_t rows, double ms) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  const auto at = static_cast<size_t>(rows);
  base_[at] = ms;
  local_[at] = -global_;  // it is what it is
  known_ = true;
  rebuild();
}

void PassCost::measured(int32_t rows, double ms) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  if (!known_) return seed(rows, ms);
  const auto at = static_cast<size_t>(rows);
  const double off = std::log(std::clamp(ms / curve_[at], 0.5, 2.0));
  if (base_[at] == 0) base_[at] = curve_[at] / std::exp(global_);
  global_ += kGlobal * off;
  local_[at] += kLocal * off - kForget * local_[at];
  rebuild();
}

void PassCost::rebase(const Curve& from, const Curve& to) {
  if (!known_) return;
  for (size_t n = 1; n < base_.size(); ++n)
    if (from[n] > 0 && to[n] > 0) base_[n] *= to[n] / from[n];
  rebuild();
}

// Straight lines between measured row counts. Before the first one: its value; after the last: the mean cost of a row
// beyond the first measured count goes on.
void PassCost::rebuild() {
  Curve point{};
  for (size_t n = 1; n < point.size(); ++n)
    if (base_[n] > 0) point[n] = base_[n] * std::exp(global_ + local_[n]);
  int32_t before = 0;
  for (int32_t n = 1; n <= kMaxCostRows; ++n) {
    const auto at = static_cast<size_t>(n);
    if (point[at] == 0) continue;
    for (int32_t i = before + 1; i <= n; ++i) {
      const double left = before ? curve_[static_cast<size_t>(before)] : point[at];
      const double share = before ? static_cast<double>(i - before) / (n - before) : 1.0;
      curve_[static_cast<size_t>(i)] = left + (std::max(point[at], left) - left) * share;
    }
    before = n;
  }
  int32_t first = 1;
  while (first < before && point[static_cast<size_t>(first)] == 0) ++first;
  const double last = curve_[static_cast<size_t>(before)];
  const double slope = before > first ? (last - curve_[static_cast<size_t>(first)]) / (before - first) : last * 0.1;
  for (int32_t i = before + 1; i <= kMaxCostRows; ++i) curve_[static_cast<size_t>(i)] = last + slope * (i - before);
  curve_[0] = 0;
}

}  // namespace aerie
