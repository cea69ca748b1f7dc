// Mixtures with an expert for every row, other scores than a softmax, layers without experts: Hugging Face's directories and GGUF files.
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

constexpr std::pair<const char*, const char*> kSharing[] = {{"granitemoeshared", "granitemoe"}, {"qwen2_moe", "qwen2moe"}, {"glm4_moe", "glm4moe"},
                                                            {"dots1", "dots1"}, {"ernie4_5_moe", "ernie4_5-moe"}, {"minimax_m2", "minimax-m2"}};

TEST(SharedExpertImport, AModelIsWhatItsConfigSays) {
  FamilyFile glm("glm4_moe"), qwen("qwen2_moe"), ernie("ernie4_5_moe"), dots("dots1"), minimax("minimax_m2"), granite("granitemoeshared");
  const auto g = glm.hf();
  Departures want;
  want.experts = 8, want.experts_used = 3, want.norm_experts = true;
  want.dense_layers = 1, want.dense_ffn = 24, want.shared_ffn = 16;
  want.expert_choice = want.sigmoid_experts = true, want.expert_scale = 1.8f;
  EXPECT_EQ(g->target()->departures, want);
  EXPECT_EQ(g->target()->ffn, 8);
  EXPECT_TRUE(g->target()->qk_norm);
  EXPECT_TRUE(g->has("layers.0.mlp.gate_up") && !g->has("layers.0.mlp.router") && !g->has("layers.1.mlp.gate_up"));
  EXPECT_EQ(g->tensor("layers.2.mlp.shared.gate_up")->rows, 32);
  const auto q = qwen.hf();
  EXPECT_TRUE(q->target()->departures.shared_gate);
  EXPECT_EQ(q->target()->departures.shared_ffn, 28);
  EXPECT_FALSE(q->target()->departures.expert_choice);
  EXPECT_EQ(q->tensor("layers.0.mlp.shared.gate")->rows, 1);
  const Departures d = dots.hf()->target()->departures, e = ernie.hf()->target()->departures, m = minimax.hf()->target()->departures;
  EXPECT_FALSE(d.norm_experts);
  EXPECT_FLOAT_EQ(d.expert_scale, 2.5f);
  EXPECT_TRUE(e.expert_choice && e.norm_experts && !e.sigmoid_experts);
  EXPECT_EQ(e.dense_layers, 1);
  EXPECT_TRUE(m.sigmoid_experts && m.whole_qk_norm);
  EXPECT_EQ(m.shared_ffn, 0);
  EXPECT_EQ(granite.hf()->target()->departures.shared_ffn, 20);
}

// As llama.cpp's converter writes them.
TEST(SharedExpertImport, GgufFilesAreTheSameModels) {
  for (const auto& [golden, arch] : kSharing) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    expect_theirs(f);
  }
}

// Whatever is said otherwise is another model, of another fingerprint.
TEST(SharedExpertImport, EverySettingCounts) {
  const auto changes = [](const char* golden, const char* key, const json& value) {
    FamilyFile f(golden);
    const std::string before = f.hf()->fingerprint();
    f.config[key] = value;
    const auto p = f.try_hf();
    ASSERT_TRUE(p.ok()) << p.status().message();
    EXPECT_NE((*p)->fingerprint(), before) << golden << " " << key;
  };
  changes("glm4_moe", "routed_scaling_factor", 1.0);
  changes("glm4_moe", "norm_topk_prob", false);
  changes("glm4_moe", "num_experts_per_tok", 2);
  changes("dots1", "norm_topk_prob", true);
  changes("qwen2_moe", "norm_topk_prob", true);
}

// transformers'.
TEST(SharedExpertImport, WhatAFileDoesNotSay) {
  FamilyFile minimax("minimax_m2"), ernie("ernie4_5_moe"), granite("granitemoeshared");
  minimax.config["rope_parameters"]["rope_theta"] = 5000000.0;
  const std::string said = minimax.hf()->fingerprint();
  minimax.config["rope_parameters"].erase("rope_theta");
  EXPECT_EQ(minimax.hf()->fingerprint(), said);
  ernie.config.erase("eos_token_id");
  EXPECT_EQ(ernie.hf()->target()->eos_ids, std::vector<int32_t>{2});
  ernie.config["moe_layer_end_index"] = 7;  // beyond the last
  EXPECT_EQ(ernie.hf()->target()->departures.dense_layers, 1);
  granite.config.erase("shared_intermediate_size");
  EXPECT_NE(granite.try_hf().status().message().find("shared_mlp"), std::string::npos) << "there is none";
  std::erase_if(granite.tensors, [](const auto& t) { return t.first.find("shared_mlp") != std::string::npos; });
  EXPECT_EQ(granite.hf()->target()->departures.shared_ffn, 0);
}

TEST(SharedExpertImport, LayersForMultiTokenPredictionAreLeftOut) {
  FamilyFile f("glm4_moe", "glm4moe");
  const auto before = f.hf();
  ASSERT_TRUE(before);
  EXPECT_EQ(f.warnings.size(), 1u);  // no tokenizer
  const Sources all = f.tensors;
  for (const auto& [name, s] : all)
    if (name.starts_with("model.layers.2.")) f.tensors["model.layers.3." + name.substr(std::strlen("model.layers.2."))] = s;
  f.tensors["model.layers.3.eh_proj.weight"] = {"F32", {32, 64}, std::vector<float>(2048)};
  f.config["num_nextn_predict_layers"] = 1;
  const auto more = f.hf();
  ASSERT_TRUE(more);
  expect_same(*before, *more);
  EXPECT_TRUE(std::any_of(f.warnings.begin(), f.warnings.end(), [](const std::string& w) { return w.find("multi-token prediction") != w.npos; }));
  Gguf g = f.file();
  g.u32("glm4moe.block_count", 4);
  g.u32("glm4moe.nextn_predict_layers", 1);
  const auto theirs = f.gguf(g);
  ASSERT_TRUE(theirs.ok()) << theirs.status().message();
  expect_same(*before, **theirs);
  f.config["num_nextn_predict_layers"] = 2147483647;
  expect_same(*before, *f.hf());
  f.config["num_nextn_predict_layers"] = -1;
  EXPECT_NE(f.try_hf().status().message().find("num_nextn_predict_layers: -1"), std::string::npos);
  f.config["num_nextn_predict_layers"] = 0;
  EXPECT_NE(f.try_hf().status().message().find("model.layers.3."), std::string::npos) << "not what the config says";
}

TEST(SharedExpertImport, WhatWouldBeAnotherModelIsNamed) {
  const auto says = [&](const char* golden, const char* key, const json& value, std::initializer_list<const char*> words, Code code = Code::unsupported) {
    directory_refused(golden, [&](FamilyFile& f) { f.config[key] = value; }, words, code);
  };
  says("glm4_moe", "n_group", 2, {"config.json: n_group: 2"});
  says("glm4_moe", "topk_group", 3, {"topk_group: 3"});
  says("glm4_moe", "scoring_func", "softmax", {"scoring_func"});
  says("glm4_moe", "routed_scaling_factor", 0, {"routed_scaling_factor"}, Code::bad_format);
  says("glm4_moe", "first_k_dense_replace", 4, {"layers without experts: 4 of 3"}, Code::bad_format);
  says("glm4_moe", "first_k_dense_replace", 0, {"model.layers.0.mlp.gate.weight: missing"}, Code::bad_format);
  says("glm4_moe", "n_shared_experts", 1, {"shared_experts.gate_proj.weight: shape (16, 32)", "(8, 32)"}, Code::bad_format);
  says("glm4_moe", "n_shared_experts", 1 << 20, {"n_shared_experts"}, Code::bad_format);
  says("qwen2_moe", "shared_expert_intermediate_size", 0, {"shared_expert_intermediate_size: 0"}, Code::bad_format);
  says("qwen2_moe", "mlp_only_layers", {0}, {"mlp_only_layers"});
  says("qwen2_moe", "decoder_sparse_step", 2, {"decoder_sparse_step: 2"});
  says("ernie4_5_moe", "moe_layer_interval", 2, {"moe_layer_interval: 2"});
  says("ernie4_5_moe", "moe_layer_end_index", 0, {"moe_layer_end_index: 0"});
  says("minimax_m2", "shared_intermediate_size", 8, {"shared_intermediate_size: 8"});
  says("granitemoeshared", "shared_intermediate_size", 24, {"shared_mlp.input_linear.weight: shape (40, 32)", "(48, 32)"}, Code::bad_format);
  says("glm4_moe", "model_type", "deepseek_v3", {"model_type: \"deepseek_v3\"", "latent attention"});
  for (const auto& [golden, tensor] : {std::pair{"glm4_moe", "model.layers.1.mlp.gate.e_score_correction_bias"},
                                       {"glm4_moe", "model.layers.2.mlp.shared_experts.down_proj.weight"},
                                       {"glm4_moe", "model.layers.0.mlp.up_proj.weight"},
                                       {"qwen2_moe", "model.layers.0.mlp.shared_expert_gate.weight"},
                                       {"ernie4_5_moe", "model.layers.1.mlp.moe_statics.e_score_correction_bias"},
                                       {"granitemoeshared", "model.layers.1.shared_mlp.output_linear.weight"}})
    directory_refused(golden, [&](FamilyFile& f) { ASSERT_EQ(f.tensors.erase(tensor), 1u) << tensor; }, {tensor, "missing"}, Code::bad_format);
}

TEST(SharedExpertImport, GgufFilesThatSayOtherwiseAreRefused) {
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.u32("glm4moe.expert_gating_func", 3); }, {"expert_gating_func: 3"});
  refused("dots1", "dots1", [](Gguf& g) { g.forget("dots1.expert_gating_func"); }, {"expert_gating_func: 0"});
  refused("dots1", "dots1", [](Gguf& g) { g.forget_tensor("blk.1.exp_probs_b.bias"); }, {"tensor blk.1.exp_probs_b.bias: is missing"});
  refused("ernie4_5_moe", "ernie4_5-moe", [](Gguf& g) { g.u32("ernie4_5-moe.expert_gating_func", 2); }, {"expert_gating_func: 2"});
  refused("ernie4_5_moe", "ernie4_5-moe", [](Gguf& g) { g.u32("ernie4_5-moe.interleave_moe_layer_step", 2); }, {"interleave_moe_layer_step: 2"});
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.u32("glm4moe.expert_group_count", 2); }, {"expert_group_count: 2"});
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.u32("glm4moe.leading_dense_block_count", 9); }, {"leading_dense_block_count: 9"}, Code::bad_format);
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.forget("glm4moe.feed_forward_length"); }, {"glm4moe.feed_forward_length: is missing"},
          Code::bad_format);
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.u32("glm4moe.expert_shared_count", 1u << 30); }, {"expert_shared_count"}, Code::bad_format);
  refused("glm4_moe", "glm4moe", [](Gguf& g) { g.u32("glm4moe.nextn_predict_layers", 3); }, {"nextn_predict_layers: 3"}, Code::bad_format);
}

}  // namespace
}  // namespace aerie::test
