// LFM2 (Liquid AI): layers are short convolutions, and a few attend.
#include <algorithm>

#include "core/import/hf_family.h"
#include "kernels/ops.h"

namespace aerie {

namespace {

using nlohmann::json;

constexpr ExpertNames kLfm2Experts = [] {
  ExpertNames e{"feed_forward.gate", "feed_forward.experts.", "w1", "w3", "w2", "feed_forward.experts.gate_up_proj", "", "", "feed_forward.experts.down_proj"};
  e.choice = "feed_forward.expert_bias";
  return e;
}();
constexpr DecoderNames kLfm2Names = [] {
  DecoderNames n = kHuggingFaceNames;
  n.norm = "model.embedding_norm";
  n.attn_norm = "operator_norm", n.mlp_norm = "ffn_norm";
  n.o = "self_attn.out_proj", n.q_norm = "self_attn.q_layernorm", n.k_norm = "self_attn.k_layernorm";
  n.gate = "feed_forward.w1", n.up = "feed_forward.w3", n.down = "feed_forward.w2";
  n.convolution = &kHuggingFaceConvolution;
  return n;
}();
constexpr DecoderNames kLfm2MoeNames = with_experts(kLfm2Names, &kLfm2Experts);

// By layer_types, or full_attn_idxs; where neither is there all attend.
Status read_convolutions(const ConfigReader& j, SourceModel* m) {
  Departures& d = m->config.departures;
  const auto layers = static_cast<size_t>(m->config.layers);
  std::vector<int32_t>& convolves = d.delta_layers;
  convolves.assign(layers, 0);
  if (j.has("layer_types")) {
    const json& types = j.at("layer_types");
    if (!types.is_array() || types.size() != layers) return error(Code::bad_format, "layer_types: not a list of " + std::to_string(layers));
    for (size_t i = 0; i < layers; ++i) {
      convolves[i] = is_text(types[i], "conv");
      if (!convolves[i] && !is_text(types[i], "full_attention")) return unsupported_key("layer_types", types[i].dump());
    }
  } else if (j.has("full_attn_idxs")) {
    std::vector<int32_t> attends;
    AERIE_TRY(j.integers("full_attn_idxs", &attends));
    convolves.assign(layers, 1);
    for (const int32_t i : attends) {
      if (i < 0 || static_cast<size_t>(i) >= layers) return error(Code::bad_format, "full_attn_idxs: layer " + std::to_string(i) + " of " + std::to_string(layers));
      convolves[static_cast<size_t>(i)] = 0;
    }
  }
  if (std::find(convolves.begin(), convolves.end(), 1) == convolves.end()) {
    convolves.clear();  // so that there is one form of it
    return {};
  }
  AERIE_TRY(j.integer("conv_L_cache", &d.delta_taps, 3));
  if (d.delta_taps < 2 || d.delta_taps > kernels::kMaxTaps) return error(Code::bad_format, "conv_L_cache: " + std::to_string(d.delta_taps));
  bool bias = false;
  AERIE_TRY(j.boolean("conv_bias", &bias, false));
  return bias ? unsupported_key("conv_bias", "true") : Status();
}

Status read_common(const ConfigReader& j, const DecoderNames& names, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope, 1000000));
  m->names = &names;
  m->config.qk_norm = true;
  AERIE_TRY(j.number("norm_eps", &m->config.rms_eps, 1e-5f));
  m->tied = true;
  AERIE_TRY(j.boolean("tie_embedding", &m->tied, true));
  return read_convolutions(j, m);
}

// Two thirds of what is said, times a factor, and up to the next multiple, as the model's own code has it.
Status adjust_width(const ConfigReader& j, int32_t* ffn) {
  bool adjust = true;
  float factor = 1;
  int32_t multiple = 256;
  AERIE_TRY(j.boolean("block_auto_adjust_ff_dim", &adjust, true));
  AERIE_TRY(j.number("block_ffn_dim_multiplier", &factor, 1));
  AERIE_TRY(j.integer("block_multiple_of", &multiple, 256));
  if (!adjust) return {};
  if (!(factor > 0 && factor < 64)) return error(Code::bad_format, "block_ffn_dim_multiplier: " + std::to_string(factor));
  if (multiple < 1 || multiple > 1 << 20) return error(Code::bad_format, "block_multiple_of: " + std::to_string(multiple));
  const auto width = static_cast<int64_t>(static_cast<double>(factor) * static_cast<double>(int64_t{2} * *ffn / 3));
  *ffn = static_cast<int32_t>((width + multiple - 1) / multiple * multiple);
  return {};
}

}  // namespace

Status read_lfm2(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_common(j, kLfm2Names, m));
  int32_t& ffn = m->config.ffn;
  AERIE_TRY(j.integer("intermediate_size", &ffn, 12288));
  AERIE_TRY(j.integer("block_ff_dim", &ffn, ffn));
  if (ffn < 1 || ffn > 1 << 24) return error(Code::bad_format, "intermediate_size: " + std::to_string(ffn));
  return adjust_width(j, &ffn);
}

Status read_lfm2_moe(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_common(j, kLfm2MoeNames, m));
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  bool choice = true;
  AERIE_TRY(j.boolean("use_expert_bias", &choice, true));
  if (!choice) return unsupported_key("use_expert_bias", "false");
  AERIE_TRY(j.integer("num_experts", &d.experts, 32));
  AERIE_TRY(j.integer("num_experts_per_tok", &d.experts_used, 4));
  AERIE_TRY(j.integer("num_dense_layers", &d.dense_layers, 2));
  if (d.dense_layers < 0 || d.dense_layers >= c.layers) return error(Code::bad_format, "num_dense_layers: " + std::to_string(d.dense_layers));
  int32_t dense = 0;
  AERIE_TRY(j.integer("intermediate_size", &dense, 7168));
  if (d.dense_layers > 0) d.dense_ffn = dense;
  AERIE_TRY(j.integer("moe_intermediate_size", &c.ffn, 1792));
  if (c.ffn < 1) return error(Code::bad_format, "moe_intermediate_size: " + std::to_string(c.ffn));
  AERIE_TRY(j.boolean("norm_topk_prob", &d.norm_experts, true));
  AERIE_TRY(j.number("routed_scaling_factor", &d.expert_scale, 1));
  if (!(d.expert_scale > 0)) return error(Code::bad_format, "routed_scaling_factor: is not above 0");
  d.expert_choice = d.sigmoid_experts = true;
  return check_experts("num_experts", "num_experts_per_tok", d);
}

}  // namespace aerie
