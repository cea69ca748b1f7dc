// Mixtures of experts: which experts rows take, and what these give added up.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/scalar_math.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::route_test {
using namespace aerie::kernels::test;

// ---- Route ------------------------------------------------------------------------------------------

// ops.h, word for word.
void expect_route(const float* logits, int64_t n, int32_t k, bool normed, const int32_t* experts, const float* weights) {
  Ints order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (!std::all_of(logits, logits + n, [](float v) { return std::isfinite(v); })) {
    for (int32_t i = 0; i < k; ++i) {
      EXPECT_EQ(experts[i], i);
      EXPECT_TRUE(std::isnan(weights[i]));
    }
    return;
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const float top = logits[order[0]];
  float sum = 0;
  for (int64_t i = 0; i < (normed ? k : n); ++i) sum += exp_own(logits[normed ? order[static_cast<size_t>(i)] : i] - top);
  double all = 0;
  for (int32_t i = 0; i < k; ++i) {
    ASSERT_EQ(experts[i], order[static_cast<size_t>(i)]) << i;
    ASSERT_EQ(weights[i], exp_own(logits[experts[i]] - top) / sum) << i;
    all += static_cast<double>(weights[i]);
  }
  if (normed) {
    EXPECT_NEAR(all, 1, 1e-5);
  } else {
    EXPECT_LE(all, 1 + 1e-5);
  }
}

TEST(Route, TakesTheLargestLogits) {
  constexpr int64_t rows = 37, beside = 3;
  for (const auto& [n, k] : {std::pair<int64_t, int32_t>{1, 1}, {8, 2}, {7, 7}, {128, 8}, {512, 10}, {1024, 32}})
    for (const bool normed : {false, true})
      for (const bool coarse : {false, true}) {  // full of ties
        SCOPED_TRACE(testing::Message() << k << " of " << n << (coarse ? " with ties" : ""));
        Floats logits = random_floats(static_cast<size_t>(rows * (n + beside)), 21, 2.0f), weights(static_cast<size_t>(rows * (k + 1)), 9.0f);
        if (coarse) {
          for (float& v : logits) v = std::round(v);
        }
        Ints experts(static_cast<size_t>(rows * k + 1), -9);
        const Route op{columns(view(logits, rows, n + beside), 1, n), k, normed, experts.data(), columns(view(weights, rows, k + 1), 0, k)};
        run_cpu(op);
        for (int64_t r = 0; r < rows; ++r) {
          expect_route(logits.data() + r * (n + beside) + 1, n, k, normed, experts.data() + r * k, weights.data() + r * (k + 1));
          EXPECT_EQ(weights[static_cast<size_t>(r * (k + 1) + k)], 9.0f);
        }
        EXPECT_EQ(experts.back(), -9);
        Ints want_experts = experts;
        Floats want_weights = weights;
        run_reference(Route{op.logits, k, normed, want_experts.data(), columns(view(want_weights, rows, k + 1), 0, k)});
        EXPECT_EQ(experts, want_experts);
        EXPECT_TRUE(same_bits(weights, want_weights));
      }
}

TEST(Route, OddLogits) {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const bool normed : {false, true}) {
    const auto check = [&](Floats logits, int32_t k) {
      Ints experts(static_cast<size_t>(k));
      Floats weights(static_cast<size_t>(k));
      const auto n = static_cast<int64_t>(logits.size());
      run_cpu(Route{view(logits, 1, n), k, normed, experts.data(), view(weights, 1, k)});
      expect_route(logits.data(), n, k, normed, experts.data(), weights.data());
    };
    for (const float bad : kBad)
      for (const size_t where : {0u, 3u, 9u}) {
        Floats logits = random_floats(10, 22);
        logits[where] = bad;
        check(logits, 4);
      }
    check(Floats(20, 0.0f), 5);
    check({0.0f, -0.0f, 0.0f, -0.0f}, 3);
    check({-kMost, kMost, -kMost, kMost}, 3);  // differences that overflow
    Floats rising(100);
    std::iota(rising.begin(), rising.end(), -50.0f);
    check(rising, 32);
    std::reverse(rising.begin(), rising.end());
    check(rising, 32);
  }
}

// By scores: ops.h, word for word again.
struct Scored {
  bool sigmoid, normed;
  float scale;
  Floats choice, gain = {};  // empty: none
};
void expect_scored(const Floats& logits, const Scored& s, int32_t k, const int32_t* experts, const float* weights) {
  const size_t n = logits.size();
  Floats scores(n), keys(n);
  const float top = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (size_t e = 0; e < n; ++e) sum += exp_own(logits[e] - top);
  for (size_t e = 0; e < n; ++e) {
    scores[e] = s.sigmoid ? 1 / (1 + exp_own(-logits[e])) : exp_own(logits[e] - top) / sum;
    keys[e] = s.choice.empty() ? scores[e] : scores[e] + s.choice[e];
  }
  Ints order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)]; });
  float taken = 0;
  for (int32_t i = 0; i < k; ++i) taken += scores[static_cast<size_t>(order[static_cast<size_t>(i)])];
  for (int32_t i = 0; i < k; ++i) {
    ASSERT_EQ(experts[i], order[static_cast<size_t>(i)]) << i;
    const float score = scores[static_cast<size_t>(experts[i])];
    ASSERT_EQ(weights[i], (s.normed ? score / (taken + 1e-20f) : score) * s.scale * (s.gain.empty() ? 1 : s.gain[static_cast<size_t>(experts[i])])) << i;
  }
}

TEST(Route, TakesTheLargestScoresAndChoices) {
  constexpr int64_t rows = 7;
  for (const auto& [n, k] : {std::pair<int64_t, int32_t>{1, 1}, {8, 2}, {7, 7}, {128, 8}, {1024, 32}})
    for (const Scored& kind : {Scored{true, false, 1, {}}, {true, true, 2.5f, random_floats(static_cast<size_t>(n), 41, 0.3f)},
                               {false, true, 1, random_floats(static_cast<size_t>(n), 42, 0.1f), random_floats(static_cast<size_t>(n), 45)}, {false, false, 0.5f, Floats(static_cast<size_t>(n), 3.0f)}})
      for (const bool coarse : {false, true}) {
        SCOPED_TRACE(testing::Message() << k << " of " << n << (kind.sigmoid ? " sigmoids" : "") << (coarse ? " with ties" : ""));
        Scored s = kind;
        Floats logits = random_floats(static_cast<size_t>(rows * n), 43, 2.0f), weights(static_cast<size_t>(rows * k));
        if (coarse) {
          for (float& v : logits) v = std::round(v);
          for (float& v : s.choice) v = std::round(v);
        }
        Ints experts(static_cast<size_t>(rows * k));
        const Tensor choice = s.choice.empty() ? Tensor{} : view(s.choice, 1, n);
        const Tensor gain = s.gain.empty() ? Tensor{} : view(s.gain, 1, n);
        run_cpu(Route{view(logits, rows, n), k, s.normed, experts.data(), view(weights, rows, k), s.sigmoid, choice, s.scale, gain});
        for (int64_t r = 0; r < rows; ++r)
          expect_scored(Floats(logits.begin() + r * n, logits.begin() + (r + 1) * n), s, k, experts.data() + r * k, weights.data() + r * k);
      }
}

// Gains change what experts count, not which are taken.
TEST(Route, Gains) {
  constexpr int64_t rows = 5, n = 12;
  constexpr int32_t k = 4;
  Floats logits = random_floats(rows * n, 46), gain = random_floats(n, 47), weights(rows * k), plain(rows * k);
  Ints experts(rows * k), same(rows * k);
  for (const bool normed : {false, true}) {
    run_cpu(Route{view(logits, rows, n), k, normed, same.data(), view(plain, rows, k)});
    run_cpu(Route{view(logits, rows, n), k, normed, experts.data(), view(weights, rows, k), false, {}, 1, view(gain, 1, n)});
    EXPECT_EQ(experts, same);
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(weights[i], plain[i] * gain[static_cast<size_t>(experts[i])]);
  }
}

// A gate of one expert is a sigmoid; sigmoids of nothing but zero do not divide by it; what is no number is told as everywhere.
TEST(Route, OddScores) {
  Floats logits = {-300, 0.5f, std::numeric_limits<float>::quiet_NaN()}, weights(3);
  Ints experts(3);
  run_cpu(Route{view(logits, 3, 1), 1, false, experts.data(), view(weights, 3, 1), true});
  EXPECT_EQ(weights[0], 0.0f);
  EXPECT_EQ(weights[1], 1 / (1 + exp_own(-0.5f)));
  EXPECT_TRUE(std::isnan(weights[2]));
  Floats none(4, -200.0f);
  run_cpu(Route{view(none, 1, 4), 2, true, experts.data(), view(weights, 1, 2), true});
  EXPECT_EQ(weights[0], 0.0f);
  EXPECT_EQ(weights[1], 0.0f);
}

// ---- CombineExperts -----------------------------------------------------------------------------------

TEST(CombineExperts, AddsProductsInTheirOrder) {
  for (const auto& [rows, k, n] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {1, 8, 2048}, {19, 3, 33}, {300, 2, 64}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << k << " x " << n);
    Floats x = random_floats(static_cast<size_t>(rows * k * (n + 2)), 31, 3.0f), weights = random_floats(static_cast<size_t>(rows * (k + 1)), 32);
    Floats out(static_cast<size_t>(rows * (n + 3)), 5.0f), want = out;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < n; ++c) {
        volatile float sum = 0;  // rounded each time, whatever this file is compiled for
        for (int64_t i = 0; i < k; ++i) {
          const volatile float part = weights[static_cast<size_t>(r * (k + 1) + i)] * x[static_cast<size_t>((r * k + i) * (n + 2) + 1 + c)];
          sum = i == 0 ? part : sum + part;
        }
        want[static_cast<size_t>(r * (n + 3) + c)] = sum;
      }
    Floats reference = out;
    CombineExperts op{columns(view(x, rows * k, n + 2), 1, n), columns(view(weights, rows, k + 1), 0, k), columns(view(reference, rows, n + 3), 0, n)};
    run_reference(op);
    EXPECT_TRUE(same_bits(reference, want));
    op.out = columns(view(out, rows, n + 3), 0, n);
    for (const int threads : {1, 2, 7}) {
      std::fill(out.begin(), out.end(), 5.0f);
      run_cpu(op, threads);
      EXPECT_TRUE(same_bits(out, want)) << threads;
    }
  }
}

}  // namespace aerie::kernels::route_test
