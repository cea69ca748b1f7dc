// What rows of recurrent layers (ShortConv, DeltaGates, DeltaRule, KeepLast in ops.h) look back at and how fast they forget: the same for every backend.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/route_math.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels {

// log(1 + exp(x))
AERIE_HOST_DEVICE inline float softplus(float x) {
  if (x > 20.0f) return x;
  const float e = exp_own(x);
  return e < 0.4f ? log1p_reduced(e, 0) : log_positive(1.0f + e);
}

// What a state is multiplied by.
AERIE_HOST_DEVICE inline float delta_decay(float a, float rate, float bias) { return exp_own(rate * softplus(a + bias)); }

AERIE_HOST_DEVICE inline float* delta_state(const StateCache& c, int32_t state, int64_t at) { return state < 0 ? nullptr : c.at(state) + at; }

// The rows that came last in a layer's state.
AERIE_HOST_DEVICE inline float* delta_window(const DeltaShape& s, float* state) { return state ? state + s.heads * s.head_floats() : nullptr; }

// The row of x that came `back` rows before row r, or the one in `window` (null: there is none; so is the result).
AERIE_HOST_DEVICE inline const float* row_before(const Tensor& x, const int32_t* parent, const DeltaShape& s, const float* window, int32_t r, int32_t back) {
  while (back > 0 && r >= 0) r = parent[r], --back;
  if (r >= 0) return static_cast<const float*>(x.data) + r * x.stride;
  return window ? window + (s.taps - 2 - back) * s.channels() : nullptr;
}

}  // namespace aerie::kernels
