#include "core/tree/draft_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace aerie {
namespace draft_tree_test {

TEST(DraftTree, KeepsRanksDepthsAndValues) {
  DraftTree t;
  t.reset(7);
  EXPECT_EQ(t.add_children(0, std::vector<int32_t>{10, 11}, std::vector<float>{0.5f, 0.25f}), 2);
  EXPECT_EQ(t.add_children(2, std::vector<int32_t>{10}, std::vector<float>{0.5f}), 1);
  ASSERT_EQ(t.size(), 4);
  EXPECT_EQ(t[0].token, 7);
  EXPECT_EQ(t[0].parent, -1);
  EXPECT_EQ(t[0].value, 1.0f);
  EXPECT_EQ(t[2].rank, 1);
  EXPECT_EQ(t[3].parent, 2);
  EXPECT_EQ(t[3].depth, 2);
  EXPECT_EQ(t[3].rank, 0);
  EXPECT_EQ(t[3].value, 0.125f);
  t.reset(8);
  EXPECT_EQ(t.size(), 1);
  EXPECT_EQ(t.first_child(0), -1);
}

TEST(DraftTree, SkipsTokensThatAreThereAlreadyAndNegativeOnes) {
  DraftTree t;
  EXPECT_EQ(t.add_children(0, std::vector<int32_t>{5, 5, -1, 6}, std::vector<float>{.4f, .3f, .2f, .1f}), 2);
  EXPECT_EQ(t.add_children(0, std::vector<int32_t>{6, 7}, std::vector<float>{.1f, .1f}), 1);
  EXPECT_EQ(t[3].token, 7);
  EXPECT_EQ(t[3].rank, 2);  // ranks stay without a gap
  EXPECT_EQ(t.child_count(0), 3);
  EXPECT_EQ(t.add_children(1, std::vector<int32_t>{5}, std::vector<float>{.1f}), 1);  // another parent: fine
}

TEST(DraftTree, ClampsHostileConfidences) {
  DraftTree t;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  t.add_children(0, std::vector<int32_t>{1, 2, 3, 4, 5, 6}, std::vector<float>{nan, inf, -inf, -0.5f, 2.0f, 1e-45f});
  const float want[] = {0, 1, 0, 0, 1, 1e-45f};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t[i + 1].value, want[i]) << i;
  EXPECT_FALSE(std::signbit(t[4].value));
}

TEST(DraftTree, StopsAtCapacityAndTakesNoMoreMemory) {
  DraftTree t(4);
  const DraftNode* before = &t[0];
  EXPECT_EQ(t.add_children(0, std::vector<int32_t>{1, 2, 3, 4, 5}, std::vector<float>(5, .1f)), 3);
  EXPECT_EQ(t.add_children(1, std::vector<int32_t>{1}, std::vector<float>{.1f}), 0);
  EXPECT_EQ(t.size(), 4);
  EXPECT_EQ(&t[0], before);
  EXPECT_EQ(t.add_children(9, std::vector<int32_t>{1}, std::vector<float>{.1f}), 0);  // no such parent
  EXPECT_EQ(t.add_children(-1, std::vector<int32_t>{1}, std::vector<float>{.1f}), 0);
}

// A random tree whose confidences are often equal or 1, children added in any order of parents.
DraftTree random_tree(std::mt19937& rng, int32_t nodes) {
  DraftTree t;
  t.reset(0);
  const float choices[] = {1.0f, 1.0f, 0.5f, 0.25f, 0.0f, 0.999999f, std::nanf(""), -1.0f, 3.0f};
  while (t.size() < nodes) {
    const auto parent = static_cast<int32_t>(rng() % static_cast<uint32_t>(t.size()));
    t.add_children(parent, std::vector<int32_t>{static_cast<int32_t>(rng() % 50)},
                   std::vector<float>{choices[rng() % 9]});
  }
  return t;
}

TEST(RanksBefore, IsATotalOrderWithParentsFirst) {
  std::mt19937 rng(1);
  for (int trial = 0; trial < 50; ++trial) {
    const DraftTree t = random_tree(rng, 60);
    for (int32_t a = 0; a < t.size(); ++a) {
      EXPECT_FALSE(ranks_before(t, a, a));
      if (a > 0) {
        EXPECT_TRUE(ranks_before(t, t[a].parent, a));
      }
      for (int32_t b = 0; b < a; ++b) EXPECT_NE(ranks_before(t, a, b), ranks_before(t, b, a));
    }
    std::vector<int32_t> order;
    for (int32_t i = 0; i < t.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return ranks_before(t, a, b); });
    for (size_t i = 0; i + 1 < order.size(); ++i) EXPECT_GE(t[order[i]].value, t[order[i + 1]].value);
  }
}

TEST(RanksBefore, EqualValuesGoToTheShallowerThenToTheEarlier) {
  DraftTree t;
  t.add_children(0, std::vector<int32_t>{1}, std::vector<float>{.5f});          // node 1
  t.add_children(1, std::vector<int32_t>{2}, std::vector<float>{1.f});          // node 2, depth 2, same value
  t.add_children(0, std::vector<int32_t>{3, 4}, std::vector<float>{.5f, .5f});  // nodes 3 and 4, added later
  EXPECT_TRUE(ranks_before(t, 1, 2));
  EXPECT_TRUE(ranks_before(t, 3, 2));
  EXPECT_FALSE(ranks_before(t, 2, 4));
  EXPECT_TRUE(ranks_before(t, 3, 4));
}

TEST(TreeRows, LinksAgreeWithBruteForce) {
  std::mt19937 rng(2);
  TreeRows rows;
  for (int trial = 0; trial < 500; ++trial) {
    const DraftTree t = random_tree(rng, 2 + static_cast<int32_t>(rng() % 80));
    // A random closed set in a random order with parents first.
    std::vector<int32_t> selected;
    std::vector<bool> in(static_cast<size_t>(t.size()), false);
    in[0] = true;
    for (int i = 0; i < 200; ++i) {
      const auto n = static_cast<size_t>(rng() % static_cast<uint32_t>(t.size()));
      if (in[n] || !in[static_cast<size_t>(t[static_cast<int32_t>(n)].parent)]) continue;
      in[n] = true;
      selected.push_back(static_cast<int32_t>(n));
    }
    rows.build(t, selected);
    ASSERT_EQ(rows.size(), static_cast<int32_t>(selected.size()) + 1);
    for (size_t r = 0; r < rows.token.size(); ++r) {
      const int32_t node = r == 0 ? 0 : selected[r - 1];
      EXPECT_EQ(rows.node[r], node);
      EXPECT_EQ(rows.token[r], t[node].token);
      EXPECT_EQ(rows.depth[r], t[node].depth);
      int32_t parent = -1, first = -1, next = -1;
      for (size_t s = 0; s < rows.token.size(); ++s) {
        const int32_t other = s == 0 ? 0 : selected[s - 1];
        if (other == t[node].parent) parent = static_cast<int32_t>(s);
        if (first < 0 && t[other].parent == node) first = static_cast<int32_t>(s);
        if (next < 0 && s > r && t[other].parent == t[node].parent) next = static_cast<int32_t>(s);
      }
      EXPECT_EQ(rows.parent[r], parent);
      EXPECT_EQ(rows.first_child[r], first);
      EXPECT_EQ(rows.next_sibling[r], next);
    }
  }
}

// EAGLE's code hangs a child without its parent on another node (searchsorted); we leave it out.
TEST(TreeRows, NeverHangsANodeElsewhere) {
  DraftTree t;
  t.add_children(0, std::vector<int32_t>{1, 2}, std::vector<float>{1.f, 1.f});
  t.add_children(1, std::vector<int32_t>{3}, std::vector<float>{1.f});
  TreeRows rows;
  rows.build(t, std::vector<int32_t>{1, 3, 2});  // fills the scratch with rows of nodes 1 and 3
  rows.build(t, std::vector<int32_t>{2, 3, 2, 99, -4, 0});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows.token[1], 2);
  EXPECT_EQ(rows.first_child[1], -1);
}

// Rows that no tree has, and what is kept of all: the same links as if the others had never been.
TEST(TreeRows, GrowAndAreKept) {
  DraftTree t;
  t.add_children(0, std::vector<int32_t>{1, 2}, std::vector<float>{1.f, 1.f});
  t.add_children(1, std::vector<int32_t>{3}, std::vector<float>{1.f});
  TreeRows rows;
  rows.build(t, std::vector<int32_t>{1, 2, 3});
  EXPECT_EQ(rows.find_child(0, 2), 2);
  EXPECT_EQ(rows.find_child(0, 3), -1);
  const int32_t four = rows.add(2, 4), five = rows.add(four, 5), six = rows.add(0, 6);
  EXPECT_EQ(std::vector({four, five, six}), std::vector({4, 5, 6}));
  EXPECT_EQ(rows.node[4], -1);
  EXPECT_EQ(rows.depth[5], 3);
  EXPECT_EQ(rows.find_child(0, 6), 6);
  EXPECT_EQ(rows.next_sibling[2], 6);

  TreeRows kept = rows;
  kept.keep(std::vector<char>{0, 0, 1, 1, 1, 0, 1});  // the parent of row 3 goes, so it does
  EXPECT_EQ(kept.token, std::vector<int32_t>({t[0].token, 2, 4, 6}));
  EXPECT_EQ(kept.node, std::vector<int32_t>({0, 2, -1, -1}));
  EXPECT_EQ(kept.parent, std::vector<int32_t>({-1, 0, 1, 0}));
  EXPECT_EQ(kept.depth, std::vector<int32_t>({0, 1, 2, 1}));
  EXPECT_EQ(kept.first_child, std::vector<int32_t>({1, 2, -1, -1}));
  EXPECT_EQ(kept.next_sibling, std::vector<int32_t>({-1, 3, -1, -1}));
  rows.build(t, std::vector<int32_t>{2, 1});
  EXPECT_EQ(rows.token.size(), 3u);
}

TEST(TreeRows, KeepsItsMemory) {
  DraftTree t(64);
  TreeRows rows;
  rows.build(t, {});
  const int32_t* before = rows.token.data();
  std::vector<int32_t> all;
  for (int32_t i = 1; i < 64; ++i) {
    t.add_children(i - 1, std::vector<int32_t>{i}, std::vector<float>{1.f});
    all.push_back(i);
  }
  rows.build(t, all);
  EXPECT_EQ(rows.size(), 64);
  EXPECT_EQ(rows.token.data(), before);
}

}  // namespace draft_tree_test
}  // namespace aerie
