// Gemma 4 as llama.cpp's converter writes it.
#pragma once

#include <nlohmann/json.hpp>

#include "unit/package/fixtures.h"
#include "unit/package/gguf_builder.h"

namespace aerie::test {

// Names of what Gemma 4 has and others do not.
inline std::string gemma4_name(std::string name) {
  for (const auto& [hf, theirs] : {std::pair{"model.embed_tokens_per_layer.", "per_layer_token_embd."},
                                   {"model.per_layer_model_projection.", "per_layer_model_proj."},
                                   {"model.per_layer_projection_norm.", "per_layer_proj_norm."},
                                   {"post_per_layer_input_norm.", "post_norm."},
                                   {"per_layer_input_gate.", "inp_gate."},
                                   {"per_layer_projection.", "proj."},
                                   {"layer_scalar", "layer_output_scale.weight"},
                                   {"post_attention_layernorm.", "post_attention_norm."},
                                   {"post_feedforward_layernorm_1.", "post_ffw_norm_1."},
                                   {"post_feedforward_layernorm_2.", "post_ffw_norm_2."},
                                   {"pre_feedforward_layernorm_2.", "pre_ffw_norm_2."},
                                   {"pre_feedforward_layernorm.", "ffn_norm."},
                                   {"post_feedforward_layernorm.", "post_ffw_norm."},
                                   {"router.proj.", "ffn_gate_inp."},
                                   {"router.scale", "ffn_gate_inp.scale"},
                                   {"router.per_expert_scale", "ffn_down_exps.scale"},
                                   {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                   {"experts.down_proj", "ffn_down_exps.weight"}})
    if (const size_t at = name.find(hf); at != std::string::npos) return name.replace(at, std::strlen(hf), theirs);
  return name;
}

inline void add_gemma4_keys(Gguf* g, const nlohmann::json& config) {
  const std::string arch = "gemma4.";
  const int layers = config["num_hidden_layers"], shared = config["num_kv_shared_layers"], ffn = config["intermediate_size"];
  std::vector<bool> sliding;
  std::vector<int32_t> heads, ffns;
  int wide = 0;
  for (int i = 0; i < layers; ++i) {
    sliding.push_back(config["layer_types"][static_cast<size_t>(i)] == "sliding_attention");
    const nlohmann::json own = config["per_layer_config"].value(std::to_string(i), nlohmann::json::object());
    heads.push_back(own.value("num_key_value_heads", config["num_key_value_heads"].get<int>()));
    ffns.push_back(config["use_double_wide_mlp"] && i >= layers - shared ? 2 * ffn : ffn);
    if (!sliding.back()) wide = own["head_dim"];
  }
  const auto dim = config["head_dim"].get<uint32_t>();
  g->booleans(arch + "attention.sliding_window_pattern", sliding);
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
    g->u32(arch + key, static_cast<uint32_t>(wide));
    g->u32(arch + key + "_swa", dim);
  }
  if (std::adjacent_find(heads.begin(), heads.end(), std::not_equal_to<>()) != heads.end()) g->i32s(arch + "attention.head_count_kv", heads);
  if (config["use_double_wide_mlp"]) g->i32s(arch + "feed_forward_length", ffns);
  g->u32(arch + "attention.shared_kv_layers", static_cast<uint32_t>(shared));
  g->u32(arch + "embedding_length_per_layer_input", config["hidden_size_per_layer_input"]);
  g->f32(arch + "final_logit_softcapping", config["final_logit_softcapping"]);
  if (config["enable_moe_block"]) {
    g->u32(arch + "expert_count", config["num_experts"]);
    g->u32(arch + "expert_used_count", config["top_k_experts"]);
    g->u32(arch + "expert_feed_forward_length", config["moe_intermediate_size"]);
  }
  const double part = config["rope_parameters"]["full_attention"]["partial_rotary_factor"];
  std::vector<float> divisors(static_cast<size_t>(wide / 2), 1e30f);
  std::fill_n(divisors.begin(), static_cast<int>(wide * part / 2), 1.0f);
  g->tensor("rope_freqs.weight", {wide / 2}, divisors);
}

}  // namespace aerie::test
