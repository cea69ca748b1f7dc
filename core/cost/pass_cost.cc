#include "core/cost/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {
// Standard deviations of logarithms.
constexpr double kNoise = 0.05;     // of one pass
constexpr double kMachine = 0.018;  // by which the machine's speed may have changed since the pass before
constexpr double kPause = 0.1;      // or while no pass was seen
constexpr double kBetween = 0.05;   // of a row count between measured ones, or of any when rows are of more sequences
constexpr double kDrift = 0.0005;   // by which that may have changed since the pass before
// In passes over one row.
constexpr double kEach = 0.05;      // what another sequence may add
}  // namespace

void PassCost::seed(int32_t rows, double ms, double unsure) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  const auto at = static_cast<size_t>(rows);
  base_[at] = ms;
  local_[at] = -global_;  // it is what it is
  correct_own(at);
  unsure_[at] = unsure * unsure;
  if (!known_) resume();
  known_ = true;
  rebuild();
}

// The gains of a Kalman filter whose state is the correction of all and those of each row count, taken as independent.
void PassCost::measured(int32_t rows, double ms) {
  if (rows < 1 || rows > kMaxCostRows || !(ms > 0) || !std::isfinite(ms)) return;
  if (!known_) return seed(rows, ms);
  const auto at = static_cast<size_t>(rows);
  if (base_[at] == 0) {
    base_[at] = curve_[at] / std::exp(global_) - extra(rows);
    unsure_[at] = kBetween * kBetween;
  }
  const double off = std::log(std::clamp(ms / curve_[at], 0.5, 2.0));
  // What a little more of a row count's own correction, and of what a sequence adds, does to the logarithm.
  const double all_ms = std::exp(global_) / curve_[at], own = 1 - extra(rows) * all_ms, more = further(rows) * first_ms() * all_ms;
  global_unsure_ += kMachine * kMachine;
  for (double& u : unsure_) u = std::min(kMeasuredQuickly * kMeasuredQuickly, u + kDrift * kDrift);
  const double all = global_unsure_ + own * own * unsure_[at] + more * more * each_unsure_ + kNoise * kNoise;
  const auto correct = [&](double effect, double* value, double* unsure) {
    const double gain = effect * *unsure / all;
    *value += gain * off;
    *unsure -= gain * effect * *unsure;
  };
  correct(own, &local_[at], &unsure_[at]);
  correct(1, &global_, &global_unsure_);
  correct(more, &each_, &each_unsure_);
  each_ = std::max(each_, 0.0);
  correct_own(at);
  rebuild();
}

void PassCost::regroup(int32_t sequences) {
  for (double& u : unsure_) u = std::max(u, kBetween * kBetween);
  if (sequences_ == 1 && each_ == 0) each_unsure_ = kEach * kEach;
  sequences_ = sequences;
  if (known_) rebuild();
}

double PassCost::first_ms() const {
  const auto first = std::find_if(base_.begin(), base_.end(), [](double ms) { return ms > 0; });
  return first == base_.end() ? 0 : *first;
}

double PassCost::extra(int32_t rows) const { return further(rows) * each_ * first_ms(); }

void PassCost::resume() { global_unsure_ = kPause * kPause; }

void PassCost::rebase(const Curve& from, const Curve& to) {
  if (!known_) return;
  for (size_t n = 1; n < base_.size(); ++n) {
    if (from[n] > 0 && to[n] > 0) base_[n] *= to[n] / from[n];
    correct_own(n);
  }
  rebuild();
}

// Straight lines between measured row counts. Before the first one: its value; after the last: the mean cost of a row
// beyond the first measured count goes on.
void PassCost::rebuild() {
  const double all = std::exp(global_);
  size_t first = 0, before = 0;
  const auto line = [&](size_t to, double step) {
    for (size_t i = before + 1; i < to; ++i) curve_[i] = curve_[before] + step * static_cast<double>(i - before);
  };
  for (size_t n = 1; n < curve_.size(); ++n) {
    if (base_[n] == 0) continue;
    const double point = all * (own_[n] + extra(static_cast<int32_t>(n)));
    if (before == 0) {
      first = n;
      std::fill_n(curve_.begin() + 1, n, point);
    } else {
      curve_[n] = std::max(point, curve_[before]);
      line(n, (curve_[n] - curve_[before]) / static_cast<double>(n - before));
    }
    before = n;
  }
  const double last = curve_[before];
  line(curve_.size(), before > first ? (last - curve_[first]) / static_cast<double>(before - first) : last * 0.1);
  curve_[0] = 0;
}

}  // namespace aerie
