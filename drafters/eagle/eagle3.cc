// EAGLE-3 drafter: features of three depths, fused; a draft vocabulary and LM head of its own.
//
//   g_j = fc([low; middle; high] of row j)            rows of committed tokens
//   g   = the parent's output                         drafted rows: fc is skipped
//   a   = g + attention([input_norm(embedding(t_{j+1})); hidden_norm(g)]),   out = a + mlp(norm(a))
//   logits = lm_head(out_norm(out)), over the draft vocabulary (EAGLE-3, section 3; reference implementation)
//
// Heads of several layers (vLLM): plain decoder layers follow, and the last one's output is the out of the above.
//
// EAGLE-3.1 (speculators): the taps normed before fc, each by itself or all at once (tap_norm.I, taps_norm); hidden_norm(g) as the
// residual (norm_before_residual); out_norm(out) as the output that drafted rows read (norm_output).
//
// A head may be narrower than its target (EAGLE3-LLaMA3.3-Instruct-70B): then the embedding is its own.
#include "eagle.h"

namespace eagle {

int32_t Eagle3::open_deeper(const aerie_package* p, int32_t layers, aerie_drafter_error* err) {
  deeper.resize(static_cast<size_t>(layers - 1));
  char name[32];
  int32_t code = 0;
  for (int32_t i = 1; i < layers; ++i) {
    aerie_decoder_layer& l = deeper[static_cast<size_t>(i - 1)];
    std::snprintf(name, sizeof name, "layers.%d.", i);
    if ((code = package->decoder_layer(p, name, hidden, hidden, &l, err))) return code;
    std::snprintf(name, sizeof name, "layers.%d.attn_norm", i);
    if ((code = package->tensor(p, name, 1, hidden, &l.attn_norm, err))) return code;
  }
  std::snprintf(name, sizeof name, "layers.%d.attn.qkv", layers);
  if (package->has(p, name)) return aerie::drafter_fail(err, AERIE_D_INVALID, "package: parameter layers: fewer than its layers");
  return AERIE_D_OK;
}

int32_t Eagle3::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  tap_width = info->hidden;
  int32_t code = 0, draft_vocab = 0, layers = 1;
  if ((code = package->integer(p, "hidden", 1, 1 << 20, &hidden, err))) return code;
  const int64_t h = hidden;
  if ((code = package->integer(p, "taps", 1, 8, &needs->n_taps, err))) return code;
  for (int32_t i = 0; i < needs->n_taps; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "tap.%d", i);
    if ((code = package->integer(p, name, 0, 1 << 16, &needs->taps[i], err))) return code;
  }
  if (package->param(p, "layers", 1) != 1 && (code = package->integer(p, "layers", 1, 64, &layers, err))) return code;
  if ((code = open_head(info, int64_t{needs->n_taps} * tap_width, 2 * h, layers, err)) || (code = open_deeper(p, layers, err)) ||
      (code = package->integer(p, "draft_vocab", 1, info->vocab, &draft_vocab, err)) ||
      (code = package->tensor(p, "input_norm", 1, h, &input_norm, err)) ||
      (code = package->tensor(p, "hidden_norm", 1, h, &hidden_norm, err)) ||
      (code = package->tensor(p, "norm", 1, h, &norm, err)) ||
      (code = package->tensor(p, "lm_head", draft_vocab, h, &lm_head, err)))
    return code;
  if (package->param(p, "norm_before_fc", 0) != 0 && (code = package->tensor(p, "taps_norm", 1, int64_t{needs->n_taps} * tap_width, &taps_norm, err))) return code;
  for (int32_t i = 0; package->param(p, "fc_norm", 0) != 0 && i < needs->n_taps; ++i) {
    char name[24];
    std::snprintf(name, sizeof name, "tap_norm.%d", i);
    if ((code = package->tensor(p, name, 1, tap_width, &tap_norm[i], err))) return code;
  }
  norm_before_residual = package->param(p, "norm_before_residual", 0) != 0;
  norm_output = package->param(p, "norm_output", 0) != 0;
  if (draft_vocab == info->vocab) return AERIE_D_OK;
  if ((code = package->tensor(p, "vocab_map", 1, draft_vocab, &vocab_map, err))) return code;
  if (vocab_map.dtype != AERIE_DTYPE_I32) return aerie::drafter_fail(err, AERIE_D_INVALID, "package: vocab_map: not i32");
  return AERIE_D_OK;
}

// out (n, H) = the layer over [norm(embedding); norm(g)] with residual g (n, H), as children read it.
void Eagle3::forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& g, aerie_tensor* out) {
  aerie_tensor pair;
  if (compute->scratch(plan, rows->n, 2 * int64_t{hidden}, &pair) || compute->scratch(plan, rows->n, hidden, out))
    return;
  const aerie_tensor left = aerie_tensor_columns(pair, 0, hidden), right = aerie_tensor_columns(pair, hidden, hidden);
  embed_tokens(plan, rows, left);
  compute->rms_norm(plan, &left, &input_norm, layer.rms_eps, &left);
  compute->rms_norm(plan, &g, &hidden_norm, layer.rms_eps, &right);
  compute->decoder_layer_from(plan, &layer, kv, 0, rows, &pair, norm_before_residual ? &right : &g, out);
  for (size_t i = 0; i < deeper.size(); ++i) {
    const aerie_tensor x = *out;
    if (compute->scratch(plan, rows->n, hidden, out)) return;
    compute->decoder_layer(plan, &deeper[i], kv, static_cast<int32_t>(i) + 1, rows, &x, out);
  }
  if (norm_output) compute->rms_norm(plan, out, &norm, layer.rms_eps, out);
}

// The target's features as fc reads them.
aerie_tensor Eagle3::normed(aerie_plan* plan, const aerie_tensor& features) {
  aerie_tensor out;
  if ((!taps_norm.data && !tap_norm[0].data) || compute->scratch(plan, features.rows, features.cols, &out)) return features;
  if (taps_norm.data) compute->rms_norm(plan, &features, &taps_norm, layer.rms_eps, &out);
  for (int32_t i = 0; i < 8 && tap_norm[i].data; ++i) {
    const aerie_tensor from = aerie_tensor_columns(features, int64_t{i} * tap_width, tap_width);
    const aerie_tensor to = aerie_tensor_columns(out, int64_t{i} * tap_width, tap_width);
    compute->rms_norm(plan, &from, &tap_norm[i], layer.rms_eps, &to);
  }
  return out;
}

int32_t Eagle3::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor g, out{};
  if (compute->scratch(plan, rows->n, hidden, &g)) return AERIE_D_NO_MEMORY;
  const aerie_tensor features = normed(plan, rows->feature);
  compute->linear(plan, &features, &fc, fc_bias.data ? &fc_bias : nullptr, nullptr, &g);
  forward(plan, rows, g, &out);
  return compute->copy_rows(plan, &out, &rows->last_row, &state, &rows->root, rows->n_seqs);
}

int32_t Eagle3::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor g, out{};
  if (compute->scratch(plan, rows->n, hidden, &g)) return AERIE_D_NO_MEMORY;
  if (rows->level == 0) {
    compute->copy_rows(plan, &state, &rows->node, &g, nullptr, rows->n);
    out = g;
  } else {
    compute->copy_rows(plan, &state, &rows->parent, &g, nullptr, rows->n);
    forward(plan, rows, g, &out);
    compute->copy_rows(plan, &out, nullptr, &state, &rows->node, rows->n);
  }
  if (!norm_output) compute->rms_norm(plan, &out, &norm, layer.rms_eps, &out);  // what children read is kept already
  return compute->propose_head(plan, &out, &lm_head, nullptr, vocab_map.data ? &vocab_map : nullptr, candidates);
}

}  // namespace eagle
