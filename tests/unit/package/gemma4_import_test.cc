// Gemma 4: what config.json and GGUF's keys may say of heads of two widths, shared keys and values, and mixtures; and what is refused.
#include "core/package/validate.h"
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

constexpr const char* kGoldens[] = {"gemma4", "gemma4_keys", "gemma4_moe"};

TEST(Gemma4, GgufIsTheGoldenCheckpoint) {
  for (const char* golden : kGoldens) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, "gemma4");
    expect_theirs(f);
  }
}

// As files were written before heads were said layer by layer.
TEST(Gemma4, HeadsOfFullAttentionMayBeSaidOnce) {
  for (const char* golden : kGoldens) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden);
    const auto by_layer = f.hf();
    f.config.erase("per_layer_config");
    f.config["global_head_dim"] = 16;
    if (f.config["attention_k_eq_v"]) f.config["num_global_key_value_heads"] = 1;
    const auto once = f.hf();
    ASSERT_TRUE(by_layer && once);
    expect_same(*by_layer, *once);
  }
}

TEST(Gemma4, WhatThePackageSays) {
  FamilyFile f("gemma4");
  const auto p = f.hf();
  ASSERT_TRUE(p);
  const LlamaConfig& c = *p->target();
  const Departures& d = c.departures;
  EXPECT_EQ(d.wide_layers, (std::vector<int32_t>{0, 0, 1, 0, 1}));
  EXPECT_EQ(d.kv_layers, (std::vector<int32_t>{0, 1, 2, 1, 2}));
  EXPECT_EQ(d.layer_rope, (std::vector<int32_t>{1, 1, 0, 1, 0}));
  EXPECT_EQ(c.kv_layers(false), 2);
  EXPECT_EQ(c.kv_layers(true), 1);
  EXPECT_EQ(c.ffn_of(2), 32);
  EXPECT_EQ(c.ffn_of(3), 64);
  EXPECT_TRUE(d.layer_scales && d.v_norm);
  EXPECT_EQ(d.logit_cap, 4.0f);
  const auto ropes = *p->tensor("rope.frequencies");
  ASSERT_EQ(ropes.cols, 9);
  const auto* full = static_cast<const float*>(ropes.data);
  EXPECT_EQ(full[0], 1.0f);
  EXPECT_FLOAT_EQ(full[3], std::pow(1e4f, -6.0f / 16));  // as of a whole head
  EXPECT_EQ(full[4], 0.0f);
}

// Tensors that layers which read others' have all the same are left out, and so is what sees and hears.
TEST(Gemma4, WhatNobodyReadsIsLeftOut) {
  FamilyFile f("gemma4");
  const auto want = f.hf();
  for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"})
    f.tensors[std::string("model.layers.3.self_attn.") + name] = f.tensors[std::string("model.layers.1.self_attn.") + name];
  Sources named;
  for (const auto& [name, s] : f.tensors) named["model.language_model." + name.substr(std::strlen("model."))] = s;
  for (const char* name : {"model.vision_tower.patch.weight", "model.embed_audio.projection.weight"}) named[name] = f.tensors["model.norm.weight"];
  f.tensors = named;
  f.config = {{"model_type", "gemma4"}, {"text_config", f.config}};
  const auto got = f.hf();
  ASSERT_TRUE(want && got);
  expect_same(*want, *got);
  EXPECT_TRUE(std::any_of(f.warnings.begin(), f.warnings.end(), [](const std::string& w) { return w.find("images or sounds") != w.npos; }));
}

// Where values are said to be what keys are projected to, tensors for them count as little as in transformers; where not, one that is missing
// is missing.
TEST(Gemma4, ValuesAreKeysWhereTheConfigSaysSo) {
  FamilyFile keys("gemma4_keys");
  const auto want = keys.hf();
  const std::string k = "model.layers.2.self_attn.k_proj.weight", v = "model.layers.2.self_attn.v_proj.weight";
  ASSERT_EQ(keys.config["layer_types"][2], "full_attention");
  ASSERT_FALSE(keys.tensors.contains(v));
  keys.tensors[v] = keys.tensors[k];
  for (float& x : keys.tensors[v].values) x *= 2;
  const auto got = keys.hf();
  ASSERT_TRUE(want && got);
  expect_same(*want, *got);
  directory_refused("gemma4", [&](FamilyFile& f) { f.tensors.erase(v); }, {v.c_str(), "missing"}, Code::bad_format);
}

TEST(Gemma4, ACandidateHeadKnowsNoCapsOfLogits) {
  directory_refused("gemma4", [](FamilyFile& f) { f.options.candidate_rank = 8; }, {"candidate head", "caps its logits"}, Code::unsupported);
}

TEST(Gemma4, DirectoriesThatAreRefused) {
  const auto refused = [](const char* golden, const std::function<void(json&)>& change, std::initializer_list<const char*> words, Code code) {
    directory_refused(golden, [&](FamilyFile& f) { change(f.config); }, words, code);
  };
  refused("gemma4", [](json& c) { c["use_bidirectional_attention"] = "all"; }, {"use_bidirectional_attention"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["attention_bias"] = true; }, {"attention_bias"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["vocab_size_per_layer_input"] = 50; }, {"vocab_size_per_layer_input", "50"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["intermediate_size"] = 2147483647; }, {"intermediate_size", "2147483647"}, Code::bad_format);
  refused("gemma4", [](json& c) { c["num_kv_shared_layers"] = 5; }, {"num_kv_shared_layers", "5 of 5"}, Code::bad_format);
  refused("gemma4", [](json& c) { c["num_kv_shared_layers"] = 3; }, {"num_kv_shared_layers", "no layer of their kind"}, Code::bad_format);
  refused("gemma4", [](json& c) { c["per_layer_config"]["0"] = {{"head_dim", 16}}; }, {"per_layer_config"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["per_layer_config"]["4"]["head_dim"] = 24; }, {"per_layer_config", "two kinds"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["per_layer_config"]["4"]["sliding_window"] = 3; }, {"per_layer_config", "sliding_window"}, Code::unsupported);
  refused("gemma4", [](json& c) { for (const char* i : {"2", "4"}) c["per_layer_config"][i]["head_dim"] = 2048; }, {"global_head_dim", "2048"}, Code::bad_format);
  refused("gemma4", [](json& c) { c["rope_parameters"]["sliding_attention"]["partial_rotary_factor"] = 0.5; }, {"rope_parameters"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["rope_parameters"]["full_attention"]["rope_type"] = "default"; }, {"rope_parameters"}, Code::unsupported);
  refused("gemma4", [](json& c) { c["final_logit_softcapping"] = -1; }, {"final_logit_softcapping"}, Code::bad_format);
  refused("gemma4_moe", [](json& c) { c["top_k_experts"] = 7; }, {"top_k_experts"}, Code::bad_format);
  refused("gemma4_moe", [](json& c) { c["num_experts"] = nullptr; }, {"num_experts"}, Code::bad_format);
}

TEST(Gemma4, FilesThatAreRefused) {
  refused("gemma4", "gemma4", [](Gguf& g) { g.i32s("gemma4.feed_forward_length", {32, 32, 32}); }, {"feed_forward_length", "list of 5"}, Code::bad_format);
  refused("gemma4", "gemma4", [](Gguf& g) { g.i32s("gemma4.feed_forward_length", {32, 32, 48, 64, 64}); }, {"feed_forward_length"});
  refused("gemma4_keys", "gemma4", [](Gguf& g) { g.i32s("gemma4.attention.head_count_kv", {2, 1, 1, 2, 1}); }, {"head_count_kv"});
  refused("gemma4", "gemma4", [](Gguf& g) { g.u32("gemma4.attention.value_length_swa", 4); }, {"value_length_swa"});
  refused("gemma4", "gemma4", [](Gguf& g) { g.u32("gemma4.attention.shared_kv_layers", 3); }, {"shared_kv_layers"}, Code::bad_format);
  refused("gemma4", "gemma4", [](Gguf& g) { g.tensor("rope_freqs.weight", {8}, {1, 1, 2, 2, 1e30f, 1e30f, 1e30f, 1e30f}); }, {"rope_freqs"});
  refused("gemma3", "gemma3", [](Gguf& g) { g.f32("gemma3.final_logit_softcapping", 30); }, {"final_logit_softcapping"});
}

// A package may not say what would be read beyond a tensor's end, or never be written.
TEST(Gemma4, ConfigsThatAreRefused) {
  FamilyFile f("gemma4");
  const auto p = f.hf();
  ASSERT_TRUE(p);
  ASSERT_TRUE(package::check_config(*p->target()).ok());
  const auto bad = [&](const std::function<void(LlamaConfig&)>& change, const char* word) {
    LlamaConfig c = *p->target();
    change(c);
    const Status s = package::check_config(c);
    EXPECT_EQ(s.code(), Code::bad_format) << word;
    EXPECT_NE(s.message().find(word), std::string::npos) << s.message();
  };
  bad([](LlamaConfig& c) { c.departures.wide_layers.pop_back(); }, "wide_layers");
  bad([](LlamaConfig& c) { c.departures.wide_layers.clear(); }, "wide_layers");
  bad([](LlamaConfig& c) { c.departures.wide_head_dim = 17; }, "wide_head_dim");
  bad([](LlamaConfig& c) { c.departures.wide_head_dim = 4; }, "wide_head_dim");
  bad([](LlamaConfig& c) { c.departures.wide_kv_heads = 3; }, "wide_kv_heads");
  bad([](LlamaConfig& c) { c.departures.attention_scale = 0; }, "attention_scale");
  bad([](LlamaConfig& c) { c.departures.layer_rope = {0, 0, 0, 0, 0}; }, "layer_rope");
  bad([](LlamaConfig& c) { c.departures.layer_rope.clear(); }, "layer_rope");
  bad([](LlamaConfig& c) { c.departures.kv_layers = {0, 1, 2, 4, 2}; }, "kv_layers");  // later than itself
  bad([](LlamaConfig& c) { c.departures.kv_layers = {0, 1, 2, 2, 2}; }, "other heads");
  bad([](LlamaConfig& c) { c.departures.kv_layers = {0, 0, 2, 1, 2}; }, "none of its own");
  bad([](LlamaConfig& c) { c.departures.kv_layers = {0, 1, 2}; }, "kv_layers");
  bad([](LlamaConfig& c) { c.qkv_bias = true; }, "kv_layers");
  bad([](LlamaConfig& c) { c.departures.kv_layers.clear(); }, "reader_ffn");
  bad([](LlamaConfig& c) { c.departures.layer_inputs = 1 << 20; }, "layer_inputs");
  bad([](LlamaConfig& c) { c.departures.norms = Departures::Norms::before; }, "layer_inputs");
  bad([](LlamaConfig& c) { c.departures.logit_cap = std::numeric_limits<float>::infinity(); }, "logit_cap");
  bad([](LlamaConfig& c) { c.departures.normed_experts = true; }, "normed_experts");
}

}  // namespace
}  // namespace aerie::test
