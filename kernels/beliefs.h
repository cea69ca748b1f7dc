// How likely a drafted node is to come true, by what `auto` has learned (core/policy/node_values.h). The same bits on every
// backend: log and exp are our own, of floats; all else are doubles, each product and sum rounded.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

AERIE_HOST_DEVICE inline double between(double least, double x, double most) { return x < least ? least : x > most ? most : x; }
AERIE_HOST_DEVICE inline double log_odds(double p, double least) {
  p = between(least, p, 1 - least);
  return static_cast<double>(log_positive(static_cast<float>(p / (1 - p))));
}
AERIE_HOST_DEVICE inline double logistic(double odds) { return 1 / (1 + static_cast<double>(exp_own(static_cast<float>(-odds)))); }

// How often a confidence comes true, as straight lines between the middles of bins, which are even in log-odds from 1 % to 99 %,
// where candidates are. By depth of the parent (deeper ones share the last row), and apart for its best child and the others.
struct CalibrationCurves {
  static constexpr int kDepths = 6, kBins = 16, kRows = 2 * kDepths;
  double fit[kRows][kBins];
};
AERIE_HOST_DEVICE inline int calibration_row(int32_t depth, bool best) {
  constexpr int kDepths = CalibrationCurves::kDepths;
  return (depth < kDepths ? depth : kDepths - 1) + (best ? 0 : kDepths);
}
constexpr double kLowOdds = -4.6, kHighOdds = 4.6;
AERIE_HOST_DEVICE inline double calibration_bin(float confidence) {  // 0 at the lower end of the first one
  return (log_odds(static_cast<double>(confidence), 1e-6) - kLowOdds) / (kHighOdds - kLowOdds) * CalibrationCurves::kBins;
}
AERIE_HOST_DEVICE inline double calibration_middle(int bin) {
  return logistic(kLowOdds + (kHighOdds - kLowOdds) * (bin + 0.5) / CalibrationCurves::kBins);
}
AERIE_HOST_DEVICE inline double calibrated(const CalibrationCurves& curves, float confidence, int32_t depth, bool best) {
  constexpr int kBins = CalibrationCurves::kBins;
  const double* fit = curves.fit[calibration_row(depth, best)];
  const double at = calibration_bin(confidence) - 0.5;
  if (at <= 0) return fit[0] * std::min(1.0, static_cast<double>(confidence) / calibration_middle(0));  // in proportion
  if (at >= kBins - 1) return fit[kBins - 1];
  const int b = static_cast<int>(at);
  const double share = at - b;
  return std::min(fit[b] + (fit[b + 1] - fit[b]) * share, fit[b + 1]);  // never falling, not by a rounding either
}

// The chance of a best child is logistic in its calibrated log-odds (core/policy/mood.h): weight * these + base.
struct MoodNow {
  static constexpr double kLeast = 0.002;  // no chance is surer than this
  double base, weight;
};
AERIE_HOST_DEVICE inline double mood_chance(const MoodNow& mood, double usual) {
  return between(MoodNow::kLeast, logistic(mood.base + mood.weight * log_odds(usual, MoodNow::kLeast)), 1 - MoodNow::kLeast);
}

// What asking for another level brings depends on how sure the best node is that it starts from.
constexpr int kGainBuckets = 6;
AERIE_HOST_DEVICE inline int gain_bucket(double best) {
  return best < 0.4 ? 0 : best < 0.6 ? 1 : best < 0.75 ? 2 : best < 0.87 ? 3 : best < 0.95 ? 4 : 5;
}

struct GainByBest {
  double of[kGainBuckets];
};

struct Beliefs {
  CalibrationCurves child, path;  // of a child alone, and of it with all before it on its path
  MoodNow mood;
};

// The best child of a node, and how much likelier than usual its siblings are: what the mood gives to it, it takes from them.
struct BestChild {
  double chance, others;
};
AERIE_HOST_DEVICE inline BestChild best_child(const Beliefs& b, float confidence, int32_t depth) {
  const double usual = calibrated(b.child, confidence, depth, true), chance = mood_chance(b.mood, usual);
  return {chance, std::min(1 / usual, (1 - chance) / (1 - usual))};
}
AERIE_HOST_DEVICE inline double other_child(const Beliefs& b, float confidence, int32_t depth, const BestChild& best) {
  return calibrated(b.child, confidence, depth, false) * best.others;
}

// A path as a whole comes true more or less often than the chances along it multiply to. What is too unlikely for a row of
// its own need not be known so well.
constexpr float kUnlikely = 0.05f;
AERIE_HOST_DEVICE inline bool paths_matter(int32_t depth, float product) { return depth > 1 && product >= kUnlikely; }

// Of a node: the product of chances along its path, and how likely all of that is to come true.
struct PathChance {
  float product = 1, whole = 1;
};
AERIE_HOST_DEVICE inline PathChance path_chance(const Beliefs& b, const PathChance& parent, double chance, int32_t depth, bool best) {
  const auto product = static_cast<float>(static_cast<double>(parent.product) * std::min(chance, 1.0));
  const float whole = paths_matter(depth, product) ? static_cast<float>(calibrated(b.path, product, depth - 1, best)) : product;
  return {product, std::min(whole, parent.whole)};
}

}  // namespace aerie::kernels
