// auto: as many nodes, levels and passes as pay for themselves.
//
// The long-run speed is tokens over time, so by Dinkelbach's argument a node is worth having when the tokens it is
// expected to bring exceed speed * its cost. The speed is the policy's own recent one; expectations are products of
// calibrated confidences; costs are measured passes. Where plain decode is faster, it rests and tries again now and then.
#include <algorithm>
#include <array>

#include "core/policy/calibration.h"
#include "core/policy/marginal.h"
#include "core/policy/policy_memory.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

constexpr int32_t kTopK = 10;             // children a node, frontier width at most
constexpr int32_t kMaxDepth = 16;
constexpr int32_t kTrial = 12;            // cycles until a drafter counts as tried
constexpr double kFirstLoss = 6, kLoss = 1;  // tokens that a trial may lose against the alternative; those after a rest
constexpr double kWon = 6;                // tokens won: it need not be doubted soon
constexpr int32_t kRest = 16, kMaxRest = 192;  // cycles before the next trial; doubled when it fails again
constexpr double kMemory = 0.015, kLately = 0.04;  // weight of the newest cycle in the running means
constexpr uint32_t kExplore = 24;         // of so many levels that do not seem to pay, one is asked for
constexpr double kMood = 0.97, kLongMood = 0.995;  // a text that repeats itself, which such drafters live on, goes on doing so
constexpr double kHindsight = 0.3;        // of what came, the rest of what was expected: one walk says little

// What outlives a session. A trial goes on in the next one.
struct Learned final : TreeExperience {
  Calibration calibration;
  Mood mood;
  // By depth and by the best of them: what asking about nodes has brought, in tokens net of the rows to verify them, for each token that these
  // nodes were expected to bring themselves.
  // The more they are expected to, the more often it goes on from there.
  std::array<std::array<double, 4>, kMaxDepth> payoff;
  CycleRate all, lately;                 // running means of a drafting cycle
  int32_t seen = 0;
  int32_t rest = 0, rest_length = kRest; // cycles left before the next trial; length of the next rest
  int32_t trial = 0;                     // cycles of this trial
  double lost = 0, won = 0;              // tokens, against the alternative: since it last was ahead; in all of the trial
  Learned() {
    for (auto& p : payoff) p.fill(0.2);
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    constexpr double kMost = 1e12;
    Calibration::fields(self.calibration, f);
    Mood::fields(self.mood, f);
    for (auto& depth : self.payoff)
      for (auto& p : depth) f(p, 0, kMost);
    for (auto* rate : {&self.all, &self.lately}) {
      f(rate->tokens, 0, kMost);
      f(rate->ms, 0, kMost);
    }
    f(self.seen, 0, INT32_MAX);
    f(self.rest, 0, kMaxRest);
    f(self.rest_length, kRest, kMaxRest);
    f(self.trial, 0, INT32_MAX);
    f(self.lost, 0, kMost);
    f(self.won, -kMost, kMost);
  }
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
  // A drafter whose tree costs nothing need not rest: it is looked at every cycle, and verified where that pays.
  bool resting() const override { return learned_.rest > 0 && !free_; }
  std::shared_ptr<const TreeExperience> experience() const override {
    return learned_.seen > 0 ? std::make_shared<const Learned>(learned_) : nullptr;
  }
  void take_over(const TreeExperience& e) override {
    const auto* learned = dynamic_cast<const Learned*>(&e);
    if (!learned) return;
    learned_ = *learned;
  }
  std::vector<double> memory() const override {
    MemoryWriter write;
    fields(*this, write);
    return write.take();
  }
  bool recall(std::span<const double> numbers) override {
    MemoryReader read(numbers);
    AutoPolicy then = *this;
    fields(then, read);
    if (!read.done()) return false;
    then.learned_.calibration.refit();
    *this = std::move(then);
    return true;
  }
  CycleRate lately() const override { return learned_.lately; }
  bool on_trial() const override { return !resting() && learned_.trial < kTrial; }
  void wake() override {
    if (resting()) start_trial();
  }
  void idle() override {
    if (resting()) {
      if (--learned_.rest == 0) start_trial();
    } else if (!on_trial() && ++unused_ >= learned_.rest_length) {  // others are better; still?
      learned_.rest_length = std::min(2 * learned_.rest_length, kMaxRest);
      start_trial();
    }
  }

  void begin(const CycleLimits& limits) override {
    limits_ = limits;
    level_ = 0;
    expected_ = 0;
    value_.assign(1, 1.0);
  }
  void costs(const CycleCosts& costs) override {
    costs_ = costs;
    free_ = !costs.draft && costs.draft_root == 0;
  }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    if (resting() || limits_.max_nodes < 1 || limits_.max_depth < 1) return false;
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
    const double best = nodes_.empty() ? 0 : value_[static_cast<size_t>(nodes_[0])];
    const size_t hope = best < 0.5 ? 0 : best < 0.75 ? 1 : best < 0.9 ? 2 : 3;
    const double gain = learned_.payoff[static_cast<size_t>(level_)][hope];
    utility_.clear();
    cost_.clear();
    double sum = 0;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      sum += value_[static_cast<size_t>(nodes_[k])] * gain;
      utility_.push_back(sum);
      cost_.push_back(costs_.draft_ms(static_cast<int32_t>(k) + 1));
    }
    int32_t n = worth_keeping(utility_, cost_, aim());
    if (n < 1) return false;
    if (utility_[static_cast<size_t>(n) - 1] < aim() * cost_[static_cast<size_t>(n) - 1]) {
      if (++declined_ % kExplore != 0) return false;  // now and then see what it would bring
      n = 1;
    }
    nodes_.resize(static_cast<size_t>(n));
    asked_[static_cast<size_t>(level_)] = 0;
    hope_[static_cast<size_t>(level_)] = hope;
    for (const int32_t node : nodes_) asked_[static_cast<size_t>(level_)] += value_[static_cast<size_t>(node)];
    ++level_;
    *frontier = nodes_;
    std::sort(frontier->begin(), frontier->end());
    return true;
  }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    const int32_t n = rank(tree) - 1;
    expected_ = utility_[static_cast<size_t>(std::max(0, n))];
    selected->assign(nodes_.begin(), nodes_.begin() + std::max(0, n));
    std::sort(selected->begin(), selected->end());
    const double row = n > 0 ? aim() * (costs_.target_ms(n + 1) - costs_.target_ms(1)) / n : 0;
    for (int32_t depth = 1; depth < level_; ++depth) {
      const double mass = asked_[static_cast<size_t>(depth)];
      double net = 0;
      for (const int32_t node : *selected)
        if (tree[node].depth == depth + 1) net += value_[static_cast<size_t>(node)] - row;
      double& payoff = learned_.payoff[static_cast<size_t>(depth)][hope_[static_cast<size_t>(depth)]];
      if (mass > 1e-3) payoff += 0.05 * (std::max(0.0, net / mass) - payoff);
    }
  }

  CycleRate expected(const DraftTree& tree) override {
    const auto n = static_cast<size_t>(rank(tree) - 1);
    value_.assign(1, 1.0);  // another tree may come
    return {utility_[n], cost_[n]};
  }

  void witness(const DraftTree& tree, std::span<const int32_t> tokens) override {
    int32_t node = 0;
    update_values(tree);
    for (const int32_t token : tokens)
      if ((node = learn(tree, node, token)) < 0) break;
    learned_.calibration.refit();
    value_.assign(1, 1.0);
  }

  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    if (resting()) return idle();
    if (!(o.ms > 0)) return;
    unused_ = 0;
    for (size_t i = 0; i < o.path.size(); ++i)
      (void)learn(tree, o.path[i], i + 1 < o.path.size() ? tree[o.path[i + 1]].token : o.last_token);
    learned_.calibration.refit();
    if (free_) return;
    const double tokens = expected_ > 0 ? kHindsight * static_cast<double>(o.path.size()) + (1 - kHindsight) * expected_ : static_cast<double>(o.path.size());
    expected_ = 0;
    const auto mean = [&](CycleRate* r, double weight) {
      r->tokens += weight * (tokens - r->tokens);
      r->ms += weight * (o.ms - r->ms);
    };
    mean(&learned_.all, std::max(kMemory, 1.0 / ++learned_.seen));
    mean(&learned_.lately, std::max(kLately, 1.0 / ++learned_.trial));
    const double ahead = tokens - alternative() * o.ms;
    learned_.lost = std::max(0.0, learned_.lost - ahead);
    learned_.won += ahead;
    if (learned_.won > kWon) learned_.rest_length = kRest;
    if (learned_.lost > (learned_.rest_length == kRest ? kFirstLoss : kLoss)) {
      learned_.rest = learned_.rest_length;
      learned_.rest_length = std::min(2 * learned_.rest_length, kMaxRest);
    }
  }

 private:
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    Learned::fields(self.learned_, f);
    f(self.declined_, 0, UINT32_MAX);
    f(self.unused_, 0, INT32_MAX);
  }
  // What there is instead: plain decode, or another drafter.
  double alternative() const {
    const double plain = costs_.target && costs_.target_ms(1) > 0 ? 1 / costs_.target_ms(1) : 0;
    return std::max(plain, costs_.rival);
  }
  // The speed that a node has to keep up with.
  double aim() const { return std::max({learned_.all.speed(), alternative(), costs_.reached}); }

  void start_trial() {
    unused_ = 0;
    learned_.rest = learned_.trial = 0;
    learned_.lost = learned_.won = 0;
  }

  // The children of `node`, of which the target took `taken`; that one, -1 when it is not among them.
  int32_t learn(const DraftTree& tree, int32_t node, int32_t taken) {
    int32_t next = -1;
    double mass = 0;
    if (tree.first_child(node) < 0) return next;
    for (int32_t c = tree.first_child(node); c >= 0; c = tree.next_sibling(c)) {
      learned_.calibration.learn(tree[c].confidence, tree[node].depth, tree[c].token == taken);
      if (tree[c].token == taken) next = c;
      mass += chance(tree[c].confidence, tree[node].depth);
    }
    learned_.mood.learn(std::min(mass, 0.999), next >= 0, free_ ? kLongMood : kMood);
    return next;
  }

  // nodes_: best first, with their utility and cost behind the root's; how many of these to keep, the root one of them.
  int32_t rank(const DraftTree& tree) {
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
    return worth_keeping(utility_, cost_, aim());
  }

  double chance(float confidence, int32_t depth) const {
    return learned_.mood.shifted(learned_.calibration.probability(confidence, depth));
  }

  void update_values(const DraftTree& tree) {
    for (auto i = static_cast<int32_t>(value_.size()); i < tree.size(); ++i) {
      const DraftNode& n = tree[i];
      value_.push_back(value_[static_cast<size_t>(n.parent)] * chance(n.confidence, n.depth - 1));
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
  int32_t level_ = 0;
  double expected_ = 0;  // tokens of this cycle
  std::array<double, kMaxDepth> asked_{};  // by depth: expected of the nodes that were asked about
  std::array<size_t, kMaxDepth> hope_{};
  uint32_t declined_ = 0;
  int32_t unused_ = 0;  // cycles that others took
  bool free_ = false;  // its tree costs no pass
};

}  // namespace

std::unique_ptr<TreePolicy> make_auto_policy() { return std::make_unique<AutoPolicy>(); }

}  // namespace aerie
