// Weights to the numbers of mxfp4: what they are already is kept, others become the nearest.
#include "kernels/cpu/mxfp4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "kernels/e2m1.h"

namespace aerie::kernels::mxfp4_test {

using Weights = std::vector<float>;

float weight(const Mxfp4Block& b, size_t i) { return static_cast<float>(kE2m1Twice[b.codes[i]]) * mxfp4_scale(b.scale); }

Mxfp4Block quantise(const Weights& w) { return quantise_mxfp4(w.data(), static_cast<int64_t>(w.size())); }

// As values: a zero has no sign, and a block may have another scale that says the same.
void expect_kept(const Weights& w) {
  const Mxfp4Block b = quantise(w);
  for (size_t i = 0; i < w.size(); ++i) ASSERT_EQ(weight(b, i), w[i]) << "weight " << i << ", scale " << static_cast<int>(b.scale);
}

double squared_error(const Mxfp4Block& b, const Weights& w) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += std::pow(static_cast<double>(weight(b, i)) - static_cast<double>(w[i]), 2);
  return sum;
}

TEST(E2m1, NumbersAreThoseOfTheFormat) {
  for (uint32_t code = 0; code < 16; ++code) {
    const uint32_t exponent = code >> 1 & 3, fraction = code & 1;  // OCP Microscaling: bias 1, subnormals below
    const float half = static_cast<float>(fraction) / 2;
    const float magnitude = exponent == 0 ? half : (1 + half) * static_cast<float>(1u << exponent) / 2;
    EXPECT_EQ(kE2m1Twice[code], (code & 8 ? -2 : 2) * magnitude) << code;
    EXPECT_EQ(e2m1_twice(code), kE2m1Twice[code]) << code;
  }
  EXPECT_EQ(*std::max_element(std::begin(kE2m1Twice), std::end(kE2m1Twice)), kMostE2m1Twice);
}

TEST(E2m1, ScalesArePowersOfTwo) {
  EXPECT_EQ(mxfp4_scale(0), 0.0f);
  for (int byte = 1; byte < 255; ++byte) EXPECT_EQ(mxfp4_scale(static_cast<uint8_t>(byte)), std::ldexp(1.0f, byte - 127)) << byte;
}

TEST(Mxfp4, NumbersOfEveryScaleAreKept) {
  for (int byte = 1; byte < 255; ++byte)
    for (int most = 1; most < 8; ++most) {  // the largest code of the block
      Weights w;
      for (int i = 0; i < kBlock; ++i) {
        const int code = i % (most + 1);
        w.push_back(static_cast<float>(i % 3 == 0 ? -kE2m1Twice[code] : kE2m1Twice[code]) * mxfp4_scale(static_cast<uint8_t>(byte)));
      }
      if (std::isinf(w[static_cast<size_t>(most)])) continue;
      SCOPED_TRACE(testing::Message() << "scale " << byte << ", codes to " << most);
      expect_kept(w);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(Mxfp4, OneNumberOfEveryCodeIsKept) {
  for (int code = 0; code < 16; ++code) {
    Weights w(kBlock, 0.0f);
    w[19] = static_cast<float>(kE2m1Twice[code]) / 64;
    expect_kept(w);
    expect_kept(Weights(kBlock, w[19]));
  }
}

TEST(Mxfp4, OthersBecomeTheNearestTiesToEven) {
  // Their scale is 1: beside 12 and what is kept exactly, a coarser one would lose more.
  constexpr float kTo[][2] = {{0.49f, 0}, {0.5f, 0},  {0.51f, 1}, {1.49f, 1}, {1.5f, 2}, {2.5f, 2},    {2.51f, 3},
                              {3.49f, 3}, {3.5f, 4},  {4.99f, 4}, {5, 4},     {5.01f, 6}, {6.99f, 6},  {7, 8},
                              {7.01f, 8}, {9.99f, 8}, {10, 8},    {10.01f, 12}, {11.9f, 12}, {12.4f, 12}};
  for (const auto& [from, to] : kTo)
    for (const float sign : {1.0f, -1.0f}) {
      Weights w = {from * sign, 12, 1, 3, -1, -3, 12, 1, 3, 1, 3};
      const Mxfp4Block b = quantise(w);
      EXPECT_EQ(b.scale, 127) << from;
      EXPECT_EQ(weight(b, 0), to * sign) << from;
    }
}

TEST(Mxfp4, OfTwoScalesTheBetterOne) {
  // 15 is 12 or, of the coarser scale, 16. What is beside it decides.
  const Weights coarse = {15, 8, 4, 2}, fine = {15, 9, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1};
  EXPECT_EQ(quantise(coarse).scale, 128);
  EXPECT_EQ(quantise(fine).scale, 127);
  // No scale is better than the one taken.
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 500; ++round) {
    Weights w(kBlock);
    for (float& v : w) v = 0.02f * normal(rng);
    const Mxfp4Block taken = quantise(w);
    for (int scale = taken.scale - 4; scale <= taken.scale + 4; ++scale) {
      Mxfp4Block other{static_cast<uint8_t>(scale), {}};
      for (size_t i = 0; i < w.size(); ++i) {
        const auto off = [&](uint8_t code) { return std::fabs(static_cast<float>(kE2m1Twice[code]) * mxfp4_scale(other.scale) - w[i]); };
        for (uint8_t code = 1; code < 16; ++code)
          if (off(code) < off(other.codes[i])) other.codes[i] = code;
      }
      ASSERT_LE(squared_error(taken, w), squared_error(other, w) * 1.000001) << "round " << round << ", scale " << scale - taken.scale << " from it";
    }
  }
}

TEST(Mxfp4, ZerosAndTheSmallestNumbers) {
  for (const float v : quantise(Weights(kBlock, -0.0f)).codes) EXPECT_EQ(v, 0);
  expect_kept(Weights(kBlock, 0.0f));
  // In steps of 2^-126, the least scale.
  constexpr float kStep = std::numeric_limits<float>::min();
  Weights w(kBlock, 0.0f);
  w[0] = 0.4f * kStep, w[1] = -0.6f * kStep, w[2] = 1.7f * kStep;
  const Mxfp4Block b = quantise(w);
  EXPECT_EQ(weight(b, 0), 0.0f);
  EXPECT_EQ(weight(b, 1), -kStep);
  EXPECT_EQ(weight(b, 2), 2 * kStep);
  expect_kept({kStep, -kStep, 3 * kStep, 0});
}

TEST(Mxfp4, ShortBlocksAreTheirWeightsAlone) {
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  for (size_t n = 1; n < kBlock; ++n) {
    Weights w(n), more(kBlock, 1e30f);
    for (float& v : w) v = normal(rng);
    std::copy(w.begin(), w.end(), more.begin());
    const Mxfp4Block b = quantise(w), same = quantise_mxfp4(more.data(), static_cast<int64_t>(n));
    EXPECT_EQ(b.scale, same.scale);
    for (size_t i = 0; i < kBlock; ++i) EXPECT_EQ(b.codes[i], same.codes[i]) << n << " weights";
    for (size_t i = n; i < kBlock; ++i) EXPECT_EQ(b.codes[i], 0) << n << " weights";
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(weight(b, i), w[i], std::max(0.25f * std::fabs(w[i]), 0.5f * mxfp4_scale(b.scale))) << i << " of " << n;
  }
}

TEST(Mxfp4, WhateverTheWeightsTheCodesAreCodes) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();
  const float values[] = {0, kLeast, -kLeast, 1e-40f, 3e-8f, -3e-8f, 1, -1, 65504, 1e30f, -1e30f, kMost, -kMost, kInf, -kInf, kNaN};
  for (const float a : values)
    for (const float b : values)
      for (const float c : values) {
        Weights w(kBlock);
        for (size_t i = 0; i < kBlock; ++i) w[i] = i % 3 == 0 ? a : i % 3 == 1 ? b : c;
        const Mxfp4Block q = quantise(w);
        ASSERT_LT(q.scale, 255) << a << " " << b << " " << c;  // which is no number
        for (size_t i = 0; i < kBlock; ++i) {
          ASSERT_LT(q.codes[i], 16) << a << " " << b << " " << c;
          ASSERT_FALSE(std::isnan(weight(q, i))) << a << " " << b << " " << c;
        }
      }
}

}  // namespace aerie::kernels::mxfp4_test
