// Cost-aware policies: pass costs, CAST's selection, calibration, and auto against fixed trees in simulated time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "core/cost/pass_cost.h"
#include "core/policy/calibration.h"
#include "core/policy/level_means.h"
#include "core/policy/level_vote.h"
#include "core/policy/marginal.h"
#include "core/policy/mood.h"
#include "core/policy/row_vote.h"
#include "core/policy/trial.h"
#include "tests/unit/tree/drive.h"

namespace aerie::tree_test {
namespace {

TEST(PassCost, NeverFallsAndFollowsTheMachine) {
  PassCost cost;
  EXPECT_FALSE(cost.known());
  cost.seed(1, 2.0);
  cost.seed(8, 1.9);  // noise: fewer milliseconds for more rows
  cost.seed(32, 6.0);
  for (int32_t n = 1; n <= kMaxCostRows; ++n) EXPECT_GE(cost.ms(n), n > 1 ? cost.ms(n - 1) : 0) << n;
  EXPECT_DOUBLE_EQ(cost.ms(1), 2.0);
  EXPECT_DOUBLE_EQ(cost.ms(32), 6.0);
  EXPECT_GT(cost.ms(128), cost.ms(32));
  for (int i = 0; i < 60; ++i) cost.measured(8, 6.0);  // a game has begun to render: everything is three times as slow
  EXPECT_NEAR(cost.ms(8), 6.0, 0.1);
  EXPECT_GT(cost.ms(1), 4.0) << "other row counts follow";
  cost.measured(8, 600.0);  // one preempted pass
  EXPECT_LT(cost.ms(8), 8.0);
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) cost.measured(8, bad);
  cost.measured(0, 1);
  cost.measured(1000, 1);
  EXPECT_LT(cost.ms(8), 8.0);
}

// A row count that was measured badly is put right once, and stays so while others are passed.
TEST(PassCost, ARowCountsOwnErrorIsRemembered) {
  PassCost cost;
  for (const int32_t n : {1, 4, 8, 16}) cost.seed(n, 10.0);
  const auto truth = [](int32_t n) { return n == 8 ? 11.5 : 10.0; };
  for (int i = 0; i < 200; ++i) cost.measured(i % 2 ? 4 : 8, truth(i % 2 ? 4 : 8));
  EXPECT_NEAR(cost.ms(8) / cost.ms(4), 1.15, 0.03);
  for (int i = 0; i < 1000; ++i) cost.measured(4, 20.0);  // half as fast, and nothing but 4 rows
  EXPECT_NEAR(cost.ms(4), 20.0, 0.2);
  EXPECT_NEAR(cost.ms(8) / cost.ms(4), 1.15, 0.03);
}

// Row counts that drafting passes take longer than was measured. One that is passed now and then only stays what it is.
TEST(PassCost, WhatIsRarelyPassedIsNotForgotten) {
  PassCost cost;
  for (const int32_t n : {1, 4, 8, 16}) cost.seed(n, 10.0 + 0.5 * n, kMeasuredQuickly);
  const auto drafted = [&](int passes, double slow) {
    for (int i = 0; i < passes; ++i) cost.measured(3 + i % 4, slow * 1.15 * (10.0 + 0.5 * (3 + i % 4)));
  };
  drafted(30, 1);
  EXPECT_GT(cost.ms(1), 11.2) << "nobody has looked";
  for (int look = 0; look < 4; ++look) {
    for (int i = 0; i < 4; ++i) cost.measured(1, 10.5);
    drafted(50, 1);
  }
  EXPECT_NEAR(cost.ms(1), 10.5, 0.4);
  drafted(1000, 1.5);
  EXPECT_NEAR(cost.ms(1), 1.5 * 10.5, 0.6);
  for (int i = 0; i < 1000; ++i) cost.measured(1, 1.5 * 10.5 * (1 + 0.0005 * i));  // a text that grows
  EXPECT_NEAR(cost.ms(4) / cost.ms(1), 1.15 * 12 / 10.5, 0.04);
}

// CAST, Algorithm 1, as printed.
int32_t algorithm_1(const std::vector<double>& u, const std::vector<double>& c, double threshold) {
  std::vector<bool> mark(u.size(), true);
  for (size_t i = 0; i < u.size(); ++i)
    for (size_t j = i + 1; j < u.size(); ++j)
      if ((u[j] - u[i]) / (c[j] - c[i]) < threshold) mark[j] = false;
  int32_t last = 0;
  for (size_t j = 0; j < u.size(); ++j)
    if (mark[j]) last = static_cast<int32_t>(j) + 1;
  return last;
}

TEST(Marginal, EqualsAlgorithm1) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const size_t n = 1 + random() % 12;
    std::vector<double> u, c;
    double sum = 0, cost = 0;
    for (size_t k = 0; k < n; ++k) {  // eighths: exact in binary, so that equal slopes are equal
      u.push_back(sum += static_cast<double>(1 + random() % 64) / 8);
      c.push_back(cost += static_cast<double>(1 + random() % 16) / 8);
    }
    const double threshold = static_cast<double>(1 + random() % 64) / 8;
    ASSERT_EQ(worth_keeping(u, c, threshold), algorithm_1(u, c, threshold)) << "round " << round;
  }
  EXPECT_EQ(worth_keeping({}, {}, 1), 0);
}

// CAST, Theorem 4.1: with cost lambda j + delta and threshold (sum of the K-th best values) / lambda it keeps EAGLE-2's K,
// in exact arithmetic (integers), values without ties.
TEST(Marginal, Theorem41) {
  std::mt19937 random(6);
  for (int round = 0; round < 2000; ++round) {
    const size_t n = 2 + random() % 20, k = 1 + random() % n;
    std::vector<int64_t> value(n);
    std::iota(value.begin(), value.end(), 1);
    for (int64_t& v : value) v = v * 100 + static_cast<int64_t>(random() % 100);
    std::sort(value.rbegin(), value.rend());
    const int64_t lambda = 1 + random() % 9, delta = random() % 50;
    // u_j - C c_j with C = v_K / lambda, times lambda: sum * lambda - v_K (lambda j + delta).
    int64_t sum = 0, most = 0;
    size_t kept = 0;
    for (size_t j = 1; j <= n; ++j) {
      sum += value[j - 1];
      const int64_t net = sum * lambda - value[k - 1] * (lambda * static_cast<int64_t>(j) + delta);
      if (j == 1 || net >= most) {
        most = net;
        kept = j;
      }
    }
    ASSERT_EQ(kept, k);
    std::vector<double> u, c;
    double total = 0;
    for (size_t j = 1; j <= n; ++j) {
      u.push_back(total += static_cast<double>(value[j - 1]));
      c.push_back(static_cast<double>(lambda * static_cast<int64_t>(j) + delta));
    }
    ASSERT_EQ(worth_keeping(u, c, static_cast<double>(value[k - 1]) / static_cast<double>(lambda) * (1 - 1e-12)), static_cast<int32_t>(k));
  }
}

TEST(Calibration, LearnsAnOverconfidentDrafterAndStaysMonotone) {
  Calibration c;
  EXPECT_NEAR(c.probability(0.5f, 0, true), 0.5, 0.06) << "unlearned, it believes the drafter";
  std::mt19937 random(8);
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < 4000; ++i) {
    const auto confidence = static_cast<float>(uniform(random));
    c.learn(confidence, 0, true, uniform(random) < 0.5 * static_cast<double>(confidence));  // true half as often as it says
    c.refit();
  }
  for (const float p : {0.2f, 0.5f, 0.8f}) EXPECT_NEAR(c.probability(p, 0, true), 0.5 * static_cast<double>(p), 0.08) << p;
  double last = 0;
  for (int i = 0; i <= 100; ++i) {
    const double p = c.probability(static_cast<float>(i) / 100.0f, 0, true);
    EXPECT_GE(p, last);
    EXPECT_LE(p, 1.0);
    last = p;
  }
  EXPECT_NEAR(c.probability(0.8f, 1, true), 0.8, 0.1) << "each depth learns for itself";
  EXPECT_NEAR(c.probability(0.8f, 0, false), 0.8, 0.1) << "and so do the best child and the others";
}

TEST(Mood, FollowsAStretchAndItsOwnWeights) {
  std::mt19937 random(9);
  std::uniform_real_distribution<double> uniform;
  Mood mood;
  Stretch stretch;
  const auto run = [&](double hit, int n) {
    for (int i = 0; i < n; ++i) {
      const bool taken = uniform(random) < hit;
      mood.learn(0.7, stretch, taken);
      stretch.learn(taken);
    }
    return mood.chance(0.7, stretch);
  };
  double easy = 0, hard = 0;
  for (int i = 0; i < 20; ++i) {  // of the same calibrated chance
    easy += run(0.97, 60) / 20;
    hard += run(0.3, 60) / 20;
  }
  EXPECT_GT(easy, 0.85);
  EXPECT_LT(hard, 0.6);
  EXPECT_LT(run(0, 300), 0.2);
  EXPECT_GT(mood.chance(0.9, stretch), mood.chance(0.5, stretch));
}

// As a saved session may hold them: each number is in its range, and the spread is none.
TEST(Mood, IsFiniteWhateverAnImageSays) {
  struct {
    int at = 0;
    void operator()(double& v, double, double) { v = at++ == 4 ? -4.0 : 0.0; }  // four weights, then the spread
  } image;
  Mood mood;
  Mood::fields(mood, image);
  for (int i = 0; i < 100; ++i) mood.learn(0.5, Stretch{}, i % 3 == 0);
  EXPECT_TRUE(std::isfinite(mood.chance(0.7, Stretch{}))) << "noise + spread was 0";
}

TEST(Mood, IsCalibratedInALongRun) {
  std::mt19937 random(10);
  std::uniform_real_distribution<double> uniform;
  Mood mood;
  Stretch stretch;
  double expected = 0, came = 0;
  for (int i = 0; i < 20000; ++i) {
    const double hit = i / 100 % 2 ? 0.9 : 0.4;
    const bool taken = uniform(random) < hit;
    if (i > 1000) {
      expected += mood.chance(0.65, stretch);
      came += taken;
    }
    mood.learn(0.65, stretch, taken);
    stretch.learn(taken);
  }
  EXPECT_NEAR(expected / came, 1, 0.03);
}

TEST(LevelMeans, ALevelNotSeenYetIsAsTheOneBefore) {
  LevelMeans gain(0.4);
  for (int i = 0; i < 200; ++i) gain.learn(1, 0.8, 0.1);
  EXPECT_NEAR(gain.of(1, 0.8), 0.1, 0.04);
  EXPECT_NEAR(gain.of(2, 0.8), gain.of(1, 0.8), 1e-12);
  EXPECT_GT(gain.of(1, 0.2), 0.3) << "less sure nodes learn for themselves";
  for (int i = 0; i < 200; ++i) gain.learn(2, 0.8, -0.3);
  EXPECT_NEAR(gain.of(2, 0.8), -0.3, 0.06);
  EXPECT_NEAR(gain.of(1, 0.8), 0.1, 0.04);
}

// A draft pass takes 1 ms and 0.1 ms a row; `sessions` wait for it. What is drafted is verified for nothing.
double draft_ms(int32_t rows) { return 1 + 0.1 * rows; }
LevelVote vote(LevelBallot* ballot, const std::vector<LevelOffer>& offers, int32_t sessions) {
  return ballot->decide(offers, {{}, sessions, sessions}, draft_ms, [](int32_t) { return 1.0; });
}
// The places of the offers taken.
std::vector<size_t> taken(const std::vector<LevelOffer>& offers, int32_t sessions) {
  LevelBallot ballot;
  const size_t n = vote(&ballot, offers, sessions).taken;
  std::vector<size_t> places(ballot.best_first().begin(), ballot.best_first().begin() + static_cast<std::ptrdiff_t>(n));
  std::sort(places.begin(), places.end());
  return places;
}
using Places = std::vector<size_t>;

// Who asks about nodes that are worth so much, and so are the next ones, but none behind them.
LevelOffer offer(const double& worth, int32_t rows = 1, bool explore = false) {
  LevelOffer o;
  o.aim = 1;
  o.rows = rows;
  o.explore = explore;
  o.asked = {&worth, 1};
  o.goes_on = {1};
  return o;
}

TEST(BatchVote, AllWhoWaitForAPassDecideTogether) {
  const double w5 = 5, w3 = 3, w2 = 2, w15 = 1.5, w03 = 0.3, w01 = 0.1;
  EXPECT_EQ(taken({offer(w15), offer(w15), offer(w15), offer(w15)}, 4), (Places{0, 1, 2, 3}));
  EXPECT_EQ(taken({offer(w3), offer(w01), offer(w01), offer(w01)}, 4), Places{}) << "four wait, and one gains";
  EXPECT_EQ(taken({offer(w5), offer(w01), offer(w01), offer(w01)}, 4), Places{0}) << "who has enough of it";
  EXPECT_EQ(taken({offer(w2), offer(w03), offer(w2), offer(w2)}, 4), (Places{0, 2, 3})) << "a row must pay for itself";
  EXPECT_EQ(taken({offer(w2), offer(w2), offer(w2)}, 8), Places{}) << "others wait who do not ask";
}

TEST(BatchVote, WhoAsksWhateverItCostsPaysForThePass) {
  const LevelOffer always;
  const double little = 0.5, less = 0.3;
  EXPECT_EQ(taken({offer(less), always, offer(little), offer(little)}, 4), (Places{1, 2, 3}));
  EXPECT_EQ(taken({offer(less), offer(little), offer(little), offer(little)}, 4), Places{});
}

TEST(BatchVote, WhatDoesNotPayIsTriedByAllTogether) {
  const double little = 0.2, less = 0.1;
  EXPECT_EQ(taken({offer(little), offer(less, 1, true), offer(little)}, 3), (Places{0, 1, 2}));
}

TEST(BatchVote, TellsThePassOfThoseWhoAsk) {
  const double w = 6;
  LevelBallot ballot;
  const LevelVote v = vote(&ballot, {offer(w, 3), offer(w)}, 2);
  EXPECT_EQ(v.taken, 2u);
  EXPECT_EQ(ballot.best_first()[0], 1u) << "more for each row";
  EXPECT_EQ(v.rows, 4);
  EXPECT_DOUBLE_EQ(v.ms, draft_ms(4));
}

// A verify pass takes 1 ms for each four rows, as tiles of kernels do, and a draft pass next to nothing.
TEST(BatchVote, ALevelIsWorthWhatThePassWithItIs) {
  const auto asks = [](const std::vector<LevelOffer>& offers, const std::vector<double>& others) {
    LevelBallot ballot;
    return ballot.decide(offers, {others, 2, 2}, [](int32_t) { return 0.1; }, [](int32_t rows) { return (rows + 3) / 4; }).taken;
  };
  const std::array<double, 1> drafted{1.2};
  const double asked = 0.9;
  LevelOffer o = offer(asked);
  o.drafted = drafted;  // of both: the first four rows are full
  EXPECT_EQ(asks({o, o}, {}), 0u) << "1.8 more for 2 x 1 ms";
  EXPECT_EQ(asks({o, o}, {0.5}), 2u) << "somebody fills the rest of these";
  o.goes_on = {1, 1};
  EXPECT_EQ(asks({o, o}, {}), 2u) << "the level behind it does";
}

TEST(BatchVote, RowsGoToTheNodesThatAreWorthMost) {
  const auto steps = [](int32_t rows) { return rows <= 4 ? 1.0 : rows <= 8 ? 2.0 : 2 + 0.5 * (rows - 8); };  // as tiles of kernels are
  const std::vector<double> worth{1.5, 1, 0.9, 0.7, 0.6, 0.4, 0.3, 0.2};
  const RowVote two = decide_rows(worth, 2, 2, steps);
  EXPECT_EQ(two.taken, 6u) << "a second tile for 2 x 1 ms is worth it, and filled";
  EXPECT_DOUBLE_EQ(two.node_ms, 2.0 / 6);
  EXPECT_EQ(decide_rows(worth, 2, 3, steps).taken, 2u) << "not where three wait";
  EXPECT_EQ(decide_rows({}, 2, 2, steps).taken, 0u);
  EXPECT_EQ(decide_rows({{0.1}}, 4, 4, steps).taken, 0u);
}

// Whatever a trial costs, trials cost a small share of the tokens.
TEST(Trial, AWorthlessDrafterIsTriedAsRarelyAsItIsDear) {
  for (const double loss : {0.3, 1.0, 8.0}) {
    Trial trial;
    double tokens = 0, lost = 0;
    int first = 0;
    while (!trial.resting()) {
      trial.drafted(-loss, -loss);
      ++first;
    }
    EXPECT_LE(first * loss, 6 + loss);
    while (tokens < 20000) {
      if (trial.resting()) trial.idle(1);
      else trial.drafted(-loss, -loss), lost += loss;
      ++tokens;
    }
    EXPECT_LE(lost, 0.013 * tokens) << loss;
    EXPECT_GT(lost, 0) << "but it is tried";
  }
}

// What sessions that step together lose is noisier in all by the root of their number.
TEST(Trial, ManySessionsMayLoseMoreInAll) {
  const auto cycles = [](double unit) {
    Trial trial;
    int n = 0;
    for (; !trial.resting(); ++n) trial.drafted(-0.5, -0.5, unit);
    return n;
  };
  EXPECT_EQ(cycles(1), 7);
  EXPECT_EQ(cycles(0.25), 25);
}

TEST(Trial, OneThatWinsGoesOn) {
  Trial trial;
  for (int i = 0; i < 100; ++i) {
    trial.drafted(i % 2 ? 1 : -0.9, -1);
    ASSERT_FALSE(trial.resting()) << i;
  }
  EXPECT_FALSE(trial.on());
}

TEST(Trial, WhoHasWonIsSoonTriedAgain) {
  const auto rest = [](double won) {
    Trial trial;
    for (int i = 0; i < 50; ++i) trial.drafted(won, won);
    while (!trial.resting()) trial.drafted(-1, -1);
    int tokens = 0;
    for (; trial.resting(); ++tokens) trial.idle(1);
    return tokens;
  };
  EXPECT_LT(rest(1), 30);
  EXPECT_GT(rest(0), 100);
}

TEST(Trial, GlancesAtTheAlternativeWhileItIsInQuestion) {
  const auto tokens_without = [](double times) {
    Trial trial;
    int without = 0;
    for (int i = 0; i < 2000; ++i) {
      if (trial.resting()) {
        trial.idle(1);
        ++without;
        continue;
      }
      trial.drafted(0.1, 0.1);
      trial.glance(times);
    }
    EXPECT_FALSE(trial.on()) << "a glance is no new trial";
    return without;
  };
  EXPECT_EQ(tokens_without(1.02), 152);
  EXPECT_EQ(tokens_without(1.2), 28);
  EXPECT_EQ(tokens_without(2), 0);
}

// A world of fixed pass costs and a drafter whose best child comes true with a known chance. Time is counted, not measured.
struct World {
  std::array<double, 129> target{}, draft{};
  double hit = 0.7;  // of the best child; the second has half of the rest
  explicit World(double per_row, double per_draft, double hit_rate) : hit(hit_rate) {
    for (size_t n = 1; n < target.size(); ++n) {
      target[n] = 10 + per_row * static_cast<double>(n - 1);
      draft[n] = per_draft;
    }
  }
  // Tokens a millisecond over `cycles`; `change` at half-way, if set, `rests` counted from there.
  double speed(TreePolicy& policy, int cycles, const std::function<void(World&)>& change = {}) {
    std::mt19937 random(11);
    std::uniform_real_distribution<double> uniform;
    double tokens = 0, ms = 0;
    for (int i = 0; i < cycles; ++i) {
      if (change && i == cycles / 2) change(*this);
      CycleLimits limits;
      policy.begin(limits);
      CycleCosts costs;
      costs.target = believed ? believed->curve().data() : target.data();
      costs.draft = draft.data();
      costs.draft_root = draft[1];
      policy.costs(costs);
      if (i < cycles / 2) rests = 0;
      rests += policy.resting();
      DraftTree tree;
      tree.reset(1000);
      double spent = 0;
      std::vector<int32_t> frontier, selected;
      while (!policy.resting() && policy.expand(tree, &frontier)) {
        spent += draft[1];
        ++passes;
        for (const int32_t node : frontier) {
          const int32_t token[] = {1, 2};
          const float confidence[] = {static_cast<float>(claimed), static_cast<float>((1 - claimed) / 2)};
          tree.add_children(node, token, confidence);
        }
      }
      if (tree.size() > 1) policy.select(tree, &selected);
      const double verify = target[selected.size() + 1];
      spent += verify;
      if (believed) believed->measured(static_cast<int32_t>(selected.size()) + 1, verify);
      std::vector<int32_t> path{0};
      int32_t next = 0;
      for (;;) {  // the target's choice: 1, 2 or something else
        const double x = uniform(random);
        next = x < hit ? 1 : x < hit + (1 - hit) / 2 ? 2 : 3;
        int32_t child = tree.first_child(path.back());
        while (child >= 0 && (tree[child].token != next || std::find(selected.begin(), selected.end(), child) == selected.end()))
          child = tree.next_sibling(child);
        if (child < 0) break;
        path.push_back(child);
      }
      tokens += static_cast<double>(path.size());
      ms += spent;
      policy.outcome(tree, {path, next, i == held_up ? 1000 * spent : spent, selected});
    }
    return tokens / ms;
  }
  double claimed = 0.7;
  int held_up = -1;  // this cycle takes much longer
  PassCost* believed = nullptr;  // what the policy is told instead of the truth, and what corrects it
  int passes = 0, rests = 0;
};

TEST(Auto, ComesNearTheBestFixedTree) {
  for (const auto& [per_row, per_draft, hit] :
       {std::array{0.1, 0.5, 0.8}, std::array{1.0, 1.0, 0.8}, std::array{3.0, 1.0, 0.6}, std::array{0.3, 4.0, 0.7}}) {
    double best = World(per_row, per_draft, hit).target[1] > 0 ? 1 / World(per_row, per_draft, hit).target[1] : 0;
    for (const int32_t total : {2, 3, 4, 6, 10, 20, 40, 60})
      for (const int32_t depth : {0, 1, 2, 3, 5, 8}) {
        auto fixed = make_eagle2_policy({total, depth, 2}).value();
        best = std::max(best, World(per_row, per_draft, hit).speed(*fixed, 1500));
      }
    auto automatic = make_auto_policy();
    const double ours = World(per_row, per_draft, hit).speed(*automatic, 3000);
    EXPECT_GE(ours, 0.93 * best) << "row " << per_row << " draft " << per_draft << " hit " << hit;
  }
}

// A drafter on the host copies what came before: all of it comes true, or nothing. Of nodes behind the verified ones it is heard
// when their path failed, and never when it would have come true. For 200 cycles there is room for two; `cut`: for as many as the
// policy likes, but others take the rows. How many it selects in ten more.
size_t selects_later(bool cut) {
  std::array<double, 129> target{};
  for (size_t n = 1; n < target.size(); ++n) target[n] = 10 + 4 * static_cast<double>(n - 1);
  auto policy = make_auto_policy();
  std::mt19937 random(12);
  size_t later = 0;
  for (int i = 0; i < 210; ++i) {
    const bool room = i >= 200;
    CycleLimits limits;
    if (!room && !cut) limits.max_nodes = 2;
    policy->begin(limits);
    CycleCosts costs;
    costs.target = target.data();
    policy->costs(costs);
    DraftTree tree;
    tree.reset(1000);
    for (int32_t depth = 0; depth < 9; ++depth) {
      const float confidence = 0.9f;
      tree.add_children(depth, {&depth, 1}, {&confidence, 1});
    }
    std::vector<int32_t> selected, path{0};
    policy->select(tree, &selected);
    if (!room && selected.size() > 2) selected.resize(2);
    const bool comes_true = random() % 8 != 0;
    if (comes_true) path.insert(path.end(), selected.begin(), selected.end());
    policy->outcome(tree, {path, comes_true ? static_cast<int32_t>(selected.size()) : 999, target[selected.size() + 1], selected});
    if (room) later += selected.size();
  }
  return later;
}
TEST(Auto, NodesThatWereNotVerifiedAreNotJudgedByPathsThatFailed) {
  EXPECT_GE(selects_later(false), 60u) << "of nine nodes, ten times; 30 when they were";
  EXPECT_GE(selects_later(true), 60u);
}

TEST(Auto, AWorthlessDrafterCostsLittle) {
  for (const double claimed : {0.7, 0.99}) {  // honest about nothing
    World world(1.0, 2.0, 0.02);
    world.claimed = claimed;
    const double plain = 1 / world.target[1];
    auto automatic = make_auto_policy();
    EXPECT_GE(world.speed(*automatic, 3000), 0.97 * plain) << claimed;
  }
}

TEST(Auto, GlancesAtPlainDecodeWhereItIsNearlyAsFast) {
  const auto rests = [](double hit) {
    World world(0.3, 5.5, hit);
    world.claimed = hit;
    auto automatic = make_auto_policy();
    const double times = world.speed(*automatic, 4000) * world.target[1];
    EXPECT_GT(times, 1.0) << hit;
    if (hit < 0.6) {
      EXPECT_LT(times, 1.15) << hit;
    }
    return world.rests;
  };
  const int nearly = rests(0.5), clearly = rests(0.95);
  EXPECT_GT(nearly, 20);
  EXPECT_LT(nearly, 400) << "it drafts";
  EXPECT_EQ(clearly, 0);
}

// A pass that is held up, by another program or a page that is not there, says nothing about the drafter.
TEST(Auto, APassThatIsHeldUpOnceIsNotHeldAgainstTheDrafter) {
  World world(0.3, 2.0, 0.8);
  world.held_up = 40;
  auto automatic = make_auto_policy();
  (void)world.speed(*automatic, 60);
  world.held_up = -1;
  world.hit = -1;  // neither child ever comes true
  (void)world.speed(*automatic, 600);
  EXPECT_GT(world.rests, 0);
  world.hit = 0.8;
  EXPECT_GT(world.speed(*automatic, 1000) * world.target[1], 1.3) << "it is soon tried again, as one that has won";
}

// Passes of several rows take longer than was measured. If that raised what plain decode is believed to take, which nobody does
// meanwhile, drafting would seem to pay.
TEST(Auto, LooksWhetherPlainDecodeIsStillSlower) {
  World world(3.0, 2.0, 0.5);
  world.claimed = 0.5;
  PassCost believed;
  for (const int32_t n : {1, 2, 4, 8, 16, 32, 64, 128}) believed.seed(n, world.target[static_cast<size_t>(n)]);
  for (size_t n = 2; n < world.target.size(); ++n) world.target[n] *= 1.12;
  world.believed = &believed;
  auto automatic = make_auto_policy();
  EXPECT_GE(world.speed(*automatic, 4000), 0.97 / world.target[1]);
}

TEST(Auto, ADrafterThatGoesBadIsNoticedAndOneThatImprovesIsTriedAgain) {
  World world(0.3, 0.5, 0.8);
  auto automatic = make_auto_policy();
  const double plain = 1 / world.target[1];
  EXPECT_GE(world.speed(*automatic, 2000, [](World& w) { w.hit = 0.0; }), 1.2 * plain);
  World later(0.3, 0.5, 0.0);
  auto second = make_auto_policy();
  EXPECT_GE(later.speed(*second, 8000, [](World& w) { w.hit = 0.8; }), 1.3 * plain) << "tried again";
}

// What cycles with a drafter came to says less the longer ago they were.
TEST(Auto, DoubtFallsWithCyclesAndGrowsWithoutThem) {
  World world(0.05, 0.5, 0.7);
  const auto automatic = make_auto_policy();
  (void)world.speed(*automatic, 20);
  const double early = automatic->doubt();
  (void)world.speed(*automatic, 400);
  const double late = automatic->doubt();
  EXPECT_LT(late, early);
  for (int i = 0; i < 200; ++i) automatic->idle(0.1);
  automatic->begin({});
  EXPECT_GT(automatic->doubt(), 1.5 * late);
  EXPECT_LT(automatic->doubt(), 4 * late);
}

TEST(Auto, WhatOneSessionLearnedServesTheNext) {
  World bad(1.0, 6.0, 0.02);
  auto first = make_auto_policy(), second = make_auto_policy(), fresh = make_auto_policy();
  bad.speed(*first, 400);
  ASSERT_NE(first->experience(), nullptr);
  second->take_over(*first->experience());
  EXPECT_GT(bad.speed(*second, 30), bad.speed(*fresh, 30)) << "it rests from the start";
  EXPECT_TRUE(second->resting());
  struct Other final : TreeExperience {};
  fresh->take_over(Other{});  // another policy's: not for it
  EXPECT_TRUE(fresh->experience());
  EXPECT_EQ(make_eagle2_policy({}).value()->experience(), nullptr);
}

TEST(Cast, SpendsWhereItPaysAndKeepsItsPromises) {
  World cheap(0.05, 0.1, 0.8), dear(8.0, 8.0, 0.5);
  auto policy = make_cast_policy({.total = 72, .depth = 13, .top_k = 2, .threshold = 1.5}).value();
  const auto nodes = [&](World& w) {
    policy->begin({});
    CycleCosts costs;
    costs.target = w.target.data();
    costs.draft = w.draft.data();
    policy->costs(costs);
    const Draft d = [&] {
      Draft out;
      out.tree.reset(1000);
      std::vector<int32_t> frontier;
      while (policy->expand(out.tree, &frontier)) {
        out.frontiers.push_back(frontier);
        for (const int32_t node : frontier) {
          const int32_t token[] = {1, 2};
          const float confidence[] = {0.8f, 0.1f};
          out.asked_in_vain = out.asked_in_vain || out.tree.child_count(node) > 0;
          out.tree.add_children(node, token, confidence);
        }
      }
      policy->select(out.tree, &out.selected);
      return out;
    }();
    EXPECT_EQ(broken(d, {}), "");
    return d.selected.size();
  };
  EXPECT_GT(nodes(cheap), nodes(dear));
  EXPECT_EQ(make_cast_policy({.threshold = 0}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_cast_policy({.total = 1}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace aerie::tree_test
