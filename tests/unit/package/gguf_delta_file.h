// Recurrent layers (gated delta rule) as llama.cpp's converter writes them.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "unit/package/fixtures.h"
#include "unit/package/gguf_builder.h"

namespace aerie::test {

inline bool has_recurrent_layers(const std::string& arch) { return arch.starts_with("qwen35") || arch == "qwen3next"; }

// Hugging Face's tensors with llama.cpp's in place of linear_attn.*, in layers still called as before. Heads of values, which Hugging Face has
// together for each key head, come by turns of key heads: but for Qwen3-Next, whose [q; k; v; z] of each key head are taken apart.
inline Sources with_gguf_delta(const Sources& tensors, const nlohmann::json& config, const std::string& arch) {
  Sources out;
  for (const auto& [name, s] : tensors) {
    const size_t at = name.find("linear_attn.");
    if (at == std::string::npos) {
      out[name] = s;
      continue;
    }
    const int64_t keys = config["linear_num_key_heads"], heads = config["linear_num_value_heads"], each = heads / keys;
    const int64_t key_dim = config["linear_key_head_dim"], value_dim = config["linear_value_head_dim"], cols = s.shape.back();
    const std::string layer = name.substr(0, at), what = name.substr(at + std::strlen("linear_attn."));
    const auto put = [&](const char* theirs) -> Source& { return out[layer + theirs] = s; };
    // Heads of `size` numbers, from `first` on.
    const auto take_turns = [&](Source* t, int64_t first, int64_t size) {
      if (arch == "qwen3next") return;
      const std::vector<float> own = t->values;
      for (int64_t head = 0; head < heads; ++head)
        std::copy_n(own.begin() + first + head * size, size, t->values.begin() + first + (head % each * keys + head / each) * size);
    };
    if (what == "in_proj_qkv.weight") take_turns(&put("attn_qkv.weight"), 2 * keys * key_dim * cols, value_dim * cols);
    if (what == "in_proj_z.weight") take_turns(&put("attn_gate.weight"), 0, value_dim * cols);
    if (what == "in_proj_a.weight") take_turns(&put("ssm_alpha.weight"), 0, cols);
    if (what == "in_proj_b.weight") take_turns(&put("ssm_beta.weight"), 0, cols);
    if (what == "in_proj_ba.weight") put("ssm_ba.weight");
    if (what == "norm.weight") put("ssm_norm.weight");
    if (what == "dt_bias") take_turns(&put("ssm_dt.bias"), 0, 1);
    if (what == "A_log") {
      Source& a = put("ssm_a");
      for (float& v : a.values) v = -static_cast<float>(std::exp(static_cast<double>(v)));
      take_turns(&a, 0, 1);
    }
    if (what == "conv1d.weight") {
      Source& conv = put("ssm_conv1d.weight");
      conv.shape = {s.shape[0], s.shape[2]};
      take_turns(&conv, 2 * keys * key_dim * cols, value_dim * cols);
    }
    if (what == "out_proj.weight") {
      Source& o = put("ssm_out.weight");
      for (int64_t row = 0; row < s.shape[0]; ++row) take_turns(&o, row * cols, value_dim);
    }
    if (what == "in_proj_qkvz.weight") {
      const int64_t sizes[] = {key_dim, key_dim, each * value_dim, each * value_dim}, group = 2 * key_dim + 2 * each * value_dim;
      Source &qkv = put("attn_qkv.weight"), &z = put("attn_gate.weight");
      qkv.values.clear(), z.values.clear();
      int64_t first = 0;
      for (int part = 0; part < 4; first += sizes[part++])
        for (int64_t key = 0; key < keys; ++key) {
          const auto from = s.values.begin() + (key * group + first) * cols;
          Source& to = part == 3 ? z : qkv;
          to.values.insert(to.values.end(), from, from + sizes[part] * cols);
        }
      for (Source* t : {&qkv, &z}) t->shape[0] = static_cast<int64_t>(t->values.size()) / cols;
    }
  }
  return out;
}

inline void add_delta_keys(Gguf* g, const nlohmann::json& config, const std::string& arch) {
  g->u32(arch + ".ssm.conv_kernel", config["linear_conv_kernel_dim"]);
  g->u32(arch + ".ssm.state_size", config["linear_key_head_dim"]);
  g->u32(arch + ".ssm.group_count", config["linear_num_key_heads"]);
  g->u32(arch + ".ssm.time_step_rank", config["linear_num_value_heads"]);
  g->u32(arch + ".ssm.inner_size", config["linear_value_head_dim"].get<uint32_t>() * config["linear_num_value_heads"].get<uint32_t>());
  if (config.contains("layer_types")) {
    std::vector<bool> recurrent;
    for (const nlohmann::json& type : config["layer_types"]) recurrent.push_back(type == "linear_attention");
    g->booleans(arch + ".attention.recurrent_layers", recurrent);
  }
  g->u32(arch + ".full_attention_interval", config.value("full_attention_interval", 4u));
  if (arch == "qwen3next") return;
  auto sections = config["rope_parameters"].value("mrope_section", std::vector<int32_t>{11, 11, 10});  // which say nothing of texts
  sections.push_back(0);
  g->i32s(arch + ".rope.dimension_sections", sections);
}

}  // namespace aerie::test
