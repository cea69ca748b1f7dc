#include "core/model/decoder_stack.h"

#include <algorithm>
#include <cmath>

#include "core/package/rope_frequencies.h"
#include "kernels/fp_env.h"

namespace aerie {

using kernels::Tensor;

Status DecoderStack::load(DeviceWeights& weights, const LlamaConfig& c) {
  const Departures& d = c.departures;
  shape = {c.heads, c.kv_heads, c.head_dim, c.rms_eps, d.gelu ? kernels::Activation::gelu_tanh : kernels::Activation::silu,
           d.attention_scale, d.score_cap, d.residual_scale, d.experts, d.experts_used, d.norm_experts, d.sigmoid_experts, d.expert_scale, d.dense_ffn,
           d.shared_ffn, d.glu_limit, d.output_gate, d.recurrent() ? &delta : nullptr, d.wide_kv_heads, d.wide_head_dim,
           d.reader_ffn, d.normed_experts, d.layer_inputs};
  layers.resize(static_cast<size_t>(c.layers));
  for (int32_t i = 0; i < c.layers; ++i) AERIE_TRY(load_layer(weights, c, i));
  AERIE_TRY(load_kinds(weights, c));
  if (d.recurrent()) AERIE_TRY(load_delta(weights, c));
  return load_ropes(weights, c);
}

Status DecoderStack::load_layer(DeviceWeights& weights, const LlamaConfig& c, int32_t i) {
  const Departures& departures = c.departures;
  const auto get = [&](const std::string& name, Tensor* out) -> Status {
    AERIE_ASSIGN(*out, weights.tensor(name));
    return {};
  };
  DecoderLayer& w = layers[static_cast<size_t>(i)];
  const std::string at = "layers." + std::to_string(i) + ".";
  if (departures.norms != Departures::Norms::after) {
    AERIE_TRY(get(at + "attn_norm", &w.attn_norm));
    AERIE_TRY(get(at + "mlp_norm", &w.mlp_norm));
  }
  if (departures.norms != Departures::Norms::before) {
    AERIE_TRY(get(at + "attn_post_norm", &w.attn_post_norm));
    AERIE_TRY(get(at + "mlp_post_norm", &w.mlp_post_norm));
  }
  if (!departures.windows.empty()) w.window = departures.windows[static_cast<size_t>(i)];
  if (!departures.layer_rope.empty()) w.rope = departures.layer_rope[static_cast<size_t>(i)];
  if (departures.recurrent(i)) {
    DeltaWeights& d = w.delta;
    AERIE_TRY(get(at + "delta.in", &d.in));
    AERIE_TRY(get(at + "delta.conv", &d.conv));
    AERIE_TRY(get(at + "delta.out", &d.out));
    if (!departures.convolves(i)) {
      AERIE_TRY(get(at + "delta.gates", &d.gates));
      AERIE_TRY(get(at + "delta.decay", &d.decay));
      AERIE_TRY(get(at + "delta.norm", &d.norm));
    }
    delta_convs.push_back(d.conv);
  } else {
    AERIE_TRY(get(at + "attn.qkv", &w.qkv));
    if (c.qkv_bias) AERIE_TRY(get(at + "attn.qkv.bias", &w.qkv_bias));
    if (c.qk_norm) {
      AERIE_TRY(get(at + "attn.q_norm", &w.q_norm));
      if (!departures.reads(i)) AERIE_TRY(get(at + "attn.k_norm", &w.k_norm));
    }
    if (departures.sinks) AERIE_TRY(get(at + "attn.sinks", &w.sinks));
    if (departures.output_gate) AERIE_TRY(get(at + "attn.gate", &w.gate));
    AERIE_TRY(get(at + "attn.o", &w.o));
    if (departures.o_bias) AERIE_TRY(get(at + "attn.o.bias", &w.o_bias));
  }
  if (departures.layer_inputs > 0) {
    AERIE_TRY(get(at + "inputs.gate", &w.input_gate));
    AERIE_TRY(get(at + "inputs.out", &w.input_out));
    AERIE_TRY(get(at + "inputs.post_norm", &w.input_post_norm));
  }
  const bool dense = departures.experts == 0 || i < departures.dense_layers;
  const std::string mlp = at + (dense ? "mlp." : "mlp.experts.");
  if (!dense) AERIE_TRY(get(at + "mlp.router", &w.router));
  AERIE_TRY(get(mlp + "gate_up", &w.gate_up));
  AERIE_TRY(get(mlp + "down", &w.down));
  if (dense) return {};
  if (departures.expert_choice) AERIE_TRY(get(at + "mlp.router.choice", &w.router_choice));
  if (departures.shared_ffn > 0) {
    AERIE_TRY(get(at + "mlp.shared.gate_up", &w.shared_gate_up));
    AERIE_TRY(get(at + "mlp.shared.down", &w.shared_down));
  }
  if (departures.normed_experts) {
    AERIE_TRY(get(at + "mlp.router.norm", &w.router_norm));
    AERIE_TRY(get(at + "mlp.router.gain", &w.router_gain));
    AERIE_TRY(get(at + "mlp.experts.norm", &w.experts_norm));
    AERIE_TRY(get(at + "mlp.experts.post_norm", &w.experts_post_norm));
    AERIE_TRY(get(at + "mlp.shared.post_norm", &w.shared_post_norm));
  }
  if (departures.shared_gate) AERIE_TRY(get(at + "mlp.shared.gate", &w.shared_gate));
  if (!departures.expert_bias) return {};
  AERIE_TRY(get(at + "mlp.router.bias", &w.router_bias));
  AERIE_TRY(get(mlp + "gate_up.bias", &w.gate_up_bias));
  AERIE_TRY(get(mlp + "down.bias", &w.down_bias));
  return {};
}

// What layers have in which they differ from each other, and what those with inputs share.
Status DecoderStack::load_kinds(DeviceWeights& weights, const LlamaConfig& c) {
  const Departures& d = c.departures;
  Tensor ones[2];  // of most layers' values, and of wide ones'
  for (const bool wide : {false, true}) {
    if (!d.v_norm || (wide && d.wide_layers.empty())) continue;
    AERIE_ASSIGN(ones[wide], weights.upload(std::vector<float>(static_cast<size_t>(wide ? d.wide_head_dim : c.head_dim), 1.0f)));
  }
  int32_t attended[2] = {}, recurrent = 0;
  for (int32_t i = 0; i < c.layers; ++i) {
    DecoderLayer& w = layers[static_cast<size_t>(i)];
    w.wide = d.wide(i);
    w.reads = d.reads(i);
    w.number = w.reads ? layers[static_cast<size_t>(d.kv_layer(i))].number : d.recurrent(i) ? recurrent++ : attended[w.wide]++;
    if (!w.reads && !d.recurrent(i)) w.v_norm = ones[w.wide];
  }
  if (d.layer_scales) {
    AERIE_ASSIGN(const Tensor scales, weights.package().tensor("layer_scales"));
    const auto* scale = static_cast<const float*>(scales.data);
    for (DecoderLayer& w : layers) w.scale = *scale++;
  }
  if (d.layer_inputs == 0) return {};
  AERIE_ASSIGN(input_embed, weights.tensor("layer_inputs.embed"));
  AERIE_ASSIGN(input_project, weights.tensor("layer_inputs.project"));
  AERIE_ASSIGN(input_norm, weights.tensor("layer_inputs.norm"));
  return {};
}

// Vectors as DeltaRule wants them are x / |x|, those of queries over sqrt(key_dim); what RmsNorm makes is sqrt(key_dim) times as long.
Status DecoderStack::load_delta(DeviceWeights& weights, const LlamaConfig& c) {
  const Departures& d = c.departures;
  delta.shape = {d.delta_key_heads, d.delta_heads, d.delta_key_dim, d.delta_value_dim, d.delta_taps, d.delta_heads == 0 ? c.hidden : 0};
  if (d.delta_heads == 0) return {};
  const kernels::FpEnv env;
  const auto dim = static_cast<size_t>(d.delta_key_dim);
  AERIE_ASSIGN(delta.q_scale, weights.upload(std::vector<float>(dim, 1.0f / static_cast<float>(d.delta_key_dim))));
  AERIE_ASSIGN(delta.k_scale, weights.upload(std::vector<float>(dim, static_cast<float>(1 / std::sqrt(static_cast<double>(d.delta_key_dim))))));
  return {};
}

Status DecoderStack::load_ropes(DeviceWeights& weights, const LlamaConfig& c) {
  if (c.rope_scaling.kind != RopeScaling::Kind::listed) {
    AERIE_ASSIGN(const Tensor made, weights.upload(rope_inverse_frequencies(c.head_dim, c.rope_theta, c.rope_scaling)));
    ropes = {{made, c.rope_scaling.attention_factor}};
    return {};
  }
  const std::string name = "rope.frequencies";
  AERIE_ASSIGN(const Tensor listed, weights.package().tensor(name));
  AERIE_ASSIGN(const Tensor here, weights.tensor(name));
  const int64_t last = listed.cols - 1;
  for (int64_t i = 0; i < listed.rows; ++i) {
    const float* row = static_cast<const float*>(listed.data) + i * listed.stride;
    if (!std::all_of(row, row + last + 1, [](float v) { return std::isfinite(v) && v >= 0; }))
      return error(Code::bad_format, weights.package().path() + ": " + name + ": row " + std::to_string(i) + ": negative or not finite");
    const auto its = std::find_if(layers.begin(), layers.end(), [&](const DecoderLayer& w) { return w.rope == i; });
    const int64_t half = (its != layers.end() && its->wide ? c.departures.wide_head_dim : c.head_dim) / 2;
    ropes.push_back({kernels::rows(kernels::columns(here, 0, half), i, 1), row[last]});
  }
  return {};
}

// Gemma 4's: the token's own embedding, and what the model's says, normed; each counts as much. To scale before the norm is another eps.
Tensor DecoderStack::add_inputs(Plan& plan, const Rows& rows, const Tensor& x) const {
  if (!input_embed) return {};
  const kernels::FpEnv env;
  const Tensor own = plan.scratch(rows.n, input_embed.cols), made = plan.scratch(rows.n, input_embed.cols);
  const auto width = static_cast<double>(input_norm.cols);
  plan.add(kernels::Embed{input_embed, rows.token, own, static_cast<float>(std::sqrt(width))});
  plan.add(kernels::Linear{x, input_project, {}, {}, made, rows.fast});
  plan.add(kernels::RmsNorm{made, input_norm, shape.rms_eps * static_cast<float>(x.cols), made, static_cast<int32_t>(layers.size())});
  plan.add(kernels::Add{made, own, made, 1, static_cast<float>(std::sqrt(0.5))});
  return made;
}

void DecoderStack::add_angles(Plan& plan, const Rows& rows, Tensor (&angles)[kMostRopeRows]) const {
  for (size_t i = 0; i < ropes.size(); ++i) {
    angles[i] = plan.scratch(rows.n, 2 * ropes[i].frequencies.cols);
    plan.add(kernels::RopeAngles{rows.position, ropes[i].frequencies, ropes[i].scale, angles[i]});
  }
}

}  // namespace aerie
