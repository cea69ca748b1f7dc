// Logits and features of an inflated model against the small one's: equal bits when the width ratio is a power of four.
#include <cstring>

#include "tests/bench/inflate/check.h"
#include "tests/support/forward.h"
#include "tests/unit/inflate/random_target.h"

namespace aerie::test {
namespace {

using inflate::Shape;

std::vector<int32_t> some_tokens(int32_t vocab) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 23; ++i) ids.push_back((7 + 31 * i + i * i) % vocab);
  return ids;
}

Forward forward(const std::shared_ptr<const Package>& package) {
  ModelOptions options;
  options.kv_positions = 256;
  const auto model = must(Model::open(cpu(2), package, options));
  std::vector<int32_t> taps = package->target()->tap_layers;
  taps.push_back(kFinalFeature);
  return Forward(*model, some_tokens(package->target()->vocab_used), 7, taps);
}

bool same_bits(const float* a, const float* b, int64_t n) { return std::memcmp(a, b, static_cast<size_t>(n) * 4) == 0; }

struct Case {
  const char* name;
  Shape shape;
};
// Heads 4 in 2 groups, 96 units, 2 layers, 96 tokens before.
const Case kExact[] = {
    {"everything grown", {256, 5, 8, 4, 160, 128}},       // groups of the same size, two idle
    {"groups hold more", {256, 3, 12, 3, 128, 96}},       // 4 query heads where 2 were, one idle group
    {"groups are split", {1024, 2, 5, 5, 96, 200}},       // one query head each; sixteen times as wide
    {"nothing grown", {64, 2, 4, 2, 96, 96}},
};

class InflatedBits : public testing::TestWithParam<kernels::DType> {};

TEST_P(InflatedBits, LogitsAndTapsAreTheSmallOnes) {
  for (const Case& c : kExact) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(inflate::exact_ratio(64, c.shape.hidden));
    const Twins t = tiny_twins(GetParam(), c.shape);
    const Forward a = forward(t.small), b = forward(t.big);
    const LlamaConfig &s = *t.small->target(), &g = *t.big->target();
    ASSERT_EQ(g.tap_layers.size(), 2u);
    const auto taps = static_cast<int64_t>(g.tap_layers.size()) + 1;
    for (int64_t i = 0; i < static_cast<int64_t>(a.logits.size()) / s.vocab_size; ++i) {
      EXPECT_TRUE(same_bits(a.logits.data() + i * s.vocab_size, b.logits.data() + i * g.vocab_size, s.vocab_size)) << "token " << i;
      for (int64_t k = 0; k < taps; ++k) {
        const float* small = a.features.data() + (i * taps + k) * s.hidden;
        const float* big = b.features.data() + (i * taps + k) * g.hidden;
        EXPECT_TRUE(same_bits(small, big, s.hidden)) << "token " << i << " tap " << k;
        for (int64_t d = s.hidden; d < g.hidden; ++d) ASSERT_EQ(big[d], 0.0f) << "token " << i << " tap " << k << " dimension " << d;
      }
    }
    EXPECT_EQ(g.rms_eps * static_cast<float>(g.hidden / s.hidden), s.rms_eps) << "exactly";
    EXPECT_EQ(g.vocab_used, s.vocab_used);
    EXPECT_EQ(g.vocab_size, c.shape.vocab);
    const auto compared = must(inflate::compare_greedy(t.small->path(), t.big->path(), 40));
    EXPECT_EQ(compared.same, 40u);
    EXPECT_EQ(compared.tokens, 40u);
  }
}
INSTANTIATE_TEST_SUITE_P(DTypes, InflatedBits,
                         testing::Values(kernels::DType::f32, kernels::DType::bf16, kernels::DType::fp8, kernels::DType::int8, kernels::DType::int4,
                                         kernels::DType::q4_1, kernels::DType::mxfp4));

// Three times as wide: rounding differs, the function does not.
TEST(InflatedRatio, OfThreeIsCloseAndTheFirstDifferenceIsReported) {
  const Shape shape{192, 3, 6, 3, 128, 128};
  EXPECT_FALSE(inflate::exact_ratio(64, shape.hidden));
  const Twins t = tiny_twins(kernels::DType::f32, shape);
  const Forward a = forward(t.small), b = forward(t.big);
  float most = 0, worst = 0;
  for (size_t i = 0; i < 23; ++i)
    for (size_t v = 0; v < 96; ++v) {
      most = std::max(most, std::fabs(a.logits[i * 96 + v]));
      worst = std::max(worst, std::fabs(a.logits[i * 96 + v] - b.logits[i * 128 + v]));
    }
  EXPECT_GT(worst, 0.0f) << "equal bits: then this test shows nothing";
  EXPECT_LT(worst, 1e-4f * most);
  const auto compared = must(inflate::compare_greedy(t.small->path(), t.big->path(), 40));
  EXPECT_EQ(compared.tokens, 40u);
  EXPECT_LE(compared.same, compared.tokens);
  // Another model does differ, and early.
  LlamaConfig other = tiny_config();
  other.rope_theta = 50;
  const std::string path = random_target("tiny-other", other, kernels::DType::f32);
  EXPECT_LT(must(inflate::compare_greedy(t.small->path(), path, 40)).same, 40u);
}

TEST(InflatedRatio, EpsIsRoundedOnce) {
  // eps * d rounded to f32 would lose its last bit for many of these.
  for (const float eps : {1e-5f, 1e-6f, 3e-6f, 1.1e-5f, 9.7e-6f})
    for (const int32_t d : {96, 192, 320, 576}) {
      EXPECT_EQ(inflate::scaled_eps(static_cast<double>(eps), d, 4 * d) * 4, eps);
      EXPECT_EQ(inflate::scaled_eps(static_cast<double>(eps), d, 16 * d) * 16, eps);
    }
}

}  // namespace
}  // namespace aerie::test
