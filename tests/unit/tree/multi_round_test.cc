// The sampled-draft rule at one node: its output law, by enumeration of every draw and every accept
// or reject, and its guards.
#include "core/verify/multi_round.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "tests/unit/tree/drive.h"
#include "tests/unit/tree/every_outcome.h"

namespace aerie {
namespace multi_round_test {

using namespace tree_test;

using Reorder = std::function<void(const Law& q, Tokens* children)>;

// The exact law of the token emitted after one node.
Law law_of_round(const Law& p, const Law& q, int32_t k, const Reorder& reorder = {}) {
  EveryOutcome dice;
  MultiRound rule;
  Law out(p.size(), 0.0);
  dice.run([&] {
    DrawnChildren drawn;
    EXPECT_TRUE(draw_children(q, k, 1, dice, &drawn).ok());
    Tokens children = drawn.token;
    if (reorder) reorder(q, &children);
    int32_t token = -1, accepted = -1;
    const Status s = rule.round(p, drawn.q, children, 1, dice, &token, &accepted);
    ASSERT_TRUE(s.ok()) << s.message();
    if (accepted >= 0) {
      EXPECT_EQ(children[static_cast<size_t>(accepted)], token);
    }
    EXPECT_GT(p[static_cast<size_t>(token)], 0);
    out[static_cast<size_t>(token)] += dice.probability();
  });
  return out;
}

TEST(MultiRound, OneNodeHasTheTargetsLawExactly) {
  std::mt19937 rng(5);
  double worst = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int vocab = 3 + trial % 3;
    const Law p = random_law(rng, vocab, trial % 2 == 1), q = random_law(rng, vocab, trial % 4 > 1);
    for (int32_t k = 0; k <= 3; ++k) worst = std::max(worst, distance(law_of_round(p, q, k), p));
  }
  EXPECT_LT(worst, 1e-12);
}

// The papers' warning, and the proof that the tests above can fail.
TEST(MultiRound, SortingOrPruningTheDrawsBiases) {
  std::mt19937 rng(6);
  const auto by_confidence = [](const Law& q, Tokens* c) {
    std::stable_sort(c->begin(), c->end(),
                     [&](int32_t a, int32_t b) { return q[static_cast<size_t>(a)] > q[static_cast<size_t>(b)]; });
  };
  const auto best_only = [&](const Law& q, Tokens* c) {
    by_confidence(q, c);
    c->resize(1);
  };
  double sorted = 0, pruned = 0, prefix = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Law p = random_law(rng, 4, false), q = random_law(rng, 4, false);
    sorted = std::max(sorted, distance(law_of_round(p, q, 2, by_confidence), p));
    pruned = std::max(pruned, distance(law_of_round(p, q, 2, best_only), p));
    prefix = std::max(prefix, distance(law_of_round(p, q, 3, [](const Law&, Tokens* c) { c->resize(1); }), p));
  }
  EXPECT_GT(sorted, 0.01);
  EXPECT_GT(pruned, 0.01);
  EXPECT_LT(prefix, 1e-12);  // dropping the last draws, whatever they are, is harmless
}

// The drafter's best tokens, not sampled, under the p/q rule: why EAGLE-2's trees are refused.
TEST(MultiRound, DeterministicCandidatesBias) {
  const Law p{.4, .3, .2, .1}, q{.35, .3, .2, .15};
  EveryOutcome dice;
  MultiRound rule;
  Law law(4, 0.0);
  dice.run([&] {
    int32_t token = -1, accepted = -1;
    ASSERT_TRUE(rule.round(p, q, Tokens{0, 1}, 1, dice, &token, &accepted).ok());
    law[static_cast<size_t>(token)] += dice.probability();
  });
  EXPECT_GT(law[0], 0.9);
}

// A drafter with fewer ids than the target: q is 0 beyond them.
TEST(MultiRound, ShorterDraftVocabulary) {
  std::mt19937 rng(10);
  for (int trial = 0; trial < 50; ++trial)
    for (int32_t k = 1; k <= 3; ++k) {
      const Law p = random_law(rng, 5, trial % 2);
      EXPECT_LT(distance(law_of_round(p, random_law(rng, 3, trial % 3 == 0), k), p), 1e-12);
    }
}

// A chain: Leviathan et al.'s rule, written out.
TEST(MultiRound, ChainIsThePQRule) {
  std::mt19937 rng(7);
  for (int trial = 0; trial < 100; ++trial) {
    const Law p = random_law(rng, 4, trial % 2), q = random_law(rng, 4, trial % 3 == 0);
    Law rest(4);
    for (size_t i = 0; i < 4; ++i) rest[i] = std::max(0.0, p[i] - q[i]);
    const double rest_total = std::accumulate(rest.begin(), rest.end(), 0.0);
    for (int32_t x = 0; x < 4; ++x) {
      const auto i = static_cast<size_t>(x);
      if (q[i] == 0) continue;
      const double a = std::min(1.0, p[i] / q[i]);
      Law want(4, 0.0), got(4, 0.0);
      want[i] += a;
      if (a < 1)
        for (size_t t = 0; t < 4; ++t) want[t] += (1 - a) * rest[t] / rest_total;
      EveryOutcome dice;
      MultiRound rule;
      dice.run([&] {
        int32_t token = -1, accepted = -1;
        ASSERT_TRUE(rule.round(p, q, Tokens{x}, 1, dice, &token, &accepted).ok());
        got[static_cast<size_t>(token)] += dice.probability();
      });
      EXPECT_LT(distance(got, want), 1e-12);
    }
  }
}

TEST(MultiRound, HandlesZerosAndBadInput) {
  EveryOutcome dice;
  MultiRound rule;
  int32_t token = -1, accepted = -1;
  const auto code = [&](const Law& p, const Law& q, const Tokens& children) {
    Code c = Code::ok;
    dice.run([&] { c = rule.round(p, q, children, 1, dice, &token, &accepted).code(); });
    return c;
  };
  EXPECT_EQ(code({.5, .5}, {1, 0}, {1}), Code::invalid_argument);             // q = 0: never drawn
  EXPECT_EQ(code({.5, .5}, {.5, .5}, {0, 0}), Code::ok);                      // p = q: the first is always accepted
  EXPECT_EQ(code({0, .5, .5}, {.5, .5, 0}, {0, 0}), Code::invalid_argument);  // one id drawn twice
  EXPECT_EQ(code({.5, .5}, {.5, .5}, {2}), Code::invalid_argument);
  EXPECT_EQ(code({.5, .5}, {.5, .5}, {-1}), Code::invalid_argument);
  EXPECT_EQ(code({0, 0}, {.5, .5}, {0}), Code::invalid_argument);
  EXPECT_EQ(code({NAN, 1}, {.5, .5}, {0}), Code::invalid_argument);
  EXPECT_EQ(code({-.5, 1.5}, {.5, .5}, {0}), Code::invalid_argument);
  EXPECT_EQ(code({.5, .5}, {.5, .5, .5}, {0}), Code::invalid_argument);
  EXPECT_EQ(code({.5, .25, .25}, {1}, {0}), Code::ok);  // a shorter q is 0 from there on

  DrawnChildren drawn;
  KeyedDice keyed(1, 1);
  EXPECT_TRUE(draw_children(Law{0, 1, 0}, 3, 1, keyed, &drawn).ok());  // fewer ids than asked for
  EXPECT_EQ(drawn.token, Tokens{1});
  EXPECT_EQ(drawn.q, (Law{0, 1, 0}));
  EXPECT_FALSE(draw_children(Law{0, 0}, 1, 1, keyed, &drawn).ok());
  EXPECT_FALSE(draw_children(Law{1, NAN}, 1, 1, keyed, &drawn).ok());
  EXPECT_FALSE(draw_children(Law{1, -1}, 1, 1, keyed, &drawn).ok());
  EXPECT_FALSE(draw_children(Law{1}, 1000, 1, keyed, &drawn).ok());
}

// A uniform of exactly 0 must not let a token of probability 0 through (EAGLE's code accepts r <= p).
TEST(MultiRound, ForbiddenTokensAreNotEvenAskedAbout) {
  struct Yes final : Dice {
    bool accept(int64_t, uint32_t, double) override { return true; }
    int32_t pick(int64_t, uint32_t, std::span<const double> w, double total) override { return pick_by(0, w, total); }
  } dice;
  MultiRound rule;
  int32_t token = -1, accepted = -1;
  ASSERT_TRUE(rule.round(Law{0, .5, .5}, Law{.5, .5, 0}, Tokens{0}, 1, dice, &token, &accepted).ok());
  EXPECT_EQ(accepted, -1);
  EXPECT_EQ(token, 2);
}

// Dice as unlucky as can be: every question is answered no, every pick is at the far end.
TEST(MultiRound, NeverEmitsWhatTheTargetForbids) {
  struct Unlucky final : Dice {
    bool accept(int64_t, uint32_t, double) override { return false; }
    int32_t pick(int64_t, uint32_t, std::span<const double> w, double total) override {
      return pick_by(std::nextafter(1.0, 0.0), w, total * (1 + 1e-9));
    }
  } dice;
  std::mt19937 rng(8);
  MultiRound rule;
  for (int trial = 0; trial < 2000; ++trial) {
    const Law p = random_law(rng, 5, true);
    Law q = random_law(rng, 5, true);
    if (trial % 3 == 0) {  // the target's law but for rounding: the residual may vanish
      q = p;
      for (double& x : q) x *= 1 + 1e-16 * static_cast<double>(rng() % 5);
    }
    DrawnChildren drawn;
    ASSERT_TRUE(draw_children(q, 4, 1, dice, &drawn).ok());
    int32_t token = -1, accepted = -1;
    ASSERT_TRUE(rule.round(p, q, drawn.token, 1, dice, &token, &accepted).ok());
    ASSERT_GT(p[static_cast<size_t>(token)], 0);
  }
  EXPECT_EQ(pick_by(0.999, Law{0, 1, 0}, 5), 1);
  EXPECT_EQ(pick_by(0, Law{0, 0, 1}, 1), 2);
  EXPECT_EQ(pick_by(0.5, Law{0, 0}, 1), -1);
}

// The dice of real runs: the law over many positions, and the same answers for the same key.
TEST(MultiRound, KeyedDiceHaveTheLaw) {
  const Law p{.4, .3, .2, .1}, q{.1, .2, .3, .4};
  KeyedDice dice(42, 3), again(42, 3);
  MultiRound rule;
  DrawnChildren drawn;
  const int n = 200000;
  Law law(4, 0.0);
  int hits = 0;
  for (int64_t position = 0; position < n; ++position) {
    int32_t token = -1, accepted = -1, token2 = -1;
    ASSERT_TRUE(draw_children(q, 2, position, dice, &drawn).ok());
    ASSERT_TRUE(rule.round(p, drawn.q, drawn.token, position, dice, &token, &accepted).ok());
    ASSERT_TRUE(rule.round(p, drawn.q, drawn.token, position, again, &token2, &accepted).ok());
    ASSERT_EQ(token, token2);
    law[static_cast<size_t>(token)] += 1.0 / n;
    hits += accepted >= 0;
  }
  EXPECT_LT(distance(law, p), 5 * std::sqrt(.25 / n));
  EXPECT_GT(hits, n / 2);
}

// Depth 2 of one cycle and depth 1 of the next are the same position, but not the same dice.
TEST(MultiRound, EveryCycleHasFreshDice) {
  const Law even(1 << 20, 1.0);
  const auto pick = [&](int64_t root, int64_t position, uint32_t lane) {
    return KeyedDice(1, 2, root).pick(position, lane, even, 1 << 20);
  };
  EXPECT_EQ(pick(9, 12, kDrawLane), pick(9, 12, kDrawLane));
  EXPECT_NE(pick(9, 12, kDrawLane), pick(10, 12, kDrawLane));
  EXPECT_NE(pick(9, 12, kDrawLane), pick(9, 12, kAcceptLane));
  EXPECT_NE(pick(9, 12, kAcceptLane), pick(9, 12, kAcceptLane + 1));
  EXPECT_NE(pick(9, 12, kResidualLane), pick(9, 13, kResidualLane));
}

}  // namespace multi_round_test
}  // namespace aerie
