// Mixtures of experts in Hugging Face's directories.
#include <array>

#include "core/import/inspect.h"
#include "kernels/narrow_floats.h"
#include "kernels/panel16.h"
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

using kernels::DType;

constexpr const char* kMixtures[] = {"mixtral", "qwen3_moe", "olmoe", "granitemoe"};

DType stored_as(const Package& p, const std::string& tensor) { return p.tensor(tensor)->dtype; }

TEST(ExpertImport, AMixtureIsWhatItsConfigSays) {
  FamilyFile mixtral("mixtral"), qwen("qwen3_moe"), olmoe("olmoe"), granite("granitemoe");
  const Departures m = mixtral.hf()->target()->departures, o = olmoe.hf()->target()->departures, g = granite.hf()->target()->departures;
  EXPECT_EQ(m.experts, 5);
  EXPECT_EQ(m.experts_used, 2);
  EXPECT_TRUE(m.norm_experts);
  EXPECT_EQ(m.windows, (std::vector<int32_t>{17, 17}));
  EXPECT_EQ(o.experts, 7);
  EXPECT_EQ(o.experts_used, 3);
  EXPECT_FALSE(o.norm_experts);
  EXPECT_TRUE(o.whole_qk_norm);
  EXPECT_EQ(g.experts, 6);
  EXPECT_TRUE(g.norm_experts);
  EXPECT_FLOAT_EQ(g.residual_scale, 0.4f);
  const auto q = qwen.hf();
  EXPECT_EQ(q->target()->ffn, 16) << "an expert's, not that of a layer without";
  EXPECT_TRUE(q->target()->departures.norm_experts);
  qwen.config.erase("norm_topk_prob");
  EXPECT_FALSE(qwen.hf()->target()->departures.norm_experts) << "transformers' default";
  EXPECT_NE(qwen.hf()->fingerprint(), q->fingerprint());
  qwen.config["sliding_window"] = 12;
  EXPECT_TRUE(qwen.hf()->target()->departures.windows.empty()) << "not switched on";
  qwen.config["use_sliding_window"] = true;
  EXPECT_EQ(qwen.hf()->target()->departures.windows, (std::vector<int32_t>{12, 12}));
  qwen.config["num_experts"] = qwen.config["num_local_experts"];  // as published
  qwen.config.erase("num_local_experts");
  EXPECT_EQ(qwen.hf()->target()->departures.experts, 8);
  mixtral.config.erase("sliding_window");
  EXPECT_TRUE(mixtral.hf()->target()->departures.windows.empty());
}

// As transformers 5 has them in memory, and writes them if it is told to (save_original_format=False).
Sources as_in_memory(const FamilyFile& f) {
  Sources out;
  const bool mixtral = f.arch == "mixtral";
  for (const auto& [name, s] : f.tensors) {
    std::string other = name;
    for (const auto& [from, to] : {std::pair{"input_linear.weight", "experts.gate_up_proj"}, {"output_linear.weight", "experts.down_proj"},
                                   {"router.layer.", "router."}, {mixtral ? "block_sparse_moe." : "", "mlp."}})
      if (const size_t at = other.find(from); *from && at != std::string::npos) other.replace(at, std::strlen(from), to);
    if (name.find(".experts.") == std::string::npos) out[other] = s;
  }
  const int64_t experts = f.config.contains("num_experts") ? f.config["num_experts"] : f.config["num_local_experts"];
  for (const std::string layer : {"model.layers.0.", "model.layers.1."})
    for (int64_t e = 0; e < experts && f.arch != "granitemoe"; ++e)
      for (const char* part : mixtral ? std::array{"w1", "w3", "w2"} : std::array{"gate_proj", "up_proj", "down_proj"}) {
        const bool down = part[0] == 'd' || part[1] == '2';
        const Source& s = f.tensors.at(layer + (mixtral ? "block_sparse_moe" : "mlp") + ".experts." + std::to_string(e) + "." + part + ".weight");
        Source& all = out[layer + "mlp.experts." + (down ? "down_proj" : "gate_up_proj")];
        all.shape = {experts, s.shape[0] * (down ? 1 : 2), s.shape[1]};
        all.values.insert(all.values.end(), s.values.begin(), s.values.end());
      }
  return out;
}

TEST(ExpertImport, ExpertsMayLieInOneTensor) {
  for (const char* golden : kMixtures) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden);
    const auto written = f.hf();
    const size_t tensors = f.tensors.size();
    f.tensors = as_in_memory(f);
    EXPECT_TRUE(f.tensors.size() < tensors || f.arch == "granitemoe");
    const auto in_memory = f.hf();
    ASSERT_TRUE(written && in_memory);
    expect_same(*written, *in_memory);
  }
}

// What it says decides which experts a row takes: it keeps its values, of 16 bits where these hold them.
TEST(ExpertImport, ARouterIsNeverRounded) {
  FamilyFile f("qwen3_moe");
  for (float& v : f.tensors["model.layers.0.mlp.gate.weight"].values) v = kernels::from_bf16(kernels::to_bf16(v));
  std::map<std::string, std::string> made;  // packages by what was asked for
  const std::string shorts = "layers.0.mlp.router", floats = "layers.1.mlp.router", experts = "layers.1.mlp.experts.down";
  const auto values = [&](const Package& p, const std::string& name) {
    const kernels::Tensor t = *p.tensor(name);
    std::vector<float> all;
    for (int64_t i = 0; i < t.rows * t.cols; ++i) all.push_back(kernels::panel16_at(t, i / t.cols, i % t.cols));
    return all;
  };
  const auto expect_routers = [&](const Package& p, DType asked) {
    EXPECT_EQ(stored_as(p, experts), asked);
    EXPECT_EQ(stored_as(p, shorts), asked == DType::f32 ? DType::f32 : DType::bf16);
    EXPECT_EQ(stored_as(p, floats), DType::f32);
    EXPECT_EQ(values(p, shorts), f.tensors["model.layers.0.mlp.gate.weight"].values);
    EXPECT_EQ(values(p, floats), f.tensors["model.layers.1.mlp.gate.weight"].values);
  };
  for (const auto& [name, dtype] : {std::pair<const char*, WeightDType>{"f32", DType::f32}, {"int8", DType::int8}, {"q4_1", DType::q4_1}, {"usual", {}}}) {
    SCOPED_TRACE(name);
    f.options.dtype = dtype;
    expect_routers(*f.hf(), dtype.of(DType::f32));
    made[name] = f.options.output;
  }
  f.options.dtype = WeightDType::stored();
  EXPECT_EQ(stored_as(*f.hf(), shorts), DType::bf16);
  for (const auto& [from, dtype] : {std::pair<const char*, DType>{"f32", DType::int4}, {"f32", DType::bf16}, {"int8", DType::q4_1}, {"int8", DType::f32}}) {
    SCOPED_TRACE(from);
    f.options.dtype = dtype;
    const auto p = f.package(made[from]);
    ASSERT_TRUE(p.ok()) << p.status().message();
    expect_routers(**p, dtype);
    EXPECT_EQ((*p)->fingerprint(), (*Package::open(made["f32"]))->fingerprint());
    EXPECT_EQ((*p)->target()->departures, (*Package::open(made["f32"]))->target()->departures);
  }
}

TEST(ExpertImport, AnExpertOfMoreBitsDecidesForAll) {
  FamilyFile f("mixtral");
  for (auto& [name, s] : f.tensors) s.dtype = "BF16";
  f.tensors.at("model.layers.1.block_sparse_moe.experts.3.w3.weight").dtype = "F32";
  f.options.dtype = WeightDType::stored();
  const auto p = f.hf();
  EXPECT_EQ(stored_as(*p, "layers.0.mlp.experts.gate_up"), DType::bf16);
  EXPECT_EQ(stored_as(*p, "layers.1.mlp.experts.gate_up"), DType::f32);
  EXPECT_EQ(stored_as(*p, "layers.1.mlp.experts.down"), DType::bf16);
}

TEST(ExpertImport, RoutersAndExpertsArePartOfTheFingerprint) {
  for (const char* tensor : {"mlp.gate.weight", "mlp.experts.5.gate_proj.weight", "mlp.experts.7.down_proj.weight"}) {
    FamilyFile f("qwen3_moe");
    const auto before = f.hf();
    f.tensors.at(std::string("model.layers.1.") + tensor).values[7] += 1;
    EXPECT_NE(f.hf()->fingerprint(), before->fingerprint()) << tensor;
  }
}

TEST(ExpertImport, ProgressEndsWhereItSaidAndCanBeCancelledAnywhere) {
  for (const char* golden : kMixtures) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden);
    uint64_t last = 0, all = 0, calls = 0;
    f.options.progress = [&](uint64_t done, uint64_t total) {
      if (total == 1) return true;  // what comes after the import
      EXPECT_EQ(done, last + 1);
      EXPECT_TRUE(all == 0 || total == all);
      last = done, all = total, ++calls;
      return true;
    };
    ASSERT_TRUE(f.try_hf().ok());
    EXPECT_GE(last + 3, all);  // biases of two layers and a head that are not there
    const uint64_t experts = f.config.value("num_experts", f.config.value("num_local_experts", 0u));
    EXPECT_GT(calls, f.arch == "granitemoe" ? 15 : 4 * experts);
    for (uint64_t at = 1; at <= calls; ++at) {
      f.options.progress = [&](uint64_t done, uint64_t) { return done < at; };
      EXPECT_EQ(f.try_hf().status().code(), Code::cancelled);
      ASSERT_FALSE(fs::exists(f.options.output));
    }
  }
}

TEST(ExpertImport, WhatIsNotThereOrWouldBeAnotherModelIsNamed) {
  const auto says = [&](const char* golden, const char* key, const json& value, std::initializer_list<const char*> words, Code code) {
    directory_refused(golden, [&](FamilyFile& f) { f.config[key] = value; }, words, code);
  };
  constexpr Code unsupported = Code::unsupported, bad_format = Code::bad_format;
  says("qwen3_moe", "decoder_sparse_step", 2, {"config.json: decoder_sparse_step: 2"}, unsupported);
  says("qwen3_moe", "mlp_only_layers", {1}, {"mlp_only_layers"}, unsupported);
  says("qwen3_moe", "num_experts_per_tok", 9, {"config.json: num_experts_per_tok: 9 is not in [1, 8]"}, bad_format);
  says("qwen3_moe", "num_experts_per_tok", 0, {"num_experts_per_tok: 0"}, bad_format);
  says("qwen3_moe", "num_local_experts", 2000, {"num_local_experts: 2000 is not in [1, 1024]"}, bad_format);
  says("olmoe", "num_experts", 0, {"num_experts: 0"}, bad_format);
  says("qwen3_moe", "num_experts", 7, {"num_local_experts: 8, but num_experts is 7"}, unsupported);
  says("qwen3_moe", "num_local_experts", 7, {"model.layers.0.mlp.gate.weight: shape (8, 32)", "(7, 32)"}, bad_format);
  says("qwen3_moe", "moe_intermediate_size", 12, {"experts", "ffn 12"}, bad_format);
  says("qwen3_moe", "moe_intermediate_size", 24, {"mlp.experts.0.gate_proj.weight: shape (16, 32)", "(24, 32)"}, bad_format);
  says("qwen3_moe", "moe_intermediate_size", 0, {"moe_intermediate_size: 0"}, bad_format);
  says("qwen3_moe", "hidden_size", 24, {"experts", "hidden 24"}, bad_format);
  says("qwen3_moe", "hidden_act", "gelu", {"hidden_act"}, unsupported);
  says("mixtral", "model_type", "mistral", {"num_local_experts"}, unsupported);
  says("mixtral", "num_local_experts", 33, {"block_sparse_moe.gate.weight: shape (5, 32)"}, bad_format);
  says("granitemoe", "num_local_experts", 4, {"block_sparse_moe.router.layer.weight: shape (6, 32)"}, bad_format);
  says("olmoe", "clip_qkv", 8.0, {"clip_qkv"}, unsupported);
  const auto lacks = [&](const char* golden, const char* tensor) {
    directory_refused(golden, [&](FamilyFile& f) { ASSERT_EQ(f.tensors.erase(tensor), 1u) << tensor; }, {tensor, "missing"});
  };
  lacks("qwen3_moe", "model.layers.1.mlp.experts.6.up_proj.weight");
  lacks("qwen3_moe", "model.layers.0.mlp.experts.0.down_proj.weight");
  lacks("qwen3_moe", "model.layers.1.mlp.gate.weight");
  lacks("mixtral", "model.layers.0.block_sparse_moe.experts.4.w2.weight");
  lacks("granitemoe", "model.layers.0.block_sparse_moe.input_linear.weight");
  lacks("granitemoe", "model.layers.1.block_sparse_moe.output_linear.weight");
  directory_refused("mixtral", [](FamilyFile& f) { f.tensors.at("model.layers.0.block_sparse_moe.experts.4.w2.weight").shape = {24, 32}; },
          {"experts.4.w2.weight: shape (24, 32)", "(32, 24)"});
  directory_refused("granitemoe", [](FamilyFile& f) { f.tensors.at("model.layers.0.block_sparse_moe.input_linear.weight").shape = {6, 32, 48}; },
          {"input_linear.weight: shape (6, 32, 48)", "(6, 48, 32)"});
  directory_refused("olmoe", [](FamilyFile& f) { f.tensors["model.layers.0.mlp.shared_expert.up_proj.weight"] = {"F32", {1, 1}, {0}}; },
          {"shared_expert", "unexpected"});
}

TEST(ExpertImport, APackageSaysWhatItsMixtureIs) {
  FamilyFile f("olmoe");
  ASSERT_TRUE(f.hf());
  const auto text = inspect(f.options.output, true);
  ASSERT_TRUE(text.ok());
  const json said = json::parse(*text)["config"]["departures"];
  EXPECT_EQ(said["experts"], 7);
  EXPECT_EQ(said["experts_used"], 3);
  EXPECT_EQ(said["norm_experts"], false);
}

}  // namespace
}  // namespace aerie::test
