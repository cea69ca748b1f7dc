// What the tree tests share: a pretend drafter and the core's draft loop around a policy.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/policy/tree_policy.h"
#include "core/tree/draft_tree.h"

namespace aerie::tree_test {

using Tokens = std::vector<int32_t>;
struct Answer {
  Tokens token;
  std::vector<float> confidence;
};
// Candidates after a path of tokens below the root, best first.
using Drafter = std::function<Answer(const Tokens& path, int32_t width)>;

inline Tokens path_of(const DraftTree& tree, int32_t node) {
  Tokens path;
  for (; node > 0; node = tree[node].parent) path.insert(path.begin(), tree[node].token);
  return path;
}

inline std::vector<Tokens> paths_of(const DraftTree& tree, const std::vector<int32_t>& nodes) {
  std::vector<Tokens> out;
  for (const int32_t n : nodes) out.push_back(path_of(tree, n));
  return out;
}

struct Draft {
  DraftTree tree;
  std::vector<std::vector<int32_t>> frontiers;
  std::vector<int32_t> selected;
  bool asked_in_vain = false;  // about a node that had children already
  std::vector<Tokens> paths() const { return paths_of(tree, selected); }
};

// The loop of tree_policy.h. `prepare` may fill the tree before the first question.
inline Draft drive(TreePolicy& policy, const Drafter& drafter, const CycleLimits& limits = {},
                   const std::function<void(DraftTree&)>& prepare = {}) {
  Draft d;
  policy.begin(limits);
  d.tree.reset(1000);
  if (prepare) prepare(d.tree);
  std::vector<int32_t> frontier;
  while (policy.expand(d.tree, &frontier)) {
    d.frontiers.push_back(frontier);
    if (d.frontiers.size() > 200) break;  // a policy that never ends is caught by the caller's checks
    for (const int32_t node : frontier) {
      d.asked_in_vain = d.asked_in_vain || d.tree.child_count(node) > 0;
      const Answer a = drafter(path_of(d.tree, node), policy.width());
      d.tree.add_children(node, a.token, a.confidence);
    }
  }
  policy.select(d.tree, &d.selected);
  return d;
}

// Empty if the draft kept every promise of tree_policy.h, else what it broke.
inline std::string broken(const Draft& d, const CycleLimits& limits) {
  if (d.frontiers.size() > 200) return "expansion does not end";
  if (d.asked_in_vain) return "asked about a node that had children";
  std::set<int32_t> asked;
  for (const auto& frontier : d.frontiers) {
    if (frontier.empty()) return "empty frontier";
    for (size_t i = 0; i < frontier.size(); ++i) {
      if (i > 0 && frontier[i] <= frontier[i - 1]) return "frontier not in tree order";
      if (d.tree[frontier[i]].depth != d.tree[frontier[0]].depth) return "frontier of two depths";
      if (d.tree[frontier[i]].depth >= limits.max_depth) return "asked beyond the depth limit";
      if (!asked.insert(frontier[i]).second) return "asked twice";
    }
  }
  if (static_cast<int32_t>(d.selected.size()) > std::max(limits.max_nodes, 0)) return "too many nodes";
  std::set<int32_t> have{0};
  for (const int32_t n : d.selected) {
    if (n <= 0 || n >= d.tree.size()) return "no such node";
    if (!have.contains(d.tree[n].parent)) return "parent missing or later";
    if (!have.insert(n).second) return "selected twice";
    if (d.tree[n].depth > limits.max_depth) return "too deep";
  }
  return {};
}

}  // namespace aerie::tree_test
