// Medusa drafter: independent heads on one feature, all levels in one pass.
//
//   head i:  x = f_j;  L times x = x + SiLU(W x + b);   logits = the head's own LM head, or the target's
//
// Head i (from 0) predicts t_{j+2+i}, the token i + 1 places after the newest one (Medusa, section 3.1).
#include <cstdio>

#include "aerie/drafter.hpp"

namespace {

using aerie::drafter_fail;

constexpr int32_t kMaxHeads = 16, kMaxBlocks = 4;

struct Medusa : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"medusa", "Medusa: independent heads on one feature", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, aerie::kDrafterCompute | aerie::kDrafterPackage};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

  aerie_tensor weight[kMaxHeads][kMaxBlocks] = {}, bias[kMaxHeads][kMaxBlocks] = {}, lm_head[kMaxHeads] = {};
  aerie_tensor state{};  // (max_seqs, H): the newest row's feature
  int32_t hidden = 0, heads = 0, blocks = 0;
};

int32_t Medusa::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  int32_t code = 0, own = 0;
  if ((code = package->integer(p, "heads", 1, kMaxHeads, &heads, err)) ||
      (code = package->integer(p, "blocks", 1, kMaxBlocks, &blocks, err)) ||
      (code = package->integer(p, "own_lm_heads", 0, 1, &own, err)))
    return code;
  char name[48];
  for (int32_t i = 0; i < heads; ++i) {
    for (int32_t b = 0; b < blocks; ++b) {
      std::snprintf(name, sizeof name, "heads.%d.%d.linear", i, b);
      if ((code = package->tensor(p, name, h, h, &weight[i][b], err))) return code;
      std::snprintf(name, sizeof name, "heads.%d.%d.linear.bias", i, b);
      if ((code = package->tensor(p, name, 1, h, &bias[i][b], err))) return code;
    }
    std::snprintf(name, sizeof name, "heads.%d.lm_head", i);
    if (own && (code = package->tensor(p, name, info->vocab, h, &lm_head[i], err))) return code;
  }
  std::snprintf(name, sizeof name, "heads.%d.0.linear", heads);
  if (package->has(p, name)) return drafter_fail(err, AERIE_D_INVALID, "package: parameter heads: fewer than the heads it holds");
  std::snprintf(name, sizeof name, "heads.0.%d.linear", blocks);
  if (package->has(p, name)) return drafter_fail(err, AERIE_D_INVALID, "package: parameter blocks: fewer than the blocks it holds");
  if (!own && package->has(p, "heads.0.lm_head"))
    return drafter_fail(err, AERIE_D_INVALID, "package: parameter own_lm_heads: 0, but it holds heads.0.lm_head");
  if ((code = compute->tensor_create(host, info->max_seqs, h, &state)))
    return drafter_fail(err, code, "no room for the features");
  hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  needs->levels = heads;
  needs->max_depth = heads;
  return AERIE_D_OK;
}

int32_t Medusa::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  return compute->copy_rows(plan, &rows->feature, &rows->last_row, &state, &rows->sequence, rows->n_seqs);
}

// Level l of a tensor whose row r * levels + l belongs to row r: (n, cols) with a wide stride.
aerie_tensor level_of(const aerie_tensor& all, int64_t n, int32_t levels, int32_t l) {
  aerie_tensor t = all;
  t.data = static_cast<char*>(t.data) + l * all.cols * 4;
  t.rows = n;
  t.stride = levels * all.cols;
  return t;
}

int32_t Medusa::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const aerie_service_compute& c = *compute;
  const int64_t n = rows->n;
  aerie_tensor states, f, y;
  if (c.scratch(plan, n * heads, hidden, &states) || c.scratch(plan, n, hidden, &f) ||
      c.scratch(plan, n, hidden, &y))
    return AERIE_D_NO_MEMORY;
  c.copy_rows(plan, &state, &rows->sequence, &f, nullptr, n);
  for (int32_t i = 0; i < heads; ++i) {
    const aerie_tensor x = level_of(states, n, heads, i);
    for (int32_t b = 0; b < blocks; ++b) {
      const aerie_tensor* in = b == 0 ? &f : &x;
      c.linear(plan, in, &weight[i][b], &bias[i][b], nullptr, &y);
      c.activate(plan, AERIE_ACT_SILU, &y, &y);
      c.add(plan, in, &y, &x);
    }
    if (lm_head[i].data) c.propose_level(plan, i, &x, &lm_head[i], nullptr, candidates);
  }
  return lm_head[0].data ? AERIE_D_OK : c.propose_hidden(plan, &states, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(Medusa)
