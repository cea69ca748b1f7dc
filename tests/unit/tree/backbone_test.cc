// FastEagle's constrained tree (FastEagle, section 2.2), and the product of level lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/tree/level_product.h"
#include "tests/unit/tree/drive.h"

namespace aerie::tree_test {
namespace {

// Level d proposes 10 d + 1, 10 d + 2, ... with falling confidence, whatever the path.
Answer level_answer(const Tokens& path, int32_t width) {
  Answer a;
  for (int32_t i = 0; i < width; ++i) {
    a.token.push_back(static_cast<int32_t>(path.size()) * 10 + i + 1);
    a.confidence.push_back(0.5f / static_cast<float>(i + 1));
  }
  return a;
}

TEST(Backbone, SideBranchesStayLeaves) {
  auto policy = make_backbone_policy(3, 2).value();
  const Draft d = drive(*policy, level_answer);
  EXPECT_EQ(broken(d, {}), "");
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{1}, {2}, {1, 11}, {1, 12}, {1, 11, 21}, {1, 11, 22}}));
  EXPECT_EQ(d.frontiers.size(), 3u) << "one question a level, about the backbone's end";
}

TEST(Backbone, OneChildALevelIsAChain) {
  auto policy = make_backbone_policy(4, 1).value();
  const Draft d = drive(*policy, level_answer);
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{1}, {1, 11}, {1, 11, 21}, {1, 11, 21, 31}}));
}

TEST(Backbone, LittleRoomDropsWhatRanksLast) {
  auto policy = make_backbone_policy(3, 3).value();
  for (int32_t room = 0; room <= 9; ++room) {
    CycleLimits limits;
    limits.max_nodes = room;
    const Draft d = drive(*policy, level_answer, limits);
    EXPECT_EQ(broken(d, limits), "") << room;
    EXPECT_EQ(static_cast<int32_t>(d.selected.size()), room);
    for (int32_t n = 1; n < d.tree.size(); ++n)
      if (std::find(d.selected.begin(), d.selected.end(), n) == d.selected.end()) {
        for (const int32_t s : d.selected) EXPECT_TRUE(ranks_before(d.tree, s, n)) << "room " << room;
      }
  }
  CycleLimits shallow;
  shallow.max_depth = 1;
  EXPECT_EQ(drive(*policy, level_answer, shallow).paths(), (std::vector<Tokens>{{1}, {2}, {3}}));
}

TEST(Backbone, ADrafterWithNothingToSayEndsIt) {
  auto policy = make_backbone_policy(5, 2).value();
  const Draft d = drive(*policy, [](const Tokens& path, int32_t width) {
    return path.size() >= 2 ? Answer{} : level_answer(path, width);
  });
  EXPECT_EQ(d.paths(), (std::vector<Tokens>{{1}, {2}, {1, 11}, {1, 12}}));
  EXPECT_EQ(make_backbone_policy(0, 2).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_backbone_policy(2, 129).status().code(), Code::invalid_argument);
}

// All nodes of the product, ranked: the first n of it must be the first n that grow() gives.
TEST(LevelProduct, ItsBestNodesAreThoseOfTheWholeProduct) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t levels = 1 + random() % 4, width = 1 + random() % 4;
    std::vector<std::vector<int32_t>> token(levels);
    std::vector<std::vector<float>> confidence(levels);
    std::vector<LevelList> lists;
    for (size_t l = 0; l < levels; ++l) {
      for (size_t i = 0; i < width; ++i) {
        token[l].push_back(static_cast<int32_t>(10 * l + i));
        confidence[l].push_back(static_cast<float>(1 + random() % 8) / 8.0f);  // coarse: ties happen
      }
      std::sort(confidence[l].rbegin(), confidence[l].rend());
      if (random() % 4 == 0) token[l].back() = -1;  // a shorter list
      lists.push_back({token[l], confidence[l]});
    }
    DraftTree whole;
    whole.reset(99);
    for (int32_t n = 0; n < whole.size(); ++n)
      if (const auto d = static_cast<size_t>(whole[n].depth); d < levels) whole.add_children(n, token[d], confidence[d]);
    std::vector<float> want, got;
    for (int32_t n = 1; n < whole.size(); ++n) want.push_back(whole[n].value);
    std::sort(want.rbegin(), want.rend());
    const auto n = static_cast<int32_t>(random() % 40);
    DraftTree tree;
    tree.reset(99);
    LevelProduct product;
    product.grow(&tree, lists, n);
    std::vector<int32_t> order;
    for (int32_t i = 1; i < tree.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); });
    const size_t expected = std::min<size_t>(static_cast<size_t>(n), want.size());
    ASSERT_GE(order.size(), expected);
    for (size_t i = 0; i < expected; ++i) ASSERT_EQ(tree[order[i]].value, want[i]) << "round " << round << " node " << i;
  }
}

}  // namespace
}  // namespace aerie::tree_test
