// What a decoder may say of where it departs from Llama's architecture.
#include <algorithm>

#include "core/package/bounds.h"
#include "core/package/validate.h"
#include "kernels/ops.h"

namespace aerie::package {

Status check_wide_heads(const LlamaConfig& c) {
  const Departures& d = c.departures;
  AERIE_TRY(range("wide_head_dim", d.wide_head_dim, c.head_dim, 1024));
  if (d.wide_head_dim % 2) return bad_field("wide_head_dim", std::to_string(d.wide_head_dim) + " is odd");
  AERIE_TRY(range("wide_kv_heads", d.wide_kv_heads, 1, c.heads));
  return c.heads % d.wide_kv_heads == 0 ? Status() : bad_field("wide_kv_heads", std::to_string(d.wide_kv_heads) + " does not divide heads " + std::to_string(c.heads));
}

namespace {

// Heads of recurrent layers, or none: then they are a convolution and no more.
Status check_delta_heads(const LlamaConfig& c) {
  const Departures& d = c.departures;
  if (d.delta_heads == 0 && d.delta_key_heads == 0 && d.delta_key_dim == 0 && d.delta_value_dim == 0)
    return c.hidden % kernels::kPanel == 0 ? Status() : bad_field("hidden", std::to_string(c.hidden) + " is no multiple of 16, with convolutions");
  AERIE_TRY(range("delta_heads", d.delta_heads, 1, 1024));
  AERIE_TRY(range("delta_key_heads", d.delta_key_heads, 1, d.delta_heads));
  if (d.delta_heads % d.delta_key_heads)
    return bad_field("delta_key_heads", std::to_string(d.delta_key_heads) + " does not divide delta_heads " + std::to_string(d.delta_heads));
  for (const auto& [field, dim] : {std::pair<const char*, int32_t>{"delta_key_dim", d.delta_key_dim}, {"delta_value_dim", d.delta_value_dim}}) {
    AERIE_TRY(range(field, dim, kernels::kPanel, kernels::kMaxDeltaDim));
    if (dim % kernels::kPanel) return bad_field(field, std::to_string(dim) + " is no multiple of 16");
  }
  return {};
}

Status check_delta(const LlamaConfig& c) {
  const Departures& d = c.departures;
  AERIE_TRY(check_delta_heads(c));
  AERIE_TRY(range("delta_taps", d.delta_taps, 2, kernels::kMaxTaps));
  if (d.delta_layers.size() == static_cast<size_t>(c.layers) && c.attention_layers() == 0) return bad_field("delta_layers", "no layer has attention");
  if (d.norms != Departures::Norms::before || d.residual_scale != 1) return bad_field("delta_layers", "with a norm or a scale of what they add");
  return {};
}

// Heads of two kinds, layers that read another's keys and values, what a layer adds of the token, and what it is scaled by.
Status check_layer_kinds(const LlamaConfig& c) {
  const Departures& d = c.departures;
  const auto count = [&](const char* field, size_t n) { return n == 0 ? Status() : range((std::string(field) + " count").c_str(), static_cast<int64_t>(n), c.layers, c.layers); };
  AERIE_TRY(count("wide_layers", d.wide_layers.size()));
  AERIE_TRY(count("kv_layers", d.kv_layers.size()));
  for (const int32_t v : d.wide_layers) AERIE_TRY(range("wide_layers", v, 0, 1));
  if (d.wide_layers.empty() && (d.wide_head_dim != 0 || d.wide_kv_heads != 0)) return bad_field("wide_kv_heads, wide_head_dim", "without wide_layers");
  if (!d.wide_layers.empty()) {
    AERIE_TRY(check_wide_heads(c));
    if (d.attention_scale == 0) return bad_field("attention_scale", "must be said where heads differ");
    if (d.whole_qk_norm || d.output_gate || d.recurrent()) return bad_field("wide_layers", "with whole_qk_norm, output_gate or delta_layers");
    for (int32_t a = 0; a < c.layers; ++a)  // a row of frequencies is as long as the heads that it turns
      for (int32_t b = 0; b < a && !d.layer_rope.empty() && a < static_cast<int32_t>(d.layer_rope.size()); ++b)
        if (d.wide(a) != d.wide(b) && d.layer_rope[static_cast<size_t>(a)] == d.layer_rope[static_cast<size_t>(b)])
          return bad_field("layer_rope", "layers " + std::to_string(b) + " and " + std::to_string(a) + " share a row and have other heads");
    if (d.layer_rope.empty() && std::find(d.wide_layers.begin(), d.wide_layers.end(), 0) != d.wide_layers.end())
      return bad_field("layer_rope", "must be said where heads differ");
  }
  for (int32_t i = 0; i < c.layers && !d.kv_layers.empty(); ++i) {
    const int32_t of = d.kv_layer(i);
    AERIE_TRY(range("kv_layers", of, 0, i));
    if (d.kv_layer(of) != of) return bad_field("kv_layers", "layer " + std::to_string(i) + " reads layer " + std::to_string(of) + "'s, which has none of its own");
    if (d.wide(of) != d.wide(i)) return bad_field("kv_layers", "layer " + std::to_string(i) + " and layer " + std::to_string(of) + " have other heads");
  }
  if ((!d.kv_layers.empty() || d.reads_target) && (c.qkv_bias || d.whole_qk_norm || d.output_gate || d.recurrent()))
    return bad_field("kv_layers, reads_target", "with qkv_bias, whole_qk_norm, output_gate or delta_layers");
  if (d.reads_target && !d.kv_layers.empty()) return bad_field("reads_target", "with kv_layers");
  AERIE_TRY(range("reader_ffn", d.reader_ffn, 0, d.kv_layers.empty() ? 0 : 1 << 20));
  if (d.reader_ffn > 0 && d.experts > 0) return bad_field("reader_ffn", "with experts");
  if (d.v_norm && !c.qk_norm) return bad_field("v_norm", "without qk_norm");
  AERIE_TRY(range("layer_inputs", d.layer_inputs, 0, 1 << 16));
  AERIE_TRY(range("layer_inputs of all layers", int64_t{d.layer_inputs} * c.layers, 0, kMaxCols));
  if ((d.layer_inputs > 0 || d.layer_scales) && (d.norms != Departures::Norms::both || d.residual_scale != 1))
    return bad_field("layer_inputs, layer_scales", "without norms of what a layer's halves add, or with a scale of them");
  if (d.logit_cap != 0) AERIE_TRY(real("logit_cap", d.logit_cap, 0, 1e6));
  if (d.score_cap != 0) AERIE_TRY(real("score_cap", d.score_cap, 0, 1e6));
  return {};
}

}  // namespace

Status check_departures(const LlamaConfig& c) {
  if (!c.departs()) return {};
  const Departures& d = c.departures;
  if (c.rope_scaling.kind != RopeScaling::Kind::listed) return bad_field("rope_scaling", "must be listed where a model departs from Llama's");
  if (d.whole_qk_norm && !c.qk_norm) return bad_field("whole_qk_norm", "without qk_norm");
  AERIE_TRY(real("embed_scale", d.embed_scale, 0, 1e6));
  AERIE_TRY(real("residual_scale", d.residual_scale, 0, 1e6));
  if (d.attention_scale != 0) AERIE_TRY(real("attention_scale", d.attention_scale, 0, 1e6));
  if (d.experts != 0 || d.experts_used != 0 || d.norm_experts) {
    AERIE_TRY(range("experts", d.experts, 1, kernels::kMaxExperts));
    AERIE_TRY(range("experts_used", d.experts_used, 1, std::min(d.experts, int32_t{kernels::kMaxExpertsUsed})));
    if (c.hidden % kernels::kPanel) return bad_field("experts", "hidden " + std::to_string(c.hidden) + " is no multiple of 16");
    if (c.ffn % (kernels::kPanel / 2)) return bad_field("experts", "ffn " + std::to_string(c.ffn) + " is no multiple of 8");
    AERIE_TRY(range("experts times their rows", int64_t{d.experts} * std::max(2 * c.ffn, c.hidden), 1, kMaxRows));
  }
  if (d.expert_bias && d.experts == 0) return bad_field("expert_bias", "without experts");
  if (d.experts == 0 && (d.dense_layers != 0 || d.dense_ffn != 0 || d.shared_ffn != 0 || d.expert_choice))
    return bad_field("dense_layers, dense_ffn, shared_ffn, expert_choice", "without experts");
  AERIE_TRY(range("dense_layers", d.dense_layers, 0, c.layers - 1));  // so that tensors say what a row takes
  AERIE_TRY(range("dense_ffn", d.dense_ffn, d.dense_layers > 0, d.dense_layers > 0 ? 1 << 20 : 0));
  AERIE_TRY(range("shared_ffn", d.shared_ffn, 0, 1 << 20));
  if (d.shared_gate && d.shared_ffn == 0) return bad_field("shared_gate", "without a shared expert");
  if (d.normed_experts && (d.shared_ffn == 0 || d.shared_gate || d.dense_layers > 0 || d.norms != Departures::Norms::both || d.residual_scale != 1))
    return bad_field("normed_experts", "without a shared expert and norms before and after, or with a gate, dense_layers or residual_scale");
  if (d.shared_ffn > 0 && !d.normed_experts && d.norms != Departures::Norms::before) return bad_field("shared_ffn", "with a norm behind the experts");
  // So that who does not know of these meets a tensor that it does not expect.
  if ((d.sigmoid_experts || d.expert_scale != 1) && !d.expert_choice) return bad_field("sigmoid_experts, expert_scale", "without expert_choice");
  AERIE_TRY(real("expert_scale", d.expert_scale, 0, 1e6));
  if (d.glu_limit != 0) AERIE_TRY(real("glu_limit", d.glu_limit, 0, 1e6));
  if (d.glu_limit != 0 && !d.sinks && !d.o_bias && !d.expert_bias) return bad_field("glu_limit", "without sinks and biases");
  const auto for_each_layer = [&](const char* field, const std::vector<int32_t>& list, int64_t most) -> Status {
    if (!list.empty()) AERIE_TRY(range((std::string(field) + " count").c_str(), static_cast<int64_t>(list.size()), c.layers, c.layers));
    for (const int32_t v : list) AERIE_TRY(range(field, v, 0, most));
    return {};
  };
  if (d.recurrent()) AERIE_TRY(check_delta(c));
  else if (d.delta_key_heads != 0 || d.delta_heads != 0 || d.delta_key_dim != 0 || d.delta_value_dim != 0 || d.delta_taps != 0)
    return bad_field("delta_key_heads, delta_heads, delta_key_dim, delta_value_dim, delta_taps", "without delta_layers");
  AERIE_TRY(for_each_layer("delta_layers", d.delta_layers, 1));
  AERIE_TRY(for_each_layer("windows", d.windows, 1 << 24));
  AERIE_TRY(for_each_layer("layer_rope", d.layer_rope, kMostRopeRows - 1));
  return check_layer_kinds(c);
}

}  // namespace aerie::package
