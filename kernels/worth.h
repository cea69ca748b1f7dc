// CAST's selection rule (CAST, Algorithm 1): how many of the best nodes are worth their cost. The same bits on every
// backend: doubles, each product and sum rounded.
#pragma once

#include <cstdint>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

// Told utility and cost of keeping the best 1, 2, ... nodes, cost not falling. The paper keeps the largest j all of whose
// slopes (u_j - u_i) / (c_j - c_i), i < j, are at least `threshold`. That is the last j with the greatest utility -
// threshold * cost (equal on every input, tested), which needs no division and bears equal costs.
struct WorthKeeping {
  double threshold;
  int32_t told = 0, count = 0;  // count: of the best nodes, so many
  double most = 0;
  AERIE_HOST_DEVICE void tell(double utility, double cost) {
    const double net = utility - threshold * cost;
    ++told;
    if (count == 0 || net >= most) count = told, most = net;
  }
};

AERIE_HOST_DEVICE inline bool pays(double utility, double cost, double threshold) { return !(utility < threshold * cost); }

}  // namespace aerie::kernels
