// Medusa drafter: independent heads on one feature, all levels in one pass.
//
//   head i:  x = f_j;  L times x = x + SiLU(W x + b);   logits = the head's own LM head, or the target's
//
// Head i (from 0) predicts t_{j+2+i}, the token i + 1 places after the newest one (Medusa, section 3.1).
#include <cstdio>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

constexpr int32_t kMaxHeads = 16, kMaxBlocks = 4;

struct Medusa {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;
  aerie_tensor weight[kMaxHeads][kMaxBlocks] = {}, bias[kMaxHeads][kMaxBlocks] = {}, lm_head[kMaxHeads] = {};
  aerie_tensor state{};  // (max_seqs, H): the newest row's feature
  int32_t hidden = 0, heads = 0, blocks = 0;
};

int32_t fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

void destroy(void* self) { delete static_cast<Medusa*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  Medusa& m = *static_cast<Medusa*>(self);
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  int32_t code = 0, own = 0;
  if ((code = m.package->integer(p, "heads", 1, kMaxHeads, &m.heads, err)) ||
      (code = m.package->integer(p, "blocks", 1, kMaxBlocks, &m.blocks, err)) ||
      (code = m.package->integer(p, "own_lm_heads", 0, 1, &own, err)))
    return code;
  char name[48];
  for (int32_t i = 0; i < m.heads; ++i) {
    for (int32_t b = 0; b < m.blocks; ++b) {
      std::snprintf(name, sizeof name, "heads.%d.%d.linear", i, b);
      if ((code = m.package->tensor(p, name, h, h, &m.weight[i][b], err))) return code;
      std::snprintf(name, sizeof name, "heads.%d.%d.linear.bias", i, b);
      if ((code = m.package->tensor(p, name, 1, h, &m.bias[i][b], err))) return code;
    }
    std::snprintf(name, sizeof name, "heads.%d.lm_head", i);
    if (own && (code = m.package->tensor(p, name, info->vocab, h, &m.lm_head[i], err))) return code;
  }
  std::snprintf(name, sizeof name, "heads.%d.0.linear", m.heads);
  if (m.package->has(p, name)) return fail(err, AERIE_D_INVALID, "package: parameter heads: fewer than the heads it holds");
  std::snprintf(name, sizeof name, "heads.0.%d.linear", m.blocks);
  if (m.package->has(p, name)) return fail(err, AERIE_D_INVALID, "package: parameter blocks: fewer than the blocks it holds");
  if (!own && m.package->has(p, "heads.0.lm_head"))
    return fail(err, AERIE_D_INVALID, "package: parameter own_lm_heads: 0, but it holds heads.0.lm_head");
  if ((code = m.compute->tensor_create(m.host, info->max_seqs, h, &m.state)))
    return fail(err, code, "no room for the features");
  m.hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  needs->levels = m.heads;
  needs->max_depth = m.heads;
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const Medusa& m = *static_cast<Medusa*>(self);
  return m.compute->copy_rows(plan, &rows->feature, &rows->last_row, &m.state, &rows->sequence, rows->n_seqs);
}

// Level l of a tensor whose row r * levels + l belongs to row r: (n, cols) with a wide stride.
aerie_tensor level_of(const aerie_tensor& all, int64_t n, int32_t levels, int32_t l) {
  aerie_tensor t = all;
  t.data = static_cast<char*>(t.data) + l * all.cols * 4;
  t.rows = n;
  t.stride = levels * all.cols;
  return t;
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const Medusa& m = *static_cast<Medusa*>(self);
  const aerie_service_compute& c = *m.compute;
  const int64_t n = rows->n;
  aerie_tensor hidden, f, y;
  if (c.scratch(plan, n * m.heads, m.hidden, &hidden) || c.scratch(plan, n, m.hidden, &f) ||
      c.scratch(plan, n, m.hidden, &y))
    return AERIE_D_NO_MEMORY;
  c.copy_rows(plan, &m.state, &rows->sequence, &f, nullptr, n);
  for (int32_t i = 0; i < m.heads; ++i) {
    const aerie_tensor x = level_of(hidden, n, m.heads, i);
    for (int32_t b = 0; b < m.blocks; ++b) {
      const aerie_tensor* in = b == 0 ? &f : &x;
      c.linear(plan, in, &m.weight[i][b], &m.bias[i][b], nullptr, &y);
      c.activate(plan, AERIE_ACT_SILU, &y, &y);
      c.add(plan, in, &y, &x);
    }
    if (m.lm_head[i].data) c.propose_level(plan, i, &x, &m.lm_head[i], nullptr, candidates);
  }
  return m.lm_head[0].data ? AERIE_D_OK : c.propose_hidden(plan, &hidden, candidates);
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, "medusa");
  std::strcpy(out->title, "Medusa: independent heads on one feature");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error* err) {
  auto* m = new (std::nothrow) Medusa;
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
