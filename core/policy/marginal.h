// CAST's selection rule (CAST, Algorithm 1): how many of the best nodes are worth their cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie {

// utility[k], cost[k]: of keeping the best k + 1 nodes, cost not falling. How many to keep; 0 for no node. The paper keeps the
// largest j all of whose slopes (u_j - u_i) / (c_j - c_i), i < j, are at least `threshold`. That is the last j with the greatest
// utility - threshold * cost (equal on every input, tested), which needs no division and bears equal costs.
inline int32_t worth_keeping(std::span<const double> utility, std::span<const double> cost, double threshold) {
  int32_t count = 0;
  double most = 0;
  for (size_t k = 0; k < utility.size(); ++k) {
    const double net = utility[k] - threshold * cost[k];
    if (count == 0 || net >= most) count = static_cast<int32_t>(k) + 1, most = net;
  }
  return count;
}

}  // namespace aerie
