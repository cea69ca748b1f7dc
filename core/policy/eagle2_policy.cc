// EAGLE-2: the tree follows the drafter's confidence (EAGLE-2, section 4.1 expansion, 4.2 reranking).
#include <algorithm>

#include "core/policy/in_range.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

constexpr int32_t kPasses = 5;  // after the first, in EAGLE's scripts

class Eagle2Policy final : public TreePolicy {
 public:
  explicit Eagle2Policy(const Eagle2Options& options) : options_(options) {
    best_.reserve(static_cast<size_t>(std::max(options.total, options.top_k)) + 1);
    begin(CycleLimits{});
  }

  const char* name() const override { return "eagle2"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Eagle2Policy>(*this); }
  int32_t width() const override { return options_.top_k; }
  bool draw_order() const override { return false; }
  int32_t best_nodes() const override { return keep_; }
  int32_t best_depth() const override { return options_.depth < 0 ? kMaxTreeNodes : options_.depth + 1; }

  void begin(const CycleLimits& limits) override {
    keep_ = std::max(0, std::min(options_.total - 1, limits.max_nodes));
    max_depth_ = limits.max_depth;
    level_ = 0;
  }

  // Section 4.1: the top-k nodes of the newest level, by value. Of these we leave out
  //   - nodes that have children already (a drafter that answers several levels at once);
  //   - nodes that are not among the best `keep_` of the whole tree. Later nodes can only push them
  //     further back, and their descendants rank behind them, so none of them can come through the
  //     reranking: the verified tree is that of the paper, in fewer draft passes.
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    while (keep_ > 0 && level_ < levels()) {
      if (level_ == 0) {
        frontier->push_back(0);
      } else {
        best_nodes(tree, level_, level_, options_.top_k, frontier);
        best_nodes(tree, 1, max_depth_, keep_, &best_);
        std::erase_if(*frontier, [&](int32_t n) { return !std::binary_search(best_.begin(), best_.end(), n); });
      }
      if (frontier->empty()) return false;
      ++level_;
      std::erase_if(*frontier, [&](int32_t n) { return tree.first_child(n) >= 0; });
      if (!frontier->empty()) return true;
    }
    return false;
  }

  bool shape(TreeShape* out) const override {
    *out = {options_.top_k, options_.top_k, levels(), keep_};
    return true;
  }

  // Section 4.2. ranks_before puts every parent before its children, so the best `keep_` nodes are
  // a connected tree, ties and confidences of 1 included (EAGLE's code leaves ties to torch.topk).
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    best_nodes(tree, 1, max_depth_, keep_, selected);
  }

 private:
  int32_t levels() const { return std::min((options_.depth < 0 ? kPasses : options_.depth) + 1, max_depth_); }

  // The best n nodes with a depth in [from, to], in tree order. Keeps a heap of the best so far with
  // the worst of them in front, so that `out` never holds more than n.
  static void best_nodes(const DraftTree& tree, int32_t from, int32_t to, int32_t n, std::vector<int32_t>* out) {
    const auto before = [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); };
    out->clear();
    for (int32_t i = 1; i < tree.size(); ++i) {
      if (tree[i].depth < from || tree[i].depth > to) continue;
      if (static_cast<int32_t>(out->size()) == n) {
        if (n == 0 || !before(i, out->front())) continue;
        std::pop_heap(out->begin(), out->end(), before);
        out->back() = i;
      } else {
        out->push_back(i);
      }
      std::push_heap(out->begin(), out->end(), before);
    }
    std::sort(out->begin(), out->end());
  }

  Eagle2Options options_;
  std::vector<int32_t> best_;
  int32_t keep_ = 0;
  int32_t max_depth_ = 0;
  int32_t level_ = 0;  // depth of the next frontier
};

}  // namespace

Result<std::unique_ptr<TreePolicy>> make_eagle2_policy(const Eagle2Options& options) {
  AERIE_TRY(in_range("eagle2: nodes", options.total, 2, kMaxTreeNodes));
  AERIE_TRY(in_range("eagle2: depth", options.depth, -1, kMaxTreeLevels));
  AERIE_TRY(in_range("eagle2: top_k", options.top_k, 1, kMaxTreeWidth));
  return std::unique_ptr<TreePolicy>(std::make_unique<Eagle2Policy>(options));
}

}  // namespace aerie
