// Passes of recurrent layers for tests: states, rows with parents, and the three ops that they go through.
#pragma once

#include <numeric>

#include "kernels/delta_math.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::delta_test {

using namespace test;

inline constexpr DeltaShape kShapes[] = {{1, 1, 16, 16, 2}, {2, 6, 32, 48, 4}, {3, 3, 144, 16, 8}, {2, 4, 128, 128, 4}};
inline constexpr int32_t kLayers = 2;

// States 0 .. 3 of two layers, one behind another.
struct States {
  Floats floats;
  StateCache cache;
  explicit States(const DeltaShape& s) : floats(random_floats(static_cast<size_t>(4 * kLayers * s.floats()), 5)) {
    cache.floats = kLayers * s.floats();
    for (int c = 0; c < 3; ++c) cache.chunk[c] = floats.data() + ((1 << c) - 1) * cache.floats;
  }
  Floats of(int32_t state) const { return {cache.at(state), cache.at(state) + cache.floats}; }
};

// One sequence's pass: rows and, for each, its parent. Steps in the order of rows, each in a buffer of its own.
struct Pass {
  DeltaShape shape;
  States& states;
  Ints parent, seq;
  std::vector<DeltaStep> steps;
  DeltaSeq of{};
  Floats x, gates, qkv, rates, out;

  // x and gates: of all rows that there are, of which this pass has `rows`.
  Pass(const DeltaShape& s, States& st, const Floats& all_x, const Floats& all_gates, const Ints& rows, Ints parents, int32_t from, int32_t to, int32_t last)
      : shape(s), states(st), parent(std::move(parents)), seq(rows.size(), 0) {
    for (const int32_t r : rows) {
      x.insert(x.end(), all_x.begin() + r * s.channels(), all_x.begin() + (r + 1) * s.channels());
      gates.insert(gates.end(), all_gates.begin() + r * 2 * s.heads, all_gates.begin() + (r + 1) * 2 * s.heads);
      const auto i = static_cast<int32_t>(steps.size());
      steps.push_back({i, parent[static_cast<size_t>(i)], i});
    }
    of = {from, to, last, 0, n()};
    qkv.assign(x.size(), std::nanf(""));
    rates.assign(gates.size(), std::nanf(""));
    out.assign(static_cast<size_t>(n() * s.values()), std::nanf(""));
  }
  int32_t n() const { return static_cast<int32_t>(steps.size()); }
  DeltaRows rows() const { return {&of, steps.data(), seq.data(), parent.data(), 1, n(), n()}; }

  template <class RunOp>
  const Floats& run(const RunOp& run) {
    Floats weight = random_floats(static_cast<size_t>(shape.taps * shape.channels()), 7), decay = random_floats(static_cast<size_t>(2 * shape.heads), 8);
    for (int32_t h = 0; h < shape.heads; ++h) decay[static_cast<size_t>(h)] = -std::fabs(decay[static_cast<size_t>(h)]);
    const Tensor xs = view(x, n(), shape.channels()), mixed = view(qkv, n(), shape.channels()), r = view(rates, n(), 2 * shape.heads);
    const int64_t at = shape.floats();  // of the second layer
    run(ShortConv{xs, view(weight, shape.taps, shape.channels()), states.cache, at, shape, rows(), mixed});
    for (float& v : qkv) v *= 0.2f;  // so that states neither grow nor vanish
    run(DeltaGates{view(gates, n(), 2 * shape.heads), view(decay, 2, shape.heads), r});
    run(DeltaRule{xs, mixed, r, states.cache, at, shape, rows(), view(out, n(), shape.values())});
    return out;
  }
};

// Of layers that are a convolution and no more.
inline constexpr DeltaShape kConvolution{0, 0, 0, 0, 4, 48};
// The rows of a pass, convolved, and its last ones kept.
template <class RunOp>
const Floats& convolve(Pass& p, const RunOp& run) {
  const DeltaShape& s = p.shape;
  Floats weight = random_floats(static_cast<size_t>(s.taps * s.channels()), 7);
  const Tensor x = view(p.x, p.n(), s.channels());
  run(ShortConv{x, view(weight, s.taps, s.channels()), p.states.cache, s.floats(), s, p.rows(), view(p.qkv, p.n(), s.channels())});
  run(KeepLast{x, p.states.cache, s.floats(), s, p.rows()});
  return p.qkv;
}

struct Inputs {
  Floats x, gates;
  explicit Inputs(const DeltaShape& s, int32_t rows)
      : x(random_floats(static_cast<size_t>(rows * s.channels()), 1)), gates(random_floats(static_cast<size_t>(rows * 2 * s.heads), 2, 3.0f)) {}
};
inline Ints chain(int32_t n) {
  Ints parents(static_cast<size_t>(n));
  std::iota(parents.begin(), parents.end(), -1);
  return parents;
}
inline Ints numbers(int32_t first, int32_t n) {
  Ints rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// A trunk of three rows and a tree on it.
inline const Ints kTree = {-1, 0, 1, 2, 2, 3, 3, 4, 6, 8, 2};

}  // namespace aerie::kernels::delta_test
