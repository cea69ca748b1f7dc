// auto: as many nodes, levels and passes as pay for themselves.
//
// The long-run speed is tokens over time, so by Dinkelbach's argument a node is worth having when the tokens it is
// expected to bring exceed speed * its cost. The speed is the policy's own recent one; expectations are products of
// calibrated confidences; costs are measured passes. Where plain decode is faster, it rests and tries again now and then.
#include <algorithm>
#include <array>

#include "core/policy/calibration.h"
#include "core/policy/marginal.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

constexpr int32_t kTopK = 10;             // children a node, frontier width at most
constexpr int32_t kMaxDepth = 16;
constexpr int32_t kJudge = 12;            // cycles of a trial before it is given up for being slower than plain decode,
constexpr int32_t kHopeless = 3;          // or for being much slower
constexpr int32_t kRest = 48, kMaxRest = 1536;  // plain cycles before the next trial; doubled when it fails again
constexpr double kMemory = 0.06;          // weight of the newest cycle in the running means
constexpr double kMargin = 0.97;          // of plain decode's speed; below it drafting has lost

// What outlives a session.
struct Learned final : TreeExperience {
  Calibration calibration;
  std::array<double, kMaxDepth> follow;  // by depth: share of walks that went on from a node with children
  double tokens = 1, ms = 0;             // running means of a drafting cycle
  int32_t rest = 0, rest_length = kRest; // plain cycles left before the next trial; length of the next rest
  Learned() { follow.fill(0.7); }
};

class AutoPolicy final : public TreePolicy {
 public:
  AutoPolicy() { begin(CycleLimits{}); }

  const char* name() const override { return "auto"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<AutoPolicy>(*this); }
  int32_t width() const override { return kTopK; }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  int32_t best_nodes() const override { return std::min(limits_.max_nodes, 64); }
  bool resting() const override { return learned_.rest > 0; }
  std::shared_ptr<const TreeExperience> experience() const override {
    return speed_ > 0 ? std::make_shared<const Learned>(learned_) : nullptr;
  }
  void take_over(const TreeExperience& e) override {
    const auto* learned = dynamic_cast<const Learned*>(&e);
    if (!learned) return;
    learned_ = *learned;
    if (learned_.ms > 0) speed_ = learned_.tokens / learned_.ms;
  }

  void begin(const CycleLimits& limits) override {
    limits_ = limits;
    level_ = 0;
    value_.assign(1, 1.0);
  }
  void costs(const CycleCosts& costs) override {
    costs_ = costs;
    if (speed_ == 0 && costs.target_ms(1) > 0) start_trial(1 / costs.target_ms(1));
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    if (learned_.rest > 0 || limits_.max_nodes < 1 || limits_.max_depth < 1) return false;
    if (level_ == 0) {
      if (tree.first_child(0) >= 0) return false;
      ++level_;
      frontier->push_back(0);
      return true;
    }
    if (level_ >= std::min(kMaxDepth, limits_.max_depth)) return false;
    update_values(tree);
    nodes_.clear();
    for (int32_t i = 1; i < tree.size(); ++i)
      if (tree[i].depth == level_ && tree.first_child(i) < 0) nodes_.push_back(i);
    sort_by_value(tree);
    if (nodes_.size() > static_cast<size_t>(kTopK)) nodes_.resize(static_cast<size_t>(kTopK));
    // A node's children bring its value times the mass of children usually kept at the next depth, and cost rows.
    const double gain = learned_.follow[static_cast<size_t>(std::min(level_, kMaxDepth - 1))];
    const double row = costs_.target_ms(8) > 0 ? (costs_.target_ms(16) - costs_.target_ms(8)) / 8 : 0;
    utility_.clear();
    cost_.clear();
    double sum = 0;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      sum += value_[static_cast<size_t>(nodes_[k])] * gain;
      utility_.push_back(sum);
      cost_.push_back(costs_.draft_ms(static_cast<int32_t>(k) + 1) + row * static_cast<double>(k + 1));
    }
    const int32_t n = worth_keeping(utility_, cost_, speed_);
    if (n < 1 || utility_[static_cast<size_t>(n) - 1] < speed_ * cost_[static_cast<size_t>(n) - 1]) return false;
    nodes_.resize(static_cast<size_t>(n));
    ++level_;
    *frontier = nodes_;
    std::sort(frontier->begin(), frontier->end());
    return true;
  }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    update_values(tree);
    nodes_.clear();
    for (int32_t i = 1; i < tree.size(); ++i)
      if (tree[i].depth <= limits_.max_depth) nodes_.push_back(i);
    sort_by_value(tree);
    if (static_cast<int32_t>(nodes_.size()) > limits_.max_nodes) nodes_.resize(static_cast<size_t>(limits_.max_nodes));
    utility_.assign(1, 1.0);  // no node: the root's own token
    cost_.assign(1, costs_.target_ms(1));
    for (size_t k = 0; k < nodes_.size(); ++k) {
      utility_.push_back(utility_.back() + value_[static_cast<size_t>(nodes_[k])]);
      cost_.push_back(costs_.target_ms(static_cast<int32_t>(k) + 2));
    }
    const int32_t n = worth_keeping(utility_, cost_, speed_) - 1;
    selected->assign(nodes_.begin(), nodes_.begin() + std::max(0, n));
    std::sort(selected->begin(), selected->end());
  }

  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    const double plain = costs_.target && costs_.target_ms(1) > 0 ? 1 / costs_.target_ms(1) : 0;
    if (learned_.rest > 0) {
      if (--learned_.rest == 0) start_trial(plain);
      return;
    }
    if (!(o.ms > 0)) return;
    for (size_t i = 0; i < o.path.size(); ++i) {
      const int32_t node = o.path[i];
      const int32_t taken = i + 1 < o.path.size() ? tree[o.path[i + 1]].token : o.last_token;
      double mass = 0;
      int32_t rank = 0;
      for (int32_t c = tree.first_child(node); c >= 0; c = tree.next_sibling(c), ++rank) {
        learned_.calibration.learn(tree[c].confidence, tree[node].depth, tree[c].token == taken);
        if (tree[c].token == taken) mass = 1;
      }
      if (rank > 0) {
        double& follow = learned_.follow[static_cast<size_t>(std::min(tree[node].depth, kMaxDepth - 1))];
        follow += 0.05 * (mass - follow);
      }
    }
    learned_.calibration.refit();
    learned_.tokens += kMemory * (static_cast<double>(o.path.size()) - learned_.tokens);
    learned_.ms += kMemory * (o.ms - learned_.ms);
    speed_ = learned_.tokens / learned_.ms;
    ++trial_;
    trial_tokens_ += static_cast<double>(o.path.size());
    trial_ms_ += o.ms;
    const double shown = trial_tokens_ / trial_ms_;
    const bool hopeless = trial_ >= kHopeless && shown < 0.7 * plain;
    if (hopeless || (trial_ == kJudge && shown < kMargin * plain) || (trial_ > kJudge && speed_ < kMargin * plain)) {
      learned_.rest = learned_.rest_length;
      learned_.rest_length = std::min(2 * learned_.rest_length, kMaxRest);
    } else if (trial_ >= 8 * kJudge) {
      learned_.rest_length = kRest;
    }
    speed_ = std::max(speed_, plain);  // the alternative to a node is plain decode
  }

 private:
  void start_trial(double plain) {
    trial_ = 0;
    trial_tokens_ = trial_ms_ = 0;
    if (plain > 0) {  // as good as plain decode until shown otherwise
      learned_.tokens = 1;
      learned_.ms = 1 / plain;
      speed_ = plain;
    }
  }

  void update_values(const DraftTree& tree) {
    for (auto i = static_cast<int32_t>(value_.size()); i < tree.size(); ++i) {
      const DraftNode& n = tree[i];
      value_.push_back(value_[static_cast<size_t>(n.parent)] * learned_.calibration.probability(n.confidence, n.depth - 1));
    }
  }
  // Value down, depth up, index up: parents before children, as ranks_before by calibrated values.
  void sort_by_value(const DraftTree& tree) {
    std::sort(nodes_.begin(), nodes_.end(), [&](int32_t a, int32_t b) {
      const double x = value_[static_cast<size_t>(a)], y = value_[static_cast<size_t>(b)];
      if (x != y) return x > y;
      if (tree[a].depth != tree[b].depth) return tree[a].depth < tree[b].depth;
      return a < b;
    });
  }

  CycleLimits limits_;
  CycleCosts costs_;
  Learned learned_;
  std::vector<double> value_, utility_, cost_;  // value_: by tree node
  std::vector<int32_t> nodes_;
  int32_t level_ = 0, trial_ = 0;
  double speed_ = 0, trial_tokens_ = 0, trial_ms_ = 0;
};

}  // namespace

std::unique_ptr<TreePolicy> make_auto_policy() { return std::make_unique<AutoPolicy>(); }

}  // namespace aerie
