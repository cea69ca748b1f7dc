// Heads of every kind, edited tensor by tensor (tests/golden/heads): what is missing, left over, mis-shaped or at odds
// with the rest is refused by name; the spellings in use mean the same package.
#include <functional>

#include "unit/package/edited_head.h"

namespace aerie::test {
namespace {

double head_param(const Package& p, const std::string& name) {
  for (const auto& q : p.drafter()->params)
    if (q.name == name) return q.value;
  return -1;
}

class HeadImport : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, HeadImport, testing::Values("eagle", "eagle3", "fasteagle", "medusa", "hydra", "hydra_prefix", "eagle3_norms", "eagle3_fc_norm", "eagle3_narrow", "eagle3_deep", "dflash"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(HeadImport, EveryTensorCounts) {
  const std::string kind = GetParam();
  EditedHead head(kind);
  EXPECT_EQ(head.package()->drafter()->plugin_id, kind.substr(0, kind.find('_')));
  const auto all = head.tensors;
  for (const auto& [name, t] : all) {
    head.tensors.erase(name);
    // These decide what the directory is, or how many heads it holds; without them it is something else, and does not fit.
    const bool tells = (kind == "fasteagle" && name == "fc_in.weight") || (kind == "eagle" && name == "fc.weight") ||
                       (kind == "dflash" && (name == "fc.weight" || name == "hidden_norm.weight" || name == "layers.0.input_layernorm.weight")) ||
                       kind == "medusa" || kind.starts_with("hydra");
    if (name == "t2d") EXPECT_TRUE(head.run().ok()) << "t2d says nothing new";
    else if (name == "input_embed_fn.weight") EXPECT_FALSE(head.package()->has("embed")) << "without one, the target's";
    else if (tells) head.refused({});
    else head.refused({"tensor " + name, "missing"});
    fs::remove(head.options.output);
    head.tensors = all;
    head.tensors[name].shape.push_back(1);
    head.refused({"tensor " + name, "shape"});
    head.tensors = all;
  }
  head.add("stray.weight", "F32", {4});
  head.refused({"stray.weight", "unexpected"});
}

TEST(ImportEagle3, TheDraftVocabularyAgreesWithItself) {
  EditedHead head("eagle3");
  const auto good = head.tensors;
  const json config = head.config;
  const auto map = good.at("d2t").bytes;
  const auto edit = [&](const std::function<void(EditedHead&)>& change, std::initializer_list<std::string> words) {
    change(head);
    head.refused(words);
    head.tensors = good;
    head.config = config;
  };
  edit([](EditedHead& h) { h.tensors["d2t"].as<int64_t>()[5] = h.tensors["d2t"].as<int64_t>()[4] - 1; }, {"d2t", "twice"});
  edit([](EditedHead& h) { h.tensors["d2t"].as<int64_t>()[63] = 160 - 63; }, {"d2t", "entry 63", "token 160"});
  edit([](EditedHead& h) { h.tensors["d2t"].as<int64_t>()[0] = INT64_MIN; }, {"d2t", "entry 0"});
  edit([](EditedHead& h) { h.tensors["d2t"].as<int64_t>()[9] = INT64_MAX; }, {"d2t", "entry 9"});
  edit([](EditedHead& h) { h.tensors["d2t"].dtype = "F64"; }, {"d2t", "F64"});
  edit([](EditedHead& h) { h.tensors["t2d"].bytes[7] ^= 1; }, {"t2d", "token 7"});
  edit([](EditedHead& h) { h.tensors.erase("d2t"); }, {"d2t", "missing"});
  edit([](EditedHead& h) { h.config["draft_vocab_size"] = 65; }, {"lm_head.weight", "shape"});
  edit([](EditedHead& h) { h.config.erase("draft_vocab_size"), h.tensors.erase("d2t"); }, {"lm_head.weight", "shape"});
  const std::string fingerprint = head.package()->fingerprint();
  head.config.erase("draft_vocab_size");  // d2t has its length
  EXPECT_EQ(head.package()->fingerprint(), fingerprint);
  // The map is what the package holds: target ids, not offsets.
  const auto p = head.package();
  const auto t = *p->tensor("vocab_map");
  ASSERT_EQ(t.cols, 64);
  ASSERT_EQ(t.dtype, kernels::DType::i32);
  for (int64_t i = 0; i < 64; ++i) {
    int64_t offset = 0;
    std::memcpy(&offset, map.data() + i * 8, 8);
    EXPECT_EQ(static_cast<const int32_t*>(t.data)[i], i + offset);
  }
}

TEST(ImportEagle3, AHeadOverTheWholeVocabularyNeedsNoMap) {
  EditedHead head("eagle3");
  head.config.erase("draft_vocab_size");
  head.tensors.erase("d2t");
  head.tensors.erase("t2d");
  head.add("lm_head.weight", "F32", {160, 32});
  const auto p = head.package();
  EXPECT_FALSE(p->has("vocab_map"));
  EXPECT_EQ(head_param(*p, "draft_vocab"), 160);
  head.add("d2t", "I64", {160});  // zeros: the same ids
  EXPECT_EQ(head.package()->fingerprint(), p->fingerprint());
  head.tensors["d2t"].as<int64_t>()[0] = 1;
  head.tensors["d2t"].as<int64_t>()[1] = -1;
  head.refused({"draft_vocab_size", "another order"});
}

TEST(ImportEagle3, TheSpellingsInUseAreOneHead) {
  EditedHead head("eagle3");
  const std::string fingerprint = head.package()->fingerprint();
  auto renamed = head.tensors;
  for (const auto& [name, t] : head.tensors)
    if (name.starts_with("midlayer.")) {
      auto node = renamed.extract(name);
      node.key() = "layers.0." + name.substr(9);
      renamed.insert(std::move(node));
    }
  std::swap(head.tensors, renamed);
  EXPECT_EQ(head.package()->fingerprint(), fingerprint);
  std::swap(head.tensors, renamed);
  // NeMo's names, all but the LM head's.
  renamed.clear();
  for (const auto& [name, t] : head.tensors) renamed[(name.starts_with("lm_head") || name.ends_with("2d") || name.ends_with("2t") ? "" : "model.") + name] = t;
  std::swap(head.tensors, renamed);
  EXPECT_EQ(head.package()->fingerprint(), fingerprint);
  std::swap(head.tensors, renamed);
  // speculators': the layer's settings in an object of their own, nulls outside it.
  const json flat = head.config;
  json nested;
  for (const char* key : {"hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps",
                          "rope_theta", "vocab_size", "max_position_embeddings", "hidden_act"}) {
    nested[key] = head.config[key];
    head.config[key] = nullptr;
  }
  head.config["transformer_layer_config"] = nested;
  head.config["speculators_model_type"] = "eagle3";
  EXPECT_EQ(head.package()->fingerprint(), fingerprint);
  head.config = flat;
  // Taps: in eagle_config, by default, and counted as outputs.
  constexpr const char* kTaps = "eagle_aux_hidden_state_layer_ids";
  head.config["eagle_config"] = {{kTaps, head.config[kTaps]}, {"use_aux_hidden_state", true}};
  head.config.erase(kTaps);
  EXPECT_EQ(head.package()->fingerprint(), fingerprint);
  head.config.erase("eagle_config");
  EXPECT_EQ(head.package()->fingerprint(), fingerprint) << "2, n/2, n - 3 of three layers are 0, 1, 2";
  head.config[kTaps] = {1, 0, 1};
  const auto p = head.package();
  EXPECT_EQ(head_param(*p, "tap.0"), 2);
  EXPECT_EQ(head_param(*p, "tap.1"), 1);
  EXPECT_EQ(head_param(*p, "tap.2"), 2);
  head.config[kTaps] = "0,1,2";
  head.refused({kTaps});
  head.config[kTaps] = {1, 2147483647};
  head.refused({kTaps, "layer 2147483647"});
}

TEST(ImportEagle3, ItsOwnEmbeddingIsKeptUnlessItIsTheTargets) {
  EditedHead head("eagle3");
  head.add("embed_tokens.weight", "F32", {160, 32});
  EXPECT_TRUE(head.package()->has("embed"));
  const auto target = *Package::open(head.options.drafter_for);
  const auto embed = *target->tensor("embed");
  for (int64_t r = 0; r < 160; ++r)
    for (int64_t c = 0; c < 32; ++c) head.tensors["embed_tokens.weight"].as<float>()[r * 32 + c] = kernels::panel16_at(embed, r, c);
  EXPECT_FALSE(head.package()->has("embed"));
}

TEST(ImportDFlash, WhatTheConfigSays) {
  EditedHead head("dflash");
  const json config = head.config;
  const auto p = head.package();
  EXPECT_EQ(head_param(*p, "block"), 6);
  EXPECT_EQ(head_param(*p, "mask"), 158);
  EXPECT_EQ(head_param(*p, "taps"), 2);
  EXPECT_EQ(head_param(*p, "tap.0"), 1) << "the output of layer 0 is what layer 1 reads";
  EXPECT_EQ(head_param(*p, "tap.1"), 2);
  ASSERT_TRUE(p->drafter()->decoder);
  EXPECT_TRUE(p->drafter()->decoder->qk_norm);
  EXPECT_FALSE(p->drafter()->decoder->departs());
  const auto edit = [&](const std::function<void(json&)>& change, std::initializer_list<std::string> words) {
    change(head.config);
    head.refused(words);
    head.config = config;
  };
  edit([](json& j) { j["block_size"] = 1; }, {"block_size", "2..33"});
  edit([](json& j) { j["block_size"] = 34; }, {"block_size", "2..33"});
  edit([](json& j) { j["dflash_config"]["mask_token_id"] = 160; }, {"mask_token_id", "160"});
  edit([](json& j) { j["dflash_config"].erase("mask_token_id"); }, {"mask_token_id"});
  edit([](json& j) { j["dflash_config"]["target_layer_ids"] = {0, 3}; }, {"target_layer_ids", "layer 3", "target has 3"});
  edit([](json& j) { j["dflash_config"]["target_layer_ids"] = {0, 1, 2}; }, {"fc.weight", "shape"});
  edit([](json& j) { j["num_target_layers"] = 4; }, {"num_target_layers", "4", "3"});
  edit([](json& j) { j["model_type"] = "llama"; }, {"model_type", "qwen3"});
  edit([](json& j) { j["vocab_size"] = 161; }, {"vocab_size", "161"});
  edit([](json& j) { j["dflash_config"]["conv_kernel_size"] = 4; }, {"conv_kernel_size"});
  edit([](json& j) { j["dflash_config"]["output_multiplier"] = 0.5; }, {"output_multiplier"});
  edit([](json& j) { j["dflash_config"]["causal"] = true; }, {"causal", "true"});
  edit([](json& j) { j["dflash_config"]["final_logit_softcapping"] = 30; }, {"final_logit_softcapping"});
  edit([](json& j) { j["rope_is_neox_style"] = false; }, {"rope_is_neox_style"});
  edit([](json& j) { j["dflash_config"]["block_size"] = 40; }, {"block_size: 40"});
  spit(head.options.source + "/mask_embedding.pt", Bytes(8));
  head.refused({"mask_embedding.pt"});
  fs::remove(fs::path(head.options.source) / "mask_embedding.pt");
  // A list of layers that is the one which would be taken, of a target of so many layers; and a block of 16 where nothing is said.
  head.config["dflash_config"]["target_layer_ids"] = {1, 0};
  const std::string listed = head.package()->fingerprint();
  head.config["dflash_config"].erase("target_layer_ids");
  EXPECT_EQ(head.package()->fingerprint(), listed);
  head.config.erase("block_size");
  EXPECT_EQ(head_param(*head.package(), "block"), 16);
}

TEST(ImportDFlash, WindowsAndBiases) {
  EditedHead head("dflash");
  head.config["use_sliding_window"] = true;
  head.config["sliding_window"] = 24;
  head.config["max_window_layers"] = 0;
  head.config["layer_types"] = {"sliding_attention", "full_attention"};
  for (const char* layer : {"layers.0.", "layers.1."})
    for (const auto& [name, n] : {std::pair("q", 32), std::pair("k", 16), std::pair("v", 16)})
      head.add(std::string(layer) + "self_attn." + name + "_proj.bias", "F32", {n});
  const auto p = head.package();
  EXPECT_EQ(p->drafter()->decoder->departures.windows, (std::vector<int32_t>{24, 0}));
  EXPECT_TRUE(p->drafter()->decoder->qkv_bias);
  EXPECT_TRUE(p->has("rope.frequencies"));
  head.config["is_causal"] = false;
  head.refused({"is_causal", "false, in layers with a window"});
  head.config["is_causal"] = true;
  head.refused({"is_causal", "true, in layers without a window"});
  head.config["layer_types"] = {"sliding_attention", "sliding_attention"};
  EXPECT_EQ(head.package()->drafter()->decoder->departures.windows, (std::vector<int32_t>{24, 24}));
  head.config["sliding_window"] = 128;
  head.refused({"sliding_window", "as long as the context"});
}

}  // namespace
}  // namespace aerie::test
