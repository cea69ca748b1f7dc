// Prefix reuse: what an earlier text left is not computed again, and nothing else changes, the drafter's luck included.
#include <map>
#include <random>

#include "tests/unit/session/reuse_fixtures.h"

namespace aerie::test {
namespace {

class PrefixTest : public ReuseTest {
 protected:
  // A prompt that shares `common` tokens with prompt(length) and parts from it there.
  static std::vector<int32_t> parted(size_t length, size_t common) {
    auto p = prompt(length);
    for (size_t i = common; i < length; ++i) p[i] = 150 - p[i];
    return p;
  }
  static std::shared_ptr<Model> cold() {
    ModelOptions m;
    m.keep_prefixes = false;
    return open_model(*target_, cpu(1), m);
  }
};

TEST_F(PrefixTest, AHitChangesNothingButTime) {
  const auto model = open_model(*target_, cpu(1)), without = cold();
  for (const Kind& kind : kinds())
    for (const float temperature : {0.0f, 0.8f}) {
      const SessionOptions o = options(open(model, kind), temperature), plain = options(open(without, kind), temperature);
      for (const size_t common : {31u, 32u, 33u, 64u, 65u, 80u}) {
        const std::string what = kind.plugin + " " + kind.package + " at " + std::to_string(temperature) + " in common " + std::to_string(common);
        generate(*begun(model, o, prompt(82)), 4);
        auto hit = begun(model, o, parted(82, common)), miss = begun(without, plain, parted(82, common));
        EXPECT_EQ(more(*hit, 40), more(*miss, 40)) << what;
        const SessionStatistics& s = hit->statistics();
        EXPECT_EQ(s.reused_tokens + s.prefill_tokens, 81u) << what;
        EXPECT_GE(s.reused_tokens, std::max<uint64_t>(common / 32 * 32, 1) - 1) << what;
        EXPECT_EQ(miss->statistics().reused_tokens, 0u);
        EXPECT_EQ(s.drafter_failures, 0u) << what;
      }
    }
}

// The newest token's pass is never spared, whatever is there.
TEST_F(PrefixTest, TheWholeTextAgain) {
  const auto model = open_model(*target_, cpu(1)), without = cold();
  for (const Kind& kind : kinds())
    for (const size_t length : {32u, 33u, 64u, 65u, 66u, 100u}) {
      const SessionOptions o = options(open(model, kind), 0.8f), plain = options(open(without, kind), 0.8f);
      generate(*begun(model, o, prompt(length)), 28);
      auto again = begun(model, o, prompt(length)), miss = begun(without, plain, prompt(length));
      EXPECT_EQ(more(*again, 28), more(*miss, 28)) << kind.plugin << " " << length;
      EXPECT_GE(again->statistics().reused_tokens, length > 33 ? 31u : 0u) << kind.plugin << " " << length;
      EXPECT_LT(again->statistics().reused_tokens, length);
    }
}

// Generated text is a prefix too (the next turn of a talk), and so is what a rewind cut off.
TEST_F(PrefixTest, GeneratedTextIsReused) {
  const auto model = open_model(*target_, cpu(1)), without = cold();
  for (const Kind& kind : kinds()) {
    const SessionOptions o = options(open(model, kind), 0.8f), plain = options(open(without, kind), 0.8f);
    auto first = begun(model, o, prompt(30));
    generate(*first, 60);
    auto text = first->tokens();
    must(first->rewind(35));
    for (const int32_t t : prompt(10)) text.push_back(t);
    auto hit = begun(model, o, text), miss = begun(without, plain, text);
    EXPECT_EQ(more(*hit, 25), more(*miss, 25)) << kind.plugin;
    EXPECT_GE(hit->statistics().reused_tokens, 63u) << kind.plugin;
    // The rewound one takes its own text back.
    must(first->append(std::span(text).subspan(35)));
    generate(*first, 25);
    EXPECT_EQ(first->tokens(), hit->tokens()) << kind.plugin;
    EXPECT_GE(first->statistics().reused_tokens, 30u) << kind.plugin;
  }
}

// One begins while the other still reads; with a drafter and without one.
TEST_F(PrefixTest, ALiveTextsPagesAreShared) {
  const auto model = open_model(*target_, cpu(1));
  const SessionOptions o = options(open(model, kinds()[0]), 0.8f), none = options(nullptr, 0.8f);
  const auto want = generate(*begun(cold(), none, prompt(100)), 30);
  auto first = begun(model, o, prompt(100));
  EXPECT_EQ(generate(*first, 30), want);
  const int64_t room = model->pool()->free_positions();
  auto plain = begun(model, none, prompt(100)), drafted = begun(model, o, prompt(100));
  EXPECT_EQ(generate(*plain, 30), want);
  EXPECT_EQ(generate(*drafted, 30), want);
  EXPECT_EQ(plain->statistics().reused_tokens, 96u);
  EXPECT_EQ(drafted->statistics().reused_tokens, 96u);
  EXPECT_GE(model->pool()->free_positions(), room - 2 * (128 + 2 * 32));
  // A drafter that was not there: the target reads it all for it.
  auto other = begun(model, options(open(model, kinds()[1]), 0.8f), prompt(100));
  EXPECT_EQ(generate(*other, 30), want);
  EXPECT_EQ(other->statistics().reused_tokens, 0u);
}

// Trees of EAGLE-2 under the name of `auto`: the drafters of a session take turns, whatever passes cost.
class InTurns final : public TreePolicy {
 public:
  InTurns(int of, int turn) : of_(of), turn_(turn), inner_(make_eagle2_policy({12, 2, 4}).value()) {}
  InTurns(const InTurns& o) : of_(o.of_), turn_(o.turn_), cycle_(o.cycle_), inner_(o.inner_->clone()) {}
  const char* name() const override { return "in turns"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<InTurns>(*this); }
  int32_t width() const override { return inner_->width(); }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  int32_t best_nodes() const override { return inner_->best_nodes(); }
  int32_t best_depth() const override { return inner_->best_depth(); }
  void begin(const CycleLimits& limits) override {
    ++cycle_;
    inner_->begin(limits);
  }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return inner_->expand(tree, frontier); }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override { inner_->select(tree, selected); }
  bool on_trial() const override { return cycle_ % of_ == turn_; }
  CycleRate expected(const DraftTree&) override { return on_trial() ? CycleRate{1e6, 1} : CycleRate{}; }

 private:
  int of_, turn_, cycle_ = 0;
  std::unique_ptr<TreePolicy> inner_;
};

TEST_F(PrefixTest, SeveralDrafters) {
  const auto model = open_model(*target_, cpu(1)), without = cold();
  const auto all = kinds();
  // Heads together; a drafter with keys of its own beside a head and a look-up; one that gathers state of its own.
  const std::vector<std::vector<size_t>> sets = {{0, 1, 2}, {1, 3, 4}, {5, 0, 6}, {6, 4, 5}, {0, 7}};
  for (const auto& set : sets)
    for (const float temperature : {0.0f, 0.8f}) {
      const auto several = [&](const std::shared_ptr<Model>& m) {
        SessionOptions o = options(open(m, all[set[0]]), temperature);
        for (size_t i = 1; i < set.size(); ++i) o.more_drafters.push_back(open(m, all[set[i]]));
        o.tree.name = "auto";
        o.policy = [n = static_cast<int>(set.size()), made = 0]() mutable { return std::make_unique<InTurns>(n, made++ % n); };
        return o;
      };
      const SessionOptions o = several(model), plain = several(without);
      for (const size_t common : {31u, 33u, 64u, 65u, 80u}) {
        const std::string what = all[set[0]].plugin + " and " + all[set[1]].plugin + " at " + std::to_string(temperature) + " in common " + std::to_string(common);
        generate(*begun(model, o, prompt(82)), 4);
        auto hit = begun(model, o, parted(82, common)), miss = begun(without, plain, parted(82, common));
        EXPECT_EQ(more(*hit, 60), more(*miss, 60)) << what;
        const SessionStatistics& s = hit->statistics();
        EXPECT_GE(s.reused_tokens, std::max<uint64_t>(common / 32 * 32, 1) - 1) << what;
        EXPECT_EQ(s.reused_tokens + s.prefill_tokens, 81u) << what;
        EXPECT_EQ(miss->statistics().reused_tokens, 0u);
        EXPECT_EQ(s.drafter_failures, 0u) << what;
        for (size_t i = 0; i < set.size(); ++i)  // a look-up may find nothing
          EXPECT_TRUE(s.chosen_cycles[i] > 0 || all[set[i]].package.empty()) << what << ": drafter " << i;
      }
      // What they wrote is kept too, for a text that begins alike and for themselves.
      auto first = begun(model, o, prompt(30));
      generate(*first, 70);
      auto text = first->tokens();
      must(first->rewind(40));
      for (const int32_t t : prompt(9)) text.push_back(t);
      auto hit = begun(model, o, text), miss = begun(without, plain, text);
      EXPECT_EQ(more(*hit, 25), more(*miss, 25)) << all[set[0]].plugin;
      EXPECT_GE(hit->statistics().reused_tokens, 31u) << all[set[0]].plugin;
      must(first->append(std::span(text).subspan(40)));
      generate(*first, 25);
      EXPECT_EQ(first->tokens(), hit->tokens()) << all[set[0]].plugin;
    }
}

TEST_F(PrefixTest, OffMeansOff) {
  const auto model = cold();
  for (int i = 0; i < 2; ++i) {
    auto s = begun(model, options(nullptr, 0), prompt(100));
    generate(*s, 10);
    EXPECT_EQ(s->statistics().reused_tokens, 0u);
    EXPECT_EQ(s->statistics().prefill_tokens, 99u);
  }
  EXPECT_EQ(model->prefixes(), nullptr);
}

// Many texts, more than there is room for, in any order: each is what it is alone.
TEST_F(PrefixTest, WhateverWasDroppedTheTextIsTheSame) {
  ModelOptions m;
  m.kv_positions = 448;
  const auto model = open_model(*target_, cpu(1), m), without = cold();
  const auto drafter = open(model, kinds()[0]);
  std::mt19937 random(3);
  uint64_t reused = 0;
  std::map<std::pair<size_t, size_t>, std::vector<int32_t>> want;
  for (int i = 0; i < 150; ++i) {
    const size_t common = 20 * (random() % 5), length = 81 + random() % 3;
    auto& text = want[{length, common}];
    if (text.empty()) text = generate(*begun(without, options(nullptr, 0.8f), parted(length, common)), 40);
    auto s = begun(model, options(random() % 3 ? drafter : nullptr, 0.8f), parted(length, common));
    EXPECT_EQ(generate(*s, 40), text);
    reused += s->statistics().reused_tokens;
  }
  EXPECT_GT(reused, 2000u);
  EXPECT_EQ(model->pool()->free_positions(), 448);
}

}  // namespace
}  // namespace aerie::test
