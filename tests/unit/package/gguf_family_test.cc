// GGUF files of families that depart from Llama's architecture become what the golden checkpoints they are made of become.
#include <functional>

#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

TEST(GgufFamily, IsTheGoldenCheckpoint) {
  static const struct {
    const char *golden, *arch;
    std::function<void(FamilyFile&)> change;  // to what a file can say
  } cases[] = {{"mistral_window", "llama", [](FamilyFile& f) { f.config["sliding_window"] = nullptr; }},
               {"phi3", "phi3", [](FamilyFile&) {}},
               {"granite", "granite", [](FamilyFile&) {}},
               {"smollm3", "smollm3", [](FamilyFile& f) { f.grow(5), f.config["no_rope_layers"] = {1, 1, 1, 0, 1}; }},
               {"smollm3", "smollm3", [](FamilyFile& f) { f.config["no_rope_layers"] = {1, 1, 1}; }},
               {"olmo2", "olmo2", [](FamilyFile&) {}},
               {"olmo3", "olmo2", [](FamilyFile&) {}},
               {"olmo3", "olmo2", [](FamilyFile& f) { f.grow(9); }},  // every fourth, though no list says so
               {"exaone4", "exaone4", [](FamilyFile&) {}},
               {"exaone4", "exaone4", [](FamilyFile& f) { f.config["sliding_window"] = nullptr, f.config.erase("layer_types"); }},
               {"exaone4", "exaone4", [](FamilyFile& f) { f.grow(5); }},
               {"gemma2", "gemma2", [](FamilyFile& f) { f.config["query_pre_attn_scalar"] = 32; }},
               {"gemma2", "gemma2", [](FamilyFile& f) { f.grow(46), f.config["query_pre_attn_scalar"] = 6; }},  // 27B's rule
               {"gemma3", "gemma3", [](FamilyFile& f) { f.config["query_pre_attn_scalar"] = 32; }},
               {"gemma3", "gemma3", [](FamilyFile& f) { f.grow(7), f.config["query_pre_attn_scalar"] = 32; }},
               {"gemma3", "gemma3", [](FamilyFile& f) { f.grow(62), f.config["query_pre_attn_scalar"] = 6; }}};  // 27B's rule
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.golden) + ", " + std::to_string(&c - cases));
    FamilyFile f(c.golden, c.arch);
    c.change(f);
    expect_theirs(f);
  }
}

TEST(GgufFamily, TheContextDecidesBetweenLongRopesFactors) {
  FamilyFile f("phi3");
  const Gguf g = f.file();
  auto p = f.gguf(g);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ((*p)->target()->max_context, 64);
  const auto told = [](const std::string& w) { return w.find("--context 128") != std::string::npos; };
  EXPECT_TRUE(std::any_of(f.warnings.begin(), f.warnings.end(), told));
  for (const int32_t wanted : {20, 50, 64, 65, 128}) {
    f.options.context = wanted;
    expect_theirs(f, g);
  }
  EXPECT_EQ((*f.hf()).target()->max_context, 128);
  f.options.context = 129;
  f.refused(g, Code::invalid_argument, {"phi3.context_length", "128"});
}

TEST(GgufFamily, ContextThatIsWantedBoundsEveryFamily) {
  FamilyFile f("granite");
  f.options.context = 40;
  expect_theirs(f);
  f.options.context = 300;
  f.refused(f.file(), Code::invalid_argument, {"granite.context_length", "--context"});
}

TEST(GgufFamily, WhatAFileLeavesUnsaid) {
  FamilyFile exaone("exaone4");  // 32B's windows
  exaone.grow(64);
  exaone.config["sliding_window"] = 4096;
  exaone.config["max_position_embeddings"] = 8192;
  Gguf g = exaone.file();
  g.forget("exaone4.attention.sliding_window");
  expect_theirs(exaone, g);

  FamilyFile gemma("gemma3");
  gemma.config["query_pre_attn_scalar"] = 32;
  g = gemma.file();
  g.forget("gemma3.rope.freq_base_swa");
  expect_theirs(gemma, g);
  g.forget("gemma3.attention.sliding_window");  // no layer has one, nor positions of its own
  const auto all = gemma.gguf(g);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_TRUE((*all)->target()->departures.windows.empty());
  EXPECT_TRUE((*all)->target()->departures.layer_rope.empty());

  FamilyFile second("gemma2");  // caps and windows are Gemma 2's own
  second.config["query_pre_attn_scalar"] = 32;
  second.config["max_position_embeddings"] = 8192;
  g = second.file();
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window"}) g.forget(std::string("gemma2.") + key);
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "layer_types"}) second.config.erase(key);
  expect_theirs(second, g);
  const auto own = second.gguf(g);
  ASSERT_TRUE(own.ok()) << own.status().message();
  const Departures& d = (*own)->target()->departures;
  EXPECT_EQ(d.score_cap, 50.0f);
  EXPECT_EQ(d.logit_cap, 30.0f);
  EXPECT_EQ(d.windows, (std::vector<int32_t>{4096, 0, 4096}));

  FamilyFile granite("granite");
  g = granite.file();
  granite.config["embedding_multiplier"] = granite.config["residual_multiplier"] = 1.0;
  g.forget("granite.embedding_scale");
  g.f32("granite.residual_scale", 0);
  expect_theirs(granite, g);
  g.forget("granite.attention.scale");
  const auto usual = granite.gguf(g);
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ((*usual)->target()->departures.attention_scale, 0);
}

TEST(GgufFamily, PatternsOfWindowsAreListsOrPeriods) {
  FamilyFile f("olmo3", "olmo2");
  f.grow(6);
  const std::string key = "olmo2.attention.sliding_window_pattern";
  Gguf g = f.file();
  f.config["layer_types"] = json::array();
  for (int i = 0; i < 6; ++i) f.config["layer_types"].push_back(i % 3 == 2 ? "full_attention" : "sliding_attention");
  g.u32(key, 3);
  expect_theirs(f, g);
  g.i32s(key, {1, 1, 0, 1, 1, 0});
  expect_theirs(f, g);
  for (json& type : f.config["layer_types"]) type = "sliding_attention";
  g.u32(key, 0);
  expect_theirs(f, g);
  g.i32s(key, {1, 1, 0});
  f.refused(g, Code::bad_format, {key.c_str(), "not a list of 6"});
  g.f32s(key, {1, 1, 0, 1, 1, 0});
  f.refused(g, Code::bad_format, {key.c_str(), "integer"});
}

// The writer of newer versions can stack q, k and v of any family.
TEST(GgufFamily, StackedProjectionsAreInTheSameOrder) {
  for (const auto& [golden, arch] : {std::pair{"granite", "granite"}, {"mha", "llama"}, {"olmo2", "olmo2"}}) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    const Gguf apart = f.file();
    Gguf g = apart;
    for (int i = 0; i < f.config["num_hidden_layers"].get<int>(); ++i) {
      const std::string at = "blk." + std::to_string(i) + ".attn_";
      std::string all;
      int64_t rows = 0;
      for (const char* part : {"q.weight", "k.weight", "v.weight"}) {
        all += apart.data(at + part);
        rows += apart.shape(at + part)[0];
        g.forget_tensor(at + part);
      }
      g.tensor(at + "qkv.weight", {rows, f.config["hidden_size"]}, 0, all);
    }
    expect_theirs(f, g);
  }
}

TEST(GgufFamily, AHeadThatIsThereTwiceIsDividedTwice) {
  FamilyFile f("granite");
  Gguf g = f.file();
  g.tensor("output.weight", g.shape("token_embd.weight"), 0, g.data("token_embd.weight"));
  expect_theirs(f, g);
}

TEST(GgufFamily, YarnsFactorForAttention) {
  FamilyFile f("olmo3", "olmo2");
  Gguf g = f.file();
  f.config["rope_parameters"]["full_attention"]["attention_factor"] = 0.1 * std::log(4.0) + 1;  // as the published file has it
  g.f32("olmo2.rope.scaling.yarn_attn_factor", static_cast<float>(0.1 * std::log(4.0) + 1));
  expect_theirs(f, g);
  g.f32("olmo2.rope.scaling.yarn_attn_factor", 1.3f);
  f.refused(g, Code::unsupported, {"yarn_attn_factor", "1.3"});
}

TEST(GgufFamily, WhatWouldBeAnotherModelIsRefused) {
  refused("gemma3", "gemma3", [](Gguf& g) { g.f32("gemma3.final_logit_softcapping", 30); }, {"final_logit_softcapping"});
  refused("gemma3", "gemma3", [](Gguf& g) { g.u32("gemma3.attention.key_length_swa", 8); }, {"key_length_swa"});
  refused("gemma3", "gemma3", [](Gguf& g) { g.text("general.architecture", "gemma"); }, {"\"gemma\"", "gemma3", "olmo2"});
  refused("gemma3", "gemma3", [](Gguf& g) { g.f32("gemma3.attn_logit_softcapping", 50); }, {"attn_logit_softcapping"});
  refused("gemma2", "gemma2", [](Gguf& g) { g.f32("gemma2.rope.freq_base_swa", 1e6f); }, {"freq_base_swa"});
  for (const char* key : {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping"})
    for (const float cap : {0.0f, -50.0f, std::nanf("")})
      refused("gemma2", "gemma2", [&](Gguf& g) { g.f32(key, cap); }, {key}, Code::bad_format);
  refused("granite", "granite", [](Gguf& g) { g.boolean("granite.rope.scaling.finetuned", false); }, {"finetuned"});
  refused("granite", "granite", [](Gguf& g) { g.forget("granite.logit_scale"); }, {"logit_scale", "missing"}, Code::bad_format);
  refused("granite", "granite", [](Gguf& g) { g.f32("granite.logit_scale", -1); }, {"logit_scale"}, Code::bad_format);
  refused("granite", "granite", [](Gguf& g) { g.u32("granite.expert_count", 4); }, {"expert_count"});
  refused("granite", "granite", [](Gguf& g) { g.tensor("blk.0.ffn_up.bias", {40}, std::vector<float>(40)); },
          {"blk.0.ffn_up.bias", "unexpected"}, Code::bad_format);
  refused("smollm3", "smollm3", [](Gguf& g) { g.f32("smollm3.embedding_scale", 2); }, {"smollm3.embedding_scale"});
  refused("olmo2", "olmo2", [](Gguf& g) { g.u32("olmo2.rope.dimension_count", 4); }, {"rope.dimension_count", "4 of"});
  refused("olmo2", "olmo2", [](Gguf& g) { g.u32("olmo2.attention.sliding_window", 0x80000000u); }, {"sliding_window"}, Code::bad_format);
  refused("gemma3", "gemma3", [](Gguf& g) { g.f32("gemma3.rope.freq_base_swa", 0); }, {"rotary frequencies"}, Code::bad_format);
  refused("exaone4", "exaone4", [](Gguf& g) { g.u32("exaone4.nextn_predict_layers", 1); }, {"nextn_predict_layers"});
  refused("phi3", "phi3", [](Gguf& g) { g.u32("phi3.rope.dimension_count", 5); }, {"rope.dimension_count"});
  refused("phi3", "phi3", [](Gguf& g) { g.forget_tensor("rope_factors_short.weight"); }, {"rope_factors_short.weight", "missing"},
          Code::bad_format);
  refused("phi3", "phi3", [](Gguf& g) { g.tensor("rope_factors_long.weight", {3}, {1, 0, 2}); }, {"rope_factors_long.weight", "above 0"},
          Code::bad_format);
  refused("phi3", "phi3", [](Gguf& g) { g.f32("phi3.rope.scaling.factor", 4); }, {"rope.scaling.factor"});
  refused("granite", "granite", [](Gguf& g) {
    for (const char* list : {"rope_factors_short.weight", "rope_factors_long.weight"}) g.tensor(list, {3}, {1, 2, 3});
  }, {"rope_factors_long.weight", "phi3"});
}

TEST(GgufFamily, ChangedAnywhereItIsRefusedOrAPackage) {
  uint64_t state = 11;
  for (const auto& [golden, arch] : {std::pair{"phi3", "phi3"}, {"granite", "granite"}, {"smollm3", "smollm3"}, {"olmo3", "olmo2"},
                                     {"exaone4", "exaone4"}, {"gemma2", "gemma2"}, {"gemma3", "gemma3"}, {"mixtral", "llama"}, {"granitemoe", "granitemoe"}}) {
    FamilyFile f(golden, arch);
    const std::string file = f.file().bytes();
    for (int round = 0; round < 200; ++round) {
      std::string other = file;
      for (int i = 0; i < 3; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        other[(state >> 33) % 4000] = static_cast<char>(state >> 20);
      }
      spit(f.folder / "model.gguf", other);
      const auto p = f.package(f.folder / "model.gguf");
      ASSERT_EQ(fs::exists(f.options.output), p.ok()) << p.status().message();
    }
  }
}

}  // namespace
}  // namespace aerie::test
