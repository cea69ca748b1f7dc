// EAGLE-1/2 drafter: one decoder layer that continues the target's features.
//
//   x_j = fc([embedding(t_{j+1}); f_j]),   h_j = layer(x_j),   logits = target LM head(h_j)
//
// h_j stands for f_{j+1} and predicts t_{j+2}; a drafted node feeds its parent's h back in place of
// the feature (EAGLE, section 3.1; layer without input norm, reference implementation).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

struct Eagle {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;

  aerie_decoder_layer layer{};
  aerie_tensor fc{}, fc_bias{}, embed{};
  aerie_tensor state{};  // (max_seqs * max_nodes, H): h of every fed node
  aerie_kv* kv = nullptr;
  int32_t hidden = 0;

  // x -> layer -> out, for rows whose features are in the right half of `pair`.
  void forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& pair, aerie_tensor* out) const {
    const aerie_tensor left = aerie_tensor_columns(pair, 0, hidden);
    if (embed.data) compute->embed(plan, &embed, &rows->token, &left);
    else compute->embed_target(plan, &rows->token, &left);
    aerie_tensor x;
    if (compute->scratch(plan, rows->n, hidden, &x) || compute->scratch(plan, rows->n, hidden, out)) return;
    compute->linear(plan, &pair, &fc, fc_bias.data ? &fc_bias : nullptr, nullptr, &x);
    compute->decoder_layer(plan, &layer, kv, 0, rows, &x, out);
  }
};

int32_t fail(aerie_drafter_error* err, int32_t code, const char* format, const char* name, long long a, long long b) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, format, name, a, b);
  }
  return code;
}

void destroy(void* self) { delete static_cast<Eagle*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  Eagle& e = *static_cast<Eagle*>(self);
  const aerie_package* p = info->package;
  const auto param = [&](const char* name, double fallback) { return e.package->param(p, name, fallback); };
  const int32_t hidden = info->hidden;
  const auto heads = static_cast<int32_t>(param("heads", 0));
  const auto kv_heads = static_cast<int32_t>(param("kv_heads", heads));
  const auto head_dim = static_cast<int32_t>(param("head_dim", heads > 0 ? hidden / heads : 0));
  const auto ffn = static_cast<int32_t>(param("ffn", 0));
  if (heads < 1 || kv_heads < 1 || heads % kv_heads || head_dim < 2 || head_dim % 2 || ffn < 1)
    return fail(err, AERIE_D_INVALID, "package: %s: %lld heads, head size %lld do not make a layer", "heads", heads, head_dim);

  const auto tensor = [&](const char* name, int64_t rows, int64_t cols, aerie_tensor* out) -> int32_t {
    if (const int32_t code = e.package->tensor(p, name, out, err)) return code;
    if (out->rows == rows && out->cols == cols) return AERIE_D_OK;
    return fail(err, AERIE_D_INVALID, "package: %s: shape is (%lld, %lld)", name, out->rows, out->cols);
  };
  const int64_t q = int64_t{heads} * head_dim, qkv = q + 2 * int64_t{kv_heads} * head_dim;
  aerie_decoder_layer& w = e.layer;
  w.struct_size = sizeof w;
  w.heads = heads;
  w.kv_heads = kv_heads;
  w.head_dim = head_dim;
  w.rms_eps = static_cast<float>(param("rms_eps", 1e-5));
  int32_t code = 0;
  if ((code = tensor("fc", hidden, 2 * int64_t{hidden}, &e.fc)) ||
      (code = tensor("layers.0.attn.qkv", qkv, hidden, &w.qkv)) ||
      (code = tensor("layers.0.attn.o", hidden, q, &w.o)) ||
      (code = tensor("layers.0.mlp_norm", 1, hidden, &w.mlp_norm)) ||
      (code = tensor("layers.0.mlp.gate_up", 2 * int64_t{ffn}, hidden, &w.gate_up)) ||
      (code = tensor("layers.0.mlp.down", hidden, ffn, &w.down)))
    return code;
  if (e.package->has(p, "fc.bias") && (code = tensor("fc.bias", 1, hidden, &e.fc_bias))) return code;
  if (e.package->has(p, "layers.0.attn.qkv.bias") && (code = tensor("layers.0.attn.qkv.bias", 1, qkv, &w.qkv_bias)))
    return code;
  if (e.package->has(p, "embed") && (code = tensor("embed", info->vocab, hidden, &e.embed))) return code;

  aerie_kv_desc kv{};
  kv.struct_size = sizeof kv;
  kv.layers = 1;
  kv.kv_heads = kv_heads;
  kv.head_dim = head_dim;
  kv.rope_theta = static_cast<float>(param("rope_theta", 10000));
  if ((code = e.compute->kv_create(e.host, &kv, &e.kv)))
    return fail(err, code, "%s: no room for %lld heads of %lld", "KV cache", kv_heads, head_dim);
  if ((code = e.compute->tensor_create(e.host, int64_t{info->max_seqs} * info->max_nodes, hidden, &e.state)))
    return fail(err, code, "%s: no room for %lld nodes of %lld", "node states", int64_t{info->max_seqs} * info->max_nodes, hidden);
  e.hidden = hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  needs->levels = 1;
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const Eagle& e = *static_cast<Eagle*>(self);
  aerie_tensor pair, out;
  if (e.compute->scratch(plan, rows->n, 2 * int64_t{e.hidden}, &pair)) return AERIE_D_NO_MEMORY;
  const aerie_tensor right = aerie_tensor_columns(pair, e.hidden, e.hidden);
  e.compute->copy_rows(plan, &rows->feature, nullptr, &right, nullptr, rows->n);
  e.forward(plan, rows, pair, &out);
  // The newest row answers for the root.
  return e.compute->copy_rows(plan, &out, &rows->last_row, &e.state, &rows->root, rows->n_seqs);
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const Eagle& e = *static_cast<Eagle*>(self);
  aerie_tensor out;
  if (rows->level == 0) {
    if (e.compute->scratch(plan, rows->n, e.hidden, &out)) return AERIE_D_NO_MEMORY;
    e.compute->copy_rows(plan, &e.state, &rows->node, &out, nullptr, rows->n);
  } else {
    aerie_tensor pair;
    if (e.compute->scratch(plan, rows->n, 2 * int64_t{e.hidden}, &pair)) return AERIE_D_NO_MEMORY;
    const aerie_tensor right = aerie_tensor_columns(pair, e.hidden, e.hidden);
    e.compute->copy_rows(plan, &e.state, &rows->parent, &right, nullptr, rows->n);
    e.forward(plan, rows, pair, &out);
    e.compute->copy_rows(plan, &out, nullptr, &e.state, &rows->node, rows->n);
  }
  return e.compute->propose_hidden(plan, &out, candidates);
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, "eagle");
  std::strcpy(out->title, "EAGLE-1/2: autoregression on features");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error* err) {
  auto* e = new (std::nothrow) Eagle;
  if (!e) return AERIE_D_NO_MEMORY;
  e->host = host;
  e->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  e->package = static_cast<const aerie_service_package*>(host->get_service(host, AERIE_SERVICE_PACKAGE));
  if (!e->compute || !e->package) {
    delete e;
    return fail(err, AERIE_D_UNSUPPORTED, "%s: the host lacks the service (ABI %lld.%lld)", AERIE_SERVICE_COMPUTE,
                host->abi_major, host->abi_minor);
  }
  out->self = e;
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->observe = observe;
  out->propose = propose;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}
