#include "core/policy/calibration.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {

constexpr double kPrior = 3;     // tries that the confidence itself counts for
constexpr double kMemory = 400;  // tries a bin remembers

// Bins are even in log-odds from 1 % to 99 %, where candidates are.
constexpr double kLow = -4.6, kHigh = 4.6;

double odds(double p) {
  p = std::clamp(p, 1e-6, 1 - 1e-6);
  return std::log(p / (1 - p));
}
double middle(int bin) {
  const double o = kLow + (kHigh - kLow) * (bin + 0.5) / Calibration::kBins;
  return 1 / (1 + std::exp(-o));
}

}  // namespace

int Calibration::bin_of(float confidence) {
  const double at = (odds(static_cast<double>(confidence)) - kLow) / (kHigh - kLow) * kBins;
  return static_cast<int>(std::clamp(at, 0.0, kBins - 1.0));
}

Calibration::Calibration() {
  for (auto& row : bins_)
    for (int b = 0; b < kBins; ++b) row[static_cast<size_t>(b)] = {kPrior, kPrior * middle(b)};
  touched_ = (1u << kRows) - 1;
  refit();
}

double Calibration::probability(float confidence, int32_t depth, bool best) const {
  const auto& row = fit_[static_cast<size_t>(row_of(depth, best))];
  // Between the middles of bins, straight in log-odds; outside, in proportion.
  const double at = (odds(static_cast<double>(confidence)) - kLow) / (kHigh - kLow) * kBins - 0.5;
  if (at <= 0) return row[0] * std::min(1.0, static_cast<double>(confidence) / middle(0));
  if (at >= kBins - 1) return row[kBins - 1];
  const auto b = static_cast<size_t>(at);
  const double share = at - static_cast<double>(b);
  return row[b] * (1 - share) + row[b + 1] * share;
}

void Calibration::learn(float confidence, int32_t depth, bool best, bool taken) {
  const int row = row_of(depth, best);
  Bin& bin = bins_[static_cast<size_t>(row)][static_cast<size_t>(bin_of(confidence))];
  if (bin.tried > kMemory) {
    bin.taken *= kMemory / (kMemory + 1);
    bin.tried *= kMemory / (kMemory + 1);
  }
  bin.tried += 1;
  bin.taken += taken;
  touched_ |= 1u << row;
}

// Isotonic regression by pooling neighbours that fall (pool adjacent violators).
void Calibration::refit() {
  for (int r = 0; r < kRows; ++r) {
    if (!(touched_ >> r & 1)) continue;
    std::array<Bin, kBins> pool;
    std::array<int, kBins> count;
    int n = 0;
    for (const Bin& b : bins_[static_cast<size_t>(r)]) {
      pool[static_cast<size_t>(n)] = b;
      count[static_cast<size_t>(n)] = 1;
      ++n;
      while (n > 1) {
        Bin &left = pool[static_cast<size_t>(n) - 2], &right = pool[static_cast<size_t>(n) - 1];
        if (left.taken * right.tried <= right.taken * left.tried) break;
        left = {left.tried + right.tried, left.taken + right.taken};
        count[static_cast<size_t>(n) - 2] += count[static_cast<size_t>(n) - 1];
        --n;
      }
    }
    size_t b = 0;
    for (int i = 0; i < n; ++i)
      for (int c = 0; c < count[static_cast<size_t>(i)]; ++c) {
        const Bin& p = pool[static_cast<size_t>(i)];
        fit_[static_cast<size_t>(r)][b++] = p.taken / p.tried;
      }
  }
  touched_ = 0;
}

}  // namespace aerie
