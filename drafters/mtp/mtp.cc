// What models are trained with for multi-token prediction (MTP): a decoder layer of their own family behind their last, which goes on from
// their output as EAGLE's head does from its target's (DeepSeek-V3, arXiv:2412.19437, section 2.2; Qwen3.5, GLM-4.5).
//
//   x_j = fc([input_norm(embedding(t_{j+1})); hidden_norm(f_j)]),   h_j = layers(x_j),   logits = LM head(norm(h_j))
//
// f_j is the target's output behind its final norm. h_j stands for f_{j+1}, normed where the model's own code norms it before it goes on
// (norm_output): a drafted node feeds its parent's back in place of the feature.
#include "aerie/drafter.hpp"

namespace {

struct Mtp : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"mtp", "MTP: the model's own layers for multi-token prediction", "0.1.0", AERIE_DRAFTER_FEATURES,
                                                aerie::kDrafterCompute | aerie::kDrafterPackage | aerie::kDrafterLayers};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

 private:
  // `features`, by `index` (NULL: row for row). out (n, H): as children read it.
  void forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& features, const aerie_tensor* index, aerie_tensor* out);

  aerie_layers* decoder = nullptr;
  aerie_tensor fc{}, input_norm{}, hidden_norm{}, norm{}, embed{}, lm_head{};
  aerie_tensor state{};  // (max_seqs * max_nodes, H): output of every fed node
  int32_t hidden = 0;
  float eps = 0;
  bool norm_output = false;
};

int32_t Mtp::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  int32_t code = 0;
  if ((code = layers->open(host, p, &decoder, err))) return code;
  if (layers->hidden_size(decoder) != hidden) return aerie::drafter_fail(err, AERIE_D_INVALID, "package: decoder: is not as wide as the target");
  eps = layers->rms_eps(decoder);
  const int64_t h = hidden;
  if ((code = package->tensor(p, "fc", h, 2 * h, &fc, err)) || (code = package->tensor(p, "input_norm", 1, h, &input_norm, err)) ||
      (code = package->tensor(p, "hidden_norm", 1, h, &hidden_norm, err)))
    return code;
  const auto optional = [&](const char* name, int64_t rows, aerie_tensor* t) {
    if (!code && package->has(p, name)) code = package->tensor(p, name, rows, h, t, err);
  };
  optional("norm", 1, &norm);
  optional("embed", info->vocab, &embed);
  optional("lm_head", info->vocab, &lm_head);
  if (code) return code;
  norm_output = norm.data && package->param(p, "norm_output", 0) != 0;
  if ((code = compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, h, &state)))
    return aerie::drafter_fail(err, code, "no room for the node states");
  return AERIE_D_OK;
}

void Mtp::forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& features, const aerie_tensor* index, aerie_tensor* out) {
  aerie_tensor pair;
  if (compute->scratch(plan, rows->n, 2 * int64_t{hidden}, &pair) || compute->scratch(plan, rows->n, hidden, out)) return;
  const aerie_tensor left = aerie_tensor_columns(pair, 0, hidden), right = aerie_tensor_columns(pair, hidden, hidden);
  if (embed.data) compute->embed(plan, &embed, &rows->token, &left);
  else compute->embed_target(plan, &rows->token, &left);
  compute->rms_norm(plan, &left, &input_norm, eps, &left);
  compute->copy_rows(plan, &features, index, &right, nullptr, rows->n);
  compute->rms_norm(plan, &right, &hidden_norm, eps, &right);
  compute->linear(plan, &pair, &fc, nullptr, nullptr, out);
  layers->forward(plan, decoder, rows, out, out);
  if (norm_output) compute->rms_norm(plan, out, &norm, eps, out);
}

int32_t Mtp::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor out{};
  forward(plan, rows, rows->feature, nullptr, &out);
  // The newest row answers for the root.
  return compute->copy_rows(plan, &out, &rows->last_row, &state, &rows->root, rows->n_seqs);
}

int32_t Mtp::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor out{};
  if (rows->level == 0) {
    if (compute->scratch(plan, rows->n, hidden, &out)) return AERIE_D_NO_MEMORY;
    compute->copy_rows(plan, &state, &rows->node, &out, nullptr, rows->n);
  } else {
    forward(plan, rows, state, &rows->parent, &out);
    compute->copy_rows(plan, &out, nullptr, &state, &rows->node, rows->n);
  }
  if (norm.data && !norm_output) compute->rms_norm(plan, &out, &norm, eps, &out);  // what children read is kept already
  return lm_head.data ? compute->propose_head(plan, &out, &lm_head, nullptr, nullptr, candidates) : compute->propose_hidden(plan, &out, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(Mtp)
