// External draft model: any packaged target with the same vocabulary proposes the next tokens
// (speculative decoding as first published; Leviathan et al., 2023).
#include "aerie/drafter.hpp"

namespace {

struct SmallModel : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"small_model", "External draft model", "0.1.0",
                                                AERIE_DRAFTER_TAKES_TARGET, aerie::kDrafterCompute | aerie::kDrafterModel};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

  aerie_submodel* draft = nullptr;
  aerie_tensor root{};  // (max_seqs * max_nodes, H): final hidden state of each sequence's root
  int32_t hidden = 0;
};

int32_t SmallModel::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  if (const int32_t code = model->open(host, info->package, &draft, err)) return code;
  if (model->vocab_hash(draft) != info->target_vocab_hash)
    return aerie::drafter_fail(err, AERIE_D_INVALID, "vocabulary: the draft model's tokens are not the target's");
  hidden = model->hidden_size(draft);
  if (compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, hidden, &root))
    return aerie::drafter_fail(err, AERIE_D_NO_MEMORY, "no room for the states of the roots");
  needs->levels = 1;
  return AERIE_D_OK;
}

int32_t SmallModel::observe(aerie_plan* plan, const aerie_draft_rows* rows) {
  aerie_tensor states;
  if (compute->scratch(plan, rows->n, hidden, &states)) return AERIE_D_NO_MEMORY;
  model->forward(plan, draft, rows, &states);
  return compute->copy_rows(plan, &states, &rows->last_row, &root, &rows->root, rows->n_seqs);
}

int32_t SmallModel::propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
  aerie_tensor states;
  if (compute->scratch(plan, rows->n, hidden, &states)) return AERIE_D_NO_MEMORY;
  if (rows->level == 0) compute->copy_rows(plan, &root, &rows->node, &states, nullptr, rows->n);
  else model->forward(plan, draft, rows, &states);
  return model->propose(plan, draft, &states, candidates);
}

}  // namespace

AERIE_DRAFTER_PLUGIN(SmallModel)
