// Temperature and filters on the host, against a literal reading of ops.h and against the walk.
#include "core/sampling/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/reference/reference.h"

namespace aerie {
namespace distribution_test {

using Law = std::vector<double>;
using Logits = std::vector<float>;

// Hugging Face's warpers one by one, each on the softmax of what is left, without any sorting: a
// token's place is the number of tokens that beat it.
Law literal(const Logits& logits, const kernels::Sampling& s) {
  const size_t n = logits.size();
  std::vector<double> score(n);
  for (size_t i = 0; i < n; ++i) score[i] = logits[i] / s.temperature;
  std::vector<bool> in(n, true);
  for (size_t i = 0; i < n; ++i) in[i] = score[i] != -INFINITY;
  const auto softmax = [&] {
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; ++i) top = in[i] ? std::max(top, score[i]) : top;
    Law p(n, 0.0);
    for (size_t i = 0; i < n; ++i) sum += p[i] = in[i] ? std::exp(score[i] - top) : 0;
    for (double& x : p) x /= sum;
    return p;
  };
  const auto beats = [&](size_t a, size_t b) { return score[a] > score[b] || (score[a] == score[b] && a < b); };
  if (s.top_k > 0) {
    const std::vector<bool> was = in;
    for (size_t i = 0; i < n; ++i) {
      int place = 0;
      for (size_t j = 0; j < n; ++j) place += was[j] && beats(j, i);
      if (place >= s.top_k) in[i] = false;
    }
  }
  if (s.top_p < 1) {  // out if the mass before it is enough already; the best one stays
    const Law p = softmax();
    for (size_t i = 0; i < n; ++i) {
      double above = 0;
      int place = 0;
      for (size_t j = 0; j < n; ++j)
        if (p[j] > 0 && beats(j, i)) above += p[j], ++place;
      if (place > 0 && above >= s.top_p) in[i] = false;
    }
  }
  if (s.min_p > 0) {
    const Law p = softmax();
    const double top = *std::max_element(p.begin(), p.end());
    for (size_t i = 0; i < n; ++i)
      if (p[i] < top * s.min_p) in[i] = false;
  }
  return softmax();
}

TEST(Distribution, IsTheFiltersOneByOne) {
  std::mt19937 rng(9);
  std::normal_distribution<float> normal(0, 3);
  Distribution d;
  for (int trial = 0; trial < 1500; ++trial) {
    Logits logits(2 + rng() % 300);
    for (float& x : logits) {
      x = trial % 3 == 0 ? static_cast<float>(rng() % 6) : normal(rng);  // every third time full of ties
      if (rng() % 11 == 0) x = -INFINITY;
    }
    logits[rng() % logits.size()] = 1;
    kernels::Sampling s;
    s.temperature = 0.3f + 0.1f * static_cast<float>(rng() % 15);
    if (rng() % 2) s.top_k = 1 + static_cast<int32_t>(rng() % 40);
    // Odd numbers, so that no sum of masses lies on the edge but for rounding.
    if (rng() % 2) s.top_p = 0.1037f + 0.0873f * static_cast<float>(rng() % 10);
    if (rng() % 2) s.min_p = 0.00317f * static_cast<float>(rng() % 90);
    Law p(logits.size() + 3, 7.0);
    ASSERT_TRUE(d.compute(logits, 1 << 20, s, p).ok());
    const Law want = literal(logits, s);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(p[i], want[i], 1e-12) << trial << " " << i;
    for (size_t i = want.size(); i < p.size(); ++i) ASSERT_EQ(p[i], 0);
    ASSERT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-12);
  }
}

TEST(Distribution, TemperatureZeroIsTheBestWithTheLowestId) {
  Distribution d;
  Law p(5);
  ASSERT_TRUE(d.compute(Logits{1, 3, 3, -INFINITY, 2}, 5, {}, p).ok());
  EXPECT_EQ(p, (Law{0, 1, 0, 0, 0}));
  kernels::Sampling tiny;
  tiny.temperature = 1e-40f;  // the best logit overflows: greedy, as in the walk
  ASSERT_TRUE(d.compute(Logits{1, 3, 3, 0, 2}, 5, tiny, p).ok());
  EXPECT_EQ(p, (Law{0, 1, 0, 0, 0}));
}

TEST(Distribution, TiesGoToTheLowerId) {
  Distribution d;
  Law p(4);
  kernels::Sampling s;
  s.temperature = 1;
  s.top_k = 2;
  ASSERT_TRUE(d.compute(Logits{0, 5, 5, 5}, 4, s, p).ok());
  EXPECT_EQ(p, (Law{0, .5, .5, 0}));
  s.top_k = 0;
  s.top_p = 0.5f;
  ASSERT_TRUE(d.compute(Logits{5, 5, 5, 5}, 4, s, p).ok());
  EXPECT_EQ(p, (Law{.5, .5, 0, 0}));
  s.top_p = 0;  // one always stays
  s.min_p = 2;
  ASSERT_TRUE(d.compute(Logits{0, 5, 5, 5}, 4, s, p).ok());
  EXPECT_EQ(p, (Law{0, 1, 0, 0}));
  s.top_p = 1;
  s.min_p = 1;  // "at least min_p times the best": what equals the best stays
  ASSERT_TRUE(d.compute(Logits{0, 5, 5, 4}, 4, s, p).ok());
  EXPECT_EQ(p, (Law{0, .5, .5, 0}));
}

TEST(Distribution, PaddedIdsAndBadLogits) {
  Distribution d;
  Law p(4);
  kernels::Sampling s;
  s.temperature = 1;
  ASSERT_TRUE(d.compute(Logits{0, 0, 9, NAN}, 2, s, p).ok());
  EXPECT_EQ(p, (Law{.5, .5, 0, 0}));
  EXPECT_EQ(d.compute(Logits{0, NAN}, 2, s, p).code(), Code::device);
  EXPECT_EQ(d.compute(Logits{0, INFINITY}, 2, s, p).code(), Code::device);
  EXPECT_EQ(d.compute(Logits{-INFINITY, -INFINITY}, 2, s, p).code(), Code::device);
  EXPECT_EQ(d.compute(Logits{1, 2}, 0, s, p).code(), Code::device);
  EXPECT_EQ(d.compute(Logits(9, 0.f), 9, s, p).code(), Code::invalid_argument);
  EXPECT_NEAR(raw_logprob(Logits{0, 0, 9}, 2, 1), std::log(.5), 1e-12);
  EXPECT_EQ(raw_logprob(Logits{0, 0}, 2, 2), -INFINITY);
}

// The reference walk draws by this law: same support, same frequencies.
TEST(Distribution, IsTheLawOfTheWalk) {
  Logits logits{2.0f, 1.5f, 1.5f, 1.0f, 0.5f, 0.0f, -1.0f, -3.0f};
  std::vector<kernels::Sampling> settings(5);
  for (auto& s : settings) s.temperature = 0.9f, s.seed = 77;
  settings[1].top_k = 2;
  settings[2].top_p = 0.7f;
  settings[3].min_p = 0.3f;
  settings[4].top_k = 6, settings[4].top_p = 0.9f, settings[4].min_p = 0.2f;
  const int32_t n = 40000;
  Distribution d;
  for (const auto& s : settings) {
    Law p(8), seen(8, 0.0);
    ASSERT_TRUE(d.compute(logits, 8, s, p).ok());
    const int32_t token = 0, none = -1;
    alignas(8) char out[kernels::walk_out_bytes(1)];
    for (int32_t i = 0; i < n; ++i) {
      const kernels::WalkSeq seq{s, i, 0, 0};
      kernels::reference::run(
          kernels::Walk{kernels::matrix(logits.data(), 1, 8), 8, &token, &none, &none, &seq, 1, 1, out});
      kernels::WalkStep step;
      std::memcpy(&step, out + sizeof(kernels::WalkOut), sizeof step);
      ASSERT_GT(p[static_cast<size_t>(step.token)], 0);
      if (i == 0) {
        EXPECT_NEAR(step.logprob, raw_logprob(logits, 8, step.token), 1e-5);
      }
      seen[static_cast<size_t>(step.token)] += 1.0 / n;
    }
    for (size_t t = 0; t < 8; ++t) EXPECT_NEAR(seen[t], p[t], 5 * std::sqrt(.25 / n)) << t;
  }
}

}  // namespace distribution_test
}  // namespace aerie
