// Static tree: fixed shape, given as paths of child ranks (EAGLE, Appendix A.1 and Figure 9).
#include <algorithm>
#include <map>
#include <utility>

#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

using Path = std::vector<int32_t>;

std::string text(const Path& path) {
  std::string out = "[";
  for (size_t i = 0; i < path.size(); ++i) {
    if (i) out += ',';
    out += std::to_string(path[i]);
  }
  out += ']';
  return out;
}

class StaticPolicy final : public TreePolicy {
 public:
  explicit StaticPolicy(std::vector<ShapeNode> slots) : slots_(std::move(slots)), node_(slots_.size(), -1) {
    // Kept siblings must be ranks 0, 1, 2, ... in this order for the sampled-draft rule: every kept
    // child then comes after all the draws that shaped its q, and any cut keeps it so.
    std::vector<int32_t> children(slots_.size(), 0);
    for (size_t s = 1; s < slots_.size(); ++s) {
      width_ = std::max(width_, slots_[s].rank + 1);
      draw_order_ = draw_order_ && slots_[s].rank == children[static_cast<size_t>(slots_[s].parent)]++;
    }
    begin(CycleLimits{});
  }

  const char* name() const override { return "static"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<StaticPolicy>(*this); }
  int32_t width() const override { return width_; }
  bool draw_order() const override { return draw_order_; }
  int32_t best_depth() const override { return slots_.back().depth; }

  bool shape(TreeShape* out) const override {
    *out = {width_, 0, slots_[active_ - 1].depth, static_cast<int32_t>(active_) - 1, std::span(slots_).first(active_)};
    return true;
  }

  // Slots are sorted by depth, so both limits cut a tail; it depends on no score.
  void begin(const CycleLimits& limits) override {
    level_ = 0;
    active_ = std::min(slots_.size(), static_cast<size_t>(std::max(limits.max_nodes, 0)) + 1);
    while (active_ > 1 && slots_[active_ - 1].depth > limits.max_depth) --active_;
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    match(tree);
    const int32_t deepest = slots_[active_ - 1].depth;
    while (level_ < deepest) {
      frontier->clear();
      for (size_t s = 1; s < active_; ++s) {  // children name their parent; siblings need not be neighbours
        const auto parent = static_cast<size_t>(slots_[s].parent);
        const int32_t node = node_[parent];
        if (slots_[parent].depth == level_ && node >= 0 && tree.first_child(node) < 0) frontier->push_back(node);
      }
      ++level_;
      std::sort(frontier->begin(), frontier->end());
      frontier->erase(std::unique(frontier->begin(), frontier->end()), frontier->end());
      if (!frontier->empty()) return true;
    }
    frontier->clear();
    return false;
  }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    match(tree);
    selected->clear();
    for (size_t s = 1; s < active_; ++s)
      if (node_[s] >= 0) selected->push_back(node_[s]);
  }

 private:
  // node_[s] = the tree node on the path of slot s, or -1.
  void match(const DraftTree& tree) {
    node_[0] = 0;
    for (size_t s = 1; s < active_; ++s) {
      const int32_t parent = node_[static_cast<size_t>(slots_[s].parent)];
      int32_t child = parent >= 0 ? tree.first_child(parent) : -1;
      while (child >= 0 && tree[child].rank != slots_[s].rank) child = tree.next_sibling(child);
      node_[s] = child;
    }
  }

  std::vector<ShapeNode> slots_;
  std::vector<int32_t> node_;
  size_t active_ = 1;  // slots in use this cycle
  int32_t level_ = 0;  // depth of the next frontier
  int32_t width_ = 1;
  bool draw_order_ = true;
};

Status check(const std::vector<Path>& paths) {
  const auto bad = [](const std::string& what) { return error(Code::invalid_argument, "static tree: " + what); };
  if (paths.empty()) return bad("no path");
  if (paths.size() > static_cast<size_t>(kMaxTreeNodes - 1))
    return bad(std::to_string(paths.size()) + " nodes; at most " + std::to_string(kMaxTreeNodes - 1));
  for (const Path& path : paths) {
    if (path.empty()) return bad("an empty path (the root is not listed)");
    if (path.size() > static_cast<size_t>(kMaxTreeLevels))
      return bad("a path of " + std::to_string(path.size()) + " levels; at most " + std::to_string(kMaxTreeLevels));
    for (const int32_t rank : path)
      if (rank < 0 || rank >= kMaxTreeWidth)
        return bad("rank " + std::to_string(rank) + " in " + text(path) + " is not in 0.." +
                   std::to_string(kMaxTreeWidth - 1));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TreePolicy>> make_static_policy(std::vector<Path> paths) {
  AERIE_TRY(check(paths));
  std::stable_sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) { return a.size() < b.size(); });
  std::map<Path, int32_t> known{{Path{}, 0}};
  std::vector<ShapeNode> slots(1);
  for (const Path& path : paths) {
    const auto up = known.find(Path(path.begin(), path.end() - 1));
    if (up == known.end())
      return error(Code::invalid_argument, "static tree: " + text(path) + " is listed without its parent");
    if (!known.emplace(path, static_cast<int32_t>(slots.size())).second)
      return error(Code::invalid_argument, "static tree: " + text(path) + " is listed twice");
    slots.push_back({up->second, path.back(), static_cast<int32_t>(path.size())});
  }
  return std::unique_ptr<TreePolicy>(std::make_unique<StaticPolicy>(std::move(slots)));
}

std::unique_ptr<TreePolicy> make_eagle_static_policy() {
  return std::move(make_static_policy({{0},
                                       {1},
                                       {2},
                                       {3},
                                       {0, 0},
                                       {0, 1},
                                       {0, 2},
                                       {1, 0},
                                       {1, 1},
                                       {2, 0},
                                       {2, 1},
                                       {3, 0},
                                       {0, 0, 0},
                                       {0, 0, 1},
                                       {0, 0, 2},
                                       {0, 1, 0},
                                       {0, 1, 1},
                                       {0, 2, 0},
                                       {0, 2, 1},
                                       {1, 0, 0},
                                       {0, 0, 0, 0},
                                       {0, 0, 0, 1},
                                       {0, 0, 0, 2},
                                       {0, 0, 0, 0, 0},
                                       {0, 0, 0, 0, 1}}))
      .value();
}

}  // namespace aerie
