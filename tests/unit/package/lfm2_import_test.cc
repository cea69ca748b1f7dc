// LFM2, whose layers are short convolutions: Hugging Face's directories and GGUF files.
#include <functional>

#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

// As llama.cpp's converter writes it: names of its own, convolutions without the dimension of one, and no keys and values where there are none.
struct Lfm2File : FamilyFile {
  explicit Lfm2File(const std::string& golden) : FamilyFile(golden, golden == "lfm2" ? "lfm2" : "lfm2moe") {}

  Gguf file() {
    const json said = config;
    const Sources own = std::move(tensors);
    tensors.clear();
    static const std::pair<const char*, const char*> kNames[] = {
        {"model.embedding_norm.", "token_embd_norm."}, {"operator_norm.", "attn_norm."},       {"self_attn.out_proj.", "attn_output."},
        {"self_attn.q_layernorm.", "attn_q_norm."},    {"self_attn.k_layernorm.", "attn_k_norm."}, {"feed_forward.w1.", "ffn_gate."},
        {"feed_forward.w3.", "ffn_up."},               {"feed_forward.w2.", "ffn_down."},      {"feed_forward.gate.", "ffn_gate_inp."},
        {"feed_forward.expert_bias", "exp_probs_b.bias"}, {"conv.in_proj.", "shortconv.in_proj."}, {"conv.conv.", "shortconv.conv."},
        {"conv.out_proj.", "shortconv.out_proj."}};
    for (const auto& [name, s] : own) {
      std::string theirs = name;
      for (const auto& [from, to] : kNames)
        if (const size_t at = theirs.find(from); at != theirs.npos) {
          theirs.replace(at, std::strlen(from), to);
          break;
        }
      Source& made = tensors[theirs] = s;
      if (theirs.find("shortconv.conv.") != theirs.npos) made.shape = {s.shape[0], s.shape[2]};
    }
    if (arch == "lfm2") config["intermediate_size"] = 48;
    Gguf g = FamilyFile::file();
    tensors = own;
    config = said;
    g.forget(arch + ".attention.head_count_kv");
    std::vector<int32_t> heads;
    for (const auto& type : config["layer_types"]) heads.push_back(type == "conv" ? 0 : config["num_key_value_heads"].get<int32_t>());
    g.i32s(arch + ".attention.head_count_kv", heads);
    g.u32(arch + ".shortconv.l_cache", config["conv_L_cache"]);
    if (arch == "lfm2") return g;
    g.u32(arch + ".expert_feed_forward_length", config["moe_intermediate_size"]);
    g.u32(arch + ".leading_dense_block_count", config["num_dense_layers"]);
    g.u32(arch + ".expert_gating_func", 2);
    g.f32(arch + ".expert_weights_scale", config["routed_scaling_factor"]);
    return g;
  }
};

TEST(Lfm2Import, AFileIsTheDirectory) {
  for (const char* golden : {"lfm2", "lfm2_moe"}) {
    Lfm2File f(golden);
    const auto hf = f.hf();
    ASSERT_TRUE(hf) << golden;
    const auto p = f.gguf(f.file());
    ASSERT_TRUE(p.ok()) << p.status().message();
    expect_same(*hf, **p);
    EXPECT_EQ((*p)->fingerprint(), hf->fingerprint());
  }
}

TEST(Lfm2Import, AModelIsWhatItsConfigSays) {
  Lfm2File f("lfm2");
  const auto p = f.hf();
  ASSERT_TRUE(p);
  const LlamaConfig& c = *p->target();
  EXPECT_EQ(c.departures.delta_layers, (std::vector<int32_t>{1, 0, 1, 1}));
  EXPECT_EQ(c.departures.delta_taps, 3);
  EXPECT_EQ(c.ffn, 48) << "58 * 2 / 3 = 38, times 1.2, up to a multiple of 8";
  EXPECT_TRUE(c.qk_norm && c.tied);
  const json config = f.config;
  const auto same = [&](const std::function<void(json&)>& change) {
    change(f.config);
    const auto q = f.hf();
    ASSERT_TRUE(q);
    EXPECT_EQ(q->fingerprint(), p->fingerprint());
    f.config = config;
  };
  // As the first files say it.
  same([](json& j) { j.erase("layer_types"), j["full_attn_idxs"] = {1}; });
  same([](json& j) { j["block_ff_dim"] = j["intermediate_size"], j.erase("intermediate_size"); });
  same([](json& j) { j.erase("tie_word_embeddings"), j["tie_embedding"] = true; });
  same([](json& j) { j["block_auto_adjust_ff_dim"] = false, j["intermediate_size"] = 48; });
}

TEST(Lfm2Import, WhatIsRefusedIsNamed) {
  Lfm2File f("lfm2"), mixture("lfm2_moe");
  const auto refused = [](Lfm2File& file, const char* key, const json& value, const char* words) {
    const json config = file.config;
    file.config[key] = value;
    const Status s = file.try_hf().status();
    EXPECT_FALSE(s.ok()) << key;
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    file.config = config;
  };
  refused(f, "conv_L_cache", 1, "conv_L_cache: 1");
  refused(f, "conv_L_cache", 9, "conv_L_cache: 9");
  refused(f, "conv_L_cache", 4, "conv.conv.weight");
  refused(f, "conv_bias", true, "conv_bias");
  refused(f, "layer_types", {"conv", "full_attention"}, "layer_types: not a list of 4");
  refused(f, "layer_types", {"conv", "sliding_attention", "conv", "conv"}, "layer_types: \"sliding_attention\"");
  refused(f, "layer_types", {"conv", "conv", "conv", "conv"}, "layer_types");
  refused(f, "block_multiple_of", 0, "block_multiple_of: 0");
  refused(f, "block_ffn_dim_multiplier", -1, "block_ffn_dim_multiplier");
  refused(f, "block_ffn_dim_multiplier", 2, "feed_forward.w1.weight");
  refused(mixture, "use_expert_bias", false, "use_expert_bias");
  refused(mixture, "num_dense_layers", 3, "num_dense_layers: 3");
  refused(mixture, "num_experts_per_tok", 7, "num_experts_per_tok: 7");
  refused(mixture, "routed_scaling_factor", 0, "routed_scaling_factor");

  Gguf g = f.file();
  g.i32s("lfm2.attention.head_count_kv", {0, 2, 0});
  f.refused(g, Code::bad_format, {"lfm2.attention.head_count_kv", "not a list of 4"});
  g = f.file();
  g.i32s("lfm2.attention.head_count_kv", {0, 2, 1, 0});
  f.refused(g, Code::unsupported, {"lfm2.attention.head_count_kv", "differ"});
  g = f.file();
  g.forget("lfm2.shortconv.l_cache");
  f.refused(g, Code::bad_format, {"lfm2.shortconv.l_cache"});
  g = f.file();
  g.u32("lfm2.attention.sliding_window", 16);
  f.refused(g, Code::unsupported, {"lfm2.attention.sliding_window: 16"});
  g = f.file();
  g.forget_tensor("blk.0.shortconv.in_proj.weight");
  f.refused(g, Code::bad_format, {"blk.0.shortconv.in_proj.weight"});
}

}  // namespace
}  // namespace aerie::test
