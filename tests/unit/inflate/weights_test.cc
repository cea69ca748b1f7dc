// Where an inflated model's weights are copies, where zero, where random; and how large the random ones are.
#include "tests/unit/inflate/random_target.h"

namespace aerie::test {
namespace {

using kernels::panel16_at;
using kernels::Tensor;

// d = 64, 4 heads in 2 groups of 32, 96 units, 2 layers, 96 tokens. Big layers 0 and 2 are live, 1, 3 and 4 add nothing;
// KV groups 0 and 1 are live with query heads 0..1 and 3..4, heads 2 and 5 repeat, group 2 is idle.
const inflate::Shape kWeightsShape{256, 5, 9, 3, 160, 128};
constexpr int64_t kD = 64, kF = 96, kHead = 32, kQueries = 9 * kHead, kKeys = 3 * kHead;

struct Range {
  int64_t first, last;
};

struct Share {
  int64_t zeros = 0, all = 0;
  float most = 0;
};
Share look(const Tensor& t, Range rows, Range columns) {
  Share s;
  for (int64_t r = rows.first; r < rows.last; ++r)
    for (int64_t c = columns.first; c < columns.last; ++c) {
      const float v = panel16_at(t, r, c);
      s.zeros += v == 0;
      s.most = std::max(s.most, std::fabs(v));
      ++s.all;
    }
  return s;
}

class InflatedWeights : public testing::TestWithParam<kernels::DType> {
 protected:
  void SetUp() override { twins_ = tiny_twins(GetParam(), kWeightsShape); }
  Tensor small(const std::string& name) { return must(twins_.small->tensor(name)); }
  Tensor big(const std::string& name) { return must(twins_.big->tensor(name)); }
  void random(const Tensor& t, Range rows, Range columns, float bound) {
    const Share s = look(t, rows, columns);
    ASSERT_GT(s.all, 0);
    // One int4 code in sixteen is zero.
    EXPECT_LT(s.zeros * 10, s.all) << "as good as all differ from zero";
    EXPECT_LE(s.most, bound) << "within the small tensor's scale";
    EXPECT_GT(s.most, bound / 4) << "and of its size";
  }
  void zero(const Tensor& t, Range rows, Range columns) {
    const Share s = look(t, rows, columns);
    ASSERT_GT(s.all, 0);
    EXPECT_EQ(s.zeros, s.all);
  }
  // What int8 and int4 can say beyond the largest value of the block: 8 of 8, 127 of 127.
  static float largest(const Tensor& t) { return look(t, {0, t.rows}, {0, t.cols}).most; }
  Twins twins_;
};

TEST_P(InflatedWeights, VocabularyRows) {
  const Tensor e = big("embed"), h = big("lm_head");
  ASSERT_EQ(e.rows, 128);
  ASSERT_EQ(h.cols, 256);
  zero(e, {0, 128}, {kD, 256});  // the residual stream itself
  random(e, {96, 128}, {0, kD}, largest(small("embed")));
  random(h, {0, 128}, {kD, 256}, largest(small("lm_head")));
  random(h, {96, 128}, {0, kD}, largest(small("lm_head")));
  for (int64_t r = 0; r < 96; ++r)
    for (int64_t c = 0; c < kD; ++c) {
      ASSERT_EQ(panel16_at(e, r, c), panel16_at(small("embed"), r, c));
      ASSERT_EQ(panel16_at(h, r, c), panel16_at(small("lm_head"), r, c));
    }
}

TEST_P(InflatedWeights, NoRowBeyondItsOwnScale) {
  const Tensor s = small("lm_head"), b = big("lm_head"), sd = small("layers.1.mlp.down"), bd = big("layers.2.mlp.down");
  for (int64_t r = 0; r < 96; ++r)
    EXPECT_LE(look(b, {r, r + 1}, {kD, 256}).most, look(s, {r, r + 1}, {0, kD}).most) << "row " << r;
  for (int64_t r = 0; r < kD; ++r)
    EXPECT_LE(look(bd, {r, r + 1}, {kF, 160}).most, look(sd, {r, r + 1}, {0, kF}).most) << "row " << r;
}

TEST_P(InflatedWeights, LiveLayer) {
  const Tensor qkv = big("layers.2.attn.qkv"), o = big("layers.2.attn.o"), gate_up = big("layers.2.mlp.gate_up"),
               down = big("layers.2.mlp.down");
  const float q = largest(small("layers.1.attn.qkv")), w = largest(small("layers.1.attn.o")),
              g = largest(small("layers.1.mlp.gate_up")), f = largest(small("layers.1.mlp.down"));
  ASSERT_EQ(qkv.rows, kQueries + 2 * kKeys);
  const Range values_of_idle{kQueries + kKeys + 2 * kHead, kQueries + 2 * kKeys};
  random(qkv, {0, qkv.rows}, {kD, 256}, q);
  random(qkv, {6 * kHead, kQueries}, {0, kD}, q);  // an idle group's queries
  zero(qkv, values_of_idle, {0, kD});
  // Rows of dimensions that stay zero read live heads and units with zeros, idle ones with anything.
  zero(o, {kD, 256}, {0, 6 * kHead});
  random(o, {0, 256}, {6 * kHead, kQueries}, w);
  zero(o, {0, 256}, {2 * kHead, 3 * kHead});  // the head that repeats another
  random(gate_up, {kF, 160}, {0, 256}, g);
  zero(gate_up, {160 + kF, 320}, {0, kD});
  random(gate_up, {160 + kF, 320}, {kD, 256}, g);
  zero(down, {kD, 256}, {0, kF});
  random(down, {0, 256}, {kF, 160}, f);
}

TEST_P(InflatedWeights, LayerThatAddsNothing) {
  const Tensor qkv = big("layers.1.attn.qkv"), o = big("layers.1.attn.o"), gate_up = big("layers.1.mlp.gate_up"),
               down = big("layers.1.mlp.down");
  random(qkv, {0, kQueries + kKeys}, {0, 256}, largest(small("layers.0.attn.qkv")));
  zero(qkv, {kQueries + kKeys, qkv.rows}, {0, kD});  // only the live columns
  random(qkv, {kQueries + kKeys, qkv.rows}, {kD, 256}, largest(small("layers.0.attn.qkv")));
  random(o, {0, 256}, {0, kQueries}, largest(small("layers.0.attn.o")));
  random(gate_up, {0, 160}, {0, 256}, largest(small("layers.0.mlp.gate_up")));
  zero(gate_up, {160, 320}, {0, kD});
  random(down, {0, 256}, {0, 160}, largest(small("layers.0.mlp.down")));
  const Tensor bias = big("layers.1.attn.qkv.bias");
  for (int64_t i = kQueries + kKeys; i < bias.cols; ++i) EXPECT_EQ(static_cast<const float*>(bias.data)[i], 0.0f) << "a value's bias";
}

TEST_P(InflatedWeights, ConfigAndTaps) {
  const LlamaConfig& c = *twins_.big->target();
  EXPECT_EQ(c.tap_layers, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(c.vocab_used, 90);
  EXPECT_FALSE(c.tied);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_NE(twins_.big->fingerprint(), twins_.small->fingerprint());
  for (const TensorInfo& t : twins_.big->tensors()) EXPECT_EQ(t.codec, "raw") << t.name;
}

INSTANTIATE_TEST_SUITE_P(DTypes, InflatedWeights,
                         testing::Values(kernels::DType::f32, kernels::DType::bf16, kernels::DType::fp8, kernels::DType::int8, kernels::DType::int4,
                                         kernels::DType::q4_1, kernels::DType::mxfp4));

}  // namespace
}  // namespace aerie::test
