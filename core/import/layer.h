// What Llama models and EAGLE heads have in common: decoder layers, under the names of their format.
#pragma once

#include <string>
#include <vector>

#include "core/import/sink.h"
#include "core/import/source.h"

namespace aerie {

// A mixture of experts in a layer. Each expert's matrices are tensors of their own (`each`, its number, then `gate`, `up` or `down`), or
// those of all lie one after the other in one, whose whole name is here: (experts, rows, columns).
struct ExpertNames {
  const char* router;                   // without .weight, as are gate, up and down
  const char *each, *gate, *up, *down;  // empty where no file has them so
  const char *gate_ups, *gates, *ups, *downs;
  const ExpertNames* other = nullptr;   // where there is a router of its name
  // gpt-oss: (experts, columns, rows), or MXFP4 in two tensors; gates and what they gate take turns in gate_ups (turned_experts.cc).
  bool turned = false;
  const char *gate_up_biases = "", *gate_biases = "", *up_biases = "", *down_biases = "";  // whole names; (experts, rows)
  const char* choice = "";  // whole; (experts), or (1, experts)
  // Of the one that every row takes, and of what it counts; without .weight.
  const char *shared_gate = "", *shared_up = "", *shared_down = "", *shared_count = "";
  const char* shared_gate_up = "";  // where they are one
  // Gemma's. Norms of what the router and experts read, and of what experts and the shared one give; the first two whole.
  const char *router_norm = "", *router_gain = "", *norm = "", *post_norm = "", *shared_post_norm = "";
};
// Mixtral's and Granite's under these names have other ones in the memory of transformers 5, which writes them if it is told to.
inline constexpr ExpertNames kHuggingFaceExperts{
    "mlp.gate", "mlp.experts.", "gate_proj", "up_proj", "down_proj", "mlp.experts.gate_up_proj", "", "", "mlp.experts.down_proj"};
inline constexpr ExpertNames kMixtralExperts{
    "block_sparse_moe.gate", "block_sparse_moe.experts.", "w1", "w3", "w2", "", "", "", "", &kHuggingFaceExperts};
constexpr ExpertNames with_shared_mlp(ExpertNames e) {
  e.shared_gate_up = "shared_mlp.input_linear";
  e.shared_down = "shared_mlp.output_linear";
  return e;
}
inline constexpr ExpertNames kGraniteExpertsInMemory = with_shared_mlp(
    {"block_sparse_moe.router", "", "", "", "", "block_sparse_moe.experts.gate_up_proj", "", "", "block_sparse_moe.experts.down_proj"});
inline constexpr ExpertNames kGraniteExperts = with_shared_mlp(
    {"block_sparse_moe.router.layer", "", "", "", "", "block_sparse_moe.input_linear.weight", "", "", "block_sparse_moe.output_linear.weight",
     &kGraniteExpertsInMemory});
constexpr ExpertNames gemma_experts() {
  ExpertNames e{"router.proj", "", "", "", "", "experts.gate_up_proj", "", "", "experts.down_proj"};
  e.shared_gate = "mlp.gate_proj", e.shared_up = "mlp.up_proj", e.shared_down = "mlp.down_proj";
  e.router_norm = "router.scale", e.router_gain = "router.per_expert_scale";
  e.norm = "pre_feedforward_layernorm_2", e.post_norm = "post_feedforward_layernorm_2", e.shared_post_norm = "post_feedforward_layernorm_1";
  return e;
}
inline constexpr ExpertNames kGemmaExperts = gemma_experts();
inline constexpr ExpertNames kGptOssExperts{
    "mlp.router", "", "", "", "", "mlp.experts.gate_up_proj", "", "", "mlp.experts.down_proj", nullptr, true,
    "mlp.experts.gate_up_proj_bias", "", "", "mlp.experts.down_proj_bias"};
inline constexpr ExpertNames kGgufExperts{
    "ffn_gate_inp", "", "", "", "", "", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight", nullptr, false,
    "", "ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias", "exp_probs_b.bias", "ffn_gate_shexp", "ffn_up_shexp",
    "ffn_down_shexp", "ffn_gate_inp_shexp"};

constexpr ExpertNames gguf_gemma_experts(bool apart) {
  ExpertNames e{"ffn_gate_inp", "", "", "", "", apart ? "" : "ffn_gate_up_exps.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"};
  e.shared_gate = "ffn_gate", e.shared_up = "ffn_up", e.shared_down = "ffn_down";
  e.router_norm = "ffn_gate_inp.scale", e.router_gain = "ffn_down_exps.scale";
  e.norm = "pre_ffw_norm_2", e.post_norm = "post_ffw_norm_2", e.shared_post_norm = "post_ffw_norm_1";
  return e;
}
inline constexpr ExpertNames kGgufGemmaExperts = gguf_gemma_experts(false), kGgufGemmaExpertsApart = gguf_gemma_experts(true);

// A recurrent layer (gated delta rule) in place of attention. Without .weight but for what is whole.
struct DeltaNames {
  const char *qkv, *z, *b, *a;
  const char *qkvz, *ba;                // where they are one, by key heads: [q; k; v; z] and [b; a] of each; or empty
  const char *conv, *norm, *out;
  const char *decay, *dt_bias;          // whole
  bool original;                        // decay is the log of what is multiplied by -1, and conv (channels, 1, taps); else llama.cpp's
  bool tiled = false;                   // heads of values by turns of key heads, as llama.cpp has them, not those of each key head together
};
inline constexpr DeltaNames kHuggingFaceDelta{
    "linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a", "linear_attn.in_proj_qkvz",
    "linear_attn.in_proj_ba", "linear_attn.conv1d", "linear_attn.norm", "linear_attn.out_proj", "linear_attn.A_log", "linear_attn.dt_bias", true};
inline constexpr DeltaNames kGgufDelta{
    "attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha", "ssm_in", "ssm_ba", "ssm_conv1d", "ssm_norm", "ssm_out", "ssm_a", "ssm_dt.bias", false};
constexpr DeltaNames tiled(DeltaNames names) {
  names.tiled = true;
  return names;
}
inline constexpr DeltaNames kGgufTiledDelta = tiled(kGgufDelta);

// A layer that is a convolution and no more, in place of attention. Without .weight.
struct ConvolutionNames {
  const char *in, *conv, *out;
  bool original;  // conv is (channels, 1, taps), else llama.cpp's (channels, taps)
};
inline constexpr ConvolutionNames kHuggingFaceConvolution{"conv.in_proj", "conv.conv", "conv.out_proj", true};
inline constexpr ConvolutionNames kGgufConvolution{"shortconv.in_proj", "shortconv.conv", "shortconv.out_proj", false};

// What layers add of a row's token at their end. Without .weight.
struct InputNames {
  const char *embed, *project, *norm;
  const char *gate, *out, *post_norm;  // in a layer
};
inline constexpr InputNames kHuggingFaceInputs{
    "model.embed_tokens_per_layer", "model.per_layer_model_projection", "model.per_layer_projection_norm", "per_layer_input_gate",
    "per_layer_projection", "post_per_layer_input_norm"};
inline constexpr InputNames kGgufInputs{
    "per_layer_token_embd", "per_layer_model_proj", "per_layer_proj_norm", "inp_gate", "proj", "post_norm"};

// Without .weight and .bias.
struct DecoderNames {
  const char *embed, *norm, *lm_head, *layers;                              // layers: what the layers' names begin with
  const char *attn_norm, *q, *k, *v, *o, *mlp_norm, *gate, *up, *down, *q_norm, *k_norm;  // in a layer
  const char *attn_post_norm, *mlp_post_norm;  // of what a half adds
  const char *qkv, *gate_up;                   // where they are one tensor
  const ExpertNames* experts = nullptr;        // of models that may have them
  const char* sinks = "";                      // whole
  const DeltaNames* delta = nullptr;           // of models that may have them
  const InputNames* inputs = nullptr;          // of models that may have them
  const ConvolutionNames* convolution = nullptr;  // of models that have them
  const char* scale = "";                      // whole: of what a layer gives
  // Of values, in layers that see everything: projections of their own, what keys are projected to, or that where there are none.
  enum class Values : uint8_t { own, keys, keys_if_missing } values = Values::own;
};
constexpr DecoderNames with_values(DecoderNames names, DecoderNames::Values values) {
  names.values = values;
  return names;
}
constexpr DecoderNames with_inputs(DecoderNames names, const InputNames* inputs, const char* scale) {
  names.inputs = inputs;
  names.scale = scale;
  return names;
}
constexpr DecoderNames with_delta(DecoderNames names, const DeltaNames* delta) {
  names.delta = delta;
  return names;
}
constexpr DecoderNames with_experts(DecoderNames names, const ExpertNames* experts, const char* sinks = "") {
  names.experts = experts;
  names.sinks = sinks;
  return names;
}
inline constexpr DecoderNames kHuggingFaceNames{
    "model.embed_tokens", "model.norm", "lm_head", "model.layers.", "input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
    "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "self_attn.q_norm",
    "self_attn.k_norm", "", "", "self_attn.qkv_proj", "mlp.gate_up_proj"};
// Of models that norm what a half of a layer adds.
inline constexpr DecoderNames kHuggingFacePostNormNames{
    "model.embed_tokens", "model.norm", "lm_head", "model.layers.", "input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
    "self_attn.v_proj", "self_attn.o_proj", "pre_feedforward_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
    "self_attn.q_norm", "self_attn.k_norm", "post_attention_layernorm", "post_feedforward_layernorm", "self_attn.qkv_proj",
    "mlp.gate_up_proj"};
inline constexpr DecoderNames kGgufNames{
    "token_embd", "output_norm", "output", "blk.", "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate",
    "ffn_up", "ffn_down", "attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm", "attn_qkv", "ffn_up", &kGgufExperts,
    "attn_sinks.weight"};

class LayerImport {
 public:
  // `steps` tensors or groups of them will be taken: the unit of progress.
  LayerImport(const ConvertOptions& options, Sink& sink, TensorTaker& taker, int64_t steps,
              const DecoderNames& names = kHuggingFaceNames)
      : options_(options), sink_(sink), taker_(taker), names_(names), steps_(static_cast<uint64_t>(steps)) {}

  Result<SourceMatrix> take(const std::string& name, int64_t rows, int64_t cols);
  // One source tensor under another name.
  Status weight(const std::string& to, const std::string& from, int64_t rows, int64_t cols);
  Status vector(const std::string& to, const std::string& from, int64_t n);
  // qkv (bias when c.qkv_bias, norms when c.qk_norm), o, norms as c.departures says, gate_up, down: from names that begin with
  // `from` to `to`attn.qkv... qkv and gate_up may be one tensor each.
  // qkv reads qkv_cols columns, c.hidden unless told (EAGLE-3: twice that).
  // In place of attention; with another layer's keys and values; with values that are projected as keys are.
  enum class Kind : uint8_t { attends, recurrent, reads, keys_as_values };
  Status layer(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols = 0, Kind kind = Kind::attends);

 private:
  struct Part {
    const char* name;
    int64_t rows;
  };
  // Source tensors (`from` + name + .weight) stacked by rows.
  Result<SourceMatrix> stack(const std::string& from, std::initializer_list<Part> parts, int64_t cols);
  Status attention(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols, Kind kind);
  Result<SourceMatrix> keys_as_values(const std::string& from, const LlamaConfig& c);
  Status gated_queries(const std::string& from, const std::string& to, const LlamaConfig& c);
  Status delta(const std::string& from, const std::string& to, const LlamaConfig& c);  // delta_layer.cc
  Status convolution(const std::string& from, const std::string& to, const LlamaConfig& c);
  // (channels, taps) of `name`, in whichever shape.
  Result<std::vector<float>> taps(const std::string& name, int64_t channels, int64_t taps, bool original);
  Result<SourceMatrix> delta_rows(const std::string& from, const LlamaConfig& c);
  Result<SourceMatrix> delta_gates(const std::string& from, const LlamaConfig& c);
  // A layer's router, and the matrices of its experts (experts.cc): one of them is held, and what a layer's become.
  Status experts(const std::string& from, const std::string& to, const LlamaConfig& c);
  Status shared_expert(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c);
  Status expert_norms(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c);
  Status expert_biases(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c);
  // Their biases, joined.
  Result<std::vector<float>> join_biases(const std::string& from, std::initializer_list<Part> parts);
  Status output_bias(const std::string& from, const std::string& to, const LlamaConfig& c);
  Status step();

  const ConvertOptions& options_;
  Sink& sink_;
  TensorTaker& taker_;
  const DecoderNames& names_;
  uint64_t steps_, done_ = 0;
};

// Whether what attention gives has a bias that is not zero, in any layer.
Result<bool> has_output_bias(const TensorSource& source, const DecoderNames& names);

// The layer that a tensor is of, by its name; -1: none.
int64_t layer_of(const std::string& tensor, const DecoderNames& names);

// Steps that a layer's experts and their router are.
int64_t expert_steps(const LlamaConfig& c);

// All decoder layers, and what they are scaled by; c->qkv_bias and layer_scales are set by what there is.
Status import_layers(Sink& sink, LayerImport& import, TensorTaker& take, const DecoderNames& names, LlamaConfig* c);

// All tensors of a target, which must be all that there are. Sets c->tied and c->qkv_bias by what there is; `tied`: what the
// config says of the former, which may only agree.
Status import_decoder(const ConvertOptions& options, Sink& sink, TensorTaker& taker, const DecoderNames& names, bool tied,
                      LlamaConfig* c);

}  // namespace aerie
