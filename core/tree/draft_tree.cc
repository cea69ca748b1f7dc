#include "core/tree/draft_tree.h"

#include <algorithm>

namespace aerie {
namespace {

// Written so that NaN, for which every comparison is false, becomes 0.
float clamp_confidence(float c) { return c > 0.0f ? std::min(c, 1.0f) : 0.0f; }

}  // namespace

DraftTree::DraftTree(int32_t capacity) : capacity_(std::max(capacity, 1)) {
  nodes_.reserve(static_cast<size_t>(capacity_));
  links_.reserve(static_cast<size_t>(capacity_));
  reset(0);
}

void DraftTree::reset(int32_t root_token) {
  nodes_.clear();
  links_.clear();
  nodes_.push_back({-1, root_token, 0, 0, 1.0f, 1.0f});
  links_.push_back({-1, -1, -1, 0});
}

int32_t DraftTree::add_children(int32_t parent, std::span<const int32_t> tokens, std::span<const float> confidences) {
  if (parent < 0 || parent >= size()) return 0;
  const size_t n = std::min(tokens.size(), confidences.size());
  int32_t added = 0;
  for (size_t i = 0; i < n && size() < capacity_; ++i) {
    const int32_t token = tokens[i];
    bool known = token < 0;
    for (int32_t c = first_child(parent); c >= 0 && !known; c = next_sibling(c)) known = (*this)[c].token == token;
    if (known) continue;

    const int32_t index = size();
    const DraftNode& up = (*this)[parent];
    const float confidence = clamp_confidence(confidences[i]);
    Links& links = links_[static_cast<size_t>(parent)];
    // A product of floats in [0, 1] rounds to no more than either factor: value(child) <= value(parent).
    const DraftNode node{parent, token, up.depth + 1, links.count, confidence, up.value * confidence};
    if (links.last >= 0) {
      links_[static_cast<size_t>(links.last)].next = index;
    } else {
      links.first = index;
    }
    links.last = index;
    ++links.count;
    nodes_.push_back(node);
    links_.push_back({-1, -1, -1, 0});
    ++added;
  }
  return added;
}

bool ranks_before(const DraftTree& tree, int32_t a, int32_t b) {
  const DraftNode &x = tree[a], &y = tree[b];
  if (x.value != y.value) return x.value > y.value;
  if (x.depth != y.depth) return x.depth < y.depth;
  return a < b;
}

int32_t TreeRows::push(int32_t tree_node, int32_t parent_row, int32_t its_token) {
  const int32_t self = size();
  node.push_back(tree_node);
  token.push_back(its_token);
  parent.push_back(parent_row);
  depth.push_back(parent_row < 0 ? 0 : depth[static_cast<size_t>(parent_row)] + 1);
  first_child.push_back(-1);
  next_sibling.push_back(-1);
  last_child_.push_back(-1);
  if (parent_row < 0) return self;
  int32_t& last = last_child_[static_cast<size_t>(parent_row)];
  (last >= 0 ? next_sibling[static_cast<size_t>(last)] : first_child[static_cast<size_t>(parent_row)]) = self;
  return last = self;
}

void TreeRows::clear() {
  for (auto* v : {&node, &token, &parent, &depth, &first_child, &next_sibling, &last_child_}) v->clear();
}

void TreeRows::build(const DraftTree& tree, std::span<const int32_t> selected) {
  const auto capacity = static_cast<size_t>(tree.capacity());
  if (row_of_.size() < capacity) {
    row_of_.resize(capacity);
    for (auto* v : {&node, &token, &parent, &depth, &first_child, &next_sibling, &last_child_}) v->reserve(capacity);
  }
  clear();

  // row_of_ is never cleared: an entry counts only if the row it names is that very node.
  const auto row = [&](int32_t i) {
    const int32_t r = row_of_[static_cast<size_t>(i)];
    return r < size() && node[static_cast<size_t>(r)] == i ? r : -1;
  };
  row_of_[0] = push(0, -1, tree[0].token);
  for (const int32_t i : selected) {
    if (i <= 0 || i >= tree.size() || row(i) >= 0) continue;
    const int32_t up = row(tree[i].parent);
    if (up >= 0) row_of_[static_cast<size_t>(i)] = push(i, up, tree[i].token);
  }
}

int32_t TreeRows::add(int32_t parent_row, int32_t child) { return push(-1, parent_row, child); }

int32_t TreeRows::find_child(int32_t row, int32_t child) const {
  int32_t at = first_child[static_cast<size_t>(row)];
  while (at >= 0 && token[static_cast<size_t>(at)] != child) at = next_sibling[static_cast<size_t>(at)];
  return at;
}

void TreeRows::keep(std::span<const char> kept) {
  before_.node = node;
  before_.token = token;
  before_.parent = parent;
  clear();
  new_row_.assign(before_.token.size(), -1);
  for (size_t i = 0; i < before_.token.size(); ++i) {
    const int32_t up = i == 0 ? -1 : new_row_[static_cast<size_t>(before_.parent[i])];
    if (i > 0 && (!kept[i] || up < 0)) continue;
    new_row_[i] = push(before_.node[i], up, before_.token[i]);
  }
}

}  // namespace aerie
