// Golden checkpoints of families as GGUF files.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/import/convert.h"
#include "unit/package/gguf_delta_file.h"
#include "unit/package/gguf_fixtures.h"
#include "unit/package/gguf_gemma4_file.h"
#include "unit/package/gpt_oss_experts.h"

namespace aerie::test {

using nlohmann::json;

// A golden checkpoint that can be changed, as a Hugging Face directory and as llama.cpp's converter writes it.
struct FamilyFile {
  Folder folder;
  std::string arch;
  json config;
  Sources tensors;
  ConvertOptions options;
  std::vector<std::string> warnings;
  int made = 0;

  explicit FamilyFile(const std::string& golden, const std::string& architecture = "") : arch(architecture.empty() ? golden : architecture) {
    const std::string at = std::string(AERIE_SOURCE_DIR) + "/tests/golden/logits/" + golden;
    std::ifstream(at + "/config.json") >> config;
    const Bytes file = slurp(at + "/model.safetensors");
    uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    const json entries = json::parse(file.begin() + 8, file.begin() + 8 + static_cast<std::ptrdiff_t>(header));
    for (const auto& [name, t] : entries.items()) {
      if (name == "__metadata__") continue;
      Source& s = tensors[name];
      s.shape = t["shape"].get<std::vector<int64_t>>();
      s.dtype = t["dtype"];
      const auto begin = t["data_offsets"][0].get<size_t>(), end = t["data_offsets"][1].get<size_t>();
      const size_t bytes = s.dtype == "F32" ? 4 : s.dtype == "BF16" ? 2 : 1;
      s.values.reserve((end - begin) / bytes);
      for (size_t at = begin; at < end; at += bytes) {
        const uint8_t* from = file.data() + 8 + header + at;
        float value = *from;
        if (bytes > 1) {
          value = 0;
          std::memcpy(reinterpret_cast<char*>(&value) + 4 - bytes, from, bytes);  // the upper half
        }
        s.values.push_back(value);
      }
    }
    options.dtype = kernels::DType::f32;
    options.warnings = &warnings;
  }

  // As many layers, the new ones old ones backwards.
  void grow(int layers) {
    const int old = config["num_hidden_layers"];
    for (int i = old; i < layers; ++i) {
      const std::string from = "model.layers." + std::to_string(i % old) + ".", to = "model.layers." + std::to_string(i) + ".";
      const Sources all = tensors;
      for (const auto& [name, s] : all) {
        if (!name.starts_with(from)) continue;
        Source& copy = tensors[to + name.substr(from.size())] = s;
        std::reverse(copy.values.begin(), copy.values.end());
      }
    }
    config["num_hidden_layers"] = layers;
    config.erase("layer_types");
  }

  Result<std::shared_ptr<const Package>> package(const std::string& source) {
    options.source = source;
    options.output = folder / (std::to_string(made++) + ".aerie");
    warnings.clear();
    AERIE_TRY(convert(options));
    return Package::open(options.output);
  }
  Result<std::shared_ptr<const Package>> try_hf() {
    spit(folder / "hf/config.json", config.dump());
    spit(folder / "hf/model.safetensors", safetensors(tensors));
    return package(folder / "hf");
  }
  std::shared_ptr<const Package> hf() {
    auto p = try_hf();
    EXPECT_TRUE(p.ok()) << p.status().message();
    return p.ok() ? *p : nullptr;
  }
  Result<std::shared_ptr<const Package>> gguf(const Gguf& g) {
    spit(folder / "model.gguf", g.bytes());
    return package(folder / "model.gguf");
  }
  void refused(const Gguf& g, Code code, std::initializer_list<const char*> words) {
    const auto p = gguf(g);
    EXPECT_EQ(p.status().code(), code) << p.status().message();
    for (const char* w : words) EXPECT_NE(p.status().message().find(w), std::string::npos) << w << " / " << p.status().message();
    EXPECT_FALSE(fs::exists(options.output));
  }

  Gguf file() const {
    LlamaConfig c;
    c.hidden = config["hidden_size"];
    c.layers = config["num_hidden_layers"];
    c.ffn = config.value("intermediate_size", 0);
    c.heads = config["num_attention_heads"];
    c.kv_heads = config["num_key_value_heads"];
    const bool own_heads = config.contains("head_dim") && !config["head_dim"].is_null();
    c.head_dim = own_heads ? config["head_dim"].get<int32_t>() : c.hidden / c.heads;
    c.max_context = config["max_position_embeddings"];
    c.rms_eps = config["rms_norm_eps"];
    json ropes = config.contains("rope_scaling") ? config["rope_scaling"] : config["rope_parameters"];
    if (config.contains("rope_theta")) ropes["rope_theta"] = config["rope_theta"];
    const json rope = ropes.value("full_attention", ropes);
    c.rope_theta = rope["rope_theta"];
    Sources theirs;
    for (const auto& [name, s] : with_gguf_delta(arch == "gemma4" ? tensors : with_stacked_experts(), config, arch))
      theirs[arch == "gemma4" ? gemma4_name(name) : renamed(name)] = s;
    if (arch == "gemma2" || arch == "gemma3" || has_recurrent_layers(arch))
      for (auto& [name, s] : theirs)
        if (name.find("norm.") != std::string::npos && name.find("ssm_norm.") == std::string::npos)
          for (float& v : s.values) v += 1;
    Gguf g = gguf_of(theirs, c, arch);
    if (c.ffn == 0) g.forget(arch + ".feed_forward_length");
    if (arch == "gemma4") add_gemma4_keys(&g, config);
    if (has_recurrent_layers(arch)) add_delta_keys(&g, config, arch);
    if (arch == "gpt-oss") add_gpt_oss_experts(tensors, &g);
    g.u32("tokenizer.ggml.bos_token_id", 1);
    g.u32("tokenizer.ggml.eos_token_id", 2);
    if (!own_heads)
      for (const char* key : {".attention.key_length", ".attention.value_length"}) g.forget(arch + key);
    add_rope(&g, rope, c.head_dim);
    if (ropes.contains("sliding_attention")) g.f32(arch + ".rope.freq_base_swa", ropes["sliding_attention"]["rope_theta"]);
    if (arch == "gemma2")
      for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
        if (config.contains(key)) g.f32("gemma2." + std::string(key), config[key]);
    if (arch.starts_with("granite")) {
      for (const auto& [key, from] : {std::pair{".embedding_scale", "embedding_multiplier"}, {".residual_scale", "residual_multiplier"},
                                      {".attention.scale", "attention_multiplier"}, {".logit_scale", "logits_scaling"}})
        g.f32(arch + key, config[from]);
    }
    if (arch == "ernie4_5-moe") {
      g.u32(arch + ".expert_count", experts());
      g.u32(arch + ".expert_used_count", config["moe_k"]);
      g.u32(arch + ".leading_dense_block_count", config["moe_layer_start_index"]);
      g.u32(arch + ".interleave_moe_layer_step", 1);
      g.u32(arch + ".expert_feed_forward_length", config["moe_intermediate_size"]);
      g.u32(arch + ".expert_shared_count", config["moe_num_shared_experts"]);
      g.u32(arch + ".expert_shared_feed_forward_length", config["moe_intermediate_size"]);
    }
    if (arch == "glm4moe" || arch == "dots1") {
      g.u32(arch + ".leading_dense_block_count", config["first_k_dense_replace"]);
      g.u32(arch + ".expert_feed_forward_length", config["moe_intermediate_size"]);
      g.u32(arch + ".expert_shared_count", config["n_shared_experts"]);
      g.f32(arch + ".expert_weights_scale", config["routed_scaling_factor"]);
      g.boolean(arch + ".expert_weights_norm", config["norm_topk_prob"]);
    }
    if (arch == "qwen2moe" || arch == "granitemoe" || has_recurrent_layers(arch)) {
      const char* const shared = arch == "granitemoe" ? "shared_intermediate_size" : "shared_expert_intermediate_size";
      for (const auto& [key, from] : {std::pair{".expert_shared_feed_forward_length", shared},
                                      {".expert_feed_forward_length", "moe_intermediate_size"}})
        if (config.contains(from)) g.u32(arch + key, config[from]);
    }
    if (arch == "minimax-m2" || arch == "dots1") g.u32(arch + ".expert_gating_func", 2);
    if (arch == "minimax-m2") g.u32(arch + ".expert_feed_forward_length", config["intermediate_size"]);
    if (config.contains("num_experts_per_tok")) {
      g.u32(arch + ".expert_count", experts());
      g.u32(arch + ".expert_used_count", config["num_experts_per_tok"]);
      if (arch == "qwen3moe") g.u32(arch + ".expert_feed_forward_length", config["moe_intermediate_size"]);
      if (arch == "gpt-oss") g.u32(arch + ".expert_feed_forward_length", config["intermediate_size"]);
    }
    if (arch != "llama" && config.contains("sliding_window") && config["sliding_window"].is_number())
      g.u32(arch + ".attention.sliding_window", config["sliding_window"]);
    if (config.contains("layer_types") && (arch == "olmo2" || arch == "exaone4" || arch == "gemma3")) add_pattern(&g);
    return g;
  }

  int64_t experts() const {
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"})
      if (config.contains(key)) return config[key];
    return 0;
  }

 private:
  std::string renamed(std::string name) const {
    const bool after = arch == "olmo2" || arch == "exaone4" || arch == "gemma2" || arch == "gemma3" || arch == "gpt-oss" || arch == "glm4moe" ||
                       has_recurrent_layers(arch);
    for (const auto& [hf, theirs] : {std::pair{"post_attention_layernorm.", after ? "post_attention_norm." : "ffn_norm."},
                                     {"pre_feedforward_layernorm.", "ffn_norm."},
                                     {"post_feedforward_layernorm.", "post_ffw_norm."},
                                     {"self_attn.qkv_proj.", "attn_qkv."},
                                     {"mlp.gate_up_proj.", "ffn_up."},
                                     {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                     {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
                                     {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
                                     {"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
                                     {"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
                                     {"mlp.shared_experts.down_proj.", "ffn_down_shexp."},
                                     {"mlp.shared_expert.gate_proj.", "ffn_gate_shexp."},
                                     {"mlp.shared_expert.up_proj.", "ffn_up_shexp."},
                                     {"mlp.shared_expert.down_proj.", "ffn_down_shexp."},
                                     {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."},
                                     {"shared_mlp.output_linear.", "ffn_down_shexp."},
                                     {"mlp.gate.", "ffn_gate_inp."},
                                     {"mlp.router.", "ffn_gate_inp."},
                                     {"self_attn.sinks", "attn_sinks.weight"},
                                     {"block_sparse_moe.gate.", "ffn_gate_inp."},
                                     {"block_sparse_moe.router.layer.", "ffn_gate_inp."},
                                     {"block_sparse_moe.output_linear.", "ffn_down_exps."}})
      if (const size_t at = name.find(hf); at != std::string::npos) name.replace(at, std::strlen(hf), theirs);
    return name;
  }
  // Experts' matrices, each a tensor or gate and up of all in one, as llama.cpp's three of all.
  Sources with_stacked_experts() const {
    static const std::pair<const char*, const char*> kinds[] = {{"gate_proj.weight", "ffn_gate_exps.weight"}, {"up_proj.weight", "ffn_up_exps.weight"},
                                                                {"down_proj.weight", "ffn_down_exps.weight"}, {"w1.weight", "ffn_gate_exps.weight"},
                                                                {"w3.weight", "ffn_up_exps.weight"},          {"w2.weight", "ffn_down_exps.weight"}};
    Sources out;
    for (const auto& [name, s] : tensors) {
      const std::string layer = name.substr(0, name.find('.', std::strlen("model.layers.")) + 1);
      const auto put = [&](const std::string& what, int64_t expert, int64_t experts, std::vector<int64_t> shape, const float* values) {
        Source& all = out[layer + what];
        const int64_t n = shape[0] * shape[1];
        shape.insert(shape.begin(), experts);
        all.shape = shape;
        all.values.resize(static_cast<size_t>(experts * n));
        std::copy_n(values, n, all.values.begin() + expert * n);
      };
      if (const size_t at = name.find(".experts."); at != std::string::npos) {
        const size_t number = at + std::strlen(".experts."), what = name.find('.', number) + 1;
        for (const auto& [hf, theirs] : kinds)
          if (name.substr(what) == hf) put(theirs, std::stoi(name.substr(number)), experts(), s.shape, s.values.data());
      } else if (name.find("shared_mlp.input_linear") != std::string::npos) {
        const int64_t half = s.shape[0] / 2, n = half * s.shape[1];
        for (const int64_t side : {0, 1}) {
          Source& one = out[layer + (side ? "ffn_up_shexp.weight" : "ffn_gate_shexp.weight")];
          one.shape = {half, s.shape[1]};
          one.values.assign(s.values.begin() + side * n, s.values.begin() + (side + 1) * n);
        }
      } else if (name.find("input_linear") != std::string::npos) {
        const int64_t half = s.shape[1] / 2, n = half * s.shape[2];
        for (int64_t e = 0; e < s.shape[0]; ++e)
          for (const int64_t side : {0, 1})
            put(side ? "ffn_up_exps.weight" : "ffn_gate_exps.weight", e, s.shape[0], {half, s.shape[2]}, s.values.data() + (2 * e + side) * n);
      } else {
        out[name] = s;
      }
    }
    return out;
  }
  void add_rope(Gguf* g, const json& rope, int32_t head_dim) const {
    const std::string at = arch + ".rope.scaling.", type = rope.value("rope_type", "default");
    if (arch != "phi3" && (type == "linear" || type == "yarn")) {
      g->text(at + "type", type);
      g->f32(at + "factor", rope["factor"]);
    }
    if (type == "yarn") {
      g->f32(at + "yarn_beta_fast", rope["beta_fast"]);
      g->f32(at + "yarn_beta_slow", rope["beta_slow"]);
    }
    if (type == "default" && rope.contains("partial_rotary_factor"))
      g->u32(arch + ".rope.dimension_count", static_cast<uint32_t>(head_dim * rope["partial_rotary_factor"].get<double>()));
    if (!rope.contains("original_max_position_embeddings")) return;
    const int32_t original = rope["original_max_position_embeddings"];
    g->u32(at + "original_context_length", static_cast<uint32_t>(original));
    if (type != "longrope") return;
    const double scale = config["max_position_embeddings"].get<double>() / original;
    g->f32(at + "attn_factor", static_cast<float>(std::sqrt(1 + std::log(scale) / std::log(original))));
    for (const char* list : {"short", "long"}) {
      const auto factors = rope[std::string(list) + "_factor"].get<std::vector<float>>();
      g->tensor(std::string("rope_factors_") + list + ".weight", {static_cast<int64_t>(factors.size())}, factors);
    }
    g->u32(arch + ".rope.dimension_count", static_cast<uint32_t>(head_dim * rope["partial_rotary_factor"].get<double>()));
  }
  void add_pattern(Gguf* g) const {
    std::vector<bool> sliding;
    for (const json& type : config["layer_types"]) sliding.push_back(type == "sliding_attention");
    g->booleans(arch + ".attention.sliding_window_pattern", sliding);
  }
};

inline void expect_same(const Package& a, const Package& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  const LlamaConfig &x = *a.target(), &y = *b.target();
  EXPECT_EQ(x.departures, y.departures);
  EXPECT_EQ(x.max_context, y.max_context);
  EXPECT_EQ(x.tap_layers, y.tap_layers);
  EXPECT_EQ(x.bos_id, y.bos_id);
  EXPECT_EQ(x.eos_ids, y.eos_ids);
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const std::string& name = a.tensors()[i].name;
    ASSERT_EQ(name, b.tensors()[i].name);
    const auto s = a.tensor(name), t = b.tensor(name);
    ASSERT_TRUE(s.ok() && t.ok()) << name;
    ASSERT_TRUE(s->rows == t->rows && s->cols == t->cols && s->dtype == t->dtype && s->layout == t->layout) << name;
    EXPECT_EQ(std::memcmp(s->data, t->data, static_cast<size_t>(kernels::data_bytes(s->dtype, s->layout, s->rows, s->cols))), 0) << name;
  }
}

inline void expect_theirs(FamilyFile& f, const Gguf& g) {
  const auto ours = f.hf();
  const auto p = f.gguf(g);
  ASSERT_TRUE(p.ok()) << p.status().message();
  ASSERT_TRUE(ours);
  expect_same(*ours, **p);
}
inline void expect_theirs(FamilyFile& f) { expect_theirs(f, f.file()); }

// A golden model's directory with a change is refused, in these words.
template <class Change>
void directory_refused(const char* golden, const Change& change, std::initializer_list<const char*> words, Code code = Code::bad_format) {
  FamilyFile f(golden);
  change(f);
  const auto p = f.try_hf();
  EXPECT_EQ(p.status().code(), code) << p.status().message();
  for (const char* w : words) EXPECT_NE(p.status().message().find(w), std::string::npos) << w << " / " << p.status().message();
  EXPECT_EQ(p.status().message().find('\n'), std::string::npos);
  EXPECT_FALSE(fs::exists(f.options.output));
}

// A golden model's file with a change is refused, in these words.
template <class Change>
void refused(const char* golden, const char* arch, const Change& change, std::initializer_list<const char*> words, Code code = Code::unsupported) {
  FamilyFile f(golden, arch);
  Gguf g = f.file();
  change(g);
  f.refused(g, code, words);
}

}  // namespace aerie::test
