// Cost tables made from a seed.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "core/cost/cost_table.h"

namespace aerie::cost_test {

// A grid of 1 to 3 batches, each with contexts and rows of its own; the measurements fall as often as they rise.
inline std::vector<CostPoint> noisy_points(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int32_t from, int32_t to) { return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1)); };
  std::vector<CostPoint> out;
  int32_t batch = 0;
  for (int b = draw(1, 3); b > 0; --b) {
    batch += draw(1, 4);
    std::vector<int32_t> contexts, rows;
    for (int i = draw(1, 4), c = 0; i > 0; --i) contexts.push_back(c += draw(1, 300));
    for (int i = draw(1, 6), n = 0; i > 0; --i) rows.push_back(n += draw(1, 30));
    for (const int32_t c : contexts)
      for (const int32_t n : rows) {
        const double ms = (0.5 + 0.01 * batch * n + 0.001 * c) * std::uniform_real_distribution<double>(0.4, 2.5)(random);
        out.push_back({batch, c, n, ms, ms * 0.9, ms * 1.2, draw(1, 9)});
      }
  }
  return out;
}

inline CostTable some_table() {
  CostTable t;
  t.key = {"0.1.0", "cpu Some Processor \"X\" 9000", "AVX2", 4, "0123456789abcdef", "int4+int8", "f32"};
  t.target = CostGrid::make(noisy_points(1)).value();
  t.drafters.resize(2);
  t.drafters[0].name = "eagle";
  t.drafters[0].key = {"eagle", "fedcba9876543210", "int8"};
  t.drafters[0].levels = CostGrid::make(noisy_points(2)).value();
  t.drafters[0].roots = CostGrid::make(noisy_points(3)).value();
  t.drafters[1].name = "ngram";
  t.drafters[1].key = {"ngram", "", ""};
  t.drafters[1].roots = CostGrid::make(noisy_points(4)).value();
  return t;
}

}  // namespace aerie::cost_test
