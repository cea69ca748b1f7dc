#include "core/session/device_draft.h"

namespace aerie {

namespace {
static_assert(sizeof(kernels::TreePlace) % 4 == 0 && sizeof(kernels::TreeOut) % 4 == 0 && sizeof(kernels::TreeNode) % 4 == 0);

// Null where a tree names no nodes.
const kernels::TreeSlot* stage(Plan& plan, const std::vector<kernels::TreeSlot>& slots) {
  return slots.empty() ? nullptr : plan.stage(std::span<const kernels::TreeSlot>(slots));
}
}  // namespace

bool DeviceDraft::begin(const TreeShape& shape, bool one_pass) {
  end();
  if (!layout_.lay(shape, one_pass)) return false;
  if (!one_pass && 1 + (shape.levels - 1) * layout_.stride > kMaxFedNodes) return false;
  shape_ = shape;
  one_pass_ = one_pass;
  return true;
}

void DeviceDraft::start(Plan& plan, DraftSequence& sequence) {
  sequence_ = &sequence;
  place_ = static_cast<kernels::TreePlace*>(plan.scratch(layout_.places, sizeof(kernels::TreePlace) / 4).data);
  out_ = static_cast<kernels::TreeOut*>(plan.scratch(1, kernels::tree_out_bytes(verified()) / 4).data);
  frontier_ = static_cast<int32_t*>(plan.scratch(1, layout_.stride).data);
  fed_slots_ = passes() > 1 ? sequence.stage_slots(plan, 1 + (passes() - 1) * layout_.stride) : nullptr;
  asked_.clear();
}

Status DeviceDraft::ask(int32_t root_token, int32_t level, ProposeCall* call, const DraftDraw& draw) {
  asked_.push_back({call, call->rows()});
  return sequence_->propose_blank(call, root_token, level, draft_rows(level), 1 + (level - 1) * layout_.stride, draw);
}

void DeviceDraft::expand(Plan& plan, int32_t level, int32_t vocab_used) const {
  const auto at = static_cast<size_t>(level);
  const Asked& asked = asked_[one_pass_ ? 0 : at];
  const Candidates& c = asked.call->candidates();
  const int64_t list = (int64_t{asked.first} * c.levels + (one_pass_ ? level : 0)) * c.width;
  const bool last = level + 1 == shape_.levels;
  kernels::ExpandTree op{};
  op.places = place_;
  op.out = out_;
  op.first = layout_.first[at];
  op.rows = layout_.rows[at];
  op.width = shape_.width;
  op.level = level;
  op.from = level > 0 ? frontier_ : nullptr;
  op.token = static_cast<const int32_t*>(c.device_token.data) + list;
  op.logp = static_cast<const float*>(c.device_logp.data) + list;
  op.one_list = one_pass_;
  op.vocab_used = vocab_used;
  op.keep = shape_.beam > 0 ? shape_.keep : 0;
  if (!last) op.slots = stage(plan, layout_.expanded[at]);
  op.next = frontier_;
  op.next_rows = last ? 0 : layout_.rows[at + 1];
  if (!one_pass_ && !last) {
    op.draft = asked_[at + 1].call->blank_rows(asked_[at + 1].first);
    op.draft.slots = fed_slots_;
    op.draft.node_base = sequence_->node_base();
    op.draft.stride = layout_.stride;
  }
  plan.add(op);
}

void DeviceDraft::select(Plan& plan, const Rows& rows, int32_t first_row, int32_t tail, const StagedWalks& walks) const {
  const auto from = [&](const int32_t* p, int32_t at) { return const_cast<int32_t*>(p) + at; };
  kernels::SelectTree op{};
  op.places = place_;
  op.n_places = layout_.places;
  op.keep = verified() - 1;
  op.slots = stage(plan, layout_.chosen);
  op.width = shape_.width;
  op.rows = verified();
  op.first_row = first_row;
  op.tail_room = shape_.levels;
  op.slot = rows.slot + first_row;
  op.token = from(rows.token, first_row);
  op.position = from(rows.position, first_row);
  op.tail_len = from(rows.attention.tail_len, first_row);
  op.tail_slots = from(rows.attention.tail_slots, tail);
  op.walk_token = walks.token + first_row;
  op.first_child = walks.first_child + first_row;
  op.next_sibling = walks.next_sibling + first_row;
  op.out = out_;
  plan.add(op);
}

void DeviceDraft::download(Plan& plan) {
  const int64_t bytes = kernels::tree_out_bytes(verified());
  host_.resize(static_cast<size_t>(bytes / 4));
  plan.add(kernels::Download{host_.data(), out_, bytes});
}

Status DeviceDraft::take(DraftTree* tree, std::vector<int32_t>* selected, int32_t* proposed) const {
  const auto* out = reinterpret_cast<const kernels::TreeOut*>(host_.data());
  const auto* nodes = reinterpret_cast<const kernels::TreeNode*>(out + 1);
  *proposed = out->proposed;
  if (out->status != 0) return error(Code::plugin, "propose: tokens or confidences are nonsense");
  for (int32_t i = 1; i < out->rows; ++i) {
    if (tree->add_children(nodes[i].parent, {&nodes[i].token, 1}, {&nodes[i].confidence, 1}) != 1)
      return error(Code::internal, "session: the device's tree is none");
    selected->push_back(i);
  }
  return {};
}

}  // namespace aerie
