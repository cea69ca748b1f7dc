// What a policy goes on from, as numbers: one that recalls them draws the same trees as the one that wrote them down.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "tests/unit/tree/drive.h"

namespace aerie::tree_test {
namespace {

// A drafter and a text of pretence, both given by the round, at costs that change with it.
struct Pretence {
  uint32_t round = 0;
  std::array<double, 129> target{}, draft{};

  // The tree's nodes, asked about and selected.
  std::vector<std::vector<int32_t>> cycle(TreePolicy& policy, double right) {
    std::mt19937 random(1000 + round);
    std::uniform_real_distribution<double> uniform;
    for (size_t n = 1; n < target.size(); ++n) {
      target[n] = 10 + (round / 100 % 2 ? 1.0 : 0.1) * static_cast<double>(n - 1);
      draft[n] = 0.8 + 0.01 * static_cast<double>(n);
    }
    CycleLimits limits;
    limits.max_depth = 12;
    policy.begin(limits);
    CycleCosts costs;
    costs.target = target.data();
    costs.draft = draft.data();
    costs.draft_root = draft[1];
    policy.costs(costs);
    const auto confidence = static_cast<float>(0.3 + 0.65 * uniform(random));
    Draft d;
    d.tree.reset(1000);
    std::vector<int32_t> frontier;
    double ms = target[1];
    while (!policy.resting() && policy.expand(d.tree, &frontier)) {
      d.frontiers.push_back(frontier);
      ms += draft[frontier.size()];
      for (const int32_t node : frontier) {
        const std::vector<int32_t> token{1, 2, 3};
        const std::vector<float> c{confidence, (1 - confidence) * 0.6f, (1 - confidence) * 0.3f};
        d.tree.add_children(node, token, c);
      }
    }
    policy.select(d.tree, &d.selected);
    std::vector<int32_t> path{0};
    int32_t last = 9;
    for (;;) {
      int32_t next = -1;
      last = uniform(random) < right ? 1 : 2 + static_cast<int32_t>(uniform(random) * 4);
      for (const int32_t n : d.selected)
        if (d.tree[n].parent == path.back() && d.tree[n].token == last) next = n;
      if (next < 0) break;
      path.push_back(next);
    }
    policy.outcome(d.tree, {path, last, ms + target[d.selected.size() + 1] - target[1], d.selected});
    ++round;
    d.frontiers.push_back(d.selected);
    return d.frontiers;
  }
};

// Makers, not clones of one: clones of auto learn together.
std::vector<std::function<std::unique_ptr<TreePolicy>()>> with_memory() {
  return {[] { return make_auto_policy(); }, [] { return make_cast_policy({24, 9, 3, 0.7}).value(); }};
}

TEST(PolicyMemory, TheSameTreesAsWithout) {
  for (const auto& fresh : with_memory())
    for (const double right : {0.0, 0.4, 0.8})  // one rests, one goes to and fro, one drafts
      for (const int cycles : {1, 7, 60, 333}) {
        const auto policy = fresh();
        Pretence world;
        for (int i = 0; i < cycles; ++i) (void)world.cycle(*policy, right);
        const auto numbers = policy->memory();
        for (const double v : numbers) ASSERT_TRUE(std::isfinite(v));
        const auto other = fresh();
        ASSERT_TRUE(other->recall(numbers)) << policy->name();
        EXPECT_EQ(other->memory(), numbers) << policy->name();
        Pretence here = world, there = world;
        const auto unlearned = fresh();
        int as_new = 0;
        for (int i = 0; i < 300; ++i) {
          Pretence anew = here;
          const auto want = here.cycle(*policy, right);
          ASSERT_EQ(there.cycle(*other, right), want) << policy->name() << ", " << right << ", cycle " << i << " after " << cycles;
          as_new += anew.cycle(*unlearned, right) == want;
        }
        if (cycles == 333 && right == 0.8) {
          EXPECT_LT(as_new, 300) << policy->name() << ": there was nothing to remember";
        }
      }
}

TEST(PolicyMemory, OtherNumbersAreRefusedAndChangeNothing) {
  std::mt19937 random(3);
  for (const auto& fresh : with_memory()) {
    const auto policy = fresh();
    Pretence world;
    for (int i = 0; i < 100; ++i) (void)world.cycle(*policy, 0.6);
    const auto good = policy->memory();
    const auto refused = [&](const std::vector<double>& numbers) {
      EXPECT_FALSE(policy->recall(numbers)) << policy->name();
      EXPECT_EQ(policy->memory(), good);
    };
    refused({});
    auto numbers = good;
    numbers.pop_back();
    refused(numbers);
    numbers = good;
    numbers.push_back(0);
    refused(numbers);
    for (const double bad : {-1e13, static_cast<double>(INFINITY), static_cast<double>(NAN), -static_cast<double>(INFINITY)})
      for (size_t at = 0; at < good.size(); ++at) {
        numbers = good;
        numbers[at] = bad;
        refused(numbers);
      }
    // Whatever is taken, trees come of it.
    int taken = 0;
    for (int i = 0; i < 3000; ++i) {
      numbers = good;
      for (int k = 0; k < 3; ++k) numbers[random() % numbers.size()] = std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 40) - 20);
      const auto other = fresh();
      if (!other->recall(numbers)) continue;
      ++taken;
      for (int c = 0; c < 3; ++c) (void)world.cycle(*other, 0.6);
    }
    EXPECT_GT(taken, 50) << policy->name();
  }
  EXPECT_TRUE(make_chain_policy(3)->memory().empty());
}

}  // namespace
}  // namespace aerie::tree_test
