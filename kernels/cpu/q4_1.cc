#include "kernels/cpu/q4_1.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/narrow_floats.h"

namespace aerie::kernels {

namespace {

constexpr float kMostCode = 15;

// Of a block that is full: what is missing weighs nothing.
struct Weights {
  float value[kBlock], importance[kBlock];
  float low = 0, high = 0;

  Weights(const float* w, int64_t n) {
    low = high = w[0];
    float squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      low = std::min(low, w[i]), high = std::max(high, w[i]);
      squares += w[i] * w[i];
    }
    const float mean = std::sqrt(squares / static_cast<float>(n));
    for (int64_t i = 0; i < kBlock; ++i) {
      value[i] = i < n ? w[i] : low;
      importance[i] = i < n ? mean + std::fabs(w[i]) : 0;
    }
  }
};

float nearest_code(float value, float low, float inverse) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer, ties to even
  const float code = ((value - low) * inverse + kRound) - kRound, most = code < kMostCode ? code : kMostCode;
  return most > 0 ? most : 0;
}

struct Grid {
  float scale, min;
};

// How far the farthest weight is from its level; beyond `enough`, whatever is.
float farthest(const Weights& w, Grid g, float enough) {
  const float inverse = 1 / g.scale;
  float most = 0;
  for (const float v : w.value) {
    most = std::max(most, std::fabs(g.scale * nearest_code(v, g.min, inverse) + g.min - v));
    if (most > enough) break;
  }
  return most;
}

// The lowest level that is a half, or else is nearest to one. Levels below those that are used may serve.
float round_minimum(const Weights& w, float scale, int steps) {
  float best = from_half(to_half(w.low)), least = std::fabs(best - w.low);
  for (int below = 1; below + steps <= static_cast<int>(kMostCode) && least > 0; ++below) {
    const float level = w.low - static_cast<float>(below) * scale, rounded = from_half(to_half(level));
    if (const float off = std::fabs(rounded - level); off < least) best = rounded, least = off;
  }
  return best;
}

// A grid that all weights lie on, to within what bf16 loses of them. Of those whose steps are parts of others', all of which serve, the one
// that halves keep best.
std::optional<Grid> find_grid(const Weights& w) {
  constexpr float kApart = 1.0f / 32;  // of a step
  std::optional<Grid> best;
  float least = INFINITY;
  for (int steps = 1; steps <= static_cast<int>(kMostCode) && least > 0; ++steps) {
    const float step = (w.high - w.low) / static_cast<float>(steps), scale = from_half(to_half(step));
    if (!(scale > 0)) break;
    if (farthest(w, {step, w.low}, kApart * step) > kApart * step) continue;
    const Grid rounded{scale, round_minimum(w, scale, steps)};
    if (const float lost = farthest(w, rounded, least); lost < least) best = rounded, least = lost;
  }
  return best;
}

// Sums in lanes of their own, so that a compiler may make them at once; added up in one order.
constexpr int kLanes = 8;
struct LaneSum {
  float lanes[kLanes] = {};
  float total() const {
    float sum = 0;
    for (const float v : lanes) sum += v;
    return sum;
  }
};

// Codes of several ranges, and for each the grid of the least squares with these codes; the best of them.
Grid fit_grid(const Weights& w) {
  constexpr int kRanges = 11;
  Grid best{(w.high - w.low) / kMostCode, w.low};
  float least = INFINITY;
  LaneSum importance, weighted;
  for (int i = 0; i < kBlock; ++i) {
    importance.lanes[i % kLanes] += w.importance[i];
    weighted.lanes[i % kLanes] += w.importance[i] * (w.value[i] - w.low);
  }
  const float all = importance.total(), of_values = weighted.total();
  for (int range = 0; range < kRanges; ++range) {
    const float inverse = (kMostCode - 1 + 0.2f * static_cast<float>(range)) / (w.high - w.low);
    LaneSum of_codes, of_squares, of_products;
    for (int i = 0; i < kBlock; i += kLanes)
      for (int l = 0; l < kLanes; ++l) {
        const float code = nearest_code(w.value[i + l], w.low, inverse), by = w.importance[i + l] * code;
        of_codes.lanes[l] += by;
        of_squares.lanes[l] += by * code;
        of_products.lanes[l] += by * (w.value[i + l] - w.low);
      }
    const float codes = of_codes.total(), squares = of_squares.total(), products = of_products.total();
    const float determinant = all * squares - codes * codes;
    if (!(determinant > 0)) continue;
    const float scale = (all * products - codes * of_values) / determinant, above = (squares * of_values - codes * products) / determinant;
    // The squares of what is left, but for those of the weights themselves, which are the same for all ranges.
    const float loss = -(scale * products + above * of_values);
    if (loss < least) best = {scale, w.low + above}, least = loss;
  }
  return best;
}

}  // namespace

Q4_1Block quantise_q4_1(const float* w, int64_t n) {
  const Weights weights(w, n);
  Q4_1Block out;
  if (!(weights.high > weights.low)) {  // one value: what a half loses of it takes another
    out.min = to_half(weights.low);
    out.scale = to_half(weights.low - from_half(out.min));
    std::fill_n(out.codes, kBlock, uint8_t{1});
    return out;
  }
  const std::optional<Grid> found = find_grid(weights);
  const Grid g = found ? *found : fit_grid(weights);
  out.scale = to_half(g.scale), out.min = to_half(g.min);
  const float scale = from_half(out.scale), min = from_half(out.min), inverse = scale > 0 ? 1 / scale : 0;
  for (int64_t i = 0; i < kBlock; ++i) out.codes[i] = static_cast<uint8_t>(nearest_code(weights.value[i], min, inverse));
  return out;
}

}  // namespace aerie::kernels
