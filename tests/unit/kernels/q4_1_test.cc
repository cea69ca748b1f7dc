// Weights to the numbers of q4_1: grids that weights already lie on are found, others are fitted.
#include "kernels/cpu/q4_1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/narrow_floats.h"

namespace aerie::kernels::q4_1_test {

using Weights = std::vector<float>;

float weight(const Q4_1Block& b, size_t i) { return from_half(b.scale) * static_cast<float>(b.codes[i]) + from_half(b.min); }

Q4_1Block quantise(const Weights& w) { return quantise_q4_1(w.data(), static_cast<int64_t>(w.size())); }

double squared_error(const Q4_1Block& b, const Weights& w) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += std::pow(static_cast<double>(weight(b, i)) - static_cast<double>(w[i]), 2);
  return sum;
}

void expect_kept(const Weights& w) {
  const Q4_1Block b = quantise(w);
  for (size_t i = 0; i < w.size(); ++i)
    ASSERT_EQ(weight(b, i), w[i]) << "weight " << i << ", scale " << from_half(b.scale) << " minimum " << from_half(b.min);
}

class Random {
 public:
  explicit Random(uint32_t seed) : rng_(seed) {}
  int below(int n) { return static_cast<int>(rng_() % static_cast<uint32_t>(n)); }
  float normal() { return normal_(rng_); }
  // A half whose last bit is at least 2^-24 of a number of its block: all levels are floats, and so are their differences.
  float half(float size) { return from_half(to_half(size * (1.0f + static_cast<float>(below(1024)) / 1024))); }

 private:
  std::mt19937 rng_;
  std::normal_distribution<float> normal_;
};

// Of `levels` different codes at most, drawn anew for each block.
Weights on_grid(Random& random, float scale, float min, int levels, size_t n = kBlock) {
  int codes[16];
  for (int i = 0; i < levels; ++i) codes[i] = random.below(16);
  Weights w(n);
  for (float& v : w) v = scale * static_cast<float>(codes[random.below(levels)]) + min;
  return w;
}

TEST(Q4_1, WeightsOnAGridAreKept) {
  Random random(1);
  for (int round = 0; round < 4000; ++round) {
    const float scale = random.half(0.01f), min = -8 * random.half(round % 3 == 0 ? 0.002f : 0.01f);
    const int levels = 1 + random.below(16);
    SCOPED_TRACE(testing::Message() << "scale " << scale << " minimum " << min << " levels " << levels);
    expect_kept(on_grid(random, scale, round % 5 == 0 ? -min : min, levels));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Q4_1, GridsOfInt4AreKept) {  // Q4_0 and the like: eight steps below zero
  Random random(2);
  for (int round = 0; round < 1000; ++round) {
    const float scale = random.half(0.01f);
    expect_kept(on_grid(random, scale, -8 * scale, 1 + random.below(16)));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Q4_1, OneValueIsKept) {
  for (const float v : {0.0f, 1.0f, -0.375f, 0.1f, -0.0123f, 3e-5f, 1234.5f}) {
    SCOPED_TRACE(v);
    const Q4_1Block b = quantise(Weights(kBlock, v));
    for (size_t i = 0; i < kBlock; ++i) ASSERT_NEAR(weight(b, i), v, std::fabs(v) * 0x1p-20f + 0x1p-25f);
  }
  expect_kept(Weights(kBlock, 0.0f));
  expect_kept(Weights(kBlock, -0.375f));
}

// Q4_K: scale and minimum are products of a half and six bits, more than a half has.
TEST(Q4_1, GridsBeyondHalvesAreKeptToWithinThem) {
  Random random(3);
  for (int round = 0; round < 4000; ++round) {
    const float scale = random.half(0.0002f) * static_cast<float>(16 + random.below(48));
    const float min = -random.half(0.0016f) * static_cast<float>(random.below(64));
    Weights w = on_grid(random, scale, min, 16);
    w[3] = min, w[17] = 15 * scale + min;
    const Q4_1Block b = quantise(w);
    for (size_t i = 0; i < kBlock; ++i)
      ASSERT_NEAR(weight(b, i), w[i], (15 * scale + std::fabs(min)) * 0x1.01p-11f) << "scale " << scale << " minimum " << min << " weight " << i;
  }
}

// The same, as bf16 has them.
TEST(Q4_1, LevelsAreFoundAmongWeightsThatWereRounded) {
  Random random(4);
  for (int round = 0; round < 1000; ++round) {
    const float scale = random.half(0.01f), min = -8 * scale;
    int codes[kBlock];
    Weights w(kBlock);
    for (size_t i = 0; i < kBlock; ++i) {
      codes[i] = i == 0 ? 0 : i == 1 ? 15 : random.below(16);
      w[i] = from_bf16(to_bf16(scale * static_cast<float>(codes[i]) + min));
    }
    const Q4_1Block b = quantise(w);
    for (size_t i = 0; i < kBlock; ++i) ASSERT_EQ(b.codes[i], codes[i]) << "weight " << i << " of scale " << scale;
  }
}

// Scale and minimum from the smallest and the largest weight.
double error_of_range(const Weights& w) {
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  Q4_1Block b;
  b.scale = to_half((*high - *low) / 15), b.min = to_half(*low);
  for (size_t i = 0; i < w.size(); ++i)
    b.codes[i] = static_cast<uint8_t>(std::clamp(std::nearbyint((w[i] - from_half(b.min)) / from_half(b.scale)), 0.0f, 15.0f));
  return squared_error(b, w);
}

TEST(Q4_1, OthersAreFittedBetterThanByTheirRange) {
  Random random(5);
  double fitted = 0, plain = 0;
  for (int round = 0; round < 2000; ++round) {
    Weights w(kBlock);
    for (float& v : w) v = 0.02f * random.normal();
    fitted += squared_error(quantise(w), w), plain += error_of_range(w);
  }
  EXPECT_LT(fitted, 0.95 * plain);
}

TEST(Q4_1, ShortBlocksAreTheirWeightsAlone) {
  Random random(6);
  for (size_t n = 1; n < kBlock; ++n) {
    Weights w(n), more(kBlock, 1e30f);
    for (float& v : w) v = random.normal();
    std::copy(w.begin(), w.end(), more.begin());
    const Q4_1Block b = quantise(w), same = quantise_q4_1(more.data(), static_cast<int64_t>(n));
    EXPECT_EQ(b.scale, same.scale);
    EXPECT_EQ(b.min, same.min);
    EXPECT_TRUE(std::equal(b.codes, b.codes + kBlock, same.codes)) << n << " weights";
    const auto [low, high] = std::minmax_element(w.begin(), w.end());
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(weight(b, i), w[i], (*high - *low) / 15 + std::fabs(w[i]) * 0x1p-10f) << i << " of " << n;
    expect_kept(on_grid(random, random.half(0.01f), -random.half(0.1f), 16, n));
  }
}

TEST(Q4_1, WhateverTheWeightsTheNumbersAreFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();
  const float values[] = {0, kLeast, -kLeast, 1e-40f, 3e-8f, -3e-8f, 1, -1, 65504, -65520, 1e6f, 1e30f, -1e30f, kMost, -kMost, kInf, -kInf, kNaN};
  for (const float a : values)
    for (const float b : values)
      for (const float c : values) {
        Weights w(kBlock);
        for (size_t i = 0; i < kBlock; ++i) w[i] = i % 3 == 0 ? a : i % 3 == 1 ? b : c;
        const Q4_1Block q = quantise(w);
        for (size_t i = 0; i < kBlock; ++i) {
          ASSERT_LE(q.codes[i], 15) << a << " " << b << " " << c;
          ASSERT_TRUE(std::isfinite(weight(q, i))) << a << " " << b << " " << c;
        }
      }
}

// Numbers below what halves tell apart become zeros or the least half, those beyond the largest half the largest.
TEST(Q4_1, WeightsBeyondHalvesAreTheNearestThereAre) {
  const Weights small{1e-9f, -1e-9f, 0, 5e-10f}, large{1e6f, 2e6f};
  const Q4_1Block s = quantise(small), l = quantise(large);
  for (size_t i = 0; i < small.size(); ++i) EXPECT_LE(std::fabs(weight(s, i)), 0x1p-24f) << i;
  EXPECT_GE(weight(l, 0), 65504);
  EXPECT_GE(weight(l, 1), weight(l, 0));
}

}  // namespace aerie::kernels::q4_1_test
