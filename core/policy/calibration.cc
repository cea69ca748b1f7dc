#include "core/policy/calibration.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr double kPrior = 3;     // tries that the confidence itself counts for
constexpr double kTriesKept = 400;  // tries a bin remembers

}  // namespace

Calibration::Calibration() {
  for (auto& row : bins_)
    for (int b = 0; b < kBins; ++b) row[static_cast<size_t>(b)] = {kPrior, kPrior * kernels::calibration_middle(b)};
  touched_ = (1u << kRows) - 1;
  refit();
}

void Calibration::learn(float confidence, int32_t depth, bool best, bool taken) {
  const int row = kernels::calibration_row(depth, best);
  const double at = std::clamp(kernels::calibration_bin(confidence), 0.0, kBins - 1.0);
  Bin& bin = bins_[static_cast<size_t>(row)][static_cast<size_t>(at)];
  if (bin.tried > kTriesKept) {
    bin.taken *= kTriesKept / (kTriesKept + 1);
    bin.tried *= kTriesKept / (kTriesKept + 1);
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
        curves_.fit[r][b++] = p.taken / p.tried;
      }
  }
  touched_ = 0;
}

}  // namespace aerie
