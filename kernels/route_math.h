// Which experts a row takes, and how much they count (Route in ops.h): the host's way. A device's threads may share the work, in
// the same order of sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels {

// Whether the first of two experts is taken before the second.
AERIE_HOST_DEVICE inline bool comes_before(float key, int64_t expert, float other_key, int64_t other) {
  return key > other_key || (key == other_key && expert < other);
}

AERIE_HOST_DEVICE inline float sigmoid(float x) { return 1.0f / (1.0f + exp_own(-x)); }

// Weights are over the sum of those taken, which sigmoids may make as small as they like.
constexpr float kLeastScores = 1e-20f;

// The k experts of the largest keys (n).
inline void take_experts(const float* keys, int64_t n, int32_t k, int32_t* experts) {
  // Each goes behind those that are as large.
  int32_t taken = 0;
  for (int64_t e = 0; e < n; ++e) {
    const auto before = [&](int32_t i) { return comes_before(keys[e], e, keys[experts[i]], experts[i]); };
    if (taken == k && !before(k - 1)) continue;
    int32_t at = taken < k ? taken++ : k - 1;
    for (; at > 0 && before(at - 1); --at) experts[at] = experts[at - 1];
    experts[at] = static_cast<int32_t>(e);
  }
}

// What an expert counts besides.
AERIE_HOST_DEVICE inline float gain_of(const Route& op, int32_t expert) { return op.gain ? static_cast<const float*>(op.gain.data)[expert] : 1.0f; }

// Row r. A softmax without choice takes by logits, of which no two become one number.
inline void route_row(const Route& op, int64_t r) {
  const float* logits = static_cast<const float*>(op.logits.data) + r * op.logits.stride;
  float* weights = static_cast<float*>(op.weights.data) + r * op.weights.stride;
  int32_t* experts = op.experts + r * op.k;
  const int64_t n = op.logits.cols;
  const int32_t k = op.k;
  bool finite = true;
  for (int64_t e = 0; e < n; ++e) finite = finite && std::isfinite(logits[e]);
  if (!finite) {
    for (int32_t i = 0; i < k; ++i) experts[i] = i, weights[i] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  if (!op.sigmoid && !op.choice) {
    take_experts(logits, n, k, experts);
    const float top = logits[experts[0]];
    float sum = 0;
    if (op.normed) {
      for (int32_t i = 0; i < k; ++i) sum += exp_own(logits[experts[i]] - top);
    } else {
      for (int64_t e = 0; e < n; ++e) sum += exp_own(logits[e] - top);
    }
    for (int32_t i = 0; i < k; ++i) weights[i] = exp_own(logits[experts[i]] - top) / sum * op.scale * gain_of(op, experts[i]);
    return;
  }
  float scores[kMaxExperts], keys[kMaxExperts];
  if (op.sigmoid) {
    for (int64_t e = 0; e < n; ++e) scores[e] = sigmoid(logits[e]);
  } else {
    float top = logits[0], sum = 0;
    for (int64_t e = 1; e < n; ++e) top = logits[e] > top ? logits[e] : top;
    for (int64_t e = 0; e < n; ++e) sum += scores[e] = exp_own(logits[e] - top);
    for (int64_t e = 0; e < n; ++e) scores[e] = scores[e] / sum;
  }
  for (int64_t e = 0; e < n; ++e) keys[e] = op.choice ? scores[e] + static_cast<const float*>(op.choice.data)[e] : scores[e];
  take_experts(keys, n, k, experts);
  float sum = 0;
  for (int32_t i = 0; i < k; ++i) sum += scores[experts[i]];
  for (int32_t i = 0; i < k; ++i) weights[i] = (op.normed ? scores[experts[i]] / (sum + kLeastScores) : scores[experts[i]]) * op.scale * gain_of(op, experts[i]);
}

}  // namespace aerie::kernels
