// Assistants that Gemma 4 comes with (transformers' Gemma4Assistant): a few narrow layers that have no keys and values of their own but read
// those of the target's last layers, and so have nothing to catch up with.
//
//   x = pre [sqrt(H) embedding(t); f],   h = norm(layers(x)),   logits = LM head(h),   f' = post h
//
// t is the newest token and f the target's output, behind its final norm, for the token before it; for a drafted node t is its own token and f
// its parent's f'. Every node of a tree has the root's position and looks at the text before the root alone.
#include "aerie/drafter.hpp"

namespace {

struct Assistant : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"assistant", "Assistant: narrow layers over the target's own keys and values (Gemma 4)", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, aerie::kDrafterCompute | aerie::kDrafterPackage | aerie::kDrafterLayers};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

 private:
  // out (n, width): h of rows whose [embedding; f] is in `pair` (n, 2 H).
  int32_t forward(aerie_plan* plan, const aerie_draft_rows* rows, int64_t n, const aerie_tensor& pair, aerie_tensor* out);

  aerie_layers* decoder = nullptr;
  aerie_tensor pre{}, post{}, norm{}, lm_head{};
  aerie_tensor state{};  // (max_seqs * max_nodes, width): h of every fed node
  int64_t hidden = 0, width = 0;  // the target's, and its own
  float eps = 0;
};

int32_t Assistant::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  int32_t code = 0;
  if ((code = layers->open(host, p, &decoder, err))) return code;
  width = layers->hidden_size(decoder);
  eps = layers->rms_eps(decoder);
  if ((code = package->tensor(p, "pre", width, 2 * hidden, &pre, err)) || (code = package->tensor(p, "post", hidden, width, &post, err)) ||
      (code = package->tensor(p, "norm", 1, width, &norm, err)) || (code = package->tensor(p, "lm_head", info->vocab, width, &lm_head, err)))
    return code;
  if ((code = compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, width, &state)))
    return aerie::drafter_fail(err, code, "no room for the node states");
  return AERIE_D_OK;
}

int32_t Assistant::forward(aerie_plan* plan, const aerie_draft_rows* rows, int64_t n, const aerie_tensor& pair, aerie_tensor* out) {
  if (compute->scratch(plan, n, width, out)) return AERIE_D_NO_MEMORY;
  compute->linear(plan, &pair, &pre, nullptr, nullptr, out);
  layers->forward(plan, decoder, rows, out, out);
  return compute->rms_norm(plan, out, &norm, eps, out);
}

// Only the newest row of a text is of use: it answers for the root.
int32_t Assistant::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor embedded{}, pair{}, out{};
  if (compute->scratch(plan, rows->n, hidden, &embedded) || compute->scratch(plan, rows->n_seqs, 2 * hidden, &pair)) return AERIE_D_NO_MEMORY;
  const aerie_tensor left = aerie_tensor_columns(pair, 0, hidden), right = aerie_tensor_columns(pair, hidden, hidden);
  compute->embed_target(plan, &rows->token, &embedded);
  compute->copy_rows(plan, &embedded, &rows->last_row, &left, nullptr, rows->n_seqs);
  compute->copy_rows(plan, &rows->feature, &rows->last_row, &right, nullptr, rows->n_seqs);
  if (const int32_t code = forward(plan, rows, rows->n_seqs, pair, &out)) return code;
  return compute->copy_rows(plan, &out, nullptr, &state, &rows->root, rows->n_seqs);
}

int32_t Assistant::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor before{}, pair{}, out{};
  if (compute->scratch(plan, rows->n, width, &before)) return AERIE_D_NO_MEMORY;
  compute->copy_rows(plan, &state, rows->level == 0 ? &rows->node : &rows->parent, &before, nullptr, rows->n);
  if (rows->level == 0) return compute->propose_head(plan, &before, &lm_head, nullptr, nullptr, candidates);
  if (compute->scratch(plan, rows->n, 2 * hidden, &pair)) return AERIE_D_NO_MEMORY;
  const aerie_tensor left = aerie_tensor_columns(pair, 0, hidden), right = aerie_tensor_columns(pair, hidden, hidden);
  compute->embed_target(plan, &rows->token, &left);
  compute->linear(plan, &before, &post, nullptr, nullptr, &right);
  if (const int32_t code = forward(plan, rows, rows->n, pair, &out)) return code;
  compute->copy_rows(plan, &out, nullptr, &state, &rows->node, rows->n);
  return compute->propose_head(plan, &out, &lm_head, nullptr, nullptr, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(Assistant)
