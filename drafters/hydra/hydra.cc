// Hydra drafter: Medusa's heads, each reading the tokens drafted before it (Hydra, section 3). Where the package has a prefix
// layer (Hydra++), f_j below is norm(layer(f_0 .. f_j)): attention over the committed features.
//
//   head i, for a node at depth i (the root at 0) after tokens t_{j+1} .. t_{j+1+i}:
//   x = [f_j; embedding(t_{j+1}); .. embedding(t_{j+1+i})],   h = R x + r + SiLU(W x + b)
//   further blocks h = h + SiLU(W h + b);   logits = the head's own LM head, or the target's
//
// A level a call: every node keeps its concatenation, its children append to it.
#include <cstdio>

#include "aerie/drafter.hpp"

namespace {

using aerie::drafter_fail;

constexpr int32_t kMaxHeads = 16, kMaxBlocks = 4;

struct Head {
  aerie_tensor weight[kMaxBlocks] = {}, bias[kMaxBlocks] = {};
  aerie_tensor res_weight{}, res_bias{}, lm_head{}, lm_bias{};
};

struct Hydra : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"hydra", "Hydra: heads that read what was drafted before them", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, aerie::kDrafterCompute | aerie::kDrafterPackage};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

  // Behind a prefix layer "heads" is the number of its attention heads, as in every package with such a layer.
  int32_t open_prefix(const aerie_drafter_open_info* info, aerie_drafter_error* err);
  int32_t embed_tokens(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& out) const {
    return embed.data ? compute->embed(plan, &embed, &rows->token, &out) : compute->embed_target(plan, &rows->token, &out);
  }

  Head heads[kMaxHeads];
  aerie_decoder_layer prefix{};
  aerie_tensor prefix_norm{}, embed{};
  aerie_kv* kv = nullptr;  // the prefix layer's; NULL: there is none
  aerie_tensor state{};  // (max_seqs * max_nodes, (K + 1) * H): feature and embeddings of a node's path
  int32_t hidden = 0, n_heads = 0, blocks = 0;
};

int32_t Hydra::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  const int64_t h = info->hidden;
  int32_t code = 0, own = 0;
  const bool has_prefix = package->has(p, "prefix.norm");
  if ((code = package->integer(p, has_prefix ? "levels" : "heads", 1, kMaxHeads, &n_heads, err)) ||
      (code = package->integer(p, "blocks", 1, kMaxBlocks, &blocks, err)) ||
      (code = package->integer(p, "own_lm_heads", 0, 1, &own, err)))
    return code;
  char name[64];
  for (int32_t i = 0; i < n_heads; ++i) {
    Head& head = heads[i];
    const auto tensor = [&](const char* what, int64_t rows, int64_t cols, aerie_tensor* out) {
      if (code) return;
      std::snprintf(name, sizeof name, "heads.%d.%s", i, what);
      code = package->tensor(p, name, rows, cols, out, err);
    };
    tensor("res_connection", h, (i + 2) * h, &head.res_weight);
    tensor("res_connection.bias", 1, h, &head.res_bias);
    for (int32_t b = 0; b < blocks; ++b) {
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
  std::snprintf(name, sizeof name, "heads.%d.0.linear", n_heads);
  if (package->has(p, name))
    return drafter_fail(err, AERIE_D_INVALID, has_prefix ? "package: parameter levels: fewer than the heads it holds"
                                                         : "package: parameter heads: fewer than the heads it holds");
  std::snprintf(name, sizeof name, "heads.0.%d.linear", blocks);
  if (package->has(p, name)) return drafter_fail(err, AERIE_D_INVALID, "package: parameter blocks: fewer than the blocks it holds");
  if (!own && package->has(p, "heads.0.lm_head"))
    return drafter_fail(err, AERIE_D_INVALID, "package: parameter own_lm_heads: 0, but it holds heads.0.lm_head");
  if (has_prefix && (code = open_prefix(info, err))) return code;
  if (package->has(p, "embed") && (code = package->tensor(p, "embed", info->vocab, h, &embed, err))) return code;
  if ((code = compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, (n_heads + 1) * h, &state)))
    return drafter_fail(err, code, "no room for the node states");
  hidden = info->hidden;
  needs->n_taps = 1;
  needs->taps[0] = AERIE_FEATURE_FINAL;
  needs->max_depth = n_heads;
  return AERIE_D_OK;
}

int32_t Hydra::open_prefix(const aerie_drafter_open_info* info, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  int32_t code = 0;
  if ((code = package->tensor(p, "prefix.norm", 1, info->hidden, &prefix_norm, err)) ||
      (code = package->tensor(p, "prefix.attn_norm", 1, info->hidden, &prefix.attn_norm, err)) ||
      (code = package->decoder_layer(p, "prefix.", info->hidden, info->hidden, &prefix, err)))
    return code;
  return open_kv(p, prefix, 1, &kv, err);
}

int32_t Hydra::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor e, f = rows->feature;
  if (compute->scratch(plan, rows->n, hidden, &e)) return AERIE_D_NO_MEMORY;
  if (kv) {
    if (compute->scratch(plan, rows->n, hidden, &f)) return AERIE_D_NO_MEMORY;
    compute->decoder_layer(plan, &prefix, kv, 0, rows, &rows->feature, &f);
    compute->rms_norm(plan, &f, &prefix_norm, prefix.rms_eps, &f);
  }
  embed_tokens(plan, rows, e);
  const aerie_tensor left = aerie_tensor_columns(state, 0, hidden), right = aerie_tensor_columns(state, hidden, hidden);
  compute->copy_rows(plan, &f, &rows->last_row, &left, &rows->root, rows->n_seqs);
  return compute->copy_rows(plan, &e, &rows->last_row, &right, &rows->root, rows->n_seqs);
}

int32_t Hydra::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const aerie_service_compute& c = *compute;
  if (rows->level >= n_heads) return AERIE_D_UNSUPPORTED;  // deeper than it said it can
  const Head& head = heads[rows->level];
  const int64_t n = rows->n, h = hidden, before = (rows->level + 1) * h;
  aerie_tensor path, x, y;
  if (c.scratch(plan, n, before + h, &path) || c.scratch(plan, n, h, &x) || c.scratch(plan, n, h, &y))
    return AERIE_D_NO_MEMORY;
  if (rows->level == 0) {
    const aerie_tensor kept = aerie_tensor_columns(state, 0, before + h);
    c.copy_rows(plan, &kept, &rows->node, &path, nullptr, n);
  } else {
    const aerie_tensor kept = aerie_tensor_columns(state, 0, before), left = aerie_tensor_columns(path, 0, before);
    const aerie_tensor right = aerie_tensor_columns(path, before, h), own = aerie_tensor_columns(state, 0, before + h);
    c.copy_rows(plan, &kept, &rows->parent, &left, nullptr, n);
    embed_tokens(plan, rows, right);
    c.copy_rows(plan, &path, nullptr, &own, &rows->node, n);
  }
  c.linear(plan, &path, &head.weight[0], &head.bias[0], nullptr, &y);
  c.activate(plan, AERIE_ACT_SILU, &y, &y);
  c.linear(plan, &path, &head.res_weight, &head.res_bias, &y, &x);
  for (int32_t b = 1; b < blocks; ++b) {
    c.linear(plan, &x, &head.weight[b], &head.bias[b], nullptr, &y);
    c.activate(plan, AERIE_ACT_SILU, &y, &y);
    c.add(plan, &x, &y, &x);
  }
  if (!head.lm_head.data) return c.propose_hidden(plan, &x, candidates);
  return c.propose_head(plan, &x, &head.lm_head, &head.lm_bias, nullptr, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(Hydra)
