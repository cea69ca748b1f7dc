// Which tensors a config calls for, and their shapes.
#include "core/package/validate.h"

namespace aerie::package {

std::vector<ExpectedTensor> expected_layer_tensors(const LlamaConfig& c) {
  const int64_t h = c.hidden;
  std::vector<ExpectedTensor> all;
  all.reserve(static_cast<size_t>(c.layers) * 29 + 7);
  const Departures& d = c.departures;
  if (c.rope_scaling.kind == RopeScaling::Kind::listed) all.push_back({"rope.frequencies", d.rope_rows(), c.widest_head() / 2 + 1, false});
  if (d.layer_scales) all.push_back({"layer_scales", 1, c.layers, false});
  for (int32_t i = 0; i < c.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const int64_t head_dim = c.head_dim_of(i), heads = c.heads * head_dim, keys = c.kv_heads_of(i) * head_dim;
    const int64_t qkv = heads + (d.reads(i) ? 0 : 2 * keys);
    if (d.norms != Departures::Norms::after)
      for (const char* name : {"attn_norm", "mlp_norm"}) all.push_back({at + name, 1, h, false});
    if (d.norms != Departures::Norms::before)
      for (const char* name : {"attn_post_norm", "mlp_post_norm"}) all.push_back({at + name, 1, h, false});
    if (d.convolves(i)) {
      all.push_back({at + "delta.in", 3 * h, h, true});
      all.push_back({at + "delta.conv", d.delta_taps, h, false});
      all.push_back({at + "delta.out", h, h, true});
    } else if (d.recurrent(i)) {
      const int64_t delta_keys = int64_t{d.delta_key_heads} * d.delta_key_dim, values = int64_t{d.delta_heads} * d.delta_value_dim;
      all.push_back({at + "delta.in", 2 * delta_keys + 2 * values, h, true});
      all.push_back({at + "delta.gates", 2 * int64_t{d.delta_heads}, h, true, true});
      all.push_back({at + "delta.conv", d.delta_taps, 2 * delta_keys + values, false});
      all.push_back({at + "delta.decay", 2, d.delta_heads, false});
      all.push_back({at + "delta.norm", 1, d.delta_value_dim, false});
      all.push_back({at + "delta.out", h, values, true});
    } else {
      all.push_back({at + "attn.qkv", qkv, h, true});
      if (c.qkv_bias) all.push_back({at + "attn.qkv.bias", 1, qkv, false});
      if (c.qk_norm) {
        all.push_back({at + "attn.q_norm", 1, d.whole_qk_norm ? heads : head_dim, false});
        if (!d.reads(i)) all.push_back({at + "attn.k_norm", 1, d.whole_qk_norm ? keys : head_dim, false});
      }
      if (d.sinks) all.push_back({at + "attn.sinks", 1, c.heads, false});
      if (d.output_gate) all.push_back({at + "attn.gate", heads, h, true});
      all.push_back({at + "attn.o", h, heads, true});
      if (d.o_bias) all.push_back({at + "attn.o.bias", 1, h, false});
    }
    if (d.layer_inputs > 0) {
      all.push_back({at + "inputs.gate", d.layer_inputs, h, true});
      all.push_back({at + "inputs.out", h, d.layer_inputs, true});
      all.push_back({at + "inputs.post_norm", 1, h, false});
    }
    const bool dense = d.experts == 0 || i < d.dense_layers;
    const int64_t mlps = dense ? 1 : d.experts, ffn = c.ffn_of(i);
    const std::string mlp = at + (dense ? "mlp." : "mlp.experts.");
    if (!dense) all.push_back({at + "mlp.router", d.experts, h, true, true});
    all.push_back({mlp + "gate_up", mlps * 2 * ffn, h, true});
    all.push_back({mlp + "down", mlps * h, ffn, true});
    if (dense) continue;
    if (d.expert_choice) all.push_back({at + "mlp.router.choice", 1, d.experts, false});
    if (d.shared_ffn > 0) {
      all.push_back({at + "mlp.shared.gate_up", 2 * int64_t{d.shared_ffn}, h, true});
      all.push_back({at + "mlp.shared.down", h, d.shared_ffn, true});
    }
    if (d.shared_gate) all.push_back({at + "mlp.shared.gate", 1, h, true, true});
    if (d.normed_experts) {
      for (const char* name : {"router.norm", "shared.post_norm", "experts.norm", "experts.post_norm"}) all.push_back({at + "mlp." + name, 1, h, false});
      all.push_back({at + "mlp.router.gain", 1, d.experts, false});
    }
    if (!d.expert_bias) continue;
    all.push_back({at + "mlp.router.bias", 1, d.experts, false});
    all.push_back({mlp + "gate_up.bias", d.experts, 2 * c.ffn, false});
    all.push_back({mlp + "down.bias", d.experts, h, false});
  }
  return all;
}

std::vector<ExpectedTensor> expected_tensors(const LlamaConfig& c) {
  std::vector<ExpectedTensor> all = expected_layer_tensors(c);
  all.insert(all.begin(), {"embed", c.vocab_size, c.hidden, true});
  all.push_back({"norm", 1, c.hidden, false});
  if (const int64_t inputs = c.departures.layer_inputs; inputs > 0) {
    all.push_back({"layer_inputs.embed", c.vocab_size, c.layers * inputs, true});
    all.push_back({"layer_inputs.project", c.layers * inputs, c.hidden, true});
    all.push_back({"layer_inputs.norm", 1, inputs, false});
  }
  if (!c.tied) all.push_back({"lm_head", c.vocab_size, c.hidden, true});
  return all;
}

}  // namespace aerie::package
