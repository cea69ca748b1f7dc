// Families of models: what their config.json says, and leaves unsaid.
#include "core/import/inspect.h"
#include "core/import/source.h"
#include "unit/package/family_checkpoint.h"

namespace aerie::test {
namespace {

std::vector<float> frequencies_of(const Package& p) {
  const auto t = p.tensor("rope.frequencies");
  if (!t.ok()) return {};
  const auto* first = static_cast<const float*>(t->data);
  return {first, first + t->rows * t->cols};
}

TEST(FamilyImport, WindowsAreThoseOfTransformers) {
  using List = std::vector<int32_t>;
  FamilyCheckpoint mistral("mistral_window");
  EXPECT_EQ(mistral.made()->target()->departures.windows, (List{11, 11, 11}));
  EXPECT_FALSE(mistral.made({{"sliding_window", nullptr}})->target()->departs());
  EXPECT_FALSE(mistral.made({{"sliding_window", 128}})->target()->departs()) << "all that it can read";
  EXPECT_EQ(mistral.made({{"max_position_embeddings", 8192}}, {"sliding_window"})->target()->departures.windows, (List{4096, 4096, 4096}));
  mistral.options.context = 11;
  EXPECT_FALSE(mistral.made()->target()->departs()) << "all that it will read";
  EXPECT_EQ(mistral.made()->target()->max_context, 11);
  mistral.options.context = 0;

  const json qwen = {{"model_type", "qwen2"}, {"sliding_window", 16}, {"max_window_layers", 1}};
  EXPECT_FALSE(mistral.made(qwen)->target()->departs()) << "not switched on";
  json used = qwen;
  used["use_sliding_window"] = true;
  EXPECT_EQ(mistral.made(used)->target()->departures.windows, (List{0, 16, 16}));
  used["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_EQ(mistral.made(used)->target()->departures.windows, (List{16, 0, 0}));

  FamilyCheckpoint gemma("gemma3");
  EXPECT_EQ(gemma.made()->target()->departures.windows, (List{10, 0, 10}));
  EXPECT_EQ(gemma.made({{"_sliding_window_pattern", 3}}, {"layer_types"})->target()->departures.windows, (List{10, 10, 0}));
}

// The names and the defaults of the models that see images; scales and norms as the code has them.
TEST(FamilyImport, GemmasOfAnyAgeAreTheSameModel) {
  FamilyCheckpoint gemma("gemma3");
  const auto plain = gemma.made();
  const Departures& d = plain->target()->departures;
  EXPECT_FLOAT_EQ(d.embed_scale, std::sqrt(24.0f));
  EXPECT_FLOAT_EQ(d.attention_scale, 1 / std::sqrt(24.0f));
  EXPECT_EQ(d.layer_rope, (std::vector<int32_t>{1, 0, 1}));
  const std::vector<float> turns = frequencies_of(*plain);
  ASSERT_EQ(turns.size(), 34u);
  EXPECT_EQ(turns[0], 0.5f) << "full attention, scaled by 2";
  EXPECT_EQ(turns[17], 1.0f) << "windows";
  const auto file = open_safetensors(gemma.source);
  ASSERT_TRUE(file.ok());
  const std::vector<float> norm = *(*file)->read("model.norm.weight");
  EXPECT_EQ(static_cast<const float*>(plain->tensor("norm")->data)[3], 1 + norm[3]);
  EXPECT_EQ(gemma.made({{"dtype", "bfloat16"}})->target()->departures.embed_scale, 4.90625f) << "sqrt(24) in bf16, as it was trained";

  // As it was written before transformers 5.
  const json old = {{"rope_theta", 1e6}, {"rope_local_base_freq", 1e4}, {"rope_scaling", {{"factor", 2.0}, {"rope_type", "linear"}}}};
  EXPECT_EQ(frequencies_of(*gemma.made(old, {"rope_parameters"})), turns);

  Sources named;
  for (const auto& [name, tensor] : (*file)->tensors()) named["language_model." + name] = {"F32", tensor.shape, *(*file)->read(name)};
  named["vision_tower.patch.weight"] = {"F32", {1, 2}, {0, 0}};
  spit(gemma.options.source + "/model.safetensors", safetensors(named));
  json text = gemma.config;
  text["model_type"] = "gemma3_text";
  for (const char* key : {"model_type", "architectures", "bos_token_id", "eos_token_id"}) text.erase(key);
  gemma.config = {{"model_type", "gemma3"}, {"bos_token_id", 1}, {"eos_token_id", {2, 3}}, {"text_config", text}};
  const auto seeing = gemma.made();
  EXPECT_EQ(seeing->target()->departures, d);
  EXPECT_EQ(seeing->target()->eos_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(seeing->target()->heads, 4);
  EXPECT_NE(gemma.warnings.back().find("images"), std::string::npos);
}

// Caps are there unless they are said not to be.
TEST(FamilyImport, Gemma2CapsScoresAndLogits) {
  FamilyCheckpoint gemma("gemma2");
  const auto p = gemma.made();
  const Departures& d = p->target()->departures;
  EXPECT_EQ(d.score_cap, 2.0f);
  EXPECT_EQ(d.logit_cap, 5.0f);
  EXPECT_EQ(d.windows, (std::vector<int32_t>{10, 0, 10}));
  EXPECT_TRUE(d.layer_rope.empty());
  EXPECT_FALSE(p->target()->qk_norm);
  const auto text = inspect(gemma.options.output, true);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(json::parse(*text)["config"]["departures"]["score_cap"], 2.0);
  const auto usual = gemma.made(json::object(), {"attn_logit_softcapping", "final_logit_softcapping", "layer_types"});
  EXPECT_EQ(usual->target()->departures.score_cap, 50.0f);
  EXPECT_EQ(usual->target()->departures.logit_cap, 30.0f);
  EXPECT_EQ(usual->target()->departures.windows, (std::vector<int32_t>{10, 0, 10}));
  EXPECT_NE(usual->fingerprint(), p->fingerprint());
  const auto none = gemma.made({{"attn_logit_softcapping", nullptr}});
  EXPECT_EQ(none->target()->departures.score_cap, 0.0f);
  EXPECT_EQ(none->target()->departures.logit_cap, 5.0f);
  EXPECT_NE(none->fingerprint(), p->fingerprint()) << "drafts of one are not for the other";
}

TEST(FamilyImport, LongRopeIsForOneOfItsContexts) {
  FamilyCheckpoint phi("phi3");
  const auto shorter = phi.made();
  EXPECT_EQ(shorter->target()->max_context, 64);
  ASSERT_FALSE(phi.warnings.empty());
  EXPECT_NE(phi.warnings.back().find("--context 128"), std::string::npos);
  phi.warnings.clear();
  phi.options.context = 100;
  const auto longer = phi.made();
  EXPECT_TRUE(phi.warnings.empty());
  EXPECT_EQ(longer->target()->max_context, 100);
  const auto a = frequencies_of(*shorter), b = frequencies_of(*longer);
  ASSERT_EQ(a.size(), 5u);  // 4 pairs, of which 3 are rotated, and the scale
  EXPECT_FLOAT_EQ(b[1] * 2.0f, a[1] * 1.1f);
  EXPECT_FLOAT_EQ(b[2] * 4.0f, a[2] * 1.3f);
  EXPECT_EQ(a[3], 0.0f);
  EXPECT_FLOAT_EQ(a[4], std::sqrt(1 + std::log(2.0f) / std::log(64.0f)));
  EXPECT_EQ(shorter->fingerprint() == longer->fingerprint(), false) << "drafts of one are not for the other";
  phi.options.context = 129;
  EXPECT_EQ(phi.run().code(), Code::invalid_argument);
}

TEST(FamilyImport, WhatWouldBeAnotherModelIsRefusedByName) {
  const struct {
    const char* family;
    json more;
    const char* words;
    Code code = Code::unsupported;
  } cases[] = {
      {"gemma3", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping"},
      {"gemma3", {{"final_logit_softcapping", 30.0}}, "final_logit_softcapping"},
      {"gemma3", {{"use_bidirectional_attention", true}}, "use_bidirectional_attention"},
      {"gemma3", {{"hidden_activation", "silu"}}, "hidden_activation"},
      {"gemma3", {{"layer_types", {"full_attention"}}}, "layer_types", Code::bad_format},
      {"gemma3", {{"layer_types", {"full_attention", "chunked_attention", "full_attention"}}}, "chunked_attention"},
      {"gemma3", {{"sliding_window", nullptr}}, "sliding_window", Code::bad_format},
      {"gemma3", {{"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar", Code::bad_format},
      {"gemma3", {{"model_type", "gemma"}}, "model_type: \"gemma\""},
      {"gemma2", {{"attn_logit_softcapping", -50.0}}, "attn_logit_softcapping", Code::bad_format},
      {"gemma2", {{"attn_logit_softcapping", 0}}, "attn_logit_softcapping", Code::bad_format},
      {"gemma2", {{"attn_logit_softcapping", 1e7}}, "attn_logit_softcapping", Code::bad_format},
      {"gemma2", {{"final_logit_softcapping", 0}}, "final_logit_softcapping", Code::bad_format},
      {"gemma2", {{"sliding_window", nullptr}}, "sliding_window", Code::bad_format},
      {"phi3", {{"partial_rotary_factor", 0.4}, {"rope_parameters", {{"rope_theta", 1e4}}}}, "partial_rotary_factor"},
      {"phi3", {{"rope_parameters", {{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0}}}}}, "1 factors", Code::bad_format},
      {"phi3", {{"rope_parameters", {{"rope_type", "longrope"}, {"short_factor", {0.0}}, {"long_factor", {1.0}}}}}, "short_factor", Code::bad_format},
      {"granite", {{"model_type", "llama"}}, "multiplier"},
      {"granite", {{"logits_scaling", 0}}, "logits_scaling", Code::bad_format},
      {"granite", {{"residual_multiplier", -1.0}}, "residual_multiplier", Code::bad_format},
      {"smollm3", {{"no_rope_layers", {1}}}, "no_rope_layers", Code::bad_format},
      {"exaone4", {{"sliding_window_pattern", "LLG"}, {"layer_types", nullptr}}, "sliding_window_pattern"},
      {"olmo2", {{"model_type", "llama"}}, "tensor", Code::bad_format},
  };
  for (const auto& t : cases) {
    FamilyCheckpoint c(t.family);
    const Status s = c.run(t.more);
    EXPECT_EQ(s.code(), t.code) << t.family << " " << t.words << ": " << s.message();
    EXPECT_NE(s.message().find(t.words), std::string::npos) << s.message();
    EXPECT_FALSE(fs::exists(c.options.output));
  }
}

TEST(FamilyImport, APackageSaysWhereItDeparts) {
  FamilyCheckpoint gemma("gemma3");
  const auto p = gemma.made();
  const auto text = inspect(gemma.options.output, true);
  ASSERT_TRUE(text.ok());
  const json config = json::parse(*text)["config"];
  EXPECT_EQ(config["rope_scaling"], "listed");
  EXPECT_EQ(config["departures"]["norms"], "both");
  EXPECT_EQ(config["departures"]["activation"], "gelu_tanh");
  EXPECT_EQ(config["departures"]["windows"], json({10, 0, 10}));
  // Another dtype of the same model: all of it comes along.
  ConvertOptions again = gemma.options;
  again.source = gemma.options.output;
  again.output = gemma.folder / "again.aerie";
  again.tokenizer.clear();
  again.dtype = kernels::DType::int8;
  ASSERT_TRUE(convert(again).ok());
  const auto q = *Package::open(again.output);
  EXPECT_EQ(q->target()->departures, p->target()->departures);
  EXPECT_EQ(frequencies_of(*q), frequencies_of(*p));
  EXPECT_EQ(q->fingerprint(), p->fingerprint());
}

}  // namespace
}  // namespace aerie::test
