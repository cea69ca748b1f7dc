// Chain, static and what every policy promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/tree/drive.h"

namespace aerie {
namespace policy_test {

using namespace tree_test;

// Token = rank of the child, so that a path of tokens is a path of ranks.
Drafter rank_drafter(int32_t at_most = 1000) {
  return [=](const Tokens&, int32_t width) {
    Answer a;
    for (int32_t i = 0; i < std::min(width, at_most); ++i) {
      a.token.push_back(i);
      a.confidence.push_back(0.5f / static_cast<float>(i + 1));
    }
    return a;
  };
}

const std::vector<Tokens> kEagleTree{{0},
                                     {1},
                                     {2},
                                     {3},
                                     {0, 0},
                                     {0, 1},
                                     {0, 2},
                                     {1, 0},
                                     {1, 1},
                                     {2, 0},
                                     {2, 1},
                                     {3, 0},
                                     {0, 0, 0},
                                     {0, 0, 1},
                                     {0, 0, 2},
                                     {0, 1, 0},
                                     {0, 1, 1},
                                     {0, 2, 0},
                                     {0, 2, 1},
                                     {1, 0, 0},
                                     {0, 0, 0, 0},
                                     {0, 0, 0, 1},
                                     {0, 0, 0, 2},
                                     {0, 0, 0, 0, 0},
                                     {0, 0, 0, 0, 1}};

TEST(StaticPolicy, EaglesTreeNodeForNode) {
  auto policy = make_eagle_static_policy();
  EXPECT_EQ(policy->width(), 4);
  EXPECT_TRUE(policy->draw_order());
  const Draft d = drive(*policy, rank_drafter());
  EXPECT_EQ(broken(d, {}), "");
  EXPECT_EQ(d.selected.size(), 25u);
  EXPECT_EQ(d.paths(), kEagleTree);
  // One pass for the prefix, then passes over 4, 4, 1 and 1 nodes (reference.md, section 2).
  ASSERT_EQ(d.frontiers.size(), 5u);
  EXPECT_EQ(d.frontiers[0], std::vector<int32_t>{0});
  EXPECT_EQ(paths_of(d.tree, d.frontiers[1]), (std::vector<Tokens>{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(paths_of(d.tree, d.frontiers[2]), (std::vector<Tokens>{{0, 0}, {0, 1}, {0, 2}, {1, 0}}));
  EXPECT_EQ(paths_of(d.tree, d.frontiers[3]), (std::vector<Tokens>{{0, 0, 0}}));
  EXPECT_EQ(paths_of(d.tree, d.frontiers[4]), (std::vector<Tokens>{{0, 0, 0, 0}}));
}

TEST(StaticPolicy, LimitsCutTheTail) {
  auto policy = make_eagle_static_policy();
  Draft d = drive(*policy, rank_drafter(), {10, 127});
  EXPECT_EQ(d.paths(), std::vector<Tokens>(kEagleTree.begin(), kEagleTree.begin() + 10));
  EXPECT_EQ(d.frontiers.size(), 2u);
  d = drive(*policy, rank_drafter(), {127, 2});
  EXPECT_EQ(d.paths(), std::vector<Tokens>(kEagleTree.begin(), kEagleTree.begin() + 12));
  d = drive(*policy, rank_drafter());  // nothing of the last cycle's limits stays
  EXPECT_EQ(d.paths(), kEagleTree);
}

TEST(StaticPolicy, UsersTreeInListedOrderByDepth) {
  auto policy = std::move(make_static_policy({{1, 0}, {0}, {0, 1}, {1}, {0, 0}})).value();
  const Draft d = drive(*policy, rank_drafter());
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{0}, {1}, {1, 0}, {0, 1}, {0, 0}}));
  EXPECT_FALSE(policy->draw_order());  // 01 is kept before 00
  EXPECT_TRUE(std::move(make_static_policy({{0}, {1}, {1, 0}, {0, 0}})).value()->draw_order());
  EXPECT_FALSE(std::move(make_static_policy({{0}, {2}})).value()->draw_order());  // a draw is dropped
}

TEST(StaticPolicy, TakesWhatADrafterHas) {
  auto policy = make_eagle_static_policy();
  const Draft d = drive(*policy, rank_drafter(2));
  std::vector<Tokens> want;
  for (const Tokens& path : kEagleTree)
    if (std::all_of(path.begin(), path.end(), [](int32_t r) { return r < 2; })) want.push_back(path);
  EXPECT_EQ(d.paths(), want);
  EXPECT_TRUE(drive(*policy, rank_drafter(0)).selected.empty());
}

TEST(StaticPolicy, OnePassDrafterIsNotAskedAgain) {
  auto policy = make_eagle_static_policy();
  const Draft d = drive(*policy, rank_drafter(), {}, [](DraftTree& tree) {
    for (int32_t level = 0, node = 0; level < 6; ++level) {  // deeper than the shape
      tree.add_children(node, Tokens{0, 1, 2, 3}, std::vector<float>(4, .25f));
      node = tree.first_child(node);
    }
  });
  EXPECT_EQ(broken(d, {}), "");
  EXPECT_EQ(d.paths(), kEagleTree);
  for (const auto& frontier : d.frontiers)
    for (const int32_t n : frontier) EXPECT_NE(path_of(d.tree, n), Tokens(static_cast<size_t>(d.tree[n].depth), 0));
}

TEST(ChainPolicy, FollowsTheFirstChild) {
  auto policy = make_chain_policy(4);
  EXPECT_EQ(policy->width(), 1);
  EXPECT_TRUE(policy->draw_order());
  Draft d = drive(*policy, rank_drafter());
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{0}, {0, 0}, {0, 0, 0}, {0, 0, 0, 0}}));
  EXPECT_EQ(d.frontiers.size(), 4u);
  d = drive(*policy, rank_drafter(), {2, 127});
  EXPECT_EQ(d.selected.size(), 2u);
  EXPECT_EQ(d.frontiers.size(), 2u);
  d = drive(*policy, rank_drafter(), {127, 3});
  EXPECT_EQ(d.selected.size(), 3u);
  d = drive(*policy, rank_drafter(0));
  EXPECT_TRUE(d.selected.empty());
  EXPECT_EQ(d.frontiers.size(), 1u);
}

TEST(ChainPolicy, PathDrafterIsAskedForTheRestOnly) {
  auto policy = make_chain_policy(5);
  const Draft d = drive(*policy, rank_drafter(), {}, [](DraftTree& tree) {
    tree.add_children(0, Tokens{7, 9}, std::vector<float>{.1f, .9f});  // rank counts, not confidence
    tree.add_children(1, Tokens{8}, std::vector<float>{1.f});
  });
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{7}, {7, 8}, {7, 8, 0}, {7, 8, 0, 0}, {7, 8, 0, 0, 0}}));
  EXPECT_EQ(d.frontiers.size(), 3u);
  const Draft longer = drive(*policy, rank_drafter(), {}, [](DraftTree& tree) {
    for (int32_t i = 0; i < 9; ++i) tree.add_children(i, Tokens{i}, std::vector<float>{1.f});
  });
  EXPECT_EQ(longer.selected.size(), 5u);
  EXPECT_TRUE(longer.frontiers.empty());
}

// Every policy, random limits, a drafter that says anything at all and answers more than it is asked.
TEST(Policies, KeepTheirPromisesWithHostileDrafters) {
  std::mt19937 rng(4);
  const float nasty[] = {
      std::nanf(""), -1.0f, 2.0f, 1.0f, 1.0f, 0.0f, 1e-45f, 0.3f, std::numeric_limits<float>::infinity(), 1e38f};
  std::vector<std::unique_ptr<TreePolicy>> policies;
  policies.push_back(make_chain_policy(1));
  policies.push_back(make_chain_policy(127));
  policies.push_back(make_eagle_static_policy());
  policies.push_back(std::move(make_static_policy({{2}, {2, 5}, {2, 5, 0}, {0}, {0, 3}})).value());
  for (const Eagle2Options& o : {Eagle2Options{}, {2, 0, 1}, {128, 8, 20}, {40, 64, 1}, {5, 3, 128}})
    policies.push_back(std::move(make_eagle2_policy(o)).value());
  for (int trial = 0; trial < 3000; ++trial) {
    TreePolicy& policy = *policies[rng() % policies.size()];
    const CycleLimits limits{static_cast<int32_t>(rng() % 40) - 1, static_cast<int32_t>(rng() % 9) - 1};
    const auto answer = [&](const Tokens&, int32_t width) {
      Answer a;
      const auto n = static_cast<int32_t>(rng() % static_cast<uint32_t>(width + 3));  // too few, too many
      for (int32_t i = 0; i < n; ++i) {
        a.token.push_back(static_cast<int32_t>(rng() % 20) - 2);
        a.confidence.push_back(nasty[rng() % 10]);
      }
      return a;
    };
    const auto prepare = [&](DraftTree& tree) {
      for (uint32_t i = rng() % 3 == 0 ? rng() % 30 : 0; i > 0; --i) {
        const Answer a = answer({}, 3);
        tree.add_children(static_cast<int32_t>(rng() % static_cast<uint32_t>(tree.size())), a.token, a.confidence);
      }
    };
    const Draft d = drive(policy, answer, limits, prepare);
    ASSERT_EQ(broken(d, limits), "") << policy.name() << " trial " << trial;
    TreeRows rows;  // closed under ancestors: every node gets its row
    rows.build(d.tree, d.selected);
    ASSERT_EQ(rows.size(), static_cast<int32_t>(d.selected.size()) + 1);
    std::vector<int32_t> again;
    policy.select(d.tree, &again);
    ASSERT_EQ(again, d.selected);
  }
}

TEST(MakePolicy, ByNameWithClearErrors) {
  const auto made = [](PolicySpec spec) {
    auto r = make_policy(spec);
    return r.ok() ? std::string((*r)->name()) : r.status().message();
  };
  EXPECT_EQ(made({.name = "chain"}), "chain");
  EXPECT_EQ(made({.name = "static"}), "static");
  EXPECT_EQ(made({.name = "static", .paths = {{0}}}), "static");
  EXPECT_EQ(made({.name = "eagle2"}), "eagle2");
  EXPECT_EQ(made({.name = "chain", .length = 0}), "chain: length 0 is not in 1..127");
  EXPECT_EQ(made({.name = "chain", .length = 128}), "chain: length 128 is not in 1..127");
  EXPECT_EQ(made({.name = "eagle2", .total = 1}), "eagle2: nodes 1 is not in 2..128");
  EXPECT_EQ(made({.name = "eagle2", .total = 129}), "eagle2: nodes 129 is not in 2..128");
  EXPECT_EQ(made({.name = "eagle2", .depth = -2}), "eagle2: depth -2 is not in -1..64");
  EXPECT_EQ(made({.name = "eagle2", .depth = 65}), "eagle2: depth 65 is not in -1..64");
  EXPECT_EQ(made({.name = "eagle2", .top_k = 0}), "eagle2: top_k 0 is not in 1..128");
  EXPECT_EQ(made({.name = "eagle2", .top_k = 2000000000}), "eagle2: top_k 2000000000 is not in 1..128");
  EXPECT_EQ(made({.name = "static", .paths = {{}}}), "static tree: an empty path (the root is not listed)");
  EXPECT_EQ(made({.name = "static", .paths = {{0}, {1, 0}}}), "static tree: [1,0] is listed without its parent");
  EXPECT_EQ(made({.name = "static", .paths = {{0}, {0}}}), "static tree: [0] is listed twice");
  EXPECT_EQ(made({.name = "static", .paths = {{0}, {-1}}}), "static tree: rank -1 in [-1] is not in 0..127");
  EXPECT_EQ(made({.name = "static", .paths = std::vector<Tokens>(128, Tokens{0})}),
            "static tree: 128 nodes; at most 127");
  EXPECT_EQ(made({.name = "static", .paths = {Tokens(65, 0)}}), "static tree: a path of 65 levels; at most 64");
  EXPECT_EQ(made({.name = "best"}), "no tree policy \"best\"; there are chain, static, eagle2, backbone, cast, auto");
  EXPECT_EQ(make_policy({.name = "best"}).status().code(), Code::not_found);
}

}  // namespace policy_test
}  // namespace aerie
