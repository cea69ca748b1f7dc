// What `auto` takes the nodes of a tree to be worth: how likely the whole path to each is to come true (kernels/beliefs.h).
#pragma once

#include <algorithm>
#include <vector>

#include "core/policy/tree_policy.h"
#include "kernels/beliefs.h"

namespace aerie {

class NodeValues {
 public:
  kernels::Beliefs beliefs;  // as they are while a tree is drawn

  void begin() { chance_.assign(1, {}); }  // another tree
  int32_t size() const { return static_cast<int32_t>(chance_.size()); }
  double of(int32_t node) const { return static_cast<double>(at(node).whole); }
  float product(int32_t node) const { return at(node).product; }  // of the chances along its path

  // Nodes that came since.
  void update(const DraftTree& tree) {
    best_.resize(static_cast<size_t>(tree.size()));
    for (int32_t i = size(); i < tree.size(); ++i) {
      const DraftNode& n = tree[i];
      const int32_t depth = n.depth - 1;
      kernels::BestChild& best = best_[static_cast<size_t>(n.parent)];
      if (n.rank == 0) best = kernels::best_child(beliefs, n.confidence, depth);
      const double chance = n.rank == 0 ? best.chance : kernels::other_child(beliefs, n.confidence, depth, best);
      chance_.push_back(kernels::path_chance(beliefs, at(n.parent), chance, n.depth, n.rank == 0));
    }
  }
  // Value down, depth up, index up: parents before children, as ranks_before by these values.
  void sort(const DraftTree& tree, std::vector<int32_t>* nodes) const {
    std::sort(nodes->begin(), nodes->end(), [&](int32_t a, int32_t b) {
      const float x = at(a).whole, y = at(b).whole;
      if (x != y) return x > y;
      if (tree[a].depth != tree[b].depth) return tree[a].depth < tree[b].depth;
      return a < b;
    });
  }

 private:
  const kernels::PathChance& at(int32_t node) const { return chance_[static_cast<size_t>(node)]; }
  std::vector<kernels::PathChance> chance_{{}};
  std::vector<kernels::BestChild> best_;  // by parent
};

}  // namespace aerie
