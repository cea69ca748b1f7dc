// auto: as many nodes, levels and passes as pay for themselves.
//
// The long-run speed is tokens over time, so by Dinkelbach's argument a node is worth having when the tokens it is
// expected to bring exceed speed * its cost. The speed is the policy's own recent one; expectations are products of
// calibrated confidences; costs are measured passes. Where plain decode is faster, it rests and tries again now and then.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "core/policy/learned.h"
#include "core/policy/marginal.h"
#include "core/policy/node_values.h"
#include "core/policy/policy_memory.h"
#include "core/policy/tree_policy.h"

namespace aerie {
namespace {

constexpr int32_t kTopK = 10;             // children a node, frontier width at most
constexpr int32_t kMaxDepth = LevelMeans::kDepths;
constexpr double kExplore = 48;           // of so many levels that do not seem to pay, one is asked for
constexpr double kSlack = 0.01;           // who loses so little need not rest
constexpr double kHeldUp = 2;             // a cycle counts as at most so many times as long as was expected
constexpr double kTrifle = 1.0 / 64;      // a node worth less than this share of a plain pass is never verified in a batch
constexpr double kHindsight = 0.3;        // of what came, the rest of what was expected: one walk says little

struct Experience final : TreeExperience {
  explicit Experience(std::shared_ptr<SharedLearning> s) : shared(std::move(s)) {}
  std::shared_ptr<SharedLearning> shared;
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
  bool resting() const override { return now_.trial.resting() && !free_; }
  std::shared_ptr<const TreeExperience> experience() const override {
    return recalled_ ? nullptr : std::make_shared<const Experience>(shared_);
  }
  void take_over(const TreeExperience& e) override {
    const auto* experience = dynamic_cast<const Experience*>(&e);
    if (!experience) return;
    shared_ = experience->shared;
    recalled_ = false;
    const std::lock_guard lock(shared_->mutex);
    now_ = shared_->learned;
    stretch_ = now_.stretch;
  }
  std::vector<double> memory() const override {
    const std::lock_guard lock(shared_->mutex);
    MemoryWriter write;
    Learned::fields(std::as_const(shared_->learned), write);
    Stretch::fields(stretch_, write);
    write(declined_, 0, kExplore);
    return write.take();
  }
  // What it recalls is its own, whatever others have learned since.
  bool recall(std::span<const double> numbers) override {
    MemoryReader read(numbers);
    auto then = std::make_shared<SharedLearning>();
    Stretch stretch;
    double declined = 0;
    Learned::fields(then->learned, read);
    Stretch::fields(stretch, read);
    read(declined, 0, kExplore);
    if (!read.done()) return false;
    then->learned.calibration.refit();
    then->learned.together.refit();
    shared_ = std::move(then);
    recalled_ = true;
    now_ = shared_->learned;
    stretch_ = stretch;
    declined_ = declined;
    return true;
  }
  CycleRate lately() const override { return {now_.rate.tokens, now_.rate.ms * plain_ms()}; }
  bool on_trial() const override { return now_.trial.on(); }
  double doubt() const override { return 2 * std::sqrt(now_.spread * now_.unsure); }
  void wake() override {
    if (!resting()) return;
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->learned.trial.resting()) {
        shared_->learned.trial.start();
        shared_->learned.begin_anew();
      }
    }
    look_up();
  }
  void idle(double tokens) override {
    const std::lock_guard lock(shared_->mutex);
    const bool before = shared_->learned.trial.on();
    shared_->learned.trial.idle(tokens, weight());
    shared_->learned.forget(costs_.beside);
    if (!before && shared_->learned.trial.on()) shared_->learned.begin_anew();
  }

  void begin(const CycleLimits& limits) override {
    limits_ = limits;
    level_ = 0;
    expected_ = 0;
    room_ = {limits.max_nodes, limits.max_depth, 0};
    values_.begin();
    kept_ = 0;
    asked_.clear();
    seen_.fill(std::numeric_limits<double>::quiet_NaN());
    look_up();
  }
  void costs(const CycleCosts& costs) override {
    const bool rested = resting();
    costs_ = costs;
    free_ = !costs.draft && costs.draft_root == 0 && costs.proposal == 0;
    if (rested && !resting()) look_up();
  }

  // After costs(): what expand() and select() would say, as numbers.
  bool shape(TreeShape* out) const override {
    if (!costs_.target || resting() || limits_.max_nodes < 1 || limits_.max_depth < 1) return false;
    const int32_t levels = std::min(kMaxDepth, limits_.max_depth);
    TreeWeighing& w = weighing_;
    w.beliefs = &values_.beliefs;
    const auto most = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(limits_.max_nodes) + 1));
    const int32_t rows = now_.rooms.best(2, most, aim(), [&](int32_t n) { return costs_.target_ms(n); });
    w.draft_cost = costs_.draft_ms(beam());
    w.gain.assign(static_cast<size_t>(levels), 1);
    w.gain_by_best.resize(static_cast<size_t>(levels));
    now_.gain.all(levels - 1, w.gain_by_best);
    w.threshold = together() ? -std::numeric_limits<double>::infinity() : aim();
    w.explore = explores();
    const int32_t drawn = together() ? now_.depth.levels(levels, aim() * w.draft_cost) : std::min(levels, now_.levels.room());
    *out = {kTopK, beam(), drawn, rows - 1, {}, &w, best_nodes()};
    return true;
  }
  void drawn_in(int32_t rows, int32_t levels) override { room_ = {std::min(limits_.max_nodes, rows - 1), levels, beam()}; }

  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    LevelOffer alone;
    if (!offer(tree, frontier, &alone)) return false;
    decided(alone.pays(), alone.ms, 1);
    if (!alone.pays()) frontier->clear();
    return alone.pays();
  }
  bool offer(const DraftTree& tree, std::vector<int32_t>* frontier, LevelOffer* offer) override {
    frontier->clear();
    if (resting() || limits_.max_nodes < 1 || limits_.max_depth < 1) return false;
    if (level_ == 0) {
      if (tree.first_child(0) >= 0) return false;
      offered_ = {1, 1, 1 - aim() * costs_.target_ms(1), costs_.draft_root};
      explored_ = false;
      *offer = LevelOffer{};
      frontier->push_back(0);
      return true;
    }
    const bool deepest = level_ >= std::min(kMaxDepth, room_.depth), beforehand = room_.beam > 0 && together();
    if (deepest && !beforehand) return false;
    const double so_far = net(rank(tree));
    rate_nodes(&drafted_);
    nodes_.clear();
    for (int32_t i = 1; i < tree.size(); ++i)
      if (tree[i].depth == level_ && tree.first_child(i) < 0) nodes_.push_back(i);
    values_.sort(tree, &nodes_);
    if (nodes_.size() > static_cast<size_t>(kTopK)) nodes_.resize(static_cast<size_t>(kTopK));
    if (nodes_.empty()) return false;
    const double best = values_.of(nodes_[0]);
    const double gain = now_.gain.of(level_, best);
    utility_.clear();
    cost_.clear();
    double mass = 0;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      mass += values_.of(nodes_[k]);
      utility_.push_back(mass * gain);
      cost_.push_back(costs_.draft_ms(room_.beam > 0 ? room_.beam : static_cast<int32_t>(k) + 1));
    }
    auto n = room_.beam > 0 ? std::min(nodes_.size(), static_cast<size_t>(room_.beam)) : static_cast<size_t>(worth_keeping(utility_, cost_, aim()));
    if (beforehand) seen_[static_cast<size_t>(level_)] = utility_[n - 1];
    if (deepest) return false;
    explored_ = !beforehand && explores() && !kernels::pays(utility_[n - 1], cost_[n - 1], aim());
    if (explored_) n = 1;
    offered_ = {best, 0, so_far, cost_[n - 1], utility_.size()};
    std::copy(utility_.begin(), utility_.end(), offered_.utility.begin());
    nodes_.resize(n);
    *offer = LevelOffer{utility_[n - 1], beforehand ? 0 : aim(), cost_[n - 1], static_cast<int32_t>(n), explored_, drafted_, {}, {}};
    if (!beforehand) look_ahead(best, offer);
    for (const int32_t node : nodes_) offered_.mass += values_.of(node);
    *frontier = nodes_;
    std::sort(frontier->begin(), frontier->end());
    return true;
  }
  void decided(bool asks, double ms, double share) override {
    if (explored_ && asks) declined_ = 0;
    if (!asks) {
      declined_ = std::min(kExplore, declined_ + 1.0 / costs_.beside);
      return;
    }
    offered_.draft_ms = level_++ > 0 ? ms : share * costs_.draft_root;
    asked_.push_back(offered_);
  }
  double level_ms(int32_t rows) const override { return costs_.draft_all_ms(rows); }

  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    const int32_t kept = rank(tree);
    if (room_.beam > 0) drew_ = utility_;
    keep(kept - 1, cost_[static_cast<size_t>(kept) - 1], selected);
  }

  bool offer_rows(const DraftTree& tree, std::vector<double>* worth) override {
    worth->clear();
    if (!(aim() > 0)) return false;
    rank(tree);
    rate_nodes(worth);
    return true;
  }
  void rows_decided(int32_t nodes, double node_ms, std::vector<int32_t>* selected) override {
    keep(nodes, costs_.target_ms(1) + nodes * node_ms, selected);
  }
  double verify_ms(int32_t rows) const override { return costs_.target_all_ms(rows); }

  CycleRate expected(const DraftTree& tree) override {
    const auto n = static_cast<size_t>(rank(tree) - 1);
    values_.begin();  // another tree may come
    return {utility_[n], cost_[n]};
  }

  void witness(const DraftTree& tree, std::span<const int32_t> tokens) override {
    const std::lock_guard lock(shared_->mutex);
    int32_t node = 0;
    for (const int32_t token : tokens)
      if ((node = learn(&shared_->learned, tree, node, token)) < 0) break;
    shared_->learned.calibration.refit();
  }

  void wasted(double ms) override {
    if (resting() || free_ || !(plain_ms() > 0)) return;
    const std::lock_guard lock(shared_->mutex);
    const double tokens = std::max(1 / plain_ms(), costs_.reached) * ms;
    shared_->learned.trial.drafted(-tokens, -tokens, weight());
  }

  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    if (resting()) return idle(1);
    if (!(o.ms > 0) || !(plain_ms() > 0)) return;
    const std::lock_guard lock(shared_->mutex);
    Learned& learned = shared_->learned;
    for (size_t i = 0; i < o.path.size(); ++i)
      (void)learn(&learned, tree, o.path[i], i + 1 < o.path.size() ? tree[o.path[i + 1]].token : o.last_token);
    learned.calibration.refit();
    learn_together(&learned.together, tree, o);
    const auto came = static_cast<double>(o.path.size());
    const bool drafted = expected_ > 0 && o.verified.size() == kept_;  // else others took its rows
    const double tokens = drafted && !free_ ? kHindsight * came + (1 - kHindsight) * expected_ : came;
    const double ms = drafted ? spent_ : o.ms;  // what it usually takes: a drafter that was away is shown more
    learned.learn_rate(tokens, ms / plain_ms(), costs_.beside);
    if (drafted && room_.beam > 0) {
      learned.rooms.drew(drew_);
      for (const Asked& a : asked_) learned.beams.drew({a.utility.data(), a.nodes});
      learned.levels.asked(static_cast<int32_t>(asked_.size()));
      for (size_t depth = 1; depth < seen_.size(); ++depth)
        if (!std::isnan(seen_[depth])) learned.depth.saw(static_cast<int32_t>(depth), seen_[depth]);
    }
    if (drafted) {
      learn_gains(&learned.gain);
      learn_goes_on(tree, &learned.goes_on);
    }
    const double speed = std::max(1 / plain_ms(), costs_.reached), ahead = tokens - (costs_.reached > 0 ? costs_.instead : 0);
    const double took = std::min(o.ms, kHeldUp * (ms + costs_.catch_up));
    if (!free_) learned.trial.drafted(ahead - (1 - kSlack) * speed * ms, ahead - speed * took, weight());
    if (!free_ && costs_.reached == 0) learned.trial.glance(learned.rate.speed());
  }

 private:
  // A draft pass: the best of the nodes asked about, the sum of their values, what the tree was worth before, and what
  // the pass costs; then what asking about the best 1, 2, ... nodes would have brought.
  struct Asked {
    double best = 0, mass = 0, so_far = 0, draft_ms = 0;
    size_t nodes = 0;
    std::array<double, kTopK> utility{};
  };

  // What is known by now; who rests asks for no beliefs, which are thousands of numbers.
  void look_up() {
    const std::lock_guard lock(shared_->mutex);
    static_cast<Standing&>(now_) = shared_->learned;
    if (resting()) return;
    now_ = shared_->learned;
    values_.beliefs.child = now_.calibration.curves();
    values_.beliefs.path = now_.together.curves();
    values_.beliefs.mood = now_.mood.in(stretch_);
  }

  bool explores() const { return declined_ + 1.0 / costs_.beside >= kExplore; }  // the level that does not seem to pay
  // A pass takes as long as its room.
  double target_cost(int32_t rows) const { return costs_.target_ms(room_.beam > 0 ? std::max(rows, room_.nodes + 1) : rows); }
  // How deep it goes is decided beforehand where a device draws (level_worth.h).
  bool together() const { return costs_.beside > 1; }
  // Nodes that a device drafts from, of each level.
  int32_t beam() const {
    return now_.beams.best(1, kTopK, aim(), [&](int32_t n) { return costs_.draft_ms(n); });
  }
  double plain_ms() const { return costs_.target ? costs_.target_ms(1) : 0; }
  // Noise in what all sessions of a batch come to grows with the root of their number.
  double weight() const { return 1 / std::sqrt(static_cast<double>(costs_.beside)); }
  // The speed that a node has to keep up with.
  double aim() const {
    if (free_ && costs_.reached > 0) return costs_.reached;
    return plain_ms() > 0 ? std::max(costs_.reached, std::max(1.0, now_.rate.speed()) / plain_ms()) : 0;
  }

  // Of a node whose parent was verified it is known whether all of its path came true, unless it is behind the last token. Of
  // others one would only hear when their path had failed before.
  void learn_together(Calibration* together, const DraftTree& tree, const CycleOutcome& o) {
    enum Fate : uint8_t { no, yes, unknown };
    const int32_t size = std::min(tree.size(), values_.size());
    verified_.assign(static_cast<size_t>(size), 0);
    verified_[0] = 1;
    for (const int32_t node : o.verified)
      if (node < size) verified_[static_cast<size_t>(node)] = 1;
    fate_.assign(static_cast<size_t>(tree.size()), no);
    for (const int32_t node : o.path) fate_[static_cast<size_t>(node)] = yes;
    for (int32_t i = 1; i < size; ++i) {
      const DraftNode& n = tree[i];
      const float product = values_.product(i);
      uint8_t& fate = fate_[static_cast<size_t>(i)];
      const bool last = n.parent == o.path.back() && n.token == o.last_token;
      if (fate_[static_cast<size_t>(n.parent)] == unknown) fate = unknown;
      else if (verified_[static_cast<size_t>(n.parent)] && kernels::paths_matter(n.depth, product)) together->learn(product, n.depth - 1, n.rank == 0, fate == yes || last);
      if (last) fate = unknown;
    }
    together->refit();
  }

  void learn_gains(LevelMeans* gain) const {
    double later = 0;
    for (size_t level = asked_.size(); level-- > 1;) {
      const Asked& a = asked_[level];
      if (a.mass > 1e-3) gain->learn(static_cast<int32_t>(level), a.best, (reached_ - a.so_far - aim() * later) / a.mass);
      later += a.draft_ms;
    }
  }

  void learn_goes_on(const DraftTree& tree, LevelMeans* goes_on) const {
    std::array<double, kMaxDepth + 1> held{};  // by best children of nodes at this depth
    const int32_t size = std::min(tree.size(), values_.size());
    for (int32_t i = 1; i < size; ++i)
      if (tree[i].rank == 0 && tree[i].depth <= kMaxDepth) held[static_cast<size_t>(tree[i].depth) - 1] += values_.of(i);
    for (size_t level = 1; level < asked_.size(); ++level) {
      const Asked& a = asked_[level];
      if (a.mass > 1e-3) goes_on->learn(static_cast<int32_t>(level), a.best, held[level] / a.mass);
    }
  }

  // The children of `node`, of which the target took `taken`; that one, -1 when it is not among them.
  int32_t learn(Learned* learned, const DraftTree& tree, int32_t node, int32_t taken) {
    int32_t next = -1;
    const int32_t best = tree.first_child(node), depth = tree[node].depth;
    if (best < 0) return next;
    const bool hit = tree[best].token == taken;
    learned->mood.learn(learned->calibration.probability(tree[best].confidence, depth, true), stretch_, hit);
    stretch_.learn(hit);
    learned->stretch = stretch_;
    for (int32_t c = best; c >= 0; c = tree.next_sibling(c)) {
      learned->calibration.learn(tree[c].confidence, depth, c == best, tree[c].token == taken);
      if (tree[c].token == taken) next = c;
    }
    return next;
  }

  // After rank(): what nodes are worth in milliseconds, best first.
  void rate_nodes(std::vector<double>* worth) const {
    worth->clear();
    const double speed = aim(), least = kTrifle * plain_ms();
    if (!(speed > 0)) return;
    for (const int32_t node : nodes_) {
      if (values_.of(node) / speed < least) break;
      worth->push_back(values_.of(node) / speed);
    }
  }
  // nodes_ are those asked about, the best first.
  void look_ahead(double best, LevelOffer* offer) {
    next_.clear();
    for (const int32_t node : nodes_) next_.push_back(values_.of(node) / offer->aim);
    offer->asked = next_;
    for (size_t ahead = 0; ahead < LevelOffer::kAhead; ++ahead) {
      const int32_t level = level_ + static_cast<int32_t>(ahead);
      if (level >= std::min(kMaxDepth, room_.depth)) break;
      offer->goes_on[ahead] = std::clamp(now_.goes_on.of(level, best), 0.0, 1.0);
      best *= offer->goes_on[ahead];
    }
  }

  // nodes_: best first, with their utility and cost behind the root's; how many of these to keep, the root one of them.
  int32_t rank(const DraftTree& tree) {
    values_.update(tree);
    nodes_.clear();
    for (int32_t i = 1; i < tree.size(); ++i)
      if (tree[i].depth <= room_.depth) nodes_.push_back(i);
    values_.sort(tree, &nodes_);
    if (static_cast<int32_t>(nodes_.size()) > limits_.max_nodes) nodes_.resize(static_cast<size_t>(limits_.max_nodes));
    utility_.assign(1, 1.0);  // no node: the root's own token
    cost_.assign(1, target_cost(1));
    for (size_t k = 0; k < nodes_.size(); ++k) {
      utility_.push_back(utility_.back() + values_.of(nodes_[k]));
      cost_.push_back(target_cost(static_cast<int32_t>(k) + 2));
    }
    const size_t fit = std::min(utility_.size(), static_cast<size_t>(room_.nodes) + 1);
    return worth_keeping({utility_.data(), fit}, {cost_.data(), fit}, aim());
  }
  // After rank(): so many nodes are verified, in a pass that takes so long.
  void keep(int32_t nodes, double ms, std::vector<int32_t>* selected) {
    expected_ = utility_[static_cast<size_t>(nodes)];
    reached_ = net(nodes + 1);
    spent_ = ms + costs_.proposal;
    for (const Asked& a : asked_) spent_ += a.draft_ms;
    selected->assign(nodes_.begin(), nodes_.begin() + nodes);
    kept_ = selected->size();
    std::sort(selected->begin(), selected->end());
  }
  // After rank(): what the tree is worth with so many rows, at the speed aimed at.
  double net(int32_t rows) const { return utility_[static_cast<size_t>(rows) - 1] - aim() * cost_[static_cast<size_t>(rows) - 1]; }

  CycleLimits limits_;
  struct Room {
    int32_t nodes, depth;
    int32_t beam;  // 0: nothing was taken by a device's plan before there was a tree
  } room_{};  // of this cycle's tree
  CycleCosts costs_;
  std::shared_ptr<SharedLearning> shared_ = std::make_shared<SharedLearning>();
  Learned now_;      // as it was when the cycle began
  Stretch stretch_;  // of this text
  NodeValues values_;
  mutable TreeWeighing weighing_;  // of shape()
  std::vector<double> utility_, cost_, drafted_, next_, drew_;
  std::vector<uint8_t> fate_, verified_;  // by node
  std::vector<int32_t> nodes_;
  std::vector<Asked> asked_;  // by depth
  std::array<double, kMaxDepth + 1> seen_{};  // likewise, where together(): what asking would bring; NaN: no such nodes
  Asked offered_{};           // the next one
  size_t kept_ = 0;           // nodes selected
  bool explored_ = false;     // does not seem to pay
  int32_t level_ = 0;
  double expected_ = 0, reached_ = 0, spent_ = 0;  // of the selected tree: tokens, net of their cost, milliseconds
  double declined_ = 0;  // levels of a batch count once
  bool recalled_ = false;  // numbers of an image, whoever wrote them: believed here, and told to nobody
  bool free_ = false;  // its tree costs no pass
};

}  // namespace

std::unique_ptr<TreePolicy> make_auto_policy() { return std::make_unique<AutoPolicy>(); }

}  // namespace aerie
