#include "core/model/decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/fp_env.h"

namespace aerie {

using kernels::Tensor;

DecoderScratch::DecoderScratch(Plan& plan, int64_t n, int64_t longest, int64_t hidden, const DecoderShape& s,
                               int64_t ffn)
    : norm(plan.scratch(n, hidden)),
      qkv(plan.scratch(n, std::max(int64_t{s.heads + 2 * s.kv_heads} * s.head_dim, int64_t{s.heads + 2 * s.wide_kv_heads} * s.wide_head_dim))),
      attn(s.output_gate ? kernels::Tensor() : plan.scratch(n, int64_t{s.heads} * s.widest_head())) {
  if (s.output_gate) {
    const int64_t width = int64_t{s.heads} * s.head_dim;
    gated = plan.scratch(n, 2 * width);
    attn = kernels::columns(gated, width, width);
  }
  if (s.delta) delta = DeltaScratch(plan, n, s.delta->shape);
  const int64_t of_all = std::max<int64_t>(s.experts > 0 ? std::max(s.dense_ffn, s.shared_ffn) : std::max<int64_t>(ffn, s.reader_ffn), s.layer_inputs);
  if (of_all > 0) gate_up = plan.scratch(n, 2 * of_all), act = plan.scratch(n, of_all);
  if (s.experts > 0) {
    expert_gate_up = plan.scratch(n * s.experts_used, 2 * ffn);
    expert_act = plan.scratch(n * s.experts_used, ffn);
    router_logits = plan.scratch(n, s.experts);
    expert = plan.scratch(n, s.experts_used);
    expert.dtype = kernels::DType::i32;
    counts = plan.scratch(n, s.experts_used);
    down = plan.scratch(n * s.experts_used, hidden);
    if (s.normed_experts) shared = plan.scratch(n, hidden);
  }
  if (longest <= kernels::kSpanSlots) return;
  // A power of two: a growing text rarely asks for more.
  const auto spans = std::bit_ceil(static_cast<uint64_t>((longest + kernels::kSpanSlots - 1) / kernels::kSpanSlots));
  partial = plan.scratch(n * static_cast<int64_t>(spans), int64_t{s.heads} * (s.widest_head() + 2));
}

// Of the scores, rounded as everywhere else: the host's rounding may be another.
static float attention_scale(const DecoderShape& shape) {
  if (shape.attention_scale != 0) return shape.attention_scale;
  const kernels::FpEnv env;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
}

namespace {

// out = (x + scale * norm(tmp)) * times, and tmp is lost. out may be x.
void add_scaled(Plan& plan, const DecoderShape& shape, const Tensor& norm, const Tensor& tmp, const Tensor& x, const Tensor& out, float times = 1) {
  if (norm) plan.add(kernels::RmsNorm{tmp, norm, shape.rms_eps, tmp});
  plan.add(kernels::Add{x, tmp, out, shape.residual_scale, times});
}

// out = (x + scale * norm(in w^T + bias)) * times. out may be x; `tmp` is used where the sum is not all there is to it.
void add_half(Plan& plan, const DecoderShape& shape, const Tensor& in, const Tensor& w, const Tensor& bias, const Tensor& norm,
              const Tensor& tmp, const Tensor& x, const Tensor& out, bool fast, float times = 1) {
  if (!norm && shape.residual_scale == 1 && times == 1) {
    plan.add(kernels::Linear{in, w, bias, x, out, fast});
    return;
  }
  plan.add(kernels::Linear{in, w, bias, {}, tmp, fast});
  add_scaled(plan, shape, norm, tmp, x, out, times);
}

// What an MLP's gates let through, (n, F): its input to `down`.
Tensor add_gated(Plan& plan, const DecoderShape& shape, const Tensor& in, const Tensor& w, const DecoderScratch& s, bool fast) {
  const int64_t ffn = w.rows / 2;
  const Tensor gate_up = kernels::columns(s.gate_up, 0, 2 * ffn), act = kernels::columns(s.act, 0, ffn);
  plan.add(kernels::Linear{in, w, {}, {}, gate_up, fast});
  plan.add(kernels::GatedActivate{gate_up, shape.activation, act, shape.glu_limit});
  return act;
}

// x += scale * what the expert that every row takes makes of `in`. What experts give later is working memory.
void add_shared(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const DecoderScratch& s, const Tensor& in, const Tensor& x) {
  Tensor act = add_gated(plan, shape, in, w.shared_gate_up, s, false);
  if (w.shared_gate) {  // one expert of one, whose score is the sigmoid; `down` may as well come behind it
    const Tensor logit = kernels::columns(s.router_logits, 0, 1), counts = kernels::columns(s.counts, 0, 1);
    plan.add(kernels::Linear{in, w.shared_gate, {}, {}, logit});
    plan.add(kernels::Route{logit, 1, false, static_cast<int32_t*>(s.expert.data), counts, true});
    const Tensor counted = kernels::columns(s.gate_up, 0, act.cols);
    plan.add(kernels::CombineExperts{act, counts, counted});
    act = counted;
  }
  add_half(plan, shape, act, w.shared_down, {}, {}, kernels::rows(s.down, 0, x.rows), x, x, false);
}

// Which experts each row of `in` takes.
void add_router(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const DecoderScratch& s, const Tensor& in) {
  plan.add(kernels::Linear{in, w.router, w.router_bias, {}, s.router_logits});
  plan.add(kernels::Route{s.router_logits, shape.experts_used, shape.norm_experts, static_cast<int32_t*>(s.expert.data), s.counts, shape.sigmoid_experts,
                          w.router_choice, shape.expert_scale, w.router_gain});
}

// out = what these make of `in`, which it may be.
void add_chosen(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const DecoderScratch& s, const Tensor& in, const Tensor& out) {
  const auto* const chosen = static_cast<const int32_t*>(s.expert.data);
  const int32_t k = shape.experts_used;
  plan.add(kernels::ExpertLinear{in, w.gate_up, chosen, k, s.expert_gate_up, w.gate_up_bias});
  plan.add(kernels::GatedActivate{s.expert_gate_up, shape.activation, s.expert_act, shape.glu_limit});
  plan.add(kernels::ExpertLinear{s.expert_act, w.down, chosen, k, s.down, w.down_bias});
  plan.add(kernels::CombineExperts{s.down, s.counts, out});
}

// x = (x + norm(norm(what the expert that every row takes makes of `in`) + norm(what the chosen ones make of norm(x)))) * scale. `in` is working memory.
void add_normed_experts(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const DecoderScratch& s, const Tensor& in, const Tensor& x) {
  const auto norm = [&](const Tensor& of, const Tensor& weight, const Tensor& out) { plan.add(kernels::RmsNorm{of, weight, shape.rms_eps, out}); };
  const Tensor act = add_gated(plan, shape, in, w.shared_gate_up, s, false);
  plan.add(kernels::Linear{act, w.shared_down, {}, {}, s.shared});
  norm(s.shared, w.shared_post_norm, s.shared);
  norm(x, w.router_norm, in);
  add_router(plan, w, shape, s, in);
  norm(x, w.experts_norm, in);
  add_chosen(plan, w, shape, s, in, in);
  norm(in, w.experts_post_norm, in);
  plan.add(kernels::Add{in, s.shared, in});
  add_scaled(plan, shape, w.mlp_post_norm, in, x, x, w.input_gate ? 1 : w.scale);
}

// x += scale * norm(what the experts that each row takes make of `in`).
void add_experts(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, DecoderScratch& s, const Tensor& in, const Tensor& x) {
  if (w.router_norm) return add_normed_experts(plan, w, shape, s, in, x);
  if (w.shared_gate_up) add_shared(plan, w, shape, s, in, x);
  add_router(plan, w, shape, s, in);
  add_chosen(plan, w, shape, s, in, s.norm);
  add_scaled(plan, shape, w.mlp_post_norm, s.norm, x, x, w.input_gate ? 1 : w.scale);
}

// x += what the layer's second half makes of it.
void add_mlp(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, DecoderScratch& s, const Tensor& x, bool fast) {
  Tensor in = x;
  if (w.mlp_norm) {
    plan.add(kernels::RmsNorm{x, w.mlp_norm, shape.rms_eps, s.norm});
    in = s.norm;
  }
  if (w.router) return add_experts(plan, w, shape, s, in, x);
  const Tensor act = add_gated(plan, shape, in, w.gate_up, s, fast);
  add_half(plan, shape, act, w.down, {}, w.mlp_post_norm, s.norm, x, x, fast, w.input_gate ? 1 : w.scale);
}

// x = (x + norm(out of (the gate of x times what the row's token gives))) * scale
void add_input(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, DecoderScratch& s, const Tensor& input, const Tensor& x, bool fast) {
  const Tensor act = kernels::columns(s.act, 0, input.cols);
  plan.add(kernels::Linear{x, w.input_gate, {}, {}, act, fast});
  plan.add(kernels::GatedActivate{act, shape.activation, act, 0, input});
  add_half(plan, shape, act, w.input_out, {}, w.input_post_norm, s.norm, x, x, fast, w.scale);
}

// out = x + what attention makes of `in`. out may be x.
void add_attention(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache, int32_t layer, const Rows& rows,
                   const Tensor& angles, DecoderScratch& s, const Tensor& in, const Tensor& x, const Tensor& out) {
  const int64_t width = int64_t{shape.heads} * cache.head_dim, k_cols = int64_t{cache.kv_heads} * cache.head_dim;
  const Tensor qkv = kernels::columns(s.qkv, 0, w.reads ? width : width + 2 * k_cols), attn = kernels::columns(s.attn, 0, width);
  plan.add(kernels::Linear{in, w.qkv, w.qkv_bias, {}, qkv, rows.fast});
  if (w.q_norm) {
    const Tensor heads = kernels::columns(qkv, 0, width);
    const bool whole = w.q_norm.cols != cache.head_dim;
    plan.add(kernels::RmsNorm{heads, w.q_norm, shape.rms_eps, heads, whole ? 1 : shape.heads});
    if (!w.reads) {
      const Tensor keys = kernels::columns(qkv, width, k_cols), values = kernels::columns(qkv, width + k_cols, k_cols);
      plan.add(kernels::RmsNorm{keys, w.k_norm, shape.rms_eps, keys, whole ? 1 : cache.kv_heads});
      if (w.v_norm) plan.add(kernels::RmsNorm{values, w.v_norm, shape.rms_eps, values, cache.kv_heads});
    }
  }
  plan.add(kernels::RopeAndStore{qkv, angles, shape.heads, cache, layer, rows.slot});
  kernels::AttentionRows seen = rows.attention;
  seen.window = w.window;
  // A window of a span or less is too little work to be divided.
  const Tensor partial = w.window > 0 && w.window <= kernels::kSpanSlots ? Tensor{} : s.partial;
  plan.add(kernels::Attention{kernels::columns(qkv, 0, width), shape.heads, cache, layer, seen, attention_scale(shape), attn, partial, w.sinks,
                              shape.score_cap});
  if (partial) plan.add(kernels::AttentionMerge{partial, shape.heads, seen, attn, w.sinks});
  Tensor attended = attn;
  if (w.gate) {
    attended = kernels::columns(s.gated, 0, width);
    plan.add(kernels::Linear{in, w.gate, {}, {}, attended, rows.fast});
    plan.add(kernels::GatedActivate{s.gated, kernels::Activation::sigmoid, attended});
  }
  add_half(plan, shape, attended, w.o, w.o_bias, w.attn_post_norm, s.norm, x, out, rows.fast);
}

}  // namespace

void record_decoder_layer(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache,
                          int32_t layer, const Rows& rows, const Tensor& angles, DecoderScratch& s, const Tensor& x,
                          const Tensor& out, const DeltaInputs* kept, const Tensor& input) {
  Tensor in = x;
  if (w.attn_norm) {
    plan.add(kernels::RmsNorm{x, w.attn_norm, shape.rms_eps, s.norm});
    in = s.norm;
  }
  if (w.delta) record_delta(plan, w.delta, *shape.delta, layer * shape.delta->shape.floats(), rows.delta, shape.rms_eps, s.delta, kept, in, x, out);
  else add_attention(plan, w, shape, cache, layer, rows, angles, s, in, x, out);
  add_mlp(plan, w, shape, s, out, rows.fast);
  if (w.input_gate) add_input(plan, w, shape, s, input, out, rows.fast);
}

void record_decoder_layer_from(Plan& plan, const DecoderLayer& w, const DecoderShape& shape,
                               const kernels::KvCache& cache, int32_t layer, const Rows& rows, const Tensor& angles,
                               DecoderScratch& s, const Tensor& attn_in, const Tensor& x, const Tensor& out) {
  add_attention(plan, w, shape, cache, layer, rows, angles, s, attn_in, x, out);
  add_mlp(plan, w, shape, s, out, rows.fast);
}

void record_keys_and_values(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache, int32_t layer,
                            const Rows& rows, const Tensor& angles, const Tensor& kv, const Tensor& in) {
  const int64_t width = int64_t{shape.heads} * cache.head_dim, k_cols = int64_t{cache.kv_heads} * cache.head_dim;
  const Tensor bias = w.qkv_bias ? kernels::columns(w.qkv_bias, width, 2 * k_cols) : Tensor{};
  plan.add(kernels::Linear{in, kernels::panels(w.qkv, width / kernels::kPanel, w.qkv.rows), bias, {}, kv, rows.fast});
  const Tensor keys = kernels::columns(kv, 0, k_cols), values = kernels::columns(kv, k_cols, k_cols);
  if (w.k_norm) plan.add(kernels::RmsNorm{keys, w.k_norm, shape.rms_eps, keys, w.k_norm.cols != cache.head_dim ? 1 : cache.kv_heads});
  if (w.v_norm) plan.add(kernels::RmsNorm{values, w.v_norm, shape.rms_eps, values, cache.kv_heads});
  plan.add(kernels::RopeAndStore{kv, angles, 0, cache, layer, rows.slot});
}

}  // namespace aerie
