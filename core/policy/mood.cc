#include "core/policy/mood.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {

constexpr double kLately[] = {0.06, 0.02};  // weight of the newest best child
constexpr double kForget = 0.998;           // of the evidence for the weights, at each step
constexpr double kMostSpread = 2;           // trace beyond which nothing more is forgotten
constexpr double kLeastShare = 0.02;
constexpr double kLeastSlope = 1e-9;
constexpr double kLeastNoise = 0.5;  // in units of a draw's own: with a spread that is one, 1 and more

}  // namespace

void Stretch::learn(bool taken) {
  if (seen < 1000) ++seen;
  for (size_t i = 0; i < share.size(); ++i) share[i] += std::max(kLately[i], 1.0 / (seen + 2)) * ((taken ? 1 : 0) - share[i]);
}

Mood::Row Mood::features(double calibrated, const Stretch& s) {
  return {1, kernels::log_odds(calibrated, kernels::MoodNow::kLeast), kernels::log_odds(s.share[0], kLeastShare),
          kernels::log_odds(s.share[1], kLeastShare)};
}

kernels::MoodNow Mood::in(const Stretch& stretch) const {
  const Row x = features(0.5, stretch);
  return {weight_[0] + weight_[2] * x[2] + weight_[3] * x[3], weight_[1]};
}

// Kalman's filter for logistic regression: a step along spread * x, which narrows the spread that way.
void Mood::learn(double calibrated, const Stretch& stretch, bool taken) {
  const Row x = features(calibrated, stretch);
  const double p = chance(calibrated, stretch), slope = p * (1 - p);
  if (!(slope > kLeastSlope)) return;  // so sure that nothing is to be learned from it
  Row along{};
  double noise = 1 / slope;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) along[i] += spread_[i][j] * x[j];
    noise += along[i] * x[i];
  }
  double trace = 0;
  if (!(noise * slope >= kLeastNoise)) return;  // no spread of weights: an image's, at the most
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) spread_[i][j] -= along[i] * along[j] / noise;
    weight_[i] += along[i] / noise / slope * ((taken ? 1 : 0) - p);
    trace += spread_[i][i];
  }
  if (trace > kMostSpread) return;
  for (Row& row : spread_)
    for (double& s : row) s /= kForget;
}

}  // namespace aerie
