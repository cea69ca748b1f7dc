// Gemma 4's assistants, edited tensor by tensor: what is missing, left over or at odds with the target is refused by name.
#include "unit/package/edited_head.h"

namespace aerie::test {
namespace {

struct AssistantHead : EditedHead {
  AssistantHead() : EditedHead("assistant_gemma4") {
    ConvertOptions target;
    target.source = std::string(AERIE_SOURCE_DIR) + "/tests/golden/logits/gemma4";
    target.output = folder / "gemma4.aerie";
    target.dtype = kernels::DType::f32;
    EXPECT_TRUE(convert(target).ok());
    options.drafter_for = target.output;
  }
  json& text() { return config["text_config"]; }
};

TEST(ImportAssistant, EveryTensorCounts) {
  AssistantHead head;
  const auto p = head.package();
  EXPECT_EQ(p->drafter()->plugin_id, "assistant");
  ASSERT_TRUE(p->drafter()->decoder);
  EXPECT_TRUE(p->drafter()->decoder->departures.reads_target);
  EXPECT_EQ(p->drafter()->decoder->departures.windows, (std::vector<int32_t>{11, 11, 0}));
  const auto all = head.tensors;
  for (const auto& [name, t] : all) {
    fs::remove(head.options.output);
    head.tensors.erase(name);
    const bool scalar = name.ends_with("layer_scalar");
    if (name.ends_with("_projection.weight")) head.refused({"not a drafter"});  // they tell what this is
    else if (scalar && name.find(".0.") != name.npos) head.refused({"model.layers.1.layer_scalar", "unexpected"});  // without, nothing is scaled
    else head.refused({"tensor " + name, "missing"});
    head.tensors = all;
    if (scalar) head.add(name, "F32", {2});
    else head.tensors[name].shape.push_back(1);
    head.refused({"tensor " + name, "shape"});
    head.tensors = all;
  }
  head.add("model.layers.0.self_attn.k_proj.weight", "F32", {8, 16});  // what layers have that read nobody's
  head.add("stray.weight", "F32", {4});
  head.refused({"k_proj", "unexpected (and 1 more)"});
}

TEST(ImportAssistant, ConfigsThatAreRefused) {
  AssistantHead head;
  const json config = head.config;
  const auto refused = [&](const std::function<void()>& change, std::initializer_list<std::string> words) {
    change();
    head.refused(words);
    head.config = config;
  };
  refused([&] { head.config.erase("text_config"); }, {"text_config"});
  refused([&] { head.config["backbone_hidden_size"] = 32; }, {"backbone_hidden_size", "32", "24"});
  refused([&] { head.text()["vocab_size"] = 96; }, {"vocab_size", "96", "97"});
  refused([&] { head.text()["model_type"] = "gemma3_text"; }, {"text_config: "});
  refused([&] { head.text()["num_kv_shared_layers"] = 1; }, {"num_kv_shared_layers", "1 of an assistant's 3"});
}

TEST(ImportAssistant, OneModelInOtherWords) {
  AssistantHead head;
  const auto plain = head.package();
  head.text()["intermediate_size"] = 12;
  head.text()["use_double_wide_mlp"] = true;
  EXPECT_EQ(head.package()->fingerprint(), plain->fingerprint());
  std::vector<std::string> warnings;
  head.options.warnings = &warnings;
  head.add("masked_embedding.centroids.weight", "F32", {4, 16});
  EXPECT_EQ(head.package()->fingerprint(), plain->fingerprint());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("masked_embedding"), std::string::npos);
}

}  // namespace
}  // namespace aerie::test
