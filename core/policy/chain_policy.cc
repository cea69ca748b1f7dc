// Chain: no tree, the drafter's best path (EAGLE, Figure 9 right).
#include <algorithm>

#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

class ChainPolicy final : public TreePolicy {
 public:
  explicit ChainPolicy(int32_t length) : length_(std::clamp(length, 1, kMaxTreeNodes - 1)) {}

  const char* name() const override { return "chain"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<ChainPolicy>(*this); }
  int32_t width() const override { return 1; }
  bool draw_order() const override { return true; }
  int32_t best_depth() const override { return length_; }

  void begin(const CycleLimits& limits) override {
    allowed_ = std::min({length_, limits.max_nodes, limits.max_depth});
    asked_ = -1;
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    int32_t end = 0;
    while (tree.first_child(end) >= 0) end = tree.first_child(end);
    if (tree[end].depth >= allowed_ || end == asked_) return false;
    asked_ = end;
    frontier->push_back(end);
    return true;
  }

  bool shape(TreeShape* out) const override {
    *out = {1, 0, allowed_, allowed_};
    return true;
  }

  // The child of rank 0, not the one of highest confidence: ranks are the drafter's order, and under
  // the sampled-draft rule the order of drawing, which a look at the scores would spoil.
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    selected->clear();
    int32_t node = tree.first_child(0);
    while (node >= 0 && tree[node].depth <= allowed_) {
      selected->push_back(node);
      node = tree.first_child(node);
    }
  }

 private:
  int32_t length_;
  int32_t allowed_ = 0;
  int32_t asked_ = -1;  // the node asked about last: no child since means the drafter has none
};

}  // namespace

std::unique_ptr<TreePolicy> make_chain_policy(int32_t length) { return std::make_unique<ChainPolicy>(length); }

}  // namespace aerie
