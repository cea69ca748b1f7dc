// FastEagle drafter: a cascade of decoder layers drafts all levels in one pass (FastEagle, section 2.1).
//
//   g_t = fc([low; middle; high] of row t),   x = fc_in([g_t; embedding(t_{t+1})])
//   h_1 = layer_1(x), h_2 = layer_2(h_1), ... h_N;   logits of level i = target LM head(h_i)
//
// Row t, level i predicts token t + 1 + i. Every layer has keys and values of its own; levels share one batched
// LM head and top-k.
#include <cstdio>

#include "aerie/drafter.hpp"

namespace {

using aerie::drafter_fail;

constexpr int32_t kMaxLevels = 32;

struct FastEagle : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"fasteagle", "FastEagle: a cascade that drafts all levels in one pass", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, aerie::kDrafterCompute | aerie::kDrafterPackage};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

  aerie_decoder_layer layers[kMaxLevels] = {};
  aerie_tensor fc{}, fc_in{};
  aerie_tensor state{};  // (max_seqs, N * H): the newest row's h_1 .. h_N
  aerie_kv* kv = nullptr;
  int32_t hidden = 0, levels = 0;
};

int32_t FastEagle::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  char name[32];
  int32_t code = 0;
  if ((code = package->integer(p, "levels", 1, kMaxLevels, &levels, err)) ||
      (code = package->integer(p, "top_k", 1, 128, &needs->max_width, err)) ||
      (code = package->integer(p, "taps", 1, 8, &needs->n_taps, err)))
    return code;
  for (int32_t i = 0; i < needs->n_taps; ++i) {
    std::snprintf(name, sizeof name, "tap.%d", i);
    if ((code = package->integer(p, name, 0, 1 << 16, &needs->taps[i], err))) return code;
  }
  if ((code = package->tensor(p, "fc", h, needs->n_taps * h, &fc, err)) ||
      (code = package->tensor(p, "fc_in", h, 2 * h, &fc_in, err)))
    return code;
  for (int32_t i = 0; i < levels; ++i) {
    std::snprintf(name, sizeof name, "layers.%d.", i);
    if ((code = package->decoder_layer(p, name, h, h, &layers[i], err))) return code;
    if (layers[i].attn_norm.data) continue;
    std::snprintf(name, sizeof name, "layers.%d.attn_norm", i);
    return package->tensor(p, name, 1, h, &layers[i].attn_norm, err);  // missing: says so
  }
  std::snprintf(name, sizeof name, "layers.%d.attn.qkv", levels);
  if (package->has(p, name)) return drafter_fail(err, AERIE_D_INVALID, "package: parameter levels: fewer than its layers");
  if ((code = open_kv(p, layers[0], levels, &kv, err))) return code;
  if ((code = compute->tensor_create(host, info->max_seqs, levels * h, &state)))
    return drafter_fail(err, code, "no room for the level states");
  hidden = info->hidden;
  needs->levels = levels;
  needs->max_depth = levels;
  return AERIE_D_OK;
}

int32_t FastEagle::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  const aerie_service_compute& c = *compute;
  aerie_tensor pair, x, y;
  if (c.scratch(plan, rows->n, 2 * int64_t{hidden}, &pair) || c.scratch(plan, rows->n, hidden, &x) ||
      c.scratch(plan, rows->n, hidden, &y))
    return AERIE_D_NO_MEMORY;
  const aerie_tensor g = aerie_tensor_columns(pair, 0, hidden), e = aerie_tensor_columns(pair, hidden, hidden);
  c.linear(plan, &rows->feature, &fc, nullptr, nullptr, &g);
  c.embed_target(plan, &rows->token, &e);
  c.linear(plan, &pair, &fc_in, nullptr, nullptr, &x);
  for (int32_t i = 0; i < levels; ++i) {
    c.decoder_layer(plan, &layers[i], kv, i, rows, &x, &y);
    const aerie_tensor level = aerie_tensor_columns(state, int64_t{i} * hidden, hidden);
    c.copy_rows(plan, &y, &rows->last_row, &level, &rows->sequence, rows->n_seqs);
    const aerie_tensor t = x;
    x = y;
    y = t;
  }
  return AERIE_D_OK;
}

int32_t FastEagle::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor states;  // (n * N, H), filled as (n, N * H)
  if (compute->scratch(plan, int64_t{rows->n} * levels, hidden, &states)) return AERIE_D_NO_MEMORY;
  aerie_tensor wide = states;
  wide.rows = rows->n;
  wide.cols = wide.stride = int64_t{levels} * hidden;
  compute->copy_rows(plan, &state, &rows->sequence, &wide, nullptr, rows->n);
  return compute->propose_hidden(plan, &states, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(FastEagle)
