// FastEagle drafter: a cascade of decoder layers drafts all levels in one pass (FastEagle, section 2.1).
//
//   g_t = fc([low; middle; high] of row t),   x = fc_in([g_t; embedding(t_{t+1})])
//   h_1 = layer_1(x), h_2 = layer_2(h_1), ... h_N;   logits of level i = target LM head(h_i)
//
// Row t, level i predicts token t + 1 + i. Every layer has keys and values of its own; levels share one batched
// LM head and top-k.
#include <cstdio>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

constexpr int32_t kMaxLevels = 32;

struct FastEagle {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;
  aerie_decoder_layer layers[kMaxLevels] = {};
  aerie_tensor fc{}, fc_in{};
  aerie_tensor state{};  // (max_seqs, N * H): the newest row's h_1 .. h_N
  aerie_kv* kv = nullptr;
  int32_t hidden = 0, levels = 0;
};

int32_t fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

void destroy(void* self) { delete static_cast<FastEagle*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  FastEagle& f = *static_cast<FastEagle*>(self);
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  char name[32];
  int32_t code = 0;
  if ((code = f.package->integer(p, "levels", 1, kMaxLevels, &f.levels, err)) ||
      (code = f.package->integer(p, "top_k", 1, 128, &needs->max_width, err)) ||
      (code = f.package->integer(p, "taps", 1, 8, &needs->n_taps, err)))
    return code;
  for (int32_t i = 0; i < needs->n_taps; ++i) {
    std::snprintf(name, sizeof name, "tap.%d", i);
    if ((code = f.package->integer(p, name, 0, 1 << 16, &needs->taps[i], err))) return code;
  }
  if ((code = f.package->tensor(p, "fc", h, needs->n_taps * h, &f.fc, err)) ||
      (code = f.package->tensor(p, "fc_in", h, 2 * h, &f.fc_in, err)))
    return code;
  for (int32_t i = 0; i < f.levels; ++i) {
    std::snprintf(name, sizeof name, "layers.%d.", i);
    if ((code = f.package->decoder_layer(p, name, h, h, &f.layers[i], err))) return code;
    if (f.layers[i].attn_norm.data) continue;
    std::snprintf(name, sizeof name, "layers.%d.attn_norm", i);
    return f.package->tensor(p, name, 1, h, &f.layers[i].attn_norm, err);  // missing: says so
  }
  std::snprintf(name, sizeof name, "layers.%d.attn.qkv", f.levels);
  if (f.package->has(p, name)) return fail(err, AERIE_D_INVALID, "package: parameter levels: fewer than its layers");
  aerie_kv_desc desc{};
  desc.struct_size = sizeof desc;
  desc.layers = f.levels;
  desc.kv_heads = f.layers[0].kv_heads;
  desc.head_dim = f.layers[0].head_dim;
  desc.rope_theta = static_cast<float>(f.package->param(p, "rope_theta", 10000));
  if ((code = f.compute->kv_create(f.host, &desc, &f.kv))) return fail(err, code, "no room for the KV cache");
  if ((code = f.compute->tensor_create(f.host, info->max_seqs, f.levels * h, &f.state)))
    return fail(err, code, "no room for the level states");
  f.hidden = info->hidden;
  needs->levels = f.levels;
  needs->max_depth = f.levels;
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const FastEagle& f = *static_cast<FastEagle*>(self);
  const aerie_service_compute& c = *f.compute;
  aerie_tensor pair, x, y;
  if (c.scratch(plan, rows->n, 2 * int64_t{f.hidden}, &pair) || c.scratch(plan, rows->n, f.hidden, &x) ||
      c.scratch(plan, rows->n, f.hidden, &y))
    return AERIE_D_NO_MEMORY;
  const aerie_tensor g = aerie_tensor_columns(pair, 0, f.hidden), e = aerie_tensor_columns(pair, f.hidden, f.hidden);
  c.linear(plan, &rows->feature, &f.fc, nullptr, nullptr, &g);
  c.embed_target(plan, &rows->token, &e);
  c.linear(plan, &pair, &f.fc_in, nullptr, nullptr, &x);
  for (int32_t i = 0; i < f.levels; ++i) {
    c.decoder_layer(plan, &f.layers[i], f.kv, i, rows, &x, &y);
    const aerie_tensor level = aerie_tensor_columns(f.state, int64_t{i} * f.hidden, f.hidden);
    c.copy_rows(plan, &y, &rows->last_row, &level, &rows->sequence, rows->n_seqs);
    const aerie_tensor t = x;
    x = y;
    y = t;
  }
  return AERIE_D_OK;
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const FastEagle& f = *static_cast<FastEagle*>(self);
  aerie_tensor hidden;  // (n * N, H), filled as (n, N * H)
  if (f.compute->scratch(plan, int64_t{rows->n} * f.levels, f.hidden, &hidden)) return AERIE_D_NO_MEMORY;
  aerie_tensor wide = hidden;
  wide.rows = rows->n;
  wide.cols = wide.stride = int64_t{f.levels} * f.hidden;
  f.compute->copy_rows(plan, &f.state, &rows->sequence, &wide, nullptr, rows->n);
  return f.compute->propose_hidden(plan, &hidden, candidates);
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, "fasteagle");
  std::strcpy(out->title, "FastEagle: a cascade that drafts all levels in one pass");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error* err) {
  auto* f = new (std::nothrow) FastEagle;
  if (!f) return AERIE_D_NO_MEMORY;
  f->host = host;
  f->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  f->package = static_cast<const aerie_service_package*>(host->get_service(host, AERIE_SERVICE_PACKAGE));
  if (!f->compute || !f->package) {
    delete f;
    return fail(err, AERIE_D_UNSUPPORTED, "the host lacks " AERIE_SERVICE_COMPUTE " or " AERIE_SERVICE_PACKAGE);
  }
  out->self = f;
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
