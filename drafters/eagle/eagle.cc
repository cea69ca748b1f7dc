// EAGLE-1/2 drafter: one decoder layer that continues the target's features.
//
//   x_j = fc([embedding(t_{j+1}); f_j]),   h_j = layer(x_j),   logits = target LM head(h_j)
//
// h_j stands for f_{j+1} and predicts t_{j+2}; a drafted node feeds its parent's h back in place of
// the feature (EAGLE, section 3.1; layer without input norm, reference implementation).
#include "eagle.h"

#include <new>

namespace eagle {
namespace {

const Head& of(void* self) { return *static_cast<Head*>(self); }
void destroy(void* self) { delete static_cast<Head*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  return static_cast<Head*>(self)->open(info, "layers.0.", 2 * int64_t{info->hidden}, info->hidden, err);
}

// x -> layer -> out (n, H). `features`, by `index` (NULL: row for row), go to the right half of x's input.
void forward(const Head& e, aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& features,
             const aerie_tensor* index, aerie_tensor* out) {
  aerie_tensor pair, x;
  if (e.compute->scratch(plan, rows->n, 2 * int64_t{e.hidden}, &pair) ||
      e.compute->scratch(plan, rows->n, e.hidden, &x) || e.compute->scratch(plan, rows->n, e.hidden, out))
    return;
  const aerie_tensor right = aerie_tensor_columns(pair, e.hidden, e.hidden);
  e.embed_tokens(plan, rows, aerie_tensor_columns(pair, 0, e.hidden));
  e.compute->copy_rows(plan, &features, index, &right, nullptr, rows->n);
  e.compute->linear(plan, &pair, &e.fc, e.fc_bias.data ? &e.fc_bias : nullptr, nullptr, &x);
  e.compute->decoder_layer(plan, &e.layer, e.kv, 0, rows, &x, out);
}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const Head& e = of(self);
  aerie_tensor out{};
  forward(e, plan, rows, rows->feature, nullptr, &out);
  // The newest row answers for the root.
  return e.compute->copy_rows(plan, &out, &rows->last_row, &e.state, &rows->root, rows->n_seqs);
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const Head& e = of(self);
  aerie_tensor out{};
  if (rows->level == 0) {
    if (e.compute->scratch(plan, rows->n, e.hidden, &out)) return AERIE_D_NO_MEMORY;
    e.compute->copy_rows(plan, &e.state, &rows->node, &out, nullptr, rows->n);
  } else {
    forward(e, plan, rows, e.state, &rows->parent, &out);
    e.compute->copy_rows(plan, &out, nullptr, &e.state, &rows->node, rows->n);
  }
  return e.compute->propose_hidden(plan, &out, candidates);
}

}  // namespace

int32_t create_eagle(const aerie_drafter_host* host, aerie_drafter* out, aerie_drafter_error* err) {
  auto* head = new (std::nothrow) Head;
  if (!head) return AERIE_D_NO_MEMORY;
  if (const int32_t code = find_services(host, head, err)) {
    delete head;
    return code;
  }
  out->self = head;
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->observe = observe;
  out->propose = propose;
  return AERIE_D_OK;
}

}  // namespace eagle
