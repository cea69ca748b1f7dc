// What one element of the tree ops is, for every backend: a candidate as a node, a node as a row.
#pragma once

#include "kernels/ops.h"
#include "kernels/scalar_math.h"
#include "kernels/worth.h"

namespace aerie::kernels {

AERIE_HOST_DEVICE inline float confidence_of(float logp) {
  const float e = exp_own(logp);
  return e > 0 ? (e < 1 ? e : 1.0f) : 0.0f;
}

// The i-th candidate of the r-th node expanded. *bad: no drafter's pass gives this.
AERIE_HOST_DEVICE inline TreePlace tree_child(const ExpandTree& op, int32_t r, int32_t i, bool* bad) {
  const TreePlace none{-1, -1, 0, op.level + 1, 0, 0, 0, 0};
  const int32_t parent = op.from ? op.from[r] : -1;
  if (op.from && parent < 0) return none;
  const int64_t list = op.one_list ? 0 : int64_t{r} * op.width;
  const int32_t token = op.token[list + i];
  const float logp = op.logp[list + i];
  if (i == 0 && token < 0) *bad = true;
  if (token < 0) return none;
  if (token >= op.vocab_used || logp != logp || logp > 1e-3f) {
    *bad = true;
    return none;
  }
  for (int32_t j = 0; j < i; ++j)
    if (op.token[list + j] == token) return none;  // a walk could not tell the two apart
  const float confidence = confidence_of(logp), value = (parent < 0 ? 1.0f : op.places[parent].value) * confidence;
  PathChance chance{value, value};
  if (op.beliefs) {
    const BestChild best = best_child(*op.beliefs, confidence_of(op.logp[list]), op.level);
    const double own = i == 0 ? best.chance : other_child(*op.beliefs, confidence, op.level, best);
    const PathChance before = parent < 0 ? PathChance{1, 1} : PathChance{op.places[parent].product, op.places[parent].worth};
    chance = path_chance(*op.beliefs, before, own, op.level + 1, i == 0);
  }
  return {token, parent, 0, op.level + 1, confidence, value, chance.product, chance.whole};
}

// Of a level's best n nodes, whose worth falls, so many are drafted from.
template <class WorthAt>
AERIE_HOST_DEVICE int32_t to_expand(const ExpandTree& op, int32_t n, const WorthAt& worth_at) {
  if (!op.next || n == 0) return 0;
  const TreeWeigh& w = op.weigh;
  double worth = 0;
  for (int32_t k = 0; k < n; ++k) worth += static_cast<double>(worth_at(k));
  const double factor = w.gain_by_best ? w.gain_by_best->of[gain_bucket(static_cast<double>(worth_at(0)))] : 1;
  if (pays(w.gain * (worth * factor), w.cost, w.threshold)) return n;
  return w.explore && op.out->declined++ == 0 ? 1 : 0;
}
// May SelectTree choose the node at place p? in_among: whether a node is one of the best `among` by value.
template <class InAmong>
AERIE_HOST_DEVICE bool eligible(const SelectTree& op, int32_t p, const InAmong& in_among) {
  const TreePlace& node = op.places[p];
  if (node.token < 0 || (op.kept_only && node.row == 0)) return false;
  return op.among == 0 || ((node.parent < 0 || in_among(node.parent)) && (p % op.width == 0 || in_among(p - 1)));
}

// Once op.next is there: `any` node is.
AERIE_HOST_DEVICE inline void note_level(const ExpandTree& op, bool any) {
  if (any) op.out->levels = op.level + 2;
  if (any && op.wanted) *op.wanted = 1;
}

// The place of a slot's node, -1 where there is none.
AERIE_HOST_DEVICE inline int32_t slot_place(const TreePlace* places, const TreeSlot& slot, int32_t width) {
  int32_t rank = slot.rank;
  for (int32_t p = slot.first; p < slot.first + width; ++p)
    if (places[p].token >= 0 && rank-- == 0) return p;
  return -1;
}

// Row r of the next draft pass, for op.next[r].
AERIE_HOST_DEVICE inline void fill_draft_row(const ExpandTree& op, int32_t r) {
  const TreeDraftRows& d = op.draft;
  const int32_t depth = op.level + 1, place = op.next[r], row = 1 + op.level * d.stride + r;
  int32_t* tail = d.tail_slots ? d.tail_slots + int64_t{r} * depth : nullptr;
  if (place < 0) {  // sees the first row of each depth, which is written if this pass is run
    d.token[r] = 0;
    d.parent[r] = d.node_base;
    for (int32_t i = 0; tail && i < depth; ++i) tail[i] = d.slots[i + 1 < depth ? 1 + i * d.stride : row];
    return;
  }
  TreePlace& node = op.places[place];
  node.row = row;
  d.token[r] = node.token;
  d.parent[r] = d.node_base + (node.parent < 0 ? 0 : op.places[node.parent].row);
  int32_t at = place;
  for (int32_t i = depth; tail && i > 0; --i, at = op.places[at].parent) tail[i - 1] = d.slots[op.places[at].row];
}

// The row of a chosen place, 0 for the root. chosen: ascending, `count` of them; rows begin with the root's.
AERIE_HOST_DEVICE inline int32_t tree_row(const int32_t* chosen, int32_t count, int32_t place) {
  int32_t low = 0, high = count;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (chosen[middle] < place) low = middle + 1;
    else high = middle;
  }
  return place < 0 ? 0 : low + 1;
}

// Row i of the target's pass.
AERIE_HOST_DEVICE inline void fill_tree_row(const SelectTree& op, const int32_t* chosen, int32_t count, int32_t i) {
  op.first_child[i] = op.next_sibling[i] = -1;
  const bool inert = i > count;
  const int32_t place = i > 0 && !inert ? chosen[i - 1] : -1;
  const TreePlace node = place >= 0 ? op.places[place] : TreePlace{-1, -1, 0, inert ? 1 : 0, 0, 0, 0, 0};
  for (int32_t j = count; j > i && !inert; --j) {  // the lowest row of each kind stays
    const int32_t parent = op.places[chosen[j - 1]].parent;
    if (parent == place) op.first_child[i] = op.first_row + j;
    if (i > 0 && parent == node.parent) op.next_sibling[i] = op.first_row + j;
  }
  auto* nodes = reinterpret_cast<TreeNode*>(op.out + 1);
  nodes[i] = {node.token, i > 0 && !inert ? tree_row(chosen, count, node.parent) : -1, node.confidence, place};
  if (i == 0) return;
  op.walk_token[i] = node.token;
  op.token[i] = inert ? 0 : node.token;
  op.position[i] = op.position[0] + node.depth;
  op.tail_len[i] = node.depth;
  int32_t* tail = op.tail_slots + int64_t{i - 1} * op.tail_room;
  if (inert) tail[0] = op.slot[i];
  int32_t at = place;
  for (int32_t d = node.depth; d > 0 && !inert; --d, at = op.places[at].parent)
    tail[d - 1] = op.slot[tree_row(chosen, count, at)];
}

// PathSlots::src[i].
AERIE_HOST_DEVICE inline int32_t path_slot(const PathSlots& op, int32_t i) {
  const auto* out = reinterpret_cast<const WalkOut*>(static_cast<const char*>(op.walks) +
                                                     op.walk[i] * walk_out_bytes(op.max_steps));
  return op.step[i] < out->count ? op.slot[reinterpret_cast<const WalkStep*>(out + 1)[op.step[i]].row] : -1;
}

}  // namespace aerie::kernels
