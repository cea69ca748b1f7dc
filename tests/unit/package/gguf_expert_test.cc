// Mixtures of experts in GGUF files.
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

using kernels::DType;

DType dtype_in(const Package& p, const std::string& tensor) { return p.tensor(tensor)->dtype; }

TEST(GgufExperts, AreThoseOfTheGoldenCheckpoint) {
  for (const auto& [golden, arch] : {std::pair{"mixtral", "llama"}, {"qwen3_moe", "qwen3moe"}, {"olmoe", "olmoe"}, {"granitemoe", "granitemoe"}}) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    if (f.arch == "llama") f.config["sliding_window"] = nullptr;  // no file says it
    const auto p = f.hf();
    ASSERT_TRUE(p);
    EXPECT_GT(p->target()->departures.experts, 0);
    expect_theirs(f);
  }
}

TEST(GgufExperts, WhatAFileLeavesUnsaid) {
  FamilyFile f("qwen3_moe", "qwen3moe");
  Gguf g = f.file();
  g.forget("qwen3moe.expert_feed_forward_length");
  g.u32("qwen3moe.feed_forward_length", 16 * 3);
  expect_theirs(f, g);
  // What says no more than llama.cpp does by itself.
  g.u32("qwen3moe.expert_gating_func", 1);
  g.f32("qwen3moe.expert_weights_scale", 1);
  g.boolean("qwen3moe.expert_weights_norm", true);
  g.u32("qwen3moe.expert_shared_count", 0);
  g.u32("qwen3moe.leading_dense_block_count", 0);
  expect_theirs(f, g);
}

// 18 bytes of Q4_0 and 34 of Q8_0 for 32 columns.
TEST(GgufExperts, TheFinestTypeIsThatOfAllAndRoutersAreNotQuantised) {
  FamilyFile f("olmoe", "olmoe");
  Gguf g = f.file();
  const auto set = [&](const std::string& name, uint32_t type, int64_t bytes) {
    const std::vector<int64_t> shape = g.shape(name);
    const int64_t rows = shape.size() == 3 ? shape[0] * shape[1] : shape[0];
    g.tensor(name, shape, type, std::string(static_cast<size_t>(rows * bytes), '\x21'));
  };
  set("blk.0.ffn_gate_exps.weight", 2, 18);
  set("blk.0.ffn_up_exps.weight", 8, 34);
  set("blk.1.ffn_gate_exps.weight", 2, 18);
  set("blk.1.ffn_up_exps.weight", 2, 18);
  set("blk.1.ffn_gate_inp.weight", 30, 64);  // bf16
  f.options.dtype = WeightDType::stored();
  auto p = f.gguf(g);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(dtype_in(**p, "layers.0.mlp.experts.gate_up"), DType::int8);
  EXPECT_EQ(dtype_in(**p, "layers.1.mlp.experts.gate_up"), DType::int4);
  EXPECT_EQ(dtype_in(**p, "layers.0.mlp.experts.down"), DType::f32);
  EXPECT_EQ(dtype_in(**p, "layers.0.mlp.router"), DType::f32);
  EXPECT_EQ(dtype_in(**p, "layers.1.mlp.router"), DType::bf16);
  for (const auto& [dtype, router] : {std::pair<WeightDType, DType>{{}, DType::bf16}, {DType::int4, DType::bf16}, {DType::f32, DType::f32}}) {
    f.options.dtype = dtype;
    p = f.gguf(g);
    ASSERT_TRUE(p.ok()) << p.status().message();
    EXPECT_EQ(dtype_in(**p, "layers.0.mlp.router"), DType::f32);  // nothing else has its values
    EXPECT_EQ(dtype_in(**p, "layers.1.mlp.router"), router);
  }
}

TEST(GgufExperts, WhatWouldBeAnotherMixtureIsRefused) {
  const auto olmoe = [&](auto change, std::initializer_list<const char*> words, Code code = Code::unsupported) {
    refused("olmoe", "olmoe", change, words, code);
  };
  olmoe([](Gguf& g) { g.u32("olmoe.expert_shared_count", 1); }, {"olmoe.expert_shared_count: 1"});
  olmoe([](Gguf& g) { g.u32("olmoe.expert_shared_feed_forward_length", 8); }, {"expert_shared_feed_forward_length"});
  olmoe([](Gguf& g) { g.u32("olmoe.leading_dense_block_count", 1); }, {"leading_dense_block_count"});
  olmoe([](Gguf& g) { g.u32("olmoe.expert_gating_func", 2); }, {"expert_gating_func: 2"});
  olmoe([](Gguf& g) { g.u32("olmoe.expert_group_count", 2); }, {"expert_group_count"});
  olmoe([](Gguf& g) { g.f32("olmoe.expert_weights_scale", 2.5f); }, {"expert_weights_scale: 2.5"});
  olmoe([](Gguf& g) { g.boolean("olmoe.expert_weights_norm", true); }, {"expert_weights_norm"});
  olmoe([](Gguf& g) { g.u32("olmoe.expert_used_count", 8); }, {"olmoe.expert_used_count: 8 is not in [1, 7]"}, Code::bad_format);
  olmoe([](Gguf& g) { g.u32("olmoe.expert_count", 5000); }, {"olmoe.expert_count: 5000 is not in [1, 1024]"}, Code::bad_format);
  olmoe([](Gguf& g) { g.u32("olmoe.expert_count", 0xffffffffu); }, {"olmoe.expert_count"}, Code::bad_format);
  olmoe([](Gguf& g) { g.forget("olmoe.expert_used_count"); }, {"olmoe.expert_used_count: is missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.forget("olmoe.feed_forward_length"), g.forget("olmoe.expert_feed_forward_length"); },
        {"olmoe.expert_feed_forward_length: is missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.forget("olmoe.expert_count"); }, {"blk.0.ffn_gate.weight: missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.u32("olmoe.expert_count", 6); }, {"blk.0.ffn_gate_inp.weight: shape (7, 32)", "(6, 32)"}, Code::bad_format);
  olmoe([](Gguf& g) { g.u32("olmoe.expert_feed_forward_length", 16); }, {"blk.0.ffn_gate_exps.weight: shape (7, 24, 32)", "(7, 16, 32)"},
        Code::bad_format);
  olmoe([](Gguf& g) { g.forget_tensor("blk.1.ffn_gate_inp.weight"); }, {"blk.1.ffn_gate_inp.weight: missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.forget_tensor("blk.1.ffn_up_exps.weight"); }, {"blk.1.ffn_up_exps.weight: missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.forget_tensor("blk.1.ffn_down_exps.weight"); }, {"blk.1.ffn_down_exps.weight: missing"}, Code::bad_format);
  olmoe([](Gguf& g) { g.tensor("blk.0.ffn_gate_shexp.weight", {8, 32}, std::vector<float>(256)); },
        {"blk.0.ffn_gate_shexp.weight", "unexpected"}, Code::bad_format);
  refused("qwen3", "qwen3", [](Gguf& g) { g.u32("qwen3.expert_count", 4); }, {"qwen3.expert_count: 4"});
  refused("granitemoe", "granitemoe", [](Gguf& g) { g.u32("granitemoe.expert_shared_feed_forward_length", 16); },
          {"blk.0.ffn_gate_shexp.weight: missing"}, Code::bad_format);
}

}  // namespace
}  // namespace aerie::test
