// Shapes that cannot hold a model, and packages that are not what they say: a clear error and no file.
#include "tests/unit/inflate/random_target.h"

namespace aerie::test {
namespace {

using inflate::Job;
using inflate::Shape;

TEST(InflateShapes, WhatCannotHoldTheModelIsRefused) {
  const auto small = must(Package::open(source_dir() + "/samples/models/demo.aerie"));
  const auto refused = [&](const Shape& s) {
    const std::string out = scratch_dir() + "/refused.aerie";
    const Status status = inflate::inflate_target({small, s, 1, out});
    EXPECT_EQ(exists(out), status.ok());
    std::filesystem::remove(out);
    return status.message();
  };
  EXPECT_NE(refused({128, 18, 8, 2, 640, 4160}).find("dim"), std::string::npos);
  EXPECT_NE(refused({768, 12, 8, 2, 640, 4160}).find("layers"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 480, 4160}).find("ffn"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 640, 4000}).find("vocab"), std::string::npos);
  EXPECT_NE(refused({768, 18, 2, 2, 640, 4160}).find("groups"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 3, 640, 4160}).find("multiple of kv_heads"), std::string::npos);
  EXPECT_NE(refused({770, 18, 8, 2, 640, 4160}).find("32"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 650, 4160}).find("32"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 640, 4160, 128}).find("head_dim 128"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 640, 4160, 0, 4, 5}).find("experts_used 5 of experts 4"), std::string::npos);
  EXPECT_NE(refused({768, 18, 8, 2, 640, 4160, 0, 4, 0}).find("experts"), std::string::npos);
  EXPECT_EQ(refused({192, 16, 3, 1, 512, 4096, 64}), "") << "its own head size may be said";
}

TEST(InflateShapes, Text) {
  for (const char* text : {"", "dim=768", "2b", "dim=,layers=1", "dim=7x,layers=1,heads=1,kv_heads=1,ffn=1,vocab=1",
                           "dim=-4,layers=1,heads=1,kv_heads=1,ffn=1,vocab=1", "dim=99999999999", "width=768"})
    EXPECT_EQ(inflate::parse_shape(text, 64).status().code(), Code::invalid_argument) << text;
  const Shape s = must(inflate::parse_shape("dim=768,layers=18,heads=12,kv_heads=4,ffn=2048,vocab=8192", 64));
  EXPECT_EQ(s.hidden, 768);
  EXPECT_EQ(s.vocab, 8192);
  EXPECT_EQ(s.experts, 0);
  EXPECT_EQ(must(inflate::parse_shape("dim=1,layers=1,heads=1,kv_heads=1,ffn=1,vocab=1,experts=8,experts_used=2", 64)).experts_used, 2);
  // Half the head size, twice the heads: the same widths.
  EXPECT_EQ(must(inflate::parse_shape("8b", 128)).heads, 32);
  EXPECT_EQ(must(inflate::parse_shape("8b", 64)).heads, 64);
  EXPECT_EQ(must(inflate::parse_shape("8b", 64)).kv_heads, 16);
  EXPECT_FALSE(inflate::parse_shape("8b", 96).ok());
}

class InflateHeads : public testing::Test {
 protected:
  // An EAGLE head of the tiny target, `edit` applied before it is written.
  Status inflated(const std::function<void(DrafterConfig&, std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>&)>& edit) {
    const LlamaConfig c = tiny_config();
    const auto target = must(Package::open(random_target("head-target", c, kernels::DType::int8)));
    DrafterConfig d;
    d.plugin_id = "eagle";
    d.target_fingerprint = target->fingerprint();
    d.params = {{"hidden", 64}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 32}, {"ffn", 96}, {"rms_eps", 1e-5}, {"vocab_size", 96}};
    std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> tensors = {{"fc", {64, 128}},
                                                                                {"layers.0.attn.qkv", {256, 64}},
                                                                                {"layers.0.attn.o", {64, 128}},
                                                                                {"layers.0.mlp_norm", {1, 64}},
                                                                                {"layers.0.mlp.gate_up", {192, 64}},
                                                                                {"layers.0.mlp.down", {64, 96}}};
    edit(d, tensors);
    const std::string path = scratch_dir() + "/head.aerie", out = scratch_dir() + "/head-big.aerie";
    auto writer = must(PackageWriter::create(path));
    for (const auto& [name, shape] : tensors) {
      std::vector<float> values(static_cast<size_t>(kernels::round_up(shape.first, 16) * shape.second), 0.5f);
      kernels::Tensor t = kernels::matrix(values.data(), shape.first, shape.second);
      if (shape.first > 1) t.layout = kernels::Layout::panel16;
      must(writer->add_tensor(name, t));
    }
    writer->set_name("head");
    writer->set_fingerprint("fedcba9876543210");
    writer->set_drafter(d);
    must(writer->finish());
    const Shape shape{256, 5, 8, 4, 160, 128};
    const Status s = inflate::inflate_drafter({must(Package::open(path)), shape, 1, out}, {target, shape, 1, {}});
    EXPECT_EQ(exists(out), s.ok());
    std::filesystem::remove(out);
    return s;
  }
  static bool says(const Status& s, const std::string& what) { return !s.ok() && s.message().find(what) != std::string::npos; }
};

TEST_F(InflateHeads, GoodOne) {
  const Status s = inflated([](auto&, auto&) {});
  EXPECT_TRUE(s.ok()) << s.message();
}

TEST_F(InflateHeads, WhatDoesNotFitIsRefusedByName) {
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.target_fingerprint = "00000000000000000000"; }), "another target"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t[0].second.first = 32; }), "tensor fc: has 32 rows, 64 expected"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t[0].second.second = 130; }), "tensor fc: has 130 columns"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t[1].second.first = 288; }), "layers.0.attn.qkv: has 288 rows"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t[3].second.second = 32; }), "layers.0.mlp_norm: has 32 elements"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t[5].second.first = 1; }), "layers.0.mlp.down: not a packed weight"));
  EXPECT_TRUE(says(inflated([](auto&, auto& t) { t.emplace_back("surprise", std::pair<int64_t, int64_t>(64, 64)); }), "tensor surprise"));
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.params[1].value = 2.5; }), "parameter heads"));
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.params[2].value = 3; }), "kv_heads"));
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.params[3].value = 16; }), "head size and ffn must be multiples of 32"));
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.params.push_back({"tap.0", 2}); }), "parameter tap.0"));
  EXPECT_TRUE(says(inflated([](DrafterConfig& d, auto&) { d.params[0].value = 32; }), "parameter hidden"));
}

}  // namespace
}  // namespace aerie::test
