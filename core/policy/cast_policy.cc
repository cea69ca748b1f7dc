// CAST: the tree's breadth, depth and size follow measured costs (CAST, section 4). As published: breadth pruning of every
// level by Algorithm 1, depth pruning by the confidence gain of former cycles, dynamic reranking over the kept nodes.
#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <numeric>

#include "core/policy/in_range.h"
#include "core/policy/level_habit.h"
#include "core/policy/marginal.h"
#include "core/policy/policy_memory.h"
#include "core/policy/row_room.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

constexpr size_t kBuffer = 32;    // R, gains remembered a level (the paper does not say)
constexpr int32_t kUnpruned = 64;  // one cycle in so many ignores depth pruning, or a pruned level would never be judged again

class CastPolicy final : public TreePolicy {
 public:
  explicit CastPolicy(const CastOptions& o) : o_(o), gains_(static_cast<size_t>(o.depth) + 2, std::deque<double>{1.0}) {
    begin(CycleLimits{});
  }

  const char* name() const override { return "cast"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<CastPolicy>(*this); }
  int32_t width() const override { return o_.top_k; }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  std::vector<double> memory() const override {
    MemoryWriter write;
    write(cycles_, 0, 0);
    write(gains_.size(), 0, 0);
    for (const std::deque<double>& of : gains_) {
      write(of.size(), 0, 0);
      for (const double gain : of) write(gain, 0, 0);
    }
    RowRoom::fields(rooms_, write);
    RowRoom::fields(beams_, write);
    LevelHabit::fields(levels_, write);
    return write.take();
  }
  // Of another depth too: as many levels as both have.
  bool recall(std::span<const double> numbers) override {
    MemoryReader read(numbers);
    uint32_t cycles = 0;
    size_t levels = 0;
    read(cycles, 0, std::numeric_limits<uint32_t>::max());
    read(levels, 1, kMaxTreeLevels + 2);
    std::vector<std::deque<double>> gains(levels);
    for (std::deque<double>& of : gains) {
      size_t n = 0;
      read(n, 1, kBuffer);
      of.resize(n);
      for (double& gain : of) read(gain, 0, std::numeric_limits<double>::max());
    }
    RowRoom rooms{kTargetRows}, beams{kLevelRows};
    LevelHabit habit;
    RowRoom::fields(rooms, read);
    RowRoom::fields(beams, read);
    LevelHabit::fields(habit, read);
    if (!read.done()) return false;
    cycles_ = cycles;
    rooms_ = rooms;
    beams_ = beams;
    levels_ = habit;
    std::copy_n(gains.begin(), std::min(levels, gains_.size()), gains_.begin());
    return true;
  }
  // A drafter that answers all levels at once has no breadth to pay for: reranking alone decides.
  int32_t best_nodes() const override { return keep_; }
  int32_t best_depth() const override { return max_depth_; }

  void begin(const CycleLimits& limits) override {
    keep_ = std::max(0, std::min(o_.total - 1, limits.max_nodes));
    max_depth_ = std::min(o_.depth, limits.max_depth);
    level_ = 0;
    kept_.clear();
    last_utility_ = 0;
    room_ = 0;
    explore_ = ++cycles_ % kUnpruned == 0;
  }
  void costs(const CycleCosts& costs) override { costs_ = costs; }

  // After costs(): what expand() and select() would say, as numbers.
  bool shape(TreeShape* out) const override {
    if (!costs_.target || keep_ < 1 || max_depth_ < 1) return false;
    TreeWeighing& w = weighing_;
    const auto most = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(keep_) + 1));
    const int32_t nodes = rooms_.best(2, most, o_.threshold, [&](int32_t rows) { return target_cost(rows - 1); }) - 1;
    w.draft_cost = draft_cost(beam());
    w.gain.assign(1, 0);
    for (int32_t level = 1; level < max_depth_; ++level) w.gain.push_back(gain(level));
    const bool stops = o_.prune_depth && !explore_;
    w.threshold = stops ? o_.threshold : -std::numeric_limits<double>::infinity();
    *out = {o_.top_k, beam(), stops ? std::min(max_depth_, levels_.room()) : max_depth_, o_.rerank ? nodes : keep_, {}, &w};
    return true;
  }
  void drawn_in(int32_t rows, int32_t /*levels*/) override {
    room_ = rows - 1;
    beam_ = beam();
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    if (keep_ == 0 || max_depth_ < 1) return false;
    if (level_ == 0) {
      if (tree.first_child(0) >= 0) return false;  // the tree is there already
      ++level_;
      frontier->push_back(0);
      return true;
    }
    // Children of the nodes kept at the level before, best first.
    level_nodes_.clear();
    for (int32_t i = 1; i < tree.size(); ++i)
      if (tree[i].depth == level_) level_nodes_.push_back(i);
    std::sort(level_nodes_.begin(), level_nodes_.end(), [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); });
    if (static_cast<int32_t>(level_nodes_.size()) > o_.top_k) level_nodes_.resize(static_cast<size_t>(o_.top_k));
    if (level_nodes_.empty()) return false;
    utility_.clear();
    cost_.clear();
    double sum = 0;
    for (size_t k = 0; k < level_nodes_.size(); ++k) {  // Eq. 2: cost of drafting from k nodes
      sum += static_cast<double>(tree[level_nodes_[k]].value);
      utility_.push_back(sum);
      cost_.push_back(draft_cost(room_ > 0 ? beam_ : static_cast<int32_t>(k) + 1));
    }
    if (room_ > 0) beams_.drew(utility_);
    const size_t n = room_ > 0         ? std::min(utility_.size(), static_cast<size_t>(beam_))
                     : o_.prune_breadth ? static_cast<size_t>(worth_keeping(utility_, cost_, o_.threshold))
                                        : utility_.size();
    level_nodes_.resize(n);
    kept_.insert(kept_.end(), level_nodes_.begin(), level_nodes_.end());
    const double utility = utility_[n - 1];
    if (level_ > 1) remember(static_cast<size_t>(level_) - 1, last_utility_ > 0 ? utility / last_utility_ : 0);
    last_utility_ = utility;
    if (level_ >= max_depth_) return false;
    if (o_.prune_depth && !explore_ && !kernels::pays(gain(level_) * utility, cost_[n - 1], o_.threshold)) return false;
    ++level_;
    *frontier = level_nodes_;
    std::sort(frontier->begin(), frontier->end());
    return true;
  }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    *selected = kept_;
    if (kept_.empty())  // one pass: every node of the product
      for (int32_t i = 1; i < tree.size(); ++i)
        if (tree[i].depth <= max_depth_) selected->push_back(i);
    std::sort(selected->begin(), selected->end(), [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); });
    if (static_cast<int32_t>(selected->size()) > keep_) selected->resize(static_cast<size_t>(keep_));
    utility_.clear();
    cost_.clear();
    double sum = 0;
    for (size_t k = 0; k < selected->size(); ++k) {
      sum += static_cast<double>(tree[(*selected)[k]].value);
      utility_.push_back(sum);
      cost_.push_back(target_cost(static_cast<int32_t>(k) + 1));
    }
    if (room_ > 0) {  // it is taken whatever is in it
      selected->resize(std::min(selected->size(), static_cast<size_t>(room_)));
      utility_.insert(utility_.begin(), 0);
      rooms_.drew(utility_);
      levels_.asked(level_);
    } else if (o_.rerank) {
      selected->resize(static_cast<size_t>(worth_keeping(utility_, cost_, o_.threshold)));
    }
    std::sort(selected->begin(), selected->end());
  }

 private:
  // Of so many nodes, in plain target passes.
  double draft_cost(int32_t nodes) const { return costs_.draft_ms(nodes) / costs_.target_ms(1); }
  double target_cost(int32_t nodes) const { return costs_.target_ms(nodes + 1) / costs_.target_ms(1); }  // the root is a row too
  double gain(int32_t level) const {
    const std::deque<double>& gains = gains_[static_cast<size_t>(level)];
    return std::accumulate(gains.begin(), gains.end(), 0.0) / static_cast<double>(gains.size());
  }
  // Nodes that a device drafts from, of each level.
  int32_t beam() const {
    return o_.prune_breadth ? beams_.best(1, o_.top_k, o_.threshold, [&](int32_t nodes) { return draft_cost(nodes); }) : o_.top_k;
  }
  void remember(size_t level, double gain) {
    std::deque<double>& gains = gains_[level];
    gains.push_back(gain);
    if (gains.size() > kBuffer) gains.pop_front();
  }

  CastOptions o_;
  CycleCosts costs_;
  std::vector<std::deque<double>> gains_;
  std::vector<int32_t> level_nodes_, kept_;
  std::vector<double> utility_, cost_;
  RowRoom rooms_{kTargetRows}, beams_{kLevelRows};  // of trees that a device draws: rows of the target's pass, and of a level's
  LevelHabit levels_;
  int32_t keep_ = 0, max_depth_ = 0, level_ = 0;
  int32_t room_ = 0, beam_ = 0;  // for nodes and for a level's, taken by a device's plan before there was a tree; 0: there is none
  uint32_t cycles_ = 0;
  bool explore_ = false;
  double last_utility_ = 0;
  mutable TreeWeighing weighing_;  // of shape()
};

}  // namespace

Result<std::unique_ptr<TreePolicy>> make_cast_policy(const CastOptions& o) {
  AERIE_TRY(in_range("cast: nodes", o.total, 2, kMaxTreeNodes));
  AERIE_TRY(in_range("cast: depth", o.depth, 1, kMaxTreeLevels));
  AERIE_TRY(in_range("cast: top_k", o.top_k, 1, kMaxTreeWidth));
  AERIE_TRY(in_range("cast: threshold", o.threshold, 1e-6, 1e6));
  return std::unique_ptr<TreePolicy>(std::make_unique<CastPolicy>(o));
}

}  // namespace aerie
