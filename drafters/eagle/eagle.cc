// EAGLE-1/2 drafter: one decoder layer that continues the target's features.
//
//   x_j = fc([embedding(t_{j+1}); f_j]),   h_j = layer(x_j),   logits = target LM head(h_j)
//
// h_j stands for f_{j+1} and predicts t_{j+2}; a drafted node feeds its parent's h back in place of
// the feature (EAGLE, section 3.1; layer without input norm, reference implementation).
#include "eagle.h"

namespace eagle {

int32_t Eagle::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  return open_head(info, 2 * int64_t{hidden}, hidden, 1, err);
}

// x -> layer -> out (n, H). `features`, by `index` (NULL: row for row), go to the right half of x's input.
void Eagle::forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& features,
                    const aerie_tensor* index, aerie_tensor* out) {
  aerie_tensor pair, x;
  if (compute->scratch(plan, rows->n, 2 * int64_t{hidden}, &pair) || compute->scratch(plan, rows->n, hidden, &x) ||
      compute->scratch(plan, rows->n, hidden, out))
    return;
  const aerie_tensor right = aerie_tensor_columns(pair, hidden, hidden);
  embed_tokens(plan, rows, aerie_tensor_columns(pair, 0, hidden));
  compute->copy_rows(plan, &features, index, &right, nullptr, rows->n);
  compute->linear(plan, &pair, &fc, fc_bias.data ? &fc_bias : nullptr, nullptr, &x);
  compute->decoder_layer(plan, &layer, kv, 0, rows, &x, out);
}

int32_t Eagle::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor out{};
  forward(plan, rows, rows->feature, nullptr, &out);
  // The newest row answers for the root.
  return compute->copy_rows(plan, &out, &rows->last_row, &state, &rows->root, rows->n_seqs);
}

int32_t Eagle::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor out{};
  if (rows->level == 0) {
    if (compute->scratch(plan, rows->n, hidden, &out)) return AERIE_D_NO_MEMORY;
    compute->copy_rows(plan, &state, &rows->node, &out, nullptr, rows->n);
  } else {
    forward(plan, rows, state, &rows->parent, &out);
    compute->copy_rows(plan, &out, nullptr, &state, &rows->node, rows->n);
  }
  return compute->propose_hidden(plan, &out, candidates);
}

}  // namespace eagle
