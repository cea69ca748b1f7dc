// Hydra drafter: Medusa's heads, each reading the tokens drafted before it (Hydra, section 3).
//
//   head i, for a node at depth i (the root at 0) after tokens t_{j+1} .. t_{j+1+i}:
//   x = [f_j; embedding(t_{j+1}); .. embedding(t_{j+1+i})],   h = R x + r + SiLU(W x + b)
//   further blocks h = h + SiLU(W h + b);   logits = the head's own LM head, or the target's
//
// A level a call: every node keeps its concatenation, its children append to it.
#include <cstdio>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

constexpr int32_t kMaxHeads = 16, kMaxBlocks = 4;

struct Head {
  aerie_tensor weight[kMaxBlocks] = {}, bias[kMaxBlocks] = {};
  aerie_tensor res_weight{}, res_bias{}, lm_head{}, lm_bias{};
};

struct Hydra {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;
  Head heads[kMaxHeads];
  aerie_tensor state{};  // (max_seqs * max_nodes, (K + 1) * H): feature and embeddings of a node's path
  int32_t hidden = 0, n_heads = 0, blocks = 0;
};

int32_t fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

void destroy(void* self) { delete static_cast<Hydra*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  Hydra& m = *static_cast<Hydra*>(self);
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  int32_t code = 0, own = 0;
  if ((code = m.package->integer(p, "heads", 1, kMaxHeads, &m.n_heads, err)) ||
      (code = m.package->integer(p, "blocks", 1, kMaxBlocks, &m.blocks, err)) ||
      (code = m.package->integer(p, "own_lm_heads", 0, 1, &own, err)))
    return code;
  char name[64];
  for (int32_t i = 0; i < m.n_heads; ++i) {
    Head& head = m.heads[i];
    const auto tensor = [&](const char* what, int64_t rows, int64_t cols, aerie_tensor* out) {
      if (code) return;
      std::snprintf(name, sizeof name, "heads.%d.%s", i, what);
      code = m.package->tensor(p, name, rows, cols, out, err);
    };
    tensor("res_connection", h, (i + 2) * h, &head.res_weight);
    tensor("res_connection.bias", 1, h, &head.res_bias);
    for (int32_t b = 0; b < m.blocks; ++b) {
      char what[32];
      std::snprintf(what, sizeof what, "%d.linear", b);
      tensor(what, h, b == 0 ? (i + 2) * h : h, &head.weight[b]);
      std::snprintf(what, sizeof what, "%d.linear.bias", b);
      tensor(what, 1, h, &head.bias[b]);
    }
    if (own) {
      tensor("lm_head", info->vocab, h, &head.lm_head);
      tensor("lm_head.bias", 1, info->vocab, &head.lm_bias);
    }
    if (code) return code;
  }
  std::snprintf(name, sizeof name, "heads.%d.0.linear", m.n_heads);
  if (m.package->has(p, name)) return fail(err, AERIE_D_INVALID, "package: parameter heads: fewer than the heads it holds");
  std::snprintf(name, sizeof name, "heads.0.%d.linear", m.blocks);
  if (m.package->has(p, name)) return fail(err, AERIE_D_INVALID, "package: parameter blocks: fewer than the blocks it holds");
  if (!own && m.package->has(p, "heads.0.lm_head"))
    return fail(err, AERIE_D_INVALID, "package: parameter own_lm_heads: 0, but it holds heads.0.lm_head");
  if ((code = m.compute->tensor_create(m.host, int64_t{info->max_seqs} * info->max_nodes, (m.n_heads + 1) * h, &m.state)))
    return fail(err, code, "no room for the node states");
  m.hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  needs->max_depth = m.n_heads;
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const Hydra& m = *static_cast<Hydra*>(self);
  aerie_tensor e;
  if (m.compute->scratch(plan, rows->n, m.hidden, &e)) return AERIE_D_NO_MEMORY;
  m.compute->embed_target(plan, &rows->token, &e);
  const aerie_tensor left = aerie_tensor_columns(m.state, 0, m.hidden), right = aerie_tensor_columns(m.state, m.hidden, m.hidden);
  m.compute->copy_rows(plan, &rows->feature, &rows->last_row, &left, &rows->root, rows->n_seqs);
  return m.compute->copy_rows(plan, &e, &rows->last_row, &right, &rows->root, rows->n_seqs);
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const Hydra& m = *static_cast<Hydra*>(self);
  const aerie_service_compute& c = *m.compute;
  if (rows->level >= m.n_heads) return AERIE_D_UNSUPPORTED;  // deeper than it said it can
  const Head& head = m.heads[rows->level];
  const int64_t n = rows->n, h = m.hidden, before = (rows->level + 1) * h;
  aerie_tensor path, x, y;
  if (c.scratch(plan, n, before + h, &path) || c.scratch(plan, n, h, &x) || c.scratch(plan, n, h, &y))
    return AERIE_D_NO_MEMORY;
  if (rows->level == 0) {
    const aerie_tensor kept = aerie_tensor_columns(m.state, 0, before + h);
    c.copy_rows(plan, &kept, &rows->node, &path, nullptr, n);
  } else {
    const aerie_tensor kept = aerie_tensor_columns(m.state, 0, before), left = aerie_tensor_columns(path, 0, before);
    const aerie_tensor right = aerie_tensor_columns(path, before, h), own = aerie_tensor_columns(m.state, 0, before + h);
    c.copy_rows(plan, &kept, &rows->parent, &left, nullptr, n);
    c.embed_target(plan, &rows->token, &right);
    c.copy_rows(plan, &path, nullptr, &own, &rows->node, n);
  }
  c.linear(plan, &path, &head.weight[0], &head.bias[0], nullptr, &y);
  c.activate(plan, AERIE_ACT_SILU, &y, &y);
  c.linear(plan, &path, &head.res_weight, &head.res_bias, &y, &x);
  for (int32_t b = 1; b < m.blocks; ++b) {
    c.linear(plan, &x, &head.weight[b], &head.bias[b], nullptr, &y);
    c.activate(plan, AERIE_ACT_SILU, &y, &y);
    c.add(plan, &x, &y, &x);
  }
  if (!head.lm_head.data) return c.propose_hidden(plan, &x, candidates);
  return c.propose_head(plan, &x, &head.lm_head, &head.lm_bias, nullptr, candidates);
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, "hydra");
  std::strcpy(out->title, "Hydra: heads that read what was drafted before them");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error* err) {
  auto* m = new (std::nothrow) Hydra;
  if (!m) return AERIE_D_NO_MEMORY;
  m->host = host;
  m->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  m->package = static_cast<const aerie_service_package*>(host->get_service(host, AERIE_SERVICE_PACKAGE));
  if (!m->compute || !m->package) {
    delete m;
    return fail(err, AERIE_D_UNSUPPORTED, "the host lacks " AERIE_SERVICE_COMPUTE " or " AERIE_SERVICE_PACKAGE);
  }
  out->self = m;
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
