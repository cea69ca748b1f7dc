// The sampled-draft rule over whole trees: policy, draft loop, rows and verification together.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "core/policy/tree_policy.h"
#include "core/verify/multi_round.h"
#include "tests/unit/tree/drive.h"
#include "tests/unit/tree/every_outcome.h"

namespace aerie {
namespace multi_round_tree_test {

using namespace tree_test;

// A pair of models over a small vocabulary: a law for every path of tokens.
struct Models {
  int vocab;
  mutable std::mt19937 rng;
  mutable std::map<Tokens, Law> p, q;
  const Law& target(const Tokens& path) const { return law(p, path); }
  const Law& drafter(const Tokens& path) const { return law(q, path); }
  const Law& law(std::map<Tokens, Law>& m, const Tokens& path) const {
    auto it = m.find(path);
    if (it == m.end()) it = m.emplace(path, random_law(rng, vocab, true)).first;
    return it->second;
  }
};

struct RowLaw final : TargetLaw {
  const Models* models;
  const TreeRows* rows;
  int32_t vocab() const override { return models->vocab; }
  Status probabilities(int32_t row, std::span<double> p) override {
    Tokens path;
    for (int32_t r = row; r > 0; r = rows->parent[static_cast<size_t>(r)])
      path.insert(path.begin(), rows->token[static_cast<size_t>(r)]);
    const Law& law = models->target(path);
    std::copy(law.begin(), law.end(), p.begin());
    return {};
  }
};

// Draft a tree with the policy, the core drawing the children, and verify it.
Status cycle(const Models& models, TreePolicy& policy, const CycleLimits& limits, Dice& dice,
             std::vector<SampledStep>* out) {
  DraftTree tree(256);
  DrawnTree drawn;
  std::vector<int32_t> frontier, selected;
  policy.begin(limits);
  tree.reset(0);
  while (policy.expand(tree, &frontier))
    for (const int32_t node : frontier) {
      Tokens path;
      for (int32_t n = node; n > 0; n = tree[n].parent) path.insert(path.begin(), tree[n].token);
      const Law& q = models.drafter(path);
      AERIE_ASSIGN(const DrawnChildren* c, drawn.draw(node, q, policy.width(), 100 + tree[node].depth + 1, dice));
      tree.add_children(node, c->token, c->confidence);
    }
  policy.select(tree, &selected);
  TreeRows rows;
  rows.build(tree, selected);
  RowLaw law;
  law.models = &models;
  law.rows = &rows;
  MultiRound rule;
  return rule.verify(rows, drawn, policy.draw_order(), 100, law, dice, out);
}

// The law of the next `n` tokens: what the cycle emitted, then the target alone. Compared with the target's.
double tree_error(const Models& models, TreePolicy& policy, const CycleLimits& limits, size_t n) {
  std::map<Tokens, double> got;
  const std::function<void(Tokens, double, std::map<Tokens, double>*)> finish = [&](Tokens path, double probability,
                                                                                    std::map<Tokens, double>* into) {
    if (path.size() >= n) {
      path.resize(n);
      (*into)[path] += probability;
      return;
    }
    const Law law = models.target(path);
    for (size_t t = 0; t < law.size(); ++t) {
      if (law[t] == 0) continue;
      Tokens longer = path;
      longer.push_back(static_cast<int32_t>(t));
      finish(longer, probability * law[t], into);
    }
  };
  EveryOutcome dice;
  std::vector<SampledStep> steps;
  dice.run([&] {
    const Status s = cycle(models, policy, limits, dice, &steps);
    ASSERT_TRUE(s.ok()) << s.message();
    Tokens path;
    for (const SampledStep& step : steps) path.push_back(step.token);
    finish(path, dice.probability(), &got);
  });
  std::map<Tokens, double> want;
  finish({}, 1, &want);
  double worst = 0;
  for (const auto& [path, p] : want) worst = std::max(worst, std::abs(p - got[path]));
  for (const auto& [path, p] : got) worst = std::max(worst, std::abs(p - want[path]));
  return worst;
}

TEST(MultiRoundTree, ChainsHaveTheTargetsLawExactly) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Models models{3 + static_cast<int>(seed % 3), std::mt19937(seed), {}, {}};
    for (int32_t length = 1; length <= 2; ++length)
      EXPECT_LT(tree_error(models, *make_chain_policy(length), {}, static_cast<size_t>(length) + 1), 1e-12);
    EXPECT_LT(tree_error(models, *make_chain_policy(5), {127, 1}, 2), 1e-12);
  }
}

TEST(MultiRoundTree, StaticTreesHaveTheTargetsLawExactly) {
  const std::vector<std::vector<Tokens>> shapes{
      {{0}, {1}, {2}}, {{0}, {1}, {0, 0}}, {{0}, {1}, {0, 0}, {0, 1}, {1, 0}}, {{0}, {1}, {1, 0}, {1, 1}}};
  for (const auto& shape : shapes) {
    auto policy = std::move(make_static_policy(shape)).value();
    ASSERT_TRUE(policy->draw_order());
    for (uint32_t seed = 0; seed < 6; ++seed) {
      const Models models{3 + static_cast<int>(seed % 2), std::mt19937(seed + 50), {}, {}};
      EXPECT_LT(tree_error(models, *policy, {}, 3), 1e-12);
      EXPECT_LT(tree_error(models, *policy, {2, 127}, 3), 1e-12);  // the limits cut the shape
    }
  }
}

// No question is asked twice under one key in a chain, and all that decides the token of a position
// is keyed by that position.
TEST(MultiRoundTree, QuestionsAreKeyedByThePositionTheyDecide) {
  struct Recorder final : Dice {
    std::vector<std::pair<int64_t, uint32_t>> asked;
    bool accept(int64_t position, uint32_t lane, double) override {
      asked.emplace_back(position, lane);
      return true;
    }
    int32_t pick(int64_t position, uint32_t lane, std::span<const double> w, double total) override {
      asked.emplace_back(position, lane);
      return pick_by(0.5, w, total);
    }
  } dice;
  Models models{2, std::mt19937(1), {}, {}};
  for (const Tokens& path : {Tokens{}, Tokens{1}, Tokens{1, 1}}) {
    models.p[path] = {.7, .3};
    models.q[path] = {.2, .8};  // draws 1; p < q: the dice are asked
  }
  std::vector<SampledStep> steps;
  ASSERT_TRUE(cycle(models, *make_chain_policy(2), {}, dice, &steps).ok());
  EXPECT_EQ(steps.size(), 3u);
  const std::vector<std::pair<int64_t, uint32_t>> want{
      {101, kDrawLane}, {102, kDrawLane}, {101, kAcceptLane}, {102, kAcceptLane}, {103, kResidualLane}};
  EXPECT_EQ(dice.asked, want);
}

TEST(MultiRoundTree, RefusesRerankedTrees) {
  const Models models{4, std::mt19937(1), {}, {}};
  KeyedDice dice(1, 2);
  std::vector<SampledStep> steps;
  auto eagle2 = std::move(make_eagle2_policy({8, 1, 3})).value();
  EXPECT_EQ(cycle(models, *eagle2, {}, dice, &steps).code(), Code::unsupported);
  auto gap = std::move(make_static_policy({{1}, {0}})).value();
  EXPECT_EQ(cycle(models, *gap, {}, dice, &steps).code(), Code::unsupported);
}

TEST(MultiRoundTree, RefusesChildrenThatAreNotTheFirstDraws) {
  const Models models{4, std::mt19937(1), {}, {}};
  const Law q{.25, .25, .25, .25};
  KeyedDice dice(1, 2);
  DrawnTree drawn;
  auto c = drawn.draw(0, q, 3, 1, dice);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(drawn.draw(0, q, 3, 1, dice).status().code(), Code::invalid_argument);
  DraftTree tree;
  tree.add_children(0, (*c)->token, (*c)->confidence);
  MultiRound rule;
  RowLaw law;
  TreeRows rows;
  law.models = &models;
  law.rows = &rows;
  std::vector<SampledStep> steps;
  const auto verify = [&](const Tokens& selected) {
    rows.build(tree, selected);
    return rule.verify(rows, drawn, true, 0, law, dice, &steps).code();
  };
  EXPECT_EQ(verify({1, 2, 3}), Code::ok);
  EXPECT_EQ(verify({1, 2}), Code::ok);
  EXPECT_EQ(verify({}), Code::ok);
  EXPECT_EQ(verify({2, 1}), Code::invalid_argument);
  EXPECT_EQ(verify({1, 3}), Code::invalid_argument);
  drawn.reset();
  EXPECT_EQ(verify({1}), Code::invalid_argument);  // nothing was drawn at all
  EXPECT_EQ(verify({}), Code::ok);
  ASSERT_TRUE(drawn.draw(0, q, 1, 1, dice).ok());
  EXPECT_EQ(verify({1, 2, 3}), Code::invalid_argument);  // more than were drawn
}

}  // namespace multi_round_tree_test
}  // namespace aerie
