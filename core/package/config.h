// What a package says about the model inside it, as plain structs (no FlatBuffers type leaves
// core/package).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aerie {

struct RopeScaling {
  // listed: the package has frequencies, and how cos and sin are scaled, in place of parameters.
  enum class Kind : uint8_t { none, linear, llama3, yarn, listed } kind = Kind::none;
  float factor = 1;
  // llama3 and yarn: waves that turn less often than the low one in the original context are stretched by `factor`, those that
  // turn more often than the high one stay (YaRN's beta_slow, beta_fast).
  float low_freq_factor = 1;
  float high_freq_factor = 4;
  int32_t original_context = 8192;
  float attention_factor = 1;  // yarn: of cos and sin
};

constexpr int32_t kMostRopeRows = 8;  // of rope.frequencies

// Where a decoder departs from Llama's architecture. RoPE is listed in the package of one that does, so that readers which know
// nothing of all this refuse it.
struct Departures {
  enum class Norms : uint8_t { before, after, both } norms = Norms::before;  // of each half of a layer, outside the residual
  bool gelu = false;           // the gate goes through GELU (tanh) in place of SiLU
  bool whole_qk_norm = false;  // q and k are normed each as a whole
  float embed_scale = 1;       // of what the embedding gives the first layer
  float residual_scale = 1;    // of what each half of a layer adds
  float attention_scale = 0;   // of scores; 0: 1 / sqrt(head_dim)
  // A mixture of experts in place of each layer's MLP: a row goes through the `experts_used` best of `experts`, each of ffn.
  int32_t experts = 0, experts_used = 0;
  bool norm_experts = false;   // what they count adds up to 1: a softmax over those used, else over all
  bool o_bias = false;         // of what attention gives
  bool sinks = false;          // each head's softmax counts one score more, which has no value
  bool expert_bias = false;    // of the router and of all matrices of experts
  float glu_limit = 0;         // of gates and of what they gate (kernels::GatedActivate); 0: none
  int32_t dense_layers = 0, dense_ffn = 0;  // the first so many layers have one MLP, of that width, and no experts
  int32_t shared_ffn = 0;      // of an expert that every row takes besides, and that is no one of `experts`; 0: none
  bool shared_gate = false;    // it counts a sigmoid of its own, else 1
  bool expert_choice = false;  // experts are chosen by what they count and a number of their own
  bool sigmoid_experts = false;  // what they count: sigmoids in place of a softmax, over their sum if norm_experts; and
  float expert_scale = 1;        // times this
  std::vector<int32_t> windows;     // for each layer: how many positions a row looks at, itself the last; 0: all. Empty: all 0
  std::vector<int32_t> layer_rope;  // for each layer: its row of rope.frequencies. Empty: all 0
  bool output_gate = false;         // what attention gives, before attn.o, is multiplied by sigmoids
  // Recurrent layers in place of attention (kernels::DeltaShape): for each layer 1 where it is one. Empty: none. With taps and no heads they are
  // a convolution, of all columns, and no more (LFM2).
  std::vector<int32_t> delta_layers;
  int32_t delta_key_heads = 0, delta_heads = 0, delta_key_dim = 0, delta_value_dim = 0, delta_taps = 0;
  // Layers with wider heads than most (as many of queries): for each layer 1 where it is one. Empty: none.
  std::vector<int32_t> wide_layers;
  int32_t wide_kv_heads = 0, wide_head_dim = 0;
  // For each layer: the one whose keys and values it reads, itself or one before it with heads alike. Empty: each its own.
  std::vector<int32_t> kv_layers;
  int32_t reader_ffn = 0;           // of layers that read another's; 0: as wide as the others'
  bool v_norm = false;              // values are normed by heads, without a weight
  int32_t layer_inputs = 0;         // columns of what each layer adds of the row's token at its end (Gemma's per-layer embeddings); 0: nothing
  bool layer_scales = false;        // what a layer gives the next is scaled
  float logit_cap = 0;              // kernels::SoftCap of logits; 0: none
  bool reads_target = false;        // of a drafter: all layers read keys and values of the target's, those of its last layer with such heads and its own
  bool normed_experts = false;      // router and experts each norm what they read, experts and the shared one what they give; experts have gains
  float score_cap = 0;              // kernels::Attention's, of scores; 0: none
  bool operator==(const Departures&) const = default;
  bool wide(int32_t layer) const { return !wide_layers.empty() && wide_layers[static_cast<size_t>(layer)] != 0; }
  int32_t kv_layer(int32_t layer) const { return kv_layers.empty() ? layer : kv_layers[static_cast<size_t>(layer)]; }
  bool reads(int32_t layer) const { return reads_target || kv_layer(layer) != layer; }  // another's keys and values
  bool recurrent() const { return !delta_layers.empty(); }
  bool convolves(int32_t layer) const { return recurrent(layer) && delta_heads == 0; }
  bool recurrent(int32_t layer) const { return recurrent() && delta_layers[static_cast<size_t>(layer)] != 0; }
  int32_t rope_rows() const {
    return layer_rope.empty() ? 1 : 1 + *std::max_element(layer_rope.begin(), layer_rope.end());
  }
};

// A Llama-architecture decoder, but for its departures. Tensor names in a package (weights panel16, norms f32 row_major;
// L = 0 .. layers-1):
//   embed (V, H)    norm (1, H)    lm_head (V, H), absent when tied
//   layers.L.attn_norm (1, H)      layers.L.attn.qkv ((heads + 2 kv_heads) * head_dim, H) = [q; k; v]
//   layers.L.attn.qkv.bias (optional)
//   layers.L.attn.q_norm, layers.L.attn.k_norm (1, head_dim; Qwen3: norms of each head before RoPE, optional; or
//     (1, heads * head_dim) and (1, kv_heads * head_dim))
//   layers.L.attn.sinks (1, heads), layers.L.attn.o.bias (1, H), where there are any
//   layers.L.attn.o (H, heads * head_dim)
//     In a wide layer head_dim and kv_heads are wide_*; in one that reads another's keys and values qkv is q alone, and there is no k_norm
//   layers.L.attn.gate (heads * head_dim, H), where what attention gives has a gate
//   in place of all of attn.*, in recurrent layers, with C = 2 key_heads * key_dim + heads * value_dim and V = heads * value_dim of delta_*:
//     layers.L.delta.in (C + V, H) = [q; k; v; z]    layers.L.delta.gates (2 heads, H) = [b; a], bf16 or f32
//     layers.L.delta.conv (taps, C)    layers.L.delta.decay (2, heads) = [-exp(A_log); dt_bias]    layers.L.delta.norm (1, value_dim)
//     layers.L.delta.out (H, V)
//     without heads no more than layers.L.delta.in (3 H, H) = [B; C; x], layers.L.delta.conv (taps, H), layers.L.delta.out (H, H)
//   layers.L.attn_post_norm, layers.L.mlp_post_norm (1, H), where a half ends in a norm
//   rope.frequencies (rows, head_dim / 2 + 1), where they are listed: the last of a row scales cos and sin; 0: a pair that is not rotated. With
//     wide layers as long as theirs are; a row of the others' has zeros behind its frequencies
//   layers.L.mlp_norm (1, H)       layers.L.mlp.gate_up (2 F, H) = [gate; up]   layers.L.mlp.down (H, F)
//   in place of these two, with experts: layers.L.mlp.router (experts, H), bf16 or f32; layers.L.mlp.experts.gate_up
//     (experts * 2 F, H) = [gate; up] of each in turn; layers.L.mlp.experts.down (experts * H, F); with biases
//     layers.L.mlp.router.bias (1, experts), layers.L.mlp.experts.gate_up.bias (experts, 2 F), layers.L.mlp.experts.down.bias (experts, H)
//     layers.L.mlp.router.choice (1, experts), where they are chosen by more than what they count
//     with normed_experts layers.L.mlp.router.norm, .shared.post_norm, .experts.norm, .experts.post_norm (1, H) and .router.gain (1, experts)
//     layers.L.mlp.shared.gate_up (2 shared_ffn, H), .down (H, shared_ffn), .gate (1, H), where there is a shared one and a gate of it
//   with layer_inputs P: layer_inputs.embed (V, layers * P), layer_inputs.project (layers * P, H), layer_inputs.norm (1, P), and
//     layers.L.inputs.gate (P, H), layers.L.inputs.out (H, P), layers.L.inputs.post_norm (1, H)
//   layer_scales (1, layers), where there are any
//   candidate.down (R, H), candidate.up (V, R): optional low-rank lm_head, for finding drafts
// q and k rows are in rotate-half order (Hugging Face's), whatever the source used.
struct LlamaConfig {
  int32_t vocab_size = 0;
  int32_t vocab_used = 0;  // ids at or above it can never be drawn
  int32_t hidden = 0;
  int32_t layers = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ffn = 0;
  int32_t max_context = 0;
  float rms_eps = 1e-5f;
  float rope_theta = 10000.f;
  RopeScaling rope_scaling;
  bool tied = false;       // lm_head is embed
  bool qkv_bias = false;
  bool qk_norm = false;
  int32_t bos_id = -1;     // -1: none
  std::vector<int32_t> eos_ids;
  Departures departures;
  bool departs() const { return departures != Departures(); }
  int32_t recurrent_layers() const {
    return static_cast<int32_t>(std::count_if(departures.delta_layers.begin(), departures.delta_layers.end(), [](int32_t v) { return v != 0; }));
  }
  int32_t attention_layers() const { return layers - recurrent_layers(); }
  // Layers that have keys and values of their own, those with wide heads or the others.
  int32_t kv_layers(bool wide) const {
    int32_t n = 0;
    for (int32_t i = 0; i < layers; ++i) n += !departures.recurrent(i) && !departures.reads(i) && departures.wide(i) == wide;
    return n;
  }
  int32_t head_dim_of(int32_t layer) const { return departures.wide(layer) ? departures.wide_head_dim : head_dim; }
  int32_t kv_heads_of(int32_t layer) const { return departures.wide(layer) ? departures.wide_kv_heads : kv_heads; }
  int32_t ffn_of(int32_t layer) const {
    if (layer < departures.dense_layers) return departures.dense_ffn;
    return departures.reader_ffn > 0 && departures.reads(layer) ? departures.reader_ffn : ffn;
  }
  int32_t widest_head() const { return std::max(head_dim, departures.wide_head_dim); }
  std::vector<int32_t> tap_layers;  // residual stream at the INPUT of these layers, pre-norm
};

// A drafter: which plugin runs it, for which target, and its hyper-parameters by name. Tensors are
// named as LlamaConfig's where they mean the same; otherwise the format's own section in
// docs/package-format.md says so (EAGLE: fc (H, 2H) = [embedding | feature], fc.bias).
struct DrafterConfig {
  std::string plugin_id;           // "eagle"
  std::string target_fingerprint;  // hex; of the target it was made for; survives requantising
  struct Param { std::string name; double value; };
  std::vector<Param> params;       // hidden, heads, kv_heads, head_dim, ffn, rms_eps, rope_theta, ...
  // What its layers are, where params do not say it (mtp): tensors layers.L.* and rope.frequencies as a target's, and no others of one.
  std::optional<LlamaConfig> decoder;
};

}  // namespace aerie
