#include "kernels/noise.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/cpu/draw.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::noise_test {
using namespace aerie::kernels::test;

using Word4 = std::array<uint32_t, 4>;

TEST(Noise, PhiloxKnownAnswers) {  // Random123, kat_vectors
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Word4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32_10({f, f, f, f}, {f, f}), (Word4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Word4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// -log(-log(u)) in long double; near u = 1 through the complement.
double exact_gumbel(uint32_t w) {
  const long double u = (static_cast<long double>(w) + 0.5L) * 0x1p-32L;
  return static_cast<double>(-logl(-log1pl(u - 1.0L)));
}

TEST(Noise, GumbelIsAccurateForEveryKindOfWord) {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 2000; ++i) {  // both ends, both sides of 1/2 and of the branch inside the upper half
    words.push_back(i);
    words.push_back(~i);
    words.push_back(0x7fffffffu - i);
    words.push_back(0x80000000u + i);
    words.push_back(static_cast<uint32_t>((1 - 0.2929) * 0x1p32) + 1000 - i);
  }
  for (int bit = 0; bit < 32; ++bit) words.insert(words.end(), {1u << bit, ~(1u << bit)});
  for (uint64_t w = 0; w < (uint64_t{1} << 32); w += 6151) words.push_back(static_cast<uint32_t>(w));
  for (const uint32_t w : words) {
    const double want = exact_gumbel(w), got = gumbel_of_word(w);
    // G = -log(L): an error of 1e-6 in L is one of 1e-6 in G, whatever L.
    ASSERT_NEAR(got, want, 1e-6 + 1e-6 * std::fabs(want)) << std::hex << w;
  }
  EXPECT_NEAR(gumbel_of_word(0xffffffffu), 22.8739, 1e-3);
  EXPECT_NEAR(gumbel_of_word(0), -3.12999, 1e-4);
  EXPECT_GT(gumbel_of_word(0xffffffffu), gumbel_of_word(0xfffffffeu) + 1.0f);  // the tail is told apart
}

TEST(Noise, VectorsGiveTheScalarBitsOnEveryIsa) {
  const cpu::NoiseKey keys[] = {{0, 0, 0}, {~0ull, ~0ull, -1}, {0x123456789abcdef0ull, 77ull << 32, int64_t{5} << 33}};
  constexpr int64_t n = 1'000'001;
  for (const auto& k : keys) {
    Floats want(n);
    for (int64_t t = 0; t < n; ++t)
      want[static_cast<size_t>(t)] = gumbel(k.seed, k.stream, k.position, static_cast<int32_t>(t));
    each_isa([&] {
      Floats got(round_up(n, 64));
      cpu::gumbel_row(k, 0, n, got.data());
      got.resize(n);
      ASSERT_TRUE(same_bits(got, want));
      std::mt19937 rng(5);
      alignas(64) int32_t ids[64];
      alignas(64) float some[64];
      for (int round = 0; round < 50; ++round) {
        for (int32_t& id : ids) id = static_cast<int32_t>(rng() % n);
        cpu::gumbel_ids(k, ids, 64, some);
        for (int i = 0; i < 64; ++i) ASSERT_EQ(some[i], want[static_cast<size_t>(ids[i])]);
      }
    });
  }
}

TEST(Noise, EveryPartOfTheKeyCounts) {
  std::set<float> seen;
  int n = 0;
  const auto add = [&](uint64_t seed, uint64_t stream, int64_t position, int32_t token) {
    seen.insert(gumbel(seed, stream, position, token));
    ++n;
  };
  add(0, 0, 0, 0);
  for (int bit = 0; bit < 64; ++bit) {
    add(1ull << bit, 0, 0, 0);
    if (bit < 32) add(0, 1ull << bit, 0, 0);  // a stream's high word shares its place with the position's
    add(0, 0, static_cast<int64_t>(1ull << bit), 0);
    if (bit < 31) add(0, 0, 0, 1 << bit);
  }
  EXPECT_EQ(static_cast<int>(seen.size()), n);
  EXPECT_NE(gumbel(0, 1ull << 40, 0, 0), gumbel(0, 0, 0, 0));
}

TEST(Noise, IsGumbelDistributed) {
  constexpr int64_t n = 1 << 20;
  Floats g(n);
  cpu::gumbel_row({42, 7, 1000}, 0, n, g.data());
  double sum = 0, squares = 0;
  for (const float x : g) sum += x;
  const double mean = sum / n;
  for (const float x : g) squares += (x - mean) * (x - mean);
  const double variance = squares / n;
  EXPECT_NEAR(mean, 0.5772157, 4 * 1.2825 / 1024);
  EXPECT_NEAR(variance, 1.6449341, 0.015);
  std::sort(g.begin(), g.end());
  double farthest = 0;  // Kolmogorov-Smirnov
  for (int64_t i = 0; i < n; ++i) {
    const double cdf = std::exp(-std::exp(-static_cast<double>(g[static_cast<size_t>(i)])));
    farthest = std::max({farthest, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
  }
  EXPECT_LT(farthest, 1.95 / 1024);  // p = 0.001
}

TEST(Noise, ArgmaxOfLogitsPlusNoiseDrawsTheSoftmax) {
  const float logits[4] = {0.0f, 1.0f, -1.0f, 2.0f};
  double weight[4], total = 0;
  int count[4] = {};
  for (int t = 0; t < 4; ++t) total += weight[t] = std::exp(logits[t]);
  constexpr int n = 200'000;
  for (int p = 0; p < n; ++p) {
    int best = 0;
    float top = -1e30f;
    for (int t = 0; t < 4; ++t)
      if (const float s = logits[t] + gumbel(9, 3, p, t); s > top) top = s, best = t;
    ++count[best];
  }
  for (int t = 0; t < 4; ++t) {
    const double p = weight[t] / total;
    EXPECT_NEAR(count[t], n * p, 4 * std::sqrt(n * p * (1 - p))) << t;
  }
}

TEST(Noise, KeyedUniformIsADomainOfItsOwn) {
  double sum = 0;
  std::set<double> seen;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const double u = keyed_uniform(1, 2, i / 4, i % 4);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    seen.insert(u);
  }
  EXPECT_EQ(seen.size(), 20'000u);
  EXPECT_NEAR(sum / 20'000, 0.5, 0.01);
  // Not the word of the walk's draw at the same counter.
  const auto w = philox4x32_10({3, 5, 0, 2}, {1, 0});
  EXPECT_GT(std::fabs(keyed_uniform(1, 2, 5, 3) - w[0] * 0x1p-32), 1e-9);
}

}  // namespace aerie::kernels::noise_test
