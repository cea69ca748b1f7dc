// CAST's selection rule over lists (kernels/worth.h).
#pragma once

#include <span>

#include "kernels/worth.h"

namespace aerie {

// utility[k], cost[k]: of keeping the best k + 1 nodes. How many to keep; 0 for no node.
inline int32_t worth_keeping(std::span<const double> utility, std::span<const double> cost, double threshold) {
  kernels::WorthKeeping worth{threshold};
  for (size_t k = 0; k < utility.size(); ++k) worth.tell(utility[k], cost[k]);
  return worth.count;
}

}  // namespace aerie
