// DFlash (Block Diffusion for Flash Speculative Decoding, arXiv:2602.06036): a block of masks is filled in one pass, by layers that see both ways.
//
//   c_j = hidden_norm(fc([features of token j])),   keys and values of layer i at position j: those of c_j
//   x = embedding([t, mask, ..., mask]),   logits of level l = target LM head(norm(layers(x))_{l+1})
//
// t is the newest token, of which there are no features yet; its block stands at its position and those behind it.
#include <cstdio>

#include "aerie/drafter.hpp"

namespace {

constexpr int32_t kMostRows = 33, kMostTokens = 1 << 24;

struct DFlash : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"dflash", "DFlash: a block of masks, filled in one pass by layers that see both ways", "0.1.0",
                                                AERIE_DRAFTER_FEATURES,
                                                aerie::kDrafterCompute | aerie::kDrafterPackage | aerie::kDrafterLayers | aerie::kDrafterBlock};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

 private:
  aerie_layers* decoder = nullptr;
  aerie_tensor fc{}, hidden_norm{}, norm{};
  int64_t hidden = 0;
  int32_t rows_of_block = 0;
  float eps = 0;
};

int32_t DFlash::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  int32_t code = 0, mask = 0;
  hidden = info->hidden;
  if ((code = package->integer(p, "block", 2, kMostRows, &rows_of_block, err)) ||
      (code = package->integer(p, "mask", 0, kMostTokens, &mask, err)) ||
      (code = package->integer(p, "taps", 1, 8, &needs->n_taps, err)))
    return code;
  for (int32_t i = 0; i < needs->n_taps; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "tap.%d", i);
    if ((code = package->integer(p, name, 0, 1 << 16, &needs->taps[i], err))) return code;
  }
  if ((code = block->open(host, p, rows_of_block, mask, &decoder, err)) ||
      (code = package->tensor(p, "fc", hidden, needs->n_taps * hidden, &fc, err)) ||
      (code = package->tensor(p, "hidden_norm", 1, hidden, &hidden_norm, err)) ||
      (code = package->tensor(p, "norm", 1, hidden, &norm, err)))
    return code;
  eps = layers->rms_eps(decoder);
  needs->levels = needs->max_depth = rows_of_block - 1;
  return AERIE_D_OK;
}

int32_t DFlash::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor context;
  if (compute->scratch(plan, rows->n, hidden, &context)) return AERIE_D_NO_MEMORY;
  compute->linear(plan, &rows->feature, &fc, nullptr, nullptr, &context);
  compute->rms_norm(plan, &context, &hidden_norm, eps, &context);
  return block->feed(plan, decoder, rows, &context);
}

int32_t DFlash::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  const int64_t levels = rows_of_block - 1;
  aerie_tensor blocks, masks;
  if (compute->scratch(plan, int64_t{rows->n} * rows_of_block, hidden, &blocks) || compute->scratch(plan, rows->n * levels, hidden, &masks))
    return AERIE_D_NO_MEMORY;
  block->forward(plan, decoder, rows, &blocks);
  // Of each block all rows but the first, end to end.
  aerie_tensor from = blocks, to = masks;
  from.rows = to.rows = rows->n;
  from.cols = from.stride = rows_of_block * hidden;
  to.cols = to.stride = levels * hidden;
  from = aerie_tensor_columns(from, hidden, levels * hidden);
  compute->copy_rows(plan, &from, nullptr, &to, nullptr, rows->n);
  compute->rms_norm(plan, &masks, &norm, eps, &masks);
  return compute->propose_hidden(plan, &masks, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(DFlash)
