// Backbone: a chain of best children, each with its siblings as leaves (FastEagle, section 2.2, "constrained tree").
#include <algorithm>

#include "core/policy/in_range.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

class BackbonePolicy final : public TreePolicy {
 public:
  BackbonePolicy(int32_t levels, int32_t k) : levels_(levels), k_(k) { begin(CycleLimits{}); }

  const char* name() const override { return "backbone"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<BackbonePolicy>(*this); }
  int32_t width() const override { return k_; }
  // A cycle with little room chooses by value.
  bool draw_order() const override { return false; }

  void begin(const CycleLimits& limits) override {
    depth_ = std::min(levels_, limits.max_depth);
    keep_ = std::max(0, limits.max_nodes);
    asked_ = -1;
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    const int32_t end = backbone_end(tree);
    if (tree[end].depth >= depth_ || end == asked_) return false;
    asked_ = end;
    frontier->push_back(end);
    return true;
  }

  bool shape(TreeShape* out) const override {
    *out = {k_, 0, depth_, keep_};
    return true;
  }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    selected->clear();
    int32_t node = 0;
    while (tree[node].depth < depth_) {
      const int32_t first = tree.first_child(node);
      if (first < 0) break;
      int32_t rank = 0;
      for (int32_t c = first; c >= 0 && rank < k_; c = tree.next_sibling(c), ++rank) selected->push_back(c);
      node = first;
    }
    if (static_cast<int32_t>(selected->size()) > keep_) {
      std::sort(selected->begin(), selected->end(), [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); });
      selected->resize(static_cast<size_t>(keep_));
      std::sort(selected->begin(), selected->end());
    }
  }

 private:
  static int32_t backbone_end(const DraftTree& tree) {
    int32_t end = 0;
    while (tree.first_child(end) >= 0) end = tree.first_child(end);
    return end;
  }

  int32_t levels_, k_;
  int32_t depth_ = 0, keep_ = 0;
  int32_t asked_ = -1;  // the node asked about last: no child since means the drafter has none
};

}  // namespace

Result<std::unique_ptr<TreePolicy>> make_backbone_policy(int32_t levels, int32_t k) {
  AERIE_TRY(in_range("backbone: levels", levels, 1, kMaxTreeLevels));
  AERIE_TRY(in_range("backbone: top_k", k, 1, kMaxTreeWidth));
  return std::unique_ptr<TreePolicy>(std::make_unique<BackbonePolicy>(levels, k));
}

}  // namespace aerie
