// Which experts a row takes, and how much they count (Route in ops.h): the host's way. A device's threads may share the work, in
// the same order of sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/scalar_math.h"

namespace aerie::kernels {

// Whether the first of two experts is taken before the second.
AERIE_HOST_DEVICE inline bool comes_before(float logit, int64_t expert, float other_logit, int64_t other) {
  return logit > other_logit || (logit == other_logit && expert < other);
}

// logits (n); experts, weights (k).
inline void route_row(const float* logits, int64_t n, int32_t k, bool normed, int32_t* experts, float* weights) {
  bool finite = true;
  for (int64_t e = 0; e < n; ++e) finite = finite && std::isfinite(logits[e]);
  if (!finite) {
    for (int32_t i = 0; i < k; ++i) experts[i] = i, weights[i] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  // Each goes behind those that are as large.
  int32_t taken = 0;
  for (int64_t e = 0; e < n; ++e) {
    const auto before = [&](int32_t i) { return comes_before(logits[e], e, logits[experts[i]], experts[i]); };
    if (taken == k && !before(k - 1)) continue;
    int32_t at = taken < k ? taken++ : k - 1;
    for (; at > 0 && before(at - 1); --at) experts[at] = experts[at - 1];
    experts[at] = static_cast<int32_t>(e);
  }
  const float top = logits[experts[0]];
  float sum = 0;
  if (normed) {
    for (int32_t i = 0; i < k; ++i) sum += exp_own(logits[experts[i]] - top);
  } else {
    for (int64_t e = 0; e < n; ++e) sum += exp_own(logits[e] - top);
  }
  for (int32_t i = 0; i < k; ++i) weights[i] = exp_own(logits[experts[i]] - top) / sum;
}

}  // namespace aerie::kernels
