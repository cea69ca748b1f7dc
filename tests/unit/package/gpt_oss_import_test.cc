// gpt-oss in Hugging Face's directories and in GGUF files.
#include <numbers>

#include "core/import/inspect.h"
#include "kernels/panel16.h"
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

using kernels::DType;

constexpr const char* kExperts = "model.layers.1.mlp.experts.";

std::vector<float> matrix_values(const Package& p, const std::string& name) {
  const kernels::Tensor t = *p.tensor(name);
  std::vector<float> all;
  for (int64_t i = 0; i < t.rows * t.cols; ++i)
    all.push_back(t.layout == kernels::Layout::panel16 ? kernels::panel16_at(t, i / t.cols, i % t.cols) : static_cast<const float*>(t.data)[i]);
  return all;
}

// The published form of a golden checkpoint as floats, (columns, rows).
Sources in_floats(const Sources& tensors) {
  static constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  Sources out;
  for (const auto& [name, s] : tensors) {
    if (name.ends_with("_scales")) continue;
    if (!name.ends_with("_blocks")) {
      out[name] = s;
      continue;
    }
    const std::string to = name.substr(0, name.size() - std::strlen("_blocks"));
    const Source& scales = tensors.at(to + "_scales");
    const int64_t experts = s.shape[0], rows = s.shape[1], cols = s.shape[2] * 32;
    Source& d = out[to] = {"BF16", {experts, cols, rows}, std::vector<float>(static_cast<size_t>(experts * rows * cols))};
    for (int64_t i = 0; i < experts * rows * cols; ++i) {
      const int64_t e = i / (rows * cols), r = i / cols % rows, c = i % cols;
      const int code = static_cast<int>(s.values[static_cast<size_t>(i / 2)]) >> (i % 2 * 4) & 15;
      d.values[static_cast<size_t>((e * cols + c) * rows + r)] =
          std::ldexp(kValues[code], static_cast<int>(scales.values[static_cast<size_t>(i / 32)]) - 127);
    }
  }
  return out;
}

TEST(GptOss, IsWhatItsConfigSays) {
  FamilyFile f("gpt_oss");
  const auto p = f.hf();
  ASSERT_TRUE(p);
  const LlamaConfig& c = *p->target();
  const Departures& d = c.departures;
  EXPECT_EQ(d.experts, 6);
  EXPECT_EQ(d.experts_used, 3);
  EXPECT_TRUE(d.norm_experts && d.sinks && d.expert_bias && d.o_bias && c.qkv_bias);
  EXPECT_FALSE(c.tied || c.qk_norm);
  EXPECT_EQ(d.glu_limit, 2.5f);
  EXPECT_EQ(d.windows, (std::vector<int32_t>{11, 0}));
  const auto said = inspect(f.options.output, true);
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(json::parse(*said)["config"]["departures"]["glu_limit"], 2.5);

  f.config.erase("swiglu_limit");
  f.config.erase("layer_types");
  f.config["experts_per_token"] = 3;  // as published, beside the other
  EXPECT_EQ(f.hf()->target()->departures.glu_limit, 7);
  EXPECT_EQ(f.hf()->target()->departures.windows, d.windows);
  EXPECT_NE(f.hf()->fingerprint(), p->fingerprint());
  f.config.erase("num_experts_per_tok");
  EXPECT_EQ(f.hf()->target()->departures.experts_used, 3);
  f.config["sliding_window"] = nullptr;
  EXPECT_EQ(f.try_hf().status().code(), Code::bad_format);
}

// YaRN's ramp begins and ends between waves: transformers' numbers for what is published.
TEST(GptOss, TurnsAsTheOriginal) {
  FamilyFile f("gpt_oss");
  const auto turns = [&] { return matrix_values(*f.hf(), "rope.frequencies"); };
  const auto own = turns();
  const json rope = f.config["rope_parameters"];
  f.config.erase("rope_parameters");
  f.config["rope_theta"] = rope["rope_theta"];
  f.config["rope_scaling"] = rope;  // the older form
  f.config["rope_scaling"].erase("rope_theta");
  EXPECT_EQ(turns(), own);
  f.config["rope_scaling"]["truncate"] = true;
  EXPECT_NE(turns(), own);
  f.config.erase("rope_scaling");
  f.config.erase("rope_theta");
  f.config["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 150000.0}, {"factor", 32.0}, {"beta_fast", 32.0}, {"beta_slow", 1.0},
                                 {"truncate", false}, {"original_max_position_embeddings", 4096}};
  const auto published = turns();
  EXPECT_EQ(f.hf()->target()->max_context, 131072);
  f.config.erase("rope_parameters");
  EXPECT_EQ(turns(), published) << "transformers' default";
  EXPECT_EQ(f.hf()->target()->max_context, 131072);
  ASSERT_EQ(published.size(), 9u);
  EXPECT_FLOAT_EQ(published[8], 1.3465735902799727f);
  const auto wave = [](double turns) { return 8 * std::log(4096 / (2 * std::numbers::pi * turns)) / std::log(150000.0); };
  for (int i = 0; i < 8; ++i) {
    const double plain = std::pow(150000.0, -i / 8.0), ramp = std::clamp((i - wave(32)) / (wave(1) - wave(32)), 0.0, 1.0);
    EXPECT_NEAR(published[static_cast<size_t>(i)] / plain, ramp / 32 + 1 - ramp, 1e-6) << i;
  }
}

TEST(GptOss, GatesComeBeforeWhatTheyGate) {
  FamilyFile f("gpt_oss");
  const auto p = f.hf();
  const auto gate_up = matrix_values(*p, "layers.1.mlp.experts.gate_up"), down = matrix_values(*p, "layers.1.mlp.experts.down"),
             biases = matrix_values(*p, "layers.1.mlp.experts.gate_up.bias");
  const Source& g = f.tensors.at(kExperts + std::string("gate_up_proj"));
  const Source &d = f.tensors.at(kExperts + std::string("down_proj")), &b = f.tensors.at(kExperts + std::string("gate_up_proj_bias"));
  constexpr size_t kHidden = 32, kFfn = 24;
  for (size_t e = 0; e < 6; ++e)
    for (size_t r = 0; r < 2 * kFfn; ++r) {
      const size_t theirs = r < kFfn ? 2 * r : 2 * (r - kFfn) + 1;
      EXPECT_EQ(biases[e * 2 * kFfn + r], b.values[e * 2 * kFfn + theirs]);
      for (size_t c = 0; c < kHidden; ++c)
        ASSERT_EQ(gate_up[(e * 2 * kFfn + r) * kHidden + c], g.values[(e * kHidden + c) * 2 * kFfn + theirs]) << e << " " << r << " " << c;
      if (r < kHidden) {
        for (size_t c = 0; c < kFfn; ++c) ASSERT_EQ(down[(e * kHidden + r) * kFfn + c], d.values[(e * kFfn + c) * kHidden + r]);
      }
    }
  EXPECT_EQ(matrix_values(*p, "layers.0.attn.sinks"), f.tensors.at("model.layers.0.self_attn.sinks").values);
  EXPECT_EQ(matrix_values(*p, "layers.0.mlp.router.bias"), f.tensors.at("model.layers.0.mlp.router.bias").values);
  EXPECT_EQ(matrix_values(*p, "layers.1.mlp.experts.down.bias"), f.tensors.at(kExperts + std::string("down_proj_bias")).values);
  EXPECT_EQ(matrix_values(*p, "layers.1.attn.o.bias"), f.tensors.at("model.layers.1.self_attn.o_proj.bias").values);
}

TEST(GptOss, AsPublishedIsTheModelInFloats) {
  FamilyFile f("gpt_oss_mxfp4");
  const auto published = f.hf();
  f.options.dtype = WeightDType::stored();
  const auto stored = f.hf();
  EXPECT_EQ(stored->tensor("layers.2.mlp.experts.gate_up")->dtype, DType::mxfp4);
  EXPECT_EQ(stored->tensor("layers.2.mlp.experts.down")->dtype, DType::mxfp4);
  EXPECT_EQ(stored->tensor("layers.2.attn.qkv")->dtype, DType::bf16);
  for (const char* m : {"layers.2.mlp.experts.gate_up", "layers.0.mlp.experts.down"}) EXPECT_EQ(matrix_values(*stored, m), matrix_values(*published, m));
  f.options.dtype = DType::int4;
  const auto small = f.hf();
  EXPECT_EQ(small->tensor("layers.2.mlp.experts.down")->dtype, DType::mxfp4) << "not rounded again";
  EXPECT_EQ(small->tensor("layers.2.attn.qkv")->dtype, DType::int4);

  f.options.dtype = DType::f32;
  f.tensors = in_floats(f.tensors);
  f.config.erase("quantization_config");
  const auto floats = f.hf();
  expect_same(*published, *floats);
  EXPECT_EQ(stored->fingerprint(), floats->fingerprint());
  f.options.dtype = DType::mxfp4;
  EXPECT_EQ(matrix_values(*f.hf(), "layers.1.mlp.experts.gate_up"), matrix_values(*published, "layers.1.mlp.experts.gate_up"));
}

TEST(GptOss, GgufFilesAreTheGoldenCheckpoints) {
  for (const char* golden : {"gpt_oss", "gpt_oss_mxfp4"}) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, "gpt-oss");
    f.config["swiglu_limit"] = 7.0;  // llama.cpp's
    expect_theirs(f);
  }
  FamilyFile f("gpt_oss_mxfp4", "gpt-oss");
  f.options.dtype = WeightDType::stored();
  const auto p = f.gguf(f.file());
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ((*p)->tensor("layers.0.mlp.experts.gate_up")->dtype, DType::mxfp4);
  EXPECT_EQ((*p)->tensor("layers.0.mlp.experts.down")->dtype, DType::mxfp4);
  EXPECT_EQ((*p)->tensor("layers.0.mlp.router")->dtype, DType::bf16);
  EXPECT_EQ((*p)->fingerprint(), f.hf()->fingerprint());
}

TEST(GptOss, OutputBiasesOfGgufFilesMayBeZero) {
  FamilyFile f("gpt_oss", "gpt-oss");
  Gguf g = f.file();
  f.config["swiglu_limit"] = 7.0;
  for (const char* layer : {"0", "1"}) {
    g.tensor("blk." + std::string(layer) + ".attn_output.bias", {32}, std::vector<float>(32));
    f.tensors.erase("model.layers." + std::string(layer) + ".self_attn.o_proj.bias");
  }
  expect_theirs(f, g);
  EXPECT_FALSE(f.hf()->target()->departures.o_bias);
}

TEST(GptOss, ProgressEndsWhereItSaid) {
  for (const char* golden : {"gpt_oss", "gpt_oss_mxfp4"}) {
    FamilyFile f(golden);
    uint64_t last = 0, all = 0;
    f.options.progress = [&](uint64_t done, uint64_t total) {
      if (total == 1) return true;  // what comes after the import
      EXPECT_EQ(done, last + 1);
      last = done, all = total;
      return true;
    };
    ASSERT_TRUE(f.try_hf().ok());
    EXPECT_EQ(last, all);
  }
}

TEST(GptOss, WhatWouldBeAnotherModelIsRefused) {
  const auto says = [](const char* key, const json& value, std::initializer_list<const char*> words, Code code) {
    directory_refused("gpt_oss", [&](FamilyFile& f) { f.config[key] = value; }, words, code);
  };
  says("quantization_config", {{"quant_method", "gptq"}}, {"config.json: quantization_config: quant_method: \"gptq\""}, Code::unsupported);
  says("quantization_config", json::object(), {"quantization_config: quant_method: is missing"}, Code::unsupported);
  says("quantization_config", "mxfp4", {"quantization_config"}, Code::unsupported);
  says("swiglu_limit", 0, {"swiglu_limit"}, Code::bad_format);
  says("swiglu_limit", 1e9, {"swiglu_limit"}, Code::bad_format);
  says("swiglu_alpha", 1.5, {"swiglu_alpha: 1.5"}, Code::unsupported);
  says("experts_per_token", 2, {"experts_per_token: 2", "num_experts_per_tok is 3"}, Code::unsupported);
  says("num_experts_per_tok", 7, {"num_experts_per_tok: 7 is not in [1, 6]"}, Code::bad_format);
  says("hidden_act", "gelu", {"hidden_act"}, Code::unsupported);
  directory_refused("gpt_oss", [](FamilyFile& f) { f.config["rope_parameters"]["beta_fast"] = 0.01; }, {"rope_scaling.high_freq_factor"});
  says("layer_types", {"sliding_attention", "chunked_attention"}, {"chunked_attention"}, Code::unsupported);
  says("intermediate_size", 16, {"tensor model.layers.0.mlp.experts.gate_up_proj_bias: shape (6, 48)", "(6, 32)"}, Code::bad_format);
  directory_refused("qwen3_moe", [](FamilyFile& f) { f.config["quantization_config"] = {{"quant_method", "mxfp4"}}; }, {"quantization_config"},
                  Code::unsupported);
}

TEST(GptOss, DamageIsNamed) {
  for (const char* tensor : {"model.layers.1.self_attn.sinks", "model.layers.0.mlp.router.bias", "model.layers.1.mlp.experts.gate_up_proj_bias",
                             "model.layers.0.mlp.experts.down_proj_bias", "model.layers.1.self_attn.o_proj.bias",
                             "model.layers.1.mlp.experts.gate_up_proj_scales", "model.layers.1.mlp.experts.gate_up_proj_blocks",
                             "model.layers.0.mlp.experts.down_proj_scales"})
    directory_refused("gpt_oss_mxfp4", [&](FamilyFile& f) { ASSERT_EQ(f.tensors.erase(tensor), 1u); }, {tensor, "missing"});
  const auto damaged = [](const char* tensor, auto change, std::initializer_list<const char*> words, Code code = Code::bad_format) {
    directory_refused("gpt_oss_mxfp4", [&](FamilyFile& f) { change(f.tensors.at(kExperts + std::string(tensor))); }, words, code);
  };
  const auto cut = [](Source& s) { s.shape[0] -= 1, s.values.resize(s.values.size() / 5 * 4); };
  damaged("down_proj_blocks", cut, {"experts.down_proj_blocks: shape (4, 64, 1, 16)", "(5, 64, 1, 16)"});
  damaged("down_proj_scales", cut, {"experts.down_proj_scales: shape (4, 64, 1)", "(5, 64, 1)"});
  damaged("gate_up_proj_blocks", [](Source& s) { s.shape = {5, 64, 32}; }, {"experts.gate_up_proj_blocks: shape (5, 64, 32)", "(5, 64, 2, 16)"});
  damaged("gate_up_proj_scales", [](Source& s) { s.values[77] = 255; }, {"model.layers.1.mlp.experts.gate_up_proj_scales", "255"});
  damaged("down_proj_scales", [](Source& s) { s.values[9] = 254; }, {"down_proj_blocks", "finite"});
  damaged("down_proj_blocks", [](Source& s) { s.dtype = "BF16"; }, {"down_proj_blocks", "BF16", "U8"}, Code::unsupported);
  directory_refused("gpt_oss_mxfp4", [](FamilyFile& f) { f.tensors[kExperts + std::string("down_proj")] = f.tensors.at("lm_head.weight"); },
                  {"mlp.experts.down_proj: unexpected"});
  directory_refused("gpt_oss", [](FamilyFile& f) { f.tensors.at(kExperts + std::string("gate_up_proj")).shape = {6, 48, 32}; },
                  {"gate_up_proj: shape (6, 48, 32)", "(6, 32, 48)"});
  directory_refused("gpt_oss", [](FamilyFile& f) { f.tensors[kExperts + std::string("down_proj_scales")] = {"U8", {6, 32, 1}, std::vector<float>(192)}; },
                  {"down_proj_blocks", "rows of 24"});
  // A file that ends in the middle of its blocks.
  FamilyFile f("gpt_oss_mxfp4");
  ASSERT_TRUE(f.try_hf().ok());
  Bytes file = slurp(f.folder / "hf/model.safetensors");
  file.resize(file.size() - 100);
  spit(f.folder / "hf/model.safetensors", {reinterpret_cast<const char*>(file.data()), file.size()});
  EXPECT_EQ(f.package(f.folder / "hf").status().code(), Code::bad_format);
}

TEST(GptOss, DamagedGgufFilesAreRefused) {
  const auto oss = [](auto change, std::initializer_list<const char*> words, Code code = Code::bad_format) {
    refused("gpt_oss_mxfp4", "gpt-oss", change, words, code);
  };
  for (const char* tensor : {"blk.1.attn_sinks.weight", "blk.0.ffn_gate_inp.bias", "blk.0.ffn_gate_exps.bias", "blk.2.ffn_up_exps.bias",
                             "blk.0.ffn_down_exps.bias", "blk.1.post_attention_norm.weight", "blk.0.attn_output.bias"})
    oss([&](Gguf& g) { g.forget_tensor(tensor); }, {tensor, "missing"});
  oss([](Gguf& g) { g.forget("gpt-oss.attention.sliding_window"); }, {"gpt-oss.attention.sliding_window: is missing"});
  oss([](Gguf& g) { g.u32("gpt-oss.attention.sliding_window", 0); }, {"gpt-oss.attention.sliding_window: 0"});
  oss([](Gguf& g) { g.f32("gpt-oss.rope.scaling.yarn_beta_slow", 5); }, {"rope_scaling.high_freq_factor"});
  oss([](Gguf& g) { g.f32("gpt-oss.rope.freq_base_swa", 5); }, {"rope.freq_base_swa"}, Code::unsupported);
  oss([](Gguf& g) { g.u32("gpt-oss.expert_gating_func", 2); }, {"expert_gating_func: 2"}, Code::unsupported);
  oss([](Gguf& g) { g.forget("gpt-oss.expert_count"); }, {"gpt-oss.expert_count: is missing"});
  oss([](Gguf& g) {
    std::string data = g.data("blk.0.ffn_up_exps.weight");
    data[17] = '\xff';
    g.tensor("blk.0.ffn_up_exps.weight", g.shape("blk.0.ffn_up_exps.weight"), kGgufMxfp4, data);
  }, {"blk.0.ffn_up_exps.weight", "finite"});
}

TEST(GptOss, GgufFilesChangedAnywhereAreRefusedOrPackages) {
  uint64_t state = 5;
  FamilyFile f("gpt_oss_mxfp4", "gpt-oss");
  const std::string file = f.file().bytes();
  int refusals = 0;
  for (int round = 0; round < 200; ++round) {
    std::string other = file;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      other[(state >> 33) % 5000] = static_cast<char>(state >> 20);
    }
    spit(f.folder / "model.gguf", other);
    const auto p = f.package(f.folder / "model.gguf");
    ASSERT_EQ(fs::exists(f.options.output), p.ok()) << p.status().message();
    refusals += !p.ok();
  }
  EXPECT_GT(refusals, 100);
}

}  // namespace
}  // namespace aerie::test
