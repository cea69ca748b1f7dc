// EAGLE-3 drafter: features of three depths, fused; a draft vocabulary and LM head of its own.
//
//   g_j = fc([low; middle; high] of row j)            rows of committed tokens
//   g   = the parent's output                         drafted rows: fc is skipped
//   a   = g + attention([input_norm(embedding(t_{j+1})); hidden_norm(g)]),   out = a + mlp(norm(a))
//   logits = lm_head(out_norm(out)), over the draft vocabulary (EAGLE-3, section 3; reference implementation)
#include <new>

#include "eagle.h"

namespace eagle {
namespace {

struct Head3 : Head {
  aerie_tensor input_norm{}, hidden_norm{}, norm{}, lm_head{}, vocab_map{};
};
const Head3& of(void* self) { return *static_cast<Head3*>(self); }
void destroy(void* self) { delete static_cast<Head3*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  Head3& e = *static_cast<Head3*>(self);
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  int32_t code = 0, draft_vocab = 0;
  if ((code = e.package->integer(p, "taps", 1, 8, &needs->n_taps, err))) return code;
  for (int32_t i = 0; i < needs->n_taps; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "tap.%d", i);
    if ((code = e.package->integer(p, name, 0, 1 << 16, &needs->taps[i], err))) return code;
  }
  if ((code = e.Head::open(info, "layers.0.", needs->n_taps * h, 2 * h, err)) ||
      (code = e.package->integer(p, "draft_vocab", 1, info->vocab, &draft_vocab, err)) ||
      (code = e.package->tensor(p, "input_norm", 1, h, &e.input_norm, err)) ||
      (code = e.package->tensor(p, "hidden_norm", 1, h, &e.hidden_norm, err)) ||
      (code = e.package->tensor(p, "norm", 1, h, &e.norm, err)) ||
      (code = e.package->tensor(p, "lm_head", draft_vocab, h, &e.lm_head, err)))
    return code;
  if (draft_vocab == info->vocab) return AERIE_D_OK;
  if ((code = e.package->tensor(p, "vocab_map", 1, draft_vocab, &e.vocab_map, err))) return code;
  if (e.vocab_map.dtype != AERIE_DTYPE_I32) return fail(err, AERIE_D_INVALID, "package: vocab_map: not i32");
  return AERIE_D_OK;
}

// out (n, H) = the layer over [norm(embedding); norm(g)] with residual g (n, H).
void forward(const Head3& e, aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& g, aerie_tensor* out) {
  aerie_tensor pair;
  if (e.compute->scratch(plan, rows->n, 2 * int64_t{e.hidden}, &pair) ||
      e.compute->scratch(plan, rows->n, e.hidden, out))
    return;
  const aerie_tensor left = aerie_tensor_columns(pair, 0, e.hidden), right = aerie_tensor_columns(pair, e.hidden, e.hidden);
  e.embed_tokens(plan, rows, left);
  e.compute->rms_norm(plan, &left, &e.input_norm, e.layer.rms_eps, &left);
  e.compute->rms_norm(plan, &g, &e.hidden_norm, e.layer.rms_eps, &right);
  e.compute->decoder_layer_from(plan, &e.layer, e.kv, 0, rows, &pair, &g, out);
}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const Head3& e = of(self);
  aerie_tensor g, out{};
  if (e.compute->scratch(plan, rows->n, e.hidden, &g)) return AERIE_D_NO_MEMORY;
  e.compute->linear(plan, &rows->feature, &e.fc, e.fc_bias.data ? &e.fc_bias : nullptr, nullptr, &g);
  forward(e, plan, rows, g, &out);
  return e.compute->copy_rows(plan, &out, &rows->last_row, &e.state, &rows->root, rows->n_seqs);
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const Head3& e = of(self);
  aerie_tensor g, out{};
  if (e.compute->scratch(plan, rows->n, e.hidden, &g)) return AERIE_D_NO_MEMORY;
  if (rows->level == 0) {
    e.compute->copy_rows(plan, &e.state, &rows->node, &g, nullptr, rows->n);
    out = g;
  } else {
    e.compute->copy_rows(plan, &e.state, &rows->parent, &g, nullptr, rows->n);
    forward(e, plan, rows, g, &out);
    e.compute->copy_rows(plan, &out, nullptr, &e.state, &rows->node, rows->n);
  }
  e.compute->rms_norm(plan, &out, &e.norm, e.layer.rms_eps, &out);  // what children read is kept already
  return e.compute->propose_head(plan, &out, &e.lm_head, nullptr, e.vocab_map.data ? &e.vocab_map : nullptr, candidates);
}

}  // namespace

int32_t create_eagle3(const aerie_drafter_host* host, aerie_drafter* out, aerie_drafter_error* err) {
  auto* head = new (std::nothrow) Head3;
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
