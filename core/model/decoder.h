// One Llama decoder layer as ops: shared by targets, draft models and the drafters' compute service.
#pragma once

#include <vector>

#include "core/model/delta.h"
#include "core/model/plan.h"
#include "core/model/rows.h"
#include "core/package/config.h"

namespace aerie {

// H hidden, F ffn; weights packed. A tensor without data is an absent piece, a norm the identity.
struct DecoderLayer {
  kernels::Tensor attn_norm;  // (1, H)
  kernels::Tensor qkv;        // ((heads + 2 kv_heads) * head_dim, H)
  kernels::Tensor qkv_bias;   // (1, ...)
  kernels::Tensor q_norm;     // (1, head_dim), as Qwen3 has it: every head of q is normed before it is rotated; or of all heads
  kernels::Tensor k_norm;     // both or none, but where `reads`
  kernels::Tensor v_norm;     // (1, head_dim): ones
  kernels::Tensor sinks;      // (1, heads): kernels::Attention's
  kernels::Tensor gate;       // (heads * head_dim, H): sigmoids that what attention gives is multiplied by
  kernels::Tensor o;          // (H, heads * head_dim)
  kernels::Tensor o_bias;     // (1, H)
  kernels::Tensor attn_post_norm;  // (1, H): of what attention adds
  kernels::Tensor mlp_norm;   // (1, H)
  kernels::Tensor gate_up;    // (2F, H)
  kernels::Tensor down;       // (H, F)
  kernels::Tensor mlp_post_norm;  // (1, H)
  kernels::Tensor router;     // (experts, H): gate_up and down are then those of all experts, one after the other
  kernels::Tensor router_bias, gate_up_bias, down_bias;  // (1, experts), (experts, 2F), (experts, H)
  kernels::Tensor router_choice;                         // (1, experts): kernels::Route's
  kernels::Tensor router_norm, experts_norm, experts_post_norm, shared_post_norm;  // (1, H) each, all or none; and
  kernels::Tensor router_gain;                           // (1, experts): kernels::Route's
  kernels::Tensor shared_gate_up, shared_down, shared_gate;  // of the expert that every row takes, and (1, H) what it counts
  kernels::Tensor input_gate, input_out, input_post_norm;  // (P, H), (H, P), (1, H): of what it adds of the row's token at its end
  DeltaWeights delta;         // in place of attention
  int32_t window = 0;         // positions that a row looks at; 0: all
  int32_t rope = 0;           // which of the angles its rows are turned by
  bool wide = false;          // it has the cache of wide layers
  bool reads = false;         // keys and values are another layer's: qkv is q
  int32_t number = 0;         // of its keys and values among those of its cache, or of its state
  float scale = 1;            // of what it gives
};

struct DecoderShape {
  int32_t heads = 0, kv_heads = 0, head_dim = 0;  // of most layers; what a layer has its cache says
  float rms_eps = 1e-5f;
  kernels::Activation activation = kernels::Activation::silu;
  float attention_scale = 0;  // of scores; 0: 1 / sqrt(head_dim)
  float score_cap = 0;        // kernels::Attention's
  float residual_scale = 1;   // of what attention and MLP add
  int32_t experts = 0, experts_used = 0;  // 0: one MLP
  bool norm_experts = false, sigmoid_experts = false;
  float expert_scale = 1;
  int32_t dense_ffn = 0, shared_ffn = 0;  // of layers without experts among others, and of what every row takes beside experts
  float glu_limit = 0;        // kernels::GatedActivate's
  bool output_gate = false;   // there is a DecoderLayer::gate
  const DeltaLayers* delta = nullptr;  // of layers with DecoderLayer::delta
  int32_t wide_kv_heads = 0, wide_head_dim = 0;
  int32_t reader_ffn = 0;     // of layers that read another's keys and values; 0: as wide as others'
  bool normed_experts = false;  // there is a DecoderLayer::router_norm
  int32_t layer_inputs = 0;   // columns of what layers add of a row's token
  int32_t widest_head() const { return head_dim > wide_head_dim ? head_dim : wide_head_dim; }
};

// Working memory of a layer for n rows that look at up to `longest` positions; one set serves all layers of a pass.
struct DecoderScratch {
  kernels::Tensor norm, qkv, attn, gate_up, act;  // of an MLP that all rows go through, as wide as the widest
  kernels::Tensor expert_gate_up, expert_act;     // a row for each expert that a row takes
  kernels::Tensor router_logits, expert, counts, down;  // of experts: i32 numbers, what each counts, what each gives
  kernels::Tensor shared;   // what the expert that every row takes gives, where that is normed
  kernels::Tensor partial;  // Attention's, for contexts of more than a span
  kernels::Tensor gated;    // (n, 2 heads * head_dim), of which `attn` is the second half: behind what its gate is made of
  DeltaScratch delta;       // of recurrent layers
  DecoderScratch(Plan& plan, int64_t n, int64_t longest, int64_t hidden, const DecoderShape& shape, int64_t ffn);
};

// out (n, H) = layer(x (n, H)); out may be x. angles: RopeAngles of the rows' positions. layer: its number among those of the cache, or of
// the states. kept: where a recurrent one's inputs go, for record_delta_states; null: none last. input: of layers that have one, (n, P).
void record_decoder_layer(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache,
                          int32_t layer, const Rows& rows, const kernels::Tensor& angles, DecoderScratch& scratch,
                          const kernels::Tensor& x, const kernels::Tensor& out, const DeltaInputs* kept = nullptr,
                          const kernels::Tensor& input = {});

// The same with the attention's input attn_in (n, K) in place of attn_norm(x).
void record_decoder_layer_from(Plan& plan, const DecoderLayer& w, const DecoderShape& shape,
                               const kernels::KvCache& cache, int32_t layer, const Rows& rows,
                               const kernels::Tensor& angles, DecoderScratch& scratch, const kernels::Tensor& attn_in,
                               const kernels::Tensor& x, const kernels::Tensor& out);

// Of the layer no more than its keys and values of `in` (n, H), as they are: without its norm of what it reads. kv: (n, 2 kv_heads * head_dim) to
// work in. heads * head_dim is a multiple of kernels::kPanel.
void record_keys_and_values(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache, int32_t layer,
                            const Rows& rows, const kernels::Tensor& angles, const kernels::Tensor& kv, const kernels::Tensor& in);

}  // namespace aerie
