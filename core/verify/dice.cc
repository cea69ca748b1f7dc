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

double KeyedDice::uniform(int64_t position, uint32_t lane) const {
  constexpr uint64_t kLanes = 1 << 12;  // per depth; multi_round.h uses less
  const auto depth = static_cast<uint64_t>(position - root_position_);
  return kernels::keyed_uniform(seed_, stream_, position, static_cast<uint32_t>((depth * kLanes + lane) & 0x7fffffffu));
}

bool KeyedDice::accept(int64_t position, uint32_t lane, double probability) {
  return uniform(position, lane) < probability;
}

int32_t KeyedDice::pick(int64_t position, uint32_t lane, std::span<const double> weights, double total) {
  return pick_by(uniform(position, lane), weights, total);
}

}  // namespace aerie
