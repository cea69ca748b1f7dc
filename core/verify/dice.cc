#include "core/verify/dice.h"

#include "kernels/noise.h"

namespace aerie {

int32_t pick_by(double u, std::span<const double> weights, double total) {
  const double at = u * total;
  double sum = 0;
  int32_t last = -1;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    sum += weights[i];
    last = static_cast<int32_t>(i);
    if (at < sum) break;
  }
  return last;  // past the end through rounding: the last one that can be drawn
}

bool KeyedDice::accept(int64_t position, uint32_t lane, double probability) {
  return kernels::keyed_uniform(seed_, stream_, position, lane) < probability;
}

int32_t KeyedDice::pick(int64_t position, uint32_t lane, std::span<const double> weights, double total) {
  return pick_by(kernels::keyed_uniform(seed_, stream_, position, lane), weights, total);
}

}  // namespace aerie
