// Models with recurrent layers (gated delta rule): Hugging Face's directories and GGUF files.
#include <array>

#include "core/import/inspect.h"
#include "kernels/narrow_floats.h"
#include "kernels/panel16.h"
#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

using kernels::DType;

constexpr std::pair<const char*, const char*> kRecurrent[] = {{"qwen3_5", "qwen35"}, {"qwen3_5_moe", "qwen35moe"}, {"qwen3_next", "qwen3next"}};

bool warns_of(const FamilyFile& f, const char* words) {
  return std::any_of(f.warnings.begin(), f.warnings.end(), [&](const std::string& w) { return w.find(words) != w.npos; });
}

void expect_still(const Package& before, FamilyFile& f) {
  const auto p = f.hf();
  ASSERT_TRUE(p);
  expect_same(before, *p);
}

// The tensors of two layers change places.
void swap_layers(FamilyFile& f, int a, int b) {
  Sources out;
  const std::string at = "model.layers.", names[] = {at + std::to_string(a) + ".", at + std::to_string(b) + "."};
  for (auto& [name, s] : f.tensors) {
    std::string other = name;
    for (const int i : {0, 1})
      if (name.starts_with(names[i])) other = names[1 - i] + name.substr(names[i].size());
    out[other] = std::move(s);
  }
  f.tensors = std::move(out);
  std::swap(f.config["layer_types"][static_cast<size_t>(a)], f.config["layer_types"][static_cast<size_t>(b)]);
}

TEST(RecurrentImport, AModelIsWhatItsConfigSays) {
  FamilyFile dense("qwen3_5"), mixture("qwen3_5_moe"), next("qwen3_next");
  Departures want;
  want.output_gate = true;
  want.delta_layers = {1, 0, 1};
  want.delta_key_heads = 2, want.delta_heads = 4, want.delta_key_dim = 16, want.delta_value_dim = 32, want.delta_taps = 4;
  const auto d = dense.hf(), m = mixture.hf(), n = next.hf();
  ASSERT_TRUE(d && m && n);
  EXPECT_EQ(d->target()->departures, want);
  EXPECT_TRUE(d->target()->qk_norm);
  EXPECT_TRUE(d->target()->tied);
  EXPECT_EQ(d->target()->ffn, 40);
  EXPECT_EQ(d->target()->attention_layers(), 1);
  for (const auto& [name, rows, cols] :
       {std::tuple{"layers.0.delta.in", 2 * 2 * 16 + 2 * 4 * 32, 32}, {"layers.2.delta.gates", 2 * 4, 32},
        {"layers.0.delta.conv", 4, 2 * 2 * 16 + 4 * 32}, {"layers.2.delta.decay", 2, 4}, {"layers.0.delta.norm", 1, 32},
        {"layers.2.delta.out", 32, 4 * 32}, {"layers.1.attn.qkv", (4 + 2 * 2) * 16, 32}, {"layers.1.attn.gate", 4 * 16, 32},
        {"layers.1.attn.o", 32, 4 * 16}, {"layers.1.attn.q_norm", 1, 16}, {"layers.2.mlp_norm", 1, 32}}) {
    const auto t = d->tensor(name);
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->rows, rows) << name;
    EXPECT_EQ(t->cols, cols) << name;
  }
  for (const char* name : {"layers.0.attn.qkv", "layers.0.attn.gate", "layers.0.attn.o", "layers.2.attn.q_norm", "layers.1.delta.in",
                           "layers.1.delta.decay"})
    EXPECT_FALSE(d->has(name)) << name;

  want.delta_layers = {1, 1, 1, 0};
  want.delta_heads = 6, want.delta_value_dim = 16, want.delta_taps = 3;
  want.experts = 5, want.experts_used = 2, want.norm_experts = true;
  want.shared_ffn = 20, want.shared_gate = true;
  EXPECT_EQ(m->target()->departures, want);
  EXPECT_EQ(m->target()->ffn, 16) << "an expert's";
  EXPECT_FALSE(m->target()->tied);
  EXPECT_TRUE(m->has("layers.0.mlp.router") && m->has("layers.3.mlp.shared.gate"));
  want.delta_key_heads = 3, want.delta_taps = 4;
  want.experts = 7, want.experts_used = 3;
  EXPECT_EQ(n->target()->departures, want);
  EXPECT_EQ(n->target()->ffn, 8);
}

// Values where they belong: what Hugging Face has together for each key head, norms that are 1 more than they say and one that is not.
TEST(RecurrentImport, TensorsAreThoseOfTheCheckpoint) {
  FamilyFile f("qwen3_next");
  const auto p = f.hf();
  ASSERT_TRUE(p);
  const auto hf = [&](const std::string& name) -> const std::vector<float>& { return f.tensors.at("model.layers.1.linear_attn." + name).values; };
  const kernels::Tensor in = *p->tensor("layers.1.delta.in"), gates = *p->tensor("layers.1.delta.gates");
  // Of key head 2 the last row of q, k, v and z; of all heads 48 rows of q, as many of k, 96 of v.
  for (const auto& [ours, theirs] : {std::pair{47, 2 * 96 + 15}, {95, 2 * 96 + 31}, {191, 2 * 96 + 63}, {287, 2 * 96 + 95}})
    EXPECT_EQ(kernels::panel16_at(in, ours, 5), hf("in_proj_qkvz.weight")[static_cast<size_t>(theirs * 32 + 5)]) << ours;
  // Heads 2 and 3 are key head 1's: b of both, then a of both.
  for (const auto& [ours, theirs] : {std::pair{2, 4}, {3, 5}, {6 + 2, 6}, {6 + 3, 7}})
    EXPECT_EQ(kernels::panel16_at(gates, ours, 7), hf("in_proj_ba.weight")[static_cast<size_t>(theirs * 32 + 7)]) << ours;
  const auto of = [&](const char* name, int64_t i) { return static_cast<const float*>(p->tensor(name)->data)[i]; };
  EXPECT_EQ(of("layers.1.delta.conv", 3 * 192 + 100), hf("conv1d.weight")[100 * 4 + 3]);
  EXPECT_FLOAT_EQ(of("layers.1.delta.decay", 4), -std::exp(hf("A_log")[4]));
  EXPECT_EQ(of("layers.1.delta.decay", 6 + 4), hf("dt_bias")[4]);
  EXPECT_EQ(of("layers.1.delta.norm", 9), hf("norm.weight")[9]);
  EXPECT_EQ(of("layers.1.attn_norm", 9), f.tensors.at("model.layers.1.input_layernorm.weight").values[9] + 1);
  EXPECT_EQ(of("layers.3.attn.k_norm", 0), f.tensors.at("model.layers.3.self_attn.k_norm.weight").values[0] + 1);
  // q and its gate lie together, head by head; of 16 elements 4 are rotated, which a gate has nothing to do with.
  const auto& q = f.tensors.at("model.layers.3.self_attn.q_proj.weight").values;
  const kernels::Tensor qkv = *p->tensor("layers.3.attn.qkv"), gate = *p->tensor("layers.3.attn.gate");
  for (const auto& [ours, theirs] : {std::pair{0, 0}, {8, 2}, {2, 4}, {15, 15}})
    EXPECT_EQ(kernels::panel16_at(qkv, 3 * 16 + ours, 1), q[static_cast<size_t>((3 * 32 + theirs) * 32 + 1)]) << ours;
  for (const int i : {0, 2, 8, 15}) EXPECT_EQ(kernels::panel16_at(gate, 3 * 16 + i, 1), q[static_cast<size_t>((3 * 32 + 16 + i) * 32 + 1)]) << i;
}

// As llama.cpp's converter writes them.
TEST(RecurrentImport, GgufFilesAreTheSameModels) {
  for (const auto& [golden, arch] : kRecurrent) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    expect_theirs(f);
    swap_layers(f, 0, golden == std::string("qwen3_5") ? 1 : 3);  // the first one attends
    EXPECT_EQ(f.hf()->target()->departures.delta_layers[0], 0);
    expect_theirs(f);
  }
}

TEST(RecurrentImport, GatesAreNeverRounded) {
  FamilyFile f("qwen3_5");
  const std::string a = "model.layers.0.linear_attn.in_proj_a.weight", b = "model.layers.0.linear_attn.in_proj_b.weight";
  for (const std::string& name : {a, b})
    for (float& v : f.tensors[name].values) v = kernels::from_bf16(kernels::to_bf16(v));
  const std::string shorts = "layers.0.delta.gates", floats = "layers.2.delta.gates";
  const auto values = [](const Package& p, const std::string& name) {
    const kernels::Tensor t = *p.tensor(name);
    std::vector<float> all;
    for (int64_t i = 0; i < t.rows * t.cols; ++i) all.push_back(kernels::panel16_at(t, i / t.cols, i % t.cols));
    return all;
  };
  std::vector<float> want = f.tensors[b].values;
  want.insert(want.end(), f.tensors[a].values.begin(), f.tensors[a].values.end());
  const auto whole = f.hf();
  const std::string made = f.options.output;
  for (const bool again : {false, true})  // of the directory, of the package in f32
    for (const DType dtype : {DType::int4, DType::int8, DType::q4_1, DType::bf16}) {
      f.options.dtype = dtype;
      const auto p = again ? f.package(made) : f.try_hf();
      ASSERT_TRUE(p.ok()) << p.status().message();
      EXPECT_EQ((*p)->tensor("layers.0.delta.in")->dtype, dtype);
      EXPECT_EQ((*p)->tensor("layers.1.attn.gate")->dtype, dtype);
      EXPECT_EQ((*p)->tensor(shorts)->dtype, DType::bf16);
      EXPECT_EQ((*p)->tensor(floats)->dtype, DType::f32) << "16 bits do not hold them";
      EXPECT_EQ(values(**p, shorts), want);
      EXPECT_EQ(values(**p, floats), values(*whole, floats));
      EXPECT_EQ((*p)->fingerprint(), whole->fingerprint());
      EXPECT_EQ((*p)->target()->departures, whole->target()->departures);
    }
}

// ---- published forms ------------------------------------------------------------------------------

// With what reads images and a layer for multi-token prediction around it.
TEST(RecurrentImport, AModelThatSeesImagesHasOneOfLanguageWithin) {
  for (const auto& [golden, arch] : kRecurrent) {
    if (arch == std::string("qwen3next")) continue;  // there is none
    SCOPED_TRACE(golden);
    FamilyFile f(golden);
    const auto flat = f.hf();
    ASSERT_TRUE(flat);
    EXPECT_EQ(f.warnings.size(), 1u);  // no tokenizer
    Sources named;
    for (const auto& [name, s] : f.tensors)
      named[name.starts_with("model.") ? "model.language_model." + name.substr(std::strlen("model.")) : name] = s;
    for (const char* name : {"model.visual.patch_embed.proj.weight", "model.visual.blocks.0.attn.qkv.bias", "mtp.fc.weight", "mtp.norm.weight",
                             "mtp.layers.0.self_attn.q_proj.weight", "mtp.layers.0.mlp.experts.gate_up_proj"})
      named[name] = {"F32", {2, 3}, std::vector<float>(6)};
    f.tensors = named;
    json text = f.config;
    text["mtp_num_hidden_layers"] = 1;
    text["mtp_use_dedicated_embeddings"] = false;
    text["mamba_ssm_dtype"] = "float32";
    f.config = {{"model_type", golden}, {"text_config", text}, {"image_token_id", 70}, {"tie_word_embeddings", text["tie_word_embeddings"]},
                {"vision_config", {{"model_type", golden}, {"depth", 2}, {"hidden_size", 24}, {"intermediate_size", 20}, {"num_heads", 3}}}};
    const auto nested = f.hf();
    ASSERT_TRUE(nested);
    expect_same(*flat, *nested);
    EXPECT_TRUE(warns_of(f, "what reads images or sounds is left out"));
    EXPECT_TRUE(warns_of(f, "layers for multi-token prediction are left out"));
    f.config["text_config"].erase("mtp_num_hidden_layers");
    expect_still(*flat, f);
    f.tensors["model.language_model.stray.weight"] = {"F32", {1}, {0}};
    EXPECT_NE(f.try_hf().status().message().find("stray.weight: unexpected"), std::string::npos);
  }
}

TEST(RecurrentImport, LayersForMultiTokenPredictionAreLeftOut) {
  for (const auto& [golden, arch] : kRecurrent) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    const auto before = f.hf();
    ASSERT_TRUE(before);
    // As in a file of llama.cpp's: one block more, which attends.
    const std::string prefix = arch + std::string("."), blocks = prefix + "block_count", more = prefix + "nextn_predict_layers";
    const int layers = f.config["num_hidden_layers"], attends = golden == std::string("qwen3_5") ? 1 : 3;
    const std::string from = "model.layers." + std::to_string(attends) + ".", to = "model.layers." + std::to_string(layers) + ".";
    FamilyFile longer(golden, arch);
    for (const auto& [name, s] : f.tensors)
      if (name.starts_with(from)) longer.tensors[to + name.substr(from.size())] = s;
    longer.config["layer_types"].push_back("full_attention");
    Gguf g = longer.file();
    for (const char* name : {"eh_proj", "enorm", "hnorm", "shared_head_norm"})
      g.tensor("blk." + std::to_string(layers) + ".nextn." + name + ".weight", {32}, std::vector<float>(32));
    g.u32(blocks, static_cast<uint32_t>(layers + 1));
    g.u32(more, 1);
    const auto theirs = f.gguf(g);
    ASSERT_TRUE(theirs.ok()) << theirs.status().message();
    expect_same(*before, **theirs);
    EXPECT_TRUE(warns_of(f, "layers for multi-token prediction are left out"));
    f.config.erase("layer_types");
    if (attends == 1) f.config["full_attention_interval"] = 2;
    g.forget(prefix + "attention.recurrent_layers");
    g.u32(prefix + "full_attention_interval", attends == 1 ? 2 : 4);
    expect_theirs(f, g);
    g.forget(more);
    f.refused(g, Code::bad_format, {("blk." + std::to_string(layers)).c_str()});
    for (const uint32_t n : {layers + 1, -1}) {
      g.u32(more, n);
      f.refused(g, Code::bad_format, {more.c_str()});
    }
    // And of Hugging Face's.
    f.tensors["mtp.layers.0.self_attn.q_proj.weight"] = {"F32", {4, 4}, std::vector<float>(16)};
    expect_still(*before, f);
    EXPECT_TRUE(warns_of(f, "layers for multi-token prediction are left out"));
    f.config["mtp_num_hidden_layers"] = 2147483647;
    expect_still(*before, f);
    f.config["mtp_num_hidden_layers"] = -1;
    EXPECT_NE(f.try_hf().status().message().find("mtp_num_hidden_layers: -1"), std::string::npos);
    f.config["mtp_num_hidden_layers"] = 0;
    EXPECT_NE(f.try_hf().status().message().find("mtp.layers.0.self_attn.q_proj.weight: unexpected"), std::string::npos);
  }
}

// As they are published, and as transformers 5 has them in memory.
TEST(RecurrentImport, ExpertsMayBeFused) {
  for (const char* golden : {"qwen3_5_moe", "qwen3_next"}) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden);
    const auto apart = f.hf();
    const int64_t experts = f.experts();
    Sources fused;
    for (const auto& [name, s] : f.tensors)
      if (name.find(".experts.") == std::string::npos) fused[name] = s;
    for (int layer = 0; layer < 4; ++layer)
      for (int64_t e = 0; e < experts; ++e)
        for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
          const std::string at = "model.layers." + std::to_string(layer) + ".mlp.experts.";
          const Source& s = f.tensors.at(at + std::to_string(e) + "." + part + ".weight");
          const bool down = *part == 'd';
          Source& all = fused[at + (down ? "down_proj" : "gate_up_proj")];
          all.shape = {experts, s.shape[0] * (down ? 1 : 2), s.shape[1]};
          all.values.insert(all.values.end(), s.values.begin(), s.values.end());
        }
    f.tensors = fused;
    const auto together = f.hf();
    ASSERT_TRUE(apart && together);
    expect_same(*apart, *together);
  }
}

// The gate of that name is that of recurrent layers' norm: what transformers has in its code, and Qwen3.6's files say.
TEST(RecurrentImport, AGateThatIsSaidToBeWhatItIs) {
  FamilyFile f("qwen3_5");
  const auto before = f.hf();
  for (const char* type : {"swish", "silu"}) {
    f.config["output_gate_type"] = type;
    const auto p = f.try_hf();
    ASSERT_TRUE(p.ok()) << p.status().message();
    expect_same(*before, **p);
  }
  for (const char* type : {"sigmoid", "gelu"})
    directory_refused("qwen3_5", [&](FamilyFile& other) { other.config["output_gate_type"] = type; }, {"config.json: output_gate_type", type},
                      Code::unsupported);
}

// Files of before [q; k; v; z] were taken apart: as in the checkpoint.
TEST(RecurrentImport, FirstGgufFilesOfQwen3Next) {
  FamilyFile f("qwen3_next", "qwen3next");
  Gguf g = f.file();
  for (int i = 0; i < 3; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_qkv.weight", "attn_gate.weight"}) g.forget_tensor(at + name);
    const Source& s = f.tensors.at("model.layers." + std::to_string(i) + ".linear_attn.in_proj_qkvz.weight");
    g.tensor(at + "ssm_in.weight", s.shape, s.values);
  }
  g.forget("qwen3next.attention.recurrent_layers");
  expect_theirs(f, g);
}

// ---- which layers ---------------------------------------------------------------------------------

TEST(RecurrentImport, LayersAreListedOrEverySoMany) {
  for (const auto& [golden, arch] : kRecurrent) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    const auto listed = f.hf();
    const std::string list = arch + std::string(".attention.recurrent_layers"), interval = arch + std::string(".full_attention_interval");
    const bool dense = golden == std::string("qwen3_5");
    Gguf g = f.file();
    g.u32(interval, 3);  // it says less than the list
    expect_theirs(f, g);
    g.i32s(list, dense ? std::vector<int32_t>{1, 0, 1} : std::vector<int32_t>{1, 1, 1, 0});
    expect_theirs(f, g);
    f.config["full_attention_interval"] = 3;
    expect_still(*listed, f);
    f.config.erase("layer_types");
    g.forget(list);
    g.u32(interval, dense ? 2 : 4);
    f.config["full_attention_interval"] = dense ? 2 : 4;
    expect_still(*listed, f);
    expect_theirs(f, g);
    if (dense) continue;
    f.config.erase("full_attention_interval");
    g.forget(interval);
    expect_still(*listed, f);
    expect_theirs(f, g);
  }
}

// The one layer of three that attends, alone.
TEST(RecurrentImport, NoLayerHasToBeRecurrent) {
  FamilyFile f("qwen3_5", "qwen35");
  swap_layers(f, 0, 1);
  std::erase_if(f.tensors, [](const auto& t) { return t.first.starts_with("model.layers.") && !t.first.starts_with("model.layers.0."); });
  f.config["num_hidden_layers"] = 1;
  f.config["layer_types"] = {"full_attention"};
  const auto p = f.hf();
  ASSERT_TRUE(p);
  Departures want;
  want.output_gate = true;
  EXPECT_EQ(p->target()->departures, want) << "no sizes of what is not there";
  expect_theirs(f);
  f.config.erase("layer_types");
  f.config["full_attention_interval"] = 1;
  for (const char* size : {"linear_num_key_heads", "linear_key_head_dim", "linear_conv_kernel_dim"}) f.config[size] = 0;
  expect_still(*p, f);
  f.config["full_attention_interval"] = 4;
  EXPECT_EQ(f.try_hf().status().code(), Code::bad_format);
}

// ---- what is said and what is not -----------------------------------------------------------------

// Whatever is said otherwise is another model, of another fingerprint, though its tensors are the same.
TEST(RecurrentImport, EveryRecurrentSettingCounts) {
  const auto changes = [](const char* golden, const json& more) {
    SCOPED_TRACE(std::string(golden) + " " + more.dump());
    FamilyFile f(golden);
    const std::string before = f.hf()->fingerprint();
    f.config.update(more);
    const auto p = f.try_hf();
    ASSERT_TRUE(p.ok()) << p.status().message();
    EXPECT_NE((*p)->fingerprint(), before);
  };
  changes("qwen3_5", {{"linear_num_key_heads", 1}, {"linear_key_head_dim", 32}});
  changes("qwen3_next", {{"linear_num_key_heads", 1}, {"linear_key_head_dim", 48}});
  for (const double part : {0.125, 0.5, 1.0})
    changes("qwen3_5", {{"rope_parameters", {{"rope_theta", 10000.0}, {"rope_type", "default"}, {"partial_rotary_factor", part}}}});
  changes("qwen3_5", {{"rope_parameters", {{"rope_theta", 1e7}, {"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}});
  changes("qwen3_5", {{"rms_norm_eps", 1e-6}});
  changes("qwen3_5_moe", {{"num_experts_per_tok", 3}});
  changes("qwen3_next", {{"num_experts_per_tok", 2}});
  changes("qwen3_next", {{"norm_topk_prob", false}});
  for (const char* tensor : {"A_log", "dt_bias", "conv1d.weight", "norm.weight", "out_proj.weight", "in_proj_qkv.weight", "in_proj_z.weight",
                             "in_proj_b.weight", "in_proj_a.weight"}) {
    FamilyFile f("qwen3_5");
    const std::string before = f.hf()->fingerprint();
    f.tensors.at(std::string("model.layers.2.linear_attn.") + tensor).values[3] += 1;
    EXPECT_NE(f.hf()->fingerprint(), before) << tensor;
  }
}

// transformers'.
TEST(RecurrentImport, WhatAConfigLeavesUnsaid) {
  FamilyFile dense("qwen3_5"), mixture("qwen3_5_moe"), next("qwen3_next");
  const auto d = dense.hf(), m = mixture.hf(), n = next.hf();
  for (const char* key : {"linear_conv_kernel_dim", "attention_bias", "hidden_act"}) dense.config.erase(key);
  dense.config["rope_parameters"] = {{"rope_type", "default"}};  // of a head a quarter, theta 10,000
  expect_still(*d, dense);
  dense.config.erase("rope_parameters");
  expect_still(*d, dense);
  dense.config["partial_rotary_factor"] = 0.25;  // where it was before transformers 5
  dense.config["rope_theta"] = 10000;
  dense.config["attn_output_gate"] = true;
  expect_still(*d, dense);
  dense.config["rms_norm_eps"] = 1e-6;
  const auto usual = dense.hf();
  dense.config.erase("rms_norm_eps");
  expect_still(*usual, dense);
  mixture.config.erase("num_key_value_heads");
  expect_still(*m, mixture);
  mixture.config["intermediate_size"] = 5632;  // of layers without experts, of which there are none
  expect_still(*m, mixture);
  for (const char* key : {"norm_topk_prob", "decoder_sparse_step", "mlp_only_layers", "intermediate_size", "num_key_value_heads"})
    next.config.erase(key);
  expect_still(*n, next);
  // Sizes that these have otherwise are not taken for what is there.
  const auto lacks = [](const char* golden, const char* key, std::initializer_list<const char*> words) {
    directory_refused(golden, [&](FamilyFile& f) { f.config.erase(key); }, words);
  };
  lacks("qwen3_5", "linear_key_head_dim", {"layers.0.linear_attn.in_proj_qkv.weight: shape (192, 32)", "(640, 32)"});
  lacks("qwen3_5", "linear_value_head_dim", {"layers.0.linear_attn.in_proj_qkv.weight: shape (192, 32)", "(576, 32)"});
  lacks("qwen3_5", "linear_num_value_heads", {"layers.0.linear_attn.in_proj_qkv.weight: shape (192, 32)", "(1088, 32)"});
  lacks("qwen3_5", "head_dim", {"self_attn.q_proj.weight: shape (128, 32)", "(2048, 32)"});
  lacks("qwen3_5", "intermediate_size", {"config.json: intermediate_size: is missing"});
  lacks("qwen3_5", "tie_word_embeddings", {"lm_head.weight: missing"});
  lacks("qwen3_5_moe", "linear_conv_kernel_dim", {"layers.0.linear_attn.conv1d.weight: shape (160, 1, 3)", "(160, 1, 4)"});
  lacks("qwen3_5_moe", "num_experts_per_tok", {"config.json: num_experts_per_tok: 8 is not in [1, 5]"});
  lacks("qwen3_next", "num_experts_per_tok", {"config.json: num_experts_per_tok: 10 is not in [1, 7]"});
  lacks("qwen3_next", "num_experts", {"mlp.gate.weight: shape (7, 32)", "(512, 32)"});
  lacks("qwen3_next", "moe_intermediate_size", {"mlp.experts.0.gate_proj.weight: shape (8, 32)", "(512, 32)"});
  lacks("qwen3_5_moe", "shared_expert_intermediate_size", {"mlp.shared_expert.gate_proj.weight: shape (20, 32)", "(512, 32)"});
}

// ---- refusals -------------------------------------------------------------------------------------

TEST(RecurrentImport, WhatWouldBeAnotherModelIsNamed) {
  const auto says = [](const char* golden, const json& more, std::initializer_list<const char*> words, Code code = Code::bad_format) {
    SCOPED_TRACE(more.dump());
    directory_refused(golden, [&](FamilyFile& f) { f.config.update(more); }, words, code);
  };
  const char *const linear = "linear_attention", *const full = "full_attention";
  says("qwen3_5", {{"layer_types", {linear, "sliding_attention", linear}}}, {"config.json: layer_types: \"sliding_attention\""}, Code::unsupported);
  says("qwen3_5", {{"layer_types", {linear, 1, linear}}}, {"config.json: layer_types: 1"}, Code::unsupported);
  says("qwen3_5", {{"layer_types", {linear, full}}}, {"config.json: layer_types: not a list of 3"});
  says("qwen3_5", {{"layer_types", {linear, full, linear, full}}}, {"config.json: layer_types: not a list of 3"});
  says("qwen3_5", {{"layer_types", linear}}, {"config.json: layer_types: not a list of 3"});
  says("qwen3_5", {{"layer_types", {linear, full, full}}}, {"model.layers.2.self_attn.q_proj.weight: missing"});
  says("qwen3_5", {{"layer_types", {linear, linear, linear}}}, {"config.json: ", "no layer has attention"});
  for (const int interval : {0, -1}) {
    const json said = {{"full_attention_interval", interval}, {"layer_types", nullptr}};
    says("qwen3_5", said, {"config.json: full_attention_interval", std::to_string(interval).c_str()});
  }
  says("qwen3_5", {{"full_attention_interval", 2147483647}, {"layer_types", nullptr}}, {"config.json: ", "no layer has attention"});
  says("qwen3_5", {{"full_attention_interval", "4"}, {"layer_types", nullptr}}, {"config.json: full_attention_interval: is not a 32-bit integer"});
  says("qwen3_5", {{"attn_output_gate", false}}, {"config.json: attn_output_gate: false"}, Code::unsupported);
  says("qwen3_5", {{"attn_output_gate", 1}}, {"config.json: attn_output_gate: is neither true nor false"});
  says("qwen3_5", {{"hidden_act", "gelu"}}, {"config.json: hidden_act"}, Code::unsupported);
  says("qwen3_5", {{"partial_rotary_factor", 0.05}, {"rope_parameters", nullptr}}, {"config.json: partial_rotary_factor"}, Code::unsupported);
  says("qwen3_5", {{"model_type", "qwen3"}}, {"config.json: ", "partial_rotary_factor"}, Code::unsupported);
  says("qwen3_5", {{"model_type", "qwen4"}}, {"config.json: model_type: \"qwen4\"", "qwen3_5", "qwen3_next"}, Code::unsupported);
  says("qwen3_5", {{"num_local_experts", 4}}, {"config.json: num_local_experts"}, Code::unsupported);
  says("qwen3_next", {{"mlp_only_layers", {0}}}, {"config.json: mlp_only_layers"}, Code::unsupported);
  says("qwen3_next", {{"decoder_sparse_step", 2}}, {"config.json: decoder_sparse_step: 2"}, Code::unsupported);
  says("qwen3_5_moe", {{"norm_topk_prob", false}}, {"config.json: norm_topk_prob: false"}, Code::unsupported);
  says("qwen3_5_moe", {{"shared_expert_intermediate_size", 0}}, {"config.json: shared_expert_intermediate_size: 0"});
  // Of another family, whose tensors go by other names.
  says("qwen3_5_moe", {{"model_type", "qwen3_5"}, {"intermediate_size", 40}}, {"model.layers.0.mlp.gate_proj.weight: missing"});
  says("qwen3_5", {{"model_type", "qwen3_next"}, {"num_experts", 4}, {"num_experts_per_tok", 2}}, {"model.layers.0.mlp.gate.weight: missing"});
}

// Before a tensor is read, whatever the size that is asked for.
TEST(RecurrentImport, SizesAreJudgedUnderTheFilesNames) {
  const auto says = [](const char* key, const json& value, std::initializer_list<const char*> words) {
    SCOPED_TRACE(std::string(key) + " " + value.dump());
    directory_refused("qwen3_5", [&](FamilyFile& f) {
      f.config[key] = value;
      std::erase_if(f.tensors, [](const auto& t) { return t.first.find("linear_attn") != std::string::npos; });
    }, words);
  };
  says("linear_num_value_heads", 5, {"config.json: linear_num_key_heads: 2 does not divide", "5"});
  says("linear_num_value_heads", 1, {"config.json: linear_num_key_heads: 2 is not in [1, 1]"});
  for (const char* key : {"linear_key_head_dim", "linear_value_head_dim"}) {
    const std::string at = std::string("config.json: ") + key + ": ";
    says(key, 24, {(at + "24 is no multiple of 16").c_str()});
    for (const int dim : {0, -16, 8, 1024, 1 << 30}) says(key, dim, {(at + std::to_string(dim) + " is not in [16, 512]").c_str()});
  }
  for (const char* key : {"linear_num_key_heads", "linear_num_value_heads"})
    for (const int n : {0, -1, 1 << 30}) {
      const std::string message = std::string("config.json: ") + key + ": " + std::to_string(n) + " is not in [1, ";
      says(key, n, {message.c_str()});
    }
  for (const int taps : {-4, 0, 1, 9, 1 << 30})
    says("linear_conv_kernel_dim", taps, {("config.json: linear_conv_kernel_dim: " + std::to_string(taps) + " is not in [2, 8]").c_str()});
  for (const char* key : {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim"})
    for (const json& value : {json(int64_t{1} << 32), json(4.5), json("4")})
      says(key, value, {(std::string("config.json: ") + key + ": is not a 32-bit integer").c_str()});
}

TEST(RecurrentImport, TensorsAreAllThereInTheirShapes) {
  for (const char* golden : {"qwen3_5", "qwen3_next"}) {
    std::vector<std::string> names;
    for (const auto& t : FamilyFile(golden).tensors)
      if (t.first.starts_with("model.layers.2.linear_attn.")) names.push_back(t.first);
    EXPECT_EQ(names.size(), golden == std::string("qwen3_5") ? 9u : 7u);
    for (const std::string& name : names) {
      SCOPED_TRACE(golden);
      // Of one that may be in parts, one of the parts is asked for.
      const std::string asked = name.substr(0, std::min({name.find("_qkvz"), name.find("_ba."), name.size()}));
      directory_refused(golden, [&](FamilyFile& f) { f.tensors.erase(name); }, {asked.c_str(), ": missing"});
      directory_refused(golden, [&](FamilyFile& f) {
        Source& s = f.tensors.at(name);
        s.shape[0] -= 1;
        s.values.resize(s.values.size() / static_cast<size_t>(s.shape[0] + 1) * static_cast<size_t>(s.shape[0]));
      }, {(name + ": shape (").c_str(), "the config needs ("});
    }
  }
  const std::string conv = "model.layers.0.linear_attn.conv1d.weight";
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{192, 4}, {4, 1, 192}, {192, 4, 1}})
    directory_refused("qwen3_5", [&](FamilyFile& f) { f.tensors.at(conv).shape = shape; }, {(conv + ": shape (").c_str(), "(192, 1, 4)"});
  const auto beside = [](const char* name, const std::vector<int64_t>& shape, const char* words, Code code = Code::bad_format) {
    directory_refused("qwen3_5", [&](FamilyFile& f) { f.tensors[name] = source(name, shape); }, {words}, code);
  };
  beside("model.layers.0.linear_attn.conv1d.bias", {192}, "linear_attn.conv1d.bias: unexpected");
  beside("model.layers.0.self_attn.o_proj.weight", {32, 64}, "model.layers.0.self_attn.o_proj.weight: unexpected");
  beside("model.layers.1.linear_attn.norm.weight", {32}, "model.layers.1.linear_attn.norm.weight: unexpected");
  beside("model.layers.1.self_attn.q_proj.bias", {128}, "biases of q, k and v", Code::unsupported);
}

// What is made of them goes into a package as it is: no more than a file may hold what is no number.
TEST(RecurrentImport, ADecayIsANumber) {
  const std::string name = "model.layers.2.linear_attn.A_log";
  for (const float log : {89.0f, 3e38f, INFINITY, NAN})
    directory_refused("qwen3_5", [&](FamilyFile& f) { f.tensors.at(name).values[1] = log; }, {name.c_str(), "not finite"});
  FamilyFile f("qwen3_5");
  f.tensors.at(name).values[1] = -1e30f;
  const auto p = f.hf();
  ASSERT_TRUE(p);
  EXPECT_EQ(static_cast<const float*>(p->tensor("layers.2.delta.decay")->data)[1], 0) << "it forgets nothing";
}

TEST(RecurrentImport, GgufFilesThatSayOtherwiseAreNotRead) {
  const auto says = [](auto change, std::initializer_list<const char*> words, Code code = Code::bad_format) {
    refused("qwen3_5", "qwen35", change, words, code);
  };
  const std::string ssm = "qwen35.ssm.";
  for (const char* key : {"conv_kernel", "state_size", "group_count", "time_step_rank", "inner_size"}) {
    const std::string whole = ssm + key;
    SCOPED_TRACE(whole);
    says([&](Gguf& g) { g.forget(whole); }, {(whole + ": is missing").c_str()});
    says([&](Gguf& g) { g.text(whole, "4"); }, {(whole + ": is not an integer").c_str()});
    says([&](Gguf& g) { g.i32s(whole, {4, 4, 4}); }, {(whole + ": is a list").c_str()});
    for (const uint32_t n : {0xffffffffu, 0x80000000u}) says([&](Gguf& g) { g.u32(whole, n); }, {whole.c_str()});
    for (const uint32_t n : {0u, 1u << 30, 0x7fffffffu}) says([&](Gguf& g) { g.u32(whole, n); }, {"model.gguf: "});
  }
  says([&](Gguf& g) { g.u32(ssm + "time_step_rank", 0); }, {"qwen35.ssm.time_step_rank: 0"});
  for (const uint32_t n : {0u, 127u, 130u, 3u})
    says([&](Gguf& g) { g.u32(ssm + "inner_size", n); }, {("qwen35.ssm.inner_size: " + std::to_string(n)).c_str()});
  says([&](Gguf& g) { g.u32(ssm + "inner_size", 256); }, {"blk.0.attn_qkv.weight: shape (192, 32)", "(320, 32)"});
  says([&](Gguf& g) { g.u32(ssm + "inner_size", 96); }, {"24 is no multiple of 16"});
  says([&](Gguf& g) { g.u32(ssm + "state_size", 24); }, {"24 is no multiple of 16"});
  says([&](Gguf& g) { g.u32(ssm + "group_count", 3); }, {"3 does not divide", "4"});
  says([&](Gguf& g) { g.u32(ssm + "conv_kernel", 1); }, {"1 is not in [2, 8]"});
  says([&](Gguf& g) { g.u32(ssm + "conv_kernel", 9); }, {"9 is not in [2, 8]"});
  says([&](Gguf& g) { g.u32(ssm + "conv_kernel", 3); }, {"blk.0.ssm_conv1d.weight: shape (192, 4)", "(192, 3)"});
  const std::string list = "qwen35.attention.recurrent_layers", interval = "qwen35.full_attention_interval";
  says([&](Gguf& g) { g.booleans(list, {true, false}); }, {(list + ": not a list of 3").c_str()});
  says([&](Gguf& g) { g.booleans(list, {}); }, {(list + ": not a list of 3").c_str()});
  says([&](Gguf& g) { g.booleans(list, {true, false, true, false}); }, {(list + ": not a list of 3").c_str()});
  says([&](Gguf& g) { g.f32s(list, {1, 0, 1}); }, {(list + ": is not an integer").c_str()});
  says([&](Gguf& g) { g.texts(list, {"a", "b", "c"}); }, {(list + ": is not an integer").c_str()});
  says([&](Gguf& g) { g.booleans(list, {true, true, true}); }, {"model.gguf: ", "no layer has attention"});
  says([&](Gguf& g) { g.booleans(list, {false, false, false}); }, {"blk.0.attn_q.weight: missing"});
  for (const uint32_t n : {0u, 0xffffffffu})
    says([&](Gguf& g) { g.forget(list), g.u32(interval, n); }, {interval.c_str()});
  says([&](Gguf& g) { g.u32("qwen35.expert_count", 4); }, {"qwen35.expert_count: 4"}, Code::unsupported);
  says([&](Gguf& g) { g.forget("qwen35.feed_forward_length"); }, {"qwen35.feed_forward_length: is missing"});
  for (const char* name : {"attn_qkv.weight", "attn_gate.weight", "ssm_alpha.weight", "ssm_beta.weight", "ssm_a", "ssm_dt.bias", "ssm_conv1d.weight",
                           "ssm_norm.weight", "ssm_out.weight", "post_attention_norm.weight"}) {
    const std::string whole = std::string("blk.2.") + name;
    says([&](Gguf& g) { g.forget_tensor(whole); }, {(whole + ": missing").c_str()});
    says([&](Gguf& g) { g.tensor(whole, {2, 2}, {0, 0, 0, 0}); }, {(whole + ": shape (2, 2), the config needs (").c_str()});
  }
  says([](Gguf& g) { g.tensor("blk.0.ssm_d", {4}, {1, 1, 1, 1}); }, {"blk.0.ssm_d: unexpected"});
  says([](Gguf& g) { g.tensor("blk.0.ssm_a", {4}, {-1, -INFINITY, -1, -1}); }, {"blk.0.ssm_a: a value is not finite"});
  refused("qwen3_next", "qwen3next", [](Gguf& g) { g.forget_tensor("blk.1.ssm_ba.weight"); }, {"blk.1.ssm_beta.weight: missing"}, Code::bad_format);
  refused("qwen3_5_moe", "qwen35moe", [](Gguf& g) { g.forget("qwen35moe.expert_feed_forward_length"); }, {"qwen35moe.expert_feed_forward_length"},
          Code::bad_format);
}

TEST(RecurrentImport, ChangedAnywhereAGgufFileIsRefusedOrAPackage) {
  uint64_t state = 17;
  for (const auto& [golden, arch] : kRecurrent) {
    FamilyFile f(golden, arch);
    const std::string file = f.file().bytes();
    const size_t head = file.find("output_norm.weight");  // the last but a few of its names
    for (int round = 0; round < 300; ++round) {
      std::string other = file;
      for (int i = 0; i < 3; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        // The first half of the turns change what the keys say.
        other[(state >> 33) % (round % 2 ? head : 1800)] = static_cast<char>(state >> 20);
      }
      spit(f.folder / "model.gguf", other);
      const auto p = f.package(f.folder / "model.gguf");
      ASSERT_EQ(fs::exists(f.options.output), p.ok()) << p.status().message();
    }
  }
}

// ---- around it ------------------------------------------------------------------------------------

TEST(RecurrentImport, ProgressEndsWhereItSaidAndCanBeCancelledAnywhere) {
  for (const auto& [golden, arch] : kRecurrent) {
    SCOPED_TRACE(golden);
    FamilyFile f(golden, arch);
    uint64_t last = 0, all = 0, calls = 0;
    f.options.progress = [&](uint64_t done, uint64_t total) {
      if (total == 1) return true;  // what comes after the import
      EXPECT_EQ(done, last + 1) << "it stands still";
      EXPECT_TRUE(all == 0 || total == all);
      last = done, all = total, ++calls;
      return true;
    };
    ASSERT_TRUE(f.try_hf().ok());
    EXPECT_GE(last + 5, all);
    EXPECT_GT(calls, 30u);
    for (uint64_t at = 1; at <= calls; at += 3) {
      f.options.progress = [&, n = uint64_t{0}](uint64_t, uint64_t) mutable { return ++n < at; };
      EXPECT_EQ(f.try_hf().status().code(), Code::cancelled);
      ASSERT_FALSE(fs::exists(f.options.output));
    }
  }
}

TEST(RecurrentImport, APackageSaysWhichLayersAreRecurrent) {
  FamilyFile f("qwen3_5");
  ASSERT_TRUE(f.hf());
  const auto text = inspect(f.options.output, true);
  ASSERT_TRUE(text.ok());
  const json said = json::parse(*text)["config"]["departures"];
  EXPECT_EQ(said["output_gate"], true);
  EXPECT_EQ(said["delta_layers"], json({1, 0, 1}));
  EXPECT_EQ(said["delta_heads"], 4);
  EXPECT_EQ(said["delta_key_heads"], 2);
  EXPECT_EQ(said["delta_key_dim"], 16);
  EXPECT_EQ(said["delta_value_dim"], 32);
  EXPECT_EQ(said["delta_taps"], 4);
}

}  // namespace
}  // namespace aerie::test
