// What a policy has learned goes with a saved session, and a drafter that rests goes on resting: the restored session draws
// the trees that the saved one would have drawn.
#include "tests/unit/session/save_support.h"

namespace aerie::test {
namespace {

// A policy in a world where passes take what they are said to take, which learns nothing from earlier sessions and is woken
// from a rest after 90 cycles (auto's own rests may be longer than these texts).
class Steady final : public TreePolicy {
 public:
  Steady(std::unique_ptr<TreePolicy> inner, double draft_ms) : inner_(std::move(inner)), draft_(line(draft_ms, 0.01)) {}
  const char* name() const override { return inner_->name(); }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Steady>(inner_->clone(), draft_[1]); }
  int32_t width() const override { return inner_->width(); }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  int32_t best_nodes() const override { return inner_->best_nodes(); }
  int32_t best_depth() const override { return inner_->best_depth(); }
  void begin(const CycleLimits& limits) override { inner_->begin(limits); }
  void costs(const CycleCosts&) override {
    static const std::vector<double> target = line(10, 0.15);
    CycleCosts c;
    c.target = target.data();
    c.draft = draft_.data();
    c.draft_root = draft_[1];
    inner_->costs(c);
  }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return inner_->expand(tree, frontier); }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    inner_->select(tree, selected);
    nodes_ = selected->size();
  }
  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    inner_->outcome(tree, {o.path, o.last_token, 10 + 0.15 * static_cast<double>(nodes_) + 2 * draft_[1], o.verified});
    nodes_ = 0;
    rested_ = inner_->resting() ? rested_ + 1 : 0;
    if (rested_ == 90) inner_->wake();
  }
  std::vector<double> memory() const override {
    auto numbers = inner_->memory();
    numbers.push_back(rested_);
    return numbers;
  }
  bool recall(std::span<const double> numbers) override {
    if (numbers.empty() || !inner_->recall(numbers.first(numbers.size() - 1))) return false;
    rested_ = static_cast<int>(numbers.back());
    return true;
  }
  bool resting() const override { return inner_->resting(); }

 private:
  static std::vector<double> line(double first, double more) {
    std::vector<double> v(kMaxCostRows + 1, first);
    for (size_t n = 2; n < v.size(); ++n) v[n] = v[n - 1] + more;
    return v;
  }
  std::unique_ptr<TreePolicy> inner_;
  std::vector<double> draft_;
  size_t nodes_ = 0;
  int rested_ = 0;
};

SessionOptions steady(std::shared_ptr<Drafter> drafter, const std::string& tree, float temperature, double draft_ms = 1) {
  SessionOptions o = options_for(std::move(drafter), tree, temperature);
  o.policy = [tree, draft_ms] {
    PolicySpec spec;
    spec.name = tree;
    spec.cast.threshold = 0.6;
    return std::make_unique<Steady>(make_policy(spec).value(), draft_ms);
  };
  return o;
}

// Of each of the next `n` cycles, or fewer where the context ends: its tokens, and how much was drafted and verified.
std::vector<std::array<uint64_t, 4>> trees(Session& s, size_t n) {
  std::vector<std::array<uint64_t, 4>> out;
  while (out.size() < n) {
    const SessionStatistics before = s.statistics();
    StepResult r;
    must(s.step(0, std::chrono::microseconds(0), &r));
    const SessionStatistics& now = s.statistics();
    if (now.cycles > before.cycles)
      out.push_back({now.emitted - before.emitted, now.proposed - before.proposed, now.verified - before.verified, now.draft_passes - before.draft_passes});
    if (r.state == StepState::done) break;
  }
  return out;
}

TEST(SaveMemory, TheSameTreesAsWithoutTheSave) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  for (const auto& [plugin, name] : {std::pair("eagle", "eagle3"), std::pair("fasteagle", "fasteagle"), std::pair("small_model", "small")})
    for (const char* tree : {"cast", "auto"})
      for (const float temperature : {0.0f, 0.9f}) {
        const std::string what = std::string(name) + " " + tree + " " + std::to_string(temperature);
        const auto drafter = open_drafter(model, plugin, models + "demo-" + name + ".aerie");
        const SessionOptions o = steady(drafter, tree, temperature);
        auto session = must(Session::create(model, o));
        must(session->append(kSavedPrompt));
        (void)trees(*session, 25);
        const Bytes bytes = saved(*session);
        EXPECT_FALSE(must(decode_snapshot(bytes)).drafters.at(0).memory.empty()) << what;
        const auto want = trees(*session, 30);
        const auto text = session->tokens();
        session.reset();
        auto restored = must(Session::restore(model, o, bytes));
        EXPECT_EQ(trees(*restored, 30), want) << what;
        EXPECT_EQ(restored->tokens(), text) << what;
        EXPECT_LE(restored->statistics().prefill_tokens, 1u) << what;
        // With other settings it learns anew, and says the same text.
        SessionOptions other = steady(drafter, tree == std::string("cast") ? "auto" : "cast", temperature);
        auto anew = must(Session::restore(model, other, bytes));
        const auto more = generate(*anew, 20);
        EXPECT_TRUE(std::equal(more.begin(), more.end(), text.begin() + static_cast<std::ptrdiff_t>(anew->tokens().size() - more.size()))) << what;
      }
}

// One that does not pay rests, longer than its features are kept: it begins anew when it is asked again, here as there.
TEST(SaveMemory, WhoRestsGoesOnResting) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  for (const auto& [plugin, name] : {std::pair("eagle", "eagle3"), std::pair("medusa", "medusa"), std::pair("small_model", "small")}) {
    const SessionOptions o = steady(open_drafter(model, plugin, models + "demo-" + name + ".aerie"), "auto", 0.9f, 12);
    for (const size_t cycles : {30u, 70u, 110u}) {
      const std::string what = std::string(name) + " after " + std::to_string(cycles);
      auto session = must(Session::create(model, o));
      must(session->append(kSavedPrompt));
      (void)trees(*session, cycles);
      const Bytes bytes = saved(*session);
      const auto want = trees(*session, 150);
      const auto text = session->tokens();
      session.reset();
      auto restored = must(Session::restore(model, o, bytes));
      EXPECT_EQ(trees(*restored, 150), want) << what;
      EXPECT_EQ(restored->tokens(), text) << what;
      EXPECT_LE(restored->statistics().prefill_tokens, 1u) << what << ": nothing is read again";
      EXPECT_EQ(restored->statistics().drafter_failures, 0u) << what;
      const auto plain = static_cast<size_t>(std::count(want.begin(), want.end(), std::array<uint64_t, 4>{1, 0, 0, 0}));
      EXPECT_GT(plain, 64u) << what << ": it did not rest";
      EXPECT_LT(plain, want.size()) << what << ": it was never tried again";
    }
  }
}

}  // namespace
}  // namespace aerie::test
