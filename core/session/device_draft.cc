#include "core/session/device_draft.h"

#include <algorithm>

#include "core/session/stepper.h"

namespace aerie {

namespace {
static_assert(sizeof(kernels::TreePlace) % 4 == 0 && sizeof(kernels::TreeOut) % 4 == 0 && sizeof(kernels::TreeNode) % 4 == 0);

// Each draft pass has a page table, and they are staged in one plan beside all else.
constexpr int64_t kMostTableBytes = kIndexBytes / 8 * 5;

Status nonsense() { return error(Code::plugin, "propose: tokens or confidences are nonsense"); }
Status no_tree() { return error(Code::internal, "session: the device's tree is none"); }

// Null where a tree names no nodes.
const kernels::TreeSlot* stage(Plan& plan, const std::vector<kernels::TreeSlot>& slots) {
  return slots.empty() ? nullptr : plan.stage(std::span<const kernels::TreeSlot>(slots));
}
}  // namespace

bool DeviceDraft::begin(const TreeShape& shape, bool one_pass, int64_t text_size) {
  end();
  if (!layout_.lay(shape, one_pass)) return false;
  if (!one_pass && 1 + (shape.levels - 1) * layout_.stride > kMaxFedNodes) return false;
  const int64_t table = ((text_size + shape.levels) / kernels::kPageSlots + 1) * 4;
  if (!one_pass && shape.levels * table > kMostTableBytes) return false;
  shape_ = shape;
  one_pass_ = one_pass;
  return true;
}

Status DeviceDraft::start(Plan& plan, DraftSequence& sequence) {
  sequence_ = &sequence;
  place_ = static_cast<kernels::TreePlace*>(plan.scratch(layout_.places, sizeof(kernels::TreePlace) / 4).data);
  out_ = static_cast<kernels::TreeOut*>(plan.scratch(1, kernels::tree_out_bytes(verified()) / 4).data);
  frontier_ = static_cast<int32_t*>(plan.scratch(1, layout_.stride).data);
  fed_slots_ = nullptr;
  if (passes() > 1) AERIE_TRY(sequence.stage_slots(plan, 1 + (passes() - 1) * layout_.stride, &fed_slots_));
  if (const TreeWeighing* w = shape_.weighing) {
    beliefs_ = w->beliefs ? plan.stage(std::span(w->beliefs, 1)) : nullptr;
    gain_by_best_ = w->beliefs ? plan.stage(std::span(w->gain_by_best)) : nullptr;
  }
  asked_.clear();
  return {};
}

Status DeviceDraft::ask(int32_t root_token, int32_t level, ProposeCall* call, const DraftDraw& draw) {
  asked_.push_back({call, call->rows()});
  return sequence_->propose_blank(call, root_token, level, draft_rows(level), 1 + (level - 1) * layout_.stride, draw);
}

int32_t DeviceDraft::passes_run() const {
  return one_pass_ ? 1 : std::clamp(came().levels, 1, shape_.levels);
}

DeviceDraft::Lists DeviceDraft::lists_of(int32_t level) const {
  const Asked& asked = asked_[one_pass_ ? 0 : static_cast<size_t>(level)];
  const Candidates& c = asked.call->candidates();
  const int64_t list = (int64_t{asked.first} * c.levels + (one_pass_ ? level : 0)) * c.width;
  return {static_cast<const int32_t*>(c.device_token.data) + list, static_cast<const float*>(c.device_logp.data) + list};
}

void DeviceDraft::expand(Plan& plan, int32_t level, int32_t vocab_used, int32_t* wanted) {
  const auto at = static_cast<size_t>(level);
  const Lists lists = lists_of(level);
  if (level == 0) lists_ = lists;
  const bool last = level + 1 == shape_.levels;
  kernels::ExpandTree op{};
  op.places = place_;
  op.out = out_;
  op.first = layout_.first[at];
  op.rows = layout_.rows[at];
  op.width = shape_.width;
  op.level = level;
  op.from = level > 0 ? frontier_ : nullptr;
  op.token = lists.token;
  op.logp = lists.logp;
  op.one_list = one_pass_;
  op.vocab_used = vocab_used;
  op.beliefs = weighs() ? beliefs_ : nullptr;
  op.keep = shape_.beam == 0 ? 0 : one_pass_ && shape_.among > 0 ? shape_.among : shape_.keep;
  if (!last) op.slots = stage(plan, layout_.expanded[at]);
  op.next = last ? nullptr : frontier_;
  op.next_rows = last ? 0 : layout_.rows[at + 1];
  if (const TreeWeighing* w = one_pass_ ? nullptr : shape_.weighing) {
    op.weigh = {true, w->draft_cost, w->threshold, last ? 0 : w->gain[at + 1], gain_by_best_ && !last ? gain_by_best_ + at + 1 : nullptr,
                w->explore};
    op.next_rows = last && w->beliefs ? 0 : std::min(shape_.beam, op.rows * op.width);
  }
  op.wanted = last || one_pass_ ? nullptr : wanted;
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
  op.kept_only = weighs() && !one_pass_ && !beliefs_;
  op.among = one_pass_ ? shape_.among : 0;
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
  if (weighs() && one_pass_) download_lists(plan);
  else if (weighs()) download_places(plan);
}

int32_t DeviceDraft::proposed() const { return came().proposed; }

Status DeviceDraft::take(DraftTree* tree, std::vector<int32_t>* selected) const {
  if (came().status != 0) return nonsense();
  selected->clear();
  for (int32_t i = 1; i < came().rows; ++i) {
    const kernels::TreeNode& n = came(i);
    const int32_t parent = n.parent > 0 ? (*selected)[static_cast<size_t>(n.parent) - 1] : 0;
    int32_t node = tree->first_child(parent);
    while (node >= 0 && (*tree)[node].token != n.token) node = tree->next_sibling(node);
    if (node < 0) {
      node = tree->size();
      if (tree->add_children(parent, {&n.token, 1}, {&n.confidence, 1}) != 1) return no_tree();
    }
    selected->push_back(node);
  }
  return {};
}

void DeviceDraft::download_all(Plan& plan) {
  host_.resize(sizeof(kernels::TreeOut) / 4);
  plan.add(kernels::Download{host_.data(), out_, sizeof(kernels::TreeOut)});
  download_places(plan);
}

// Of a drafter that answers all levels at once.
void DeviceDraft::download_lists(Plan& plan) {
  const size_t n = static_cast<size_t>(shape_.levels) * static_cast<size_t>(shape_.width);
  host_token_.resize(n);
  host_logp_.resize(n);
  plan.add(kernels::Download{host_token_.data(), lists_.token, static_cast<int64_t>(n * 4)});
  plan.add(kernels::Download{host_logp_.data(), lists_.logp, static_cast<int64_t>(n * 4)});
}

void DeviceDraft::download_places(Plan& plan) {
  host_places_.resize(static_cast<size_t>(layout_.places));
  plan.add(kernels::Download{host_places_.data(), place_, static_cast<int64_t>(host_places_.size() * sizeof(kernels::TreePlace))});
}

Status DeviceDraft::land() {
  end();
  if (came().status != 0) return nonsense();
  place_of_.assign(1, -1);
  return {};
}

bool DeviceDraft::has(const DraftTree& tree, std::span<const int32_t> frontier) const {
  return tree.size() == static_cast<int32_t>(place_of_.size()) && std::all_of(frontier.begin(), frontier.end(), [&](int32_t n) {
    return n == 0 || host_places_[static_cast<size_t>(place_of_[static_cast<size_t>(n)])].row > 0;
  });
}

int32_t DeviceDraft::answer(DraftTree* tree, std::span<const int32_t> frontier) {
  const int32_t before = tree->size();
  for (const int32_t node : frontier) {
    int32_t r = 0;  // of those expanded at its depth
    if (node > 0) {
      const int32_t row = host_places_[static_cast<size_t>(place_of_[static_cast<size_t>(node)])].row;
      r = (row - 1) % layout_.stride;
      sequence_->was_fed(node, row);
    }
    const int32_t first = layout_.first[static_cast<size_t>((*tree)[node].depth)] + r * shape_.width;
    for (int32_t p = first; p < first + shape_.width; ++p) {
      const kernels::TreePlace& child = host_places_[static_cast<size_t>(p)];
      if (tree->add_children(node, {&child.token, 1}, {&child.confidence, 1}) == 1) place_of_.push_back(p);
    }
  }
  return tree->size() - before;
}

}  // namespace aerie
