#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "tests/unit/tree/drive.h"

namespace aerie {
namespace eagle2_test {

using namespace tree_test;

std::unique_ptr<TreePolicy> eagle2(int32_t total, int32_t depth, int32_t top_k) {
  auto made = make_eagle2_policy({total, depth, top_k});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

// ---- the worked example of the design notes (reference.md, section 2) -------------------------

TEST(Eagle2, WorkedExample) {
  const std::map<std::string, std::vector<std::pair<char, float>>> drafter{
      {"", {{'a', .6f}, {'b', .3f}, {'c', .1f}}},
      {"a", {{'d', .5f}, {'e', .4f}, {'f', .1f}}},
      {"b", {{'g', .9f}, {'h', .05f}, {'i', .05f}}},
      {"ad", {{'j', .8f}, {'k', .1f}, {'l', .1f}}},
      {"bg", {{'p', .95f}, {'q', .03f}, {'r', .02f}}}};
  auto policy = eagle2(7, 2, 2);
  const Draft d = drive(*policy, [&](const Tokens& path, int32_t width) {
    const auto& all = drafter.at(std::string(path.begin(), path.end()));  // throws for any other node
    Answer a;
    for (int32_t i = 0; i < width; ++i) {
      a.token.push_back(all[static_cast<size_t>(i)].first);
      a.confidence.push_back(all[static_cast<size_t>(i)].second);
    }
    return a;
  });
  ASSERT_EQ(d.frontiers.size(), 3u);
  const auto names = [&](const std::vector<int32_t>& nodes) {
    std::string out;
    for (const Tokens& path : paths_of(d.tree, nodes)) out += std::string(path.begin(), path.end()) + " ";
    return out;
  };
  EXPECT_EQ(names(d.frontiers[1]), "a b ");
  EXPECT_EQ(names(d.frontiers[2]), "ad bg ");
  EXPECT_EQ(d.tree.size(), 1 + 2 + 4 + 4);
  EXPECT_EQ(names(d.selected), "a b ad ae bg bgp ");  // in tree order
  const std::map<std::string, float> values{{"a", .6f},      {"b", .3f},     {"ad", .30f},  {"ae", .24f},
                                            {"bg", .27f},    {"bh", .015f},  {"adj", .24f}, {"adk", .03f},
                                            {"bgp", .2565f}, {"bgq", .0081f}};
  for (int32_t i = 1; i < d.tree.size(); ++i) {
    const Tokens path = path_of(d.tree, i);
    EXPECT_NEAR(d.tree[i].value, values.at(std::string(path.begin(), path.end())), 1e-6f);
  }

  // The whole ranking: a total larger by one keeps one node more. Both ties (b = ad = .30, ae = adj =
  // .24) are exact in fp32 too and go to the shallower node.
  std::vector<int32_t> before;
  std::string ranking;
  for (int32_t total = 2; total <= 11; ++total) {
    auto p = eagle2(total, 2, 2);
    p->begin({});
    std::vector<int32_t> now;
    p->select(d.tree, &now);
    std::vector<int32_t> added;
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(added));
    EXPECT_EQ(added.size(), 1u);
    ranking += names(added);
    before = now;
  }
  EXPECT_EQ(ranking, "a b ad bg bgp ae adj adk bh bgq ");
}

// ---- a literal EAGLE-2, written from sections 4.1 and 4.2 of the paper ------------------------

struct PaperNode {
  Tokens path;
  float value;
  int parent;  // -1: the root
};

// "prioritize ... highest values. For nodes with the same value, we prioritize selecting shallower
// nodes"; and then the one that was drafted first.
bool better(const std::vector<PaperNode>& all, size_t a, size_t b) {
  if (all[a].value > all[b].value) return true;
  if (all[a].value < all[b].value) return false;
  if (all[a].path.size() < all[b].path.size()) return true;
  if (all[a].path.size() > all[b].path.size()) return false;
  return a < b;
}

// A node is among the n best if fewer than n beat it: counted one by one.
std::vector<size_t> best(const std::vector<PaperNode>& all, const std::vector<size_t>& among, int32_t n) {
  std::vector<size_t> out;
  for (const size_t a : among) {
    int32_t beaten_by = 0;
    for (const size_t b : among) beaten_by += better(all, b, a);
    if (beaten_by < n) out.push_back(a);
  }
  return out;
}

struct PaperDraft {
  std::vector<Tokens> selected;
  size_t draft_passes = 0;
};

PaperDraft literal(const Drafter& drafter, int32_t total, int32_t depth, int32_t top_k) {
  std::vector<PaperNode> all;
  std::vector<size_t> level;
  const auto extend = [&](int parent) {
    const PaperNode up = parent < 0 ? PaperNode{{}, 1.0f, -1} : all[static_cast<size_t>(parent)];
    const Answer a = drafter(up.path, top_k);
    for (size_t i = 0; i < a.token.size(); ++i) {
      PaperNode node{up.path, up.value * a.confidence[i], parent};
      node.path.push_back(a.token[i]);
      level.push_back(all.size());
      all.push_back(node);
    }
  };
  extend(-1);
  PaperDraft out;
  out.draft_passes = 1;
  for (int32_t i = 0; i < depth && !level.empty(); ++i) {
    const std::vector<size_t> frontier = best(all, level, top_k);
    level.clear();
    for (const size_t f : frontier) extend(static_cast<int>(f));
    ++out.draft_passes;
  }
  std::vector<size_t> everything;
  for (size_t i = 0; i < all.size(); ++i) everything.push_back(i);
  for (const size_t i : best(all, everything, total - 1)) out.selected.push_back(all[i].path);
  return out;
}

// A drafter that is a function of the path; `style` makes ties, certainty or plain numbers.
Drafter random_drafter(uint32_t seed, int style) {
  return [=](const Tokens& path, int32_t width) {
    uint32_t h = seed * 2654435761u + 1;
    for (const int32_t t : path) h = (h ^ static_cast<uint32_t>(t)) * 16777619u + 97;
    std::mt19937 rng(h);
    Answer a;
    const uint32_t short_of = style == 4 ? rng() % 3 : 0;  // a drafter with few candidates, or none
    float left = 1.0f;
    for (int32_t i = 0; i < width; ++i) {
      float c = 0;
      switch (style) {
        case 0:
          c = left * static_cast<float>(rng() % 1000) / 1000.0f;
          left -= c;
          break;
        case 1:
          c = i == 0 ? 1.0f : 0.0f;
          break;  // certain
        case 2:
          c = 1.0f / static_cast<float>(1u << (rng() % 3));
          break;  // powers of two: exact ties
        case 3:
          c = 1.0f - 1e-7f * static_cast<float>(rng() % 3);
          break;  // p ~ 1
        default:
          c = static_cast<float>(rng() % 8) / 8.0f;
      }
      if (style == 4 && i >= static_cast<int32_t>(short_of)) break;
      a.token.push_back(i + static_cast<int32_t>(rng() % 5) * 100);
      a.confidence.push_back(c);
    }
    return a;
  };
}

TEST(Eagle2, IsThePaperOnThousandsOfTrees) {
  std::mt19937 rng(3);
  size_t passes = 0, paper_passes = 0;
  for (uint32_t trial = 0; trial < 6000; ++trial) {
    const auto style = static_cast<int>(trial % 5);
    const auto total = static_cast<int32_t>(2 + rng() % 30);
    const auto depth = static_cast<int32_t>(rng() % 6);
    const auto top_k = static_cast<int32_t>(1 + rng() % 6);
    const Drafter drafter = random_drafter(trial, style);
    auto policy = eagle2(total, depth, top_k);
    const Draft d = drive(*policy, drafter);
    const PaperDraft paper = literal(drafter, total, depth, top_k);
    ASSERT_EQ(broken(d, {}), "") << trial;
    ASSERT_EQ(d.paths(), paper.selected) << "style " << style << " total " << total << " depth " << depth << " k "
                                         << top_k;
    ASSERT_LE(d.frontiers.size(), paper.draft_passes);
    passes += d.frontiers.size();
    paper_passes += paper.draft_passes;
  }
  EXPECT_LT(passes, paper_passes);  // nodes that cannot come through are not fed to the drafter
}

TEST(Eagle2, FrontierIsTheLastLevelsBest) {  // room for every node: nothing is left out early
  const Drafter drafter = random_drafter(11, 0);
  auto policy = eagle2(128, 3, 5);
  const Draft d = drive(*policy, drafter);
  ASSERT_EQ(d.frontiers.size(), 4u);
  for (size_t level = 1; level < d.frontiers.size(); ++level) {
    std::vector<int32_t> want, nodes;
    for (int32_t i = 0; i < d.tree.size(); ++i)
      if (d.tree[i].depth == static_cast<int32_t>(level)) nodes.push_back(i);
    for (const int32_t a : nodes) {
      int beaten = 0;
      for (const int32_t b : nodes) beaten += ranks_before(d.tree, b, a);
      if (beaten < 5) want.push_back(a);
    }
    EXPECT_EQ(d.frontiers[level], want);
  }
}

TEST(Eagle2, PublishedSettingsVerify59Nodes) {
  auto policy = std::move(make_eagle2_policy({})).value();
  const Draft d = drive(*policy, random_drafter(5, 0));
  EXPECT_EQ(d.selected.size(), 59u);
  EXPECT_EQ(policy->width(), 10);
  EXPECT_FALSE(policy->draw_order());
}

// A drafter that answers every level at once (FastEagle): side branches stay leaves.
TEST(Eagle2, TakesATreeThatIsThereAlready) {
  auto policy = eagle2(9, 4, 3);
  int asked = 0;
  const Draft d = drive(
      *policy,
      [&](const Tokens&, int32_t) {
        ++asked;
        return Answer{};
      },
      {},
      [](DraftTree& tree) {
        for (int32_t level = 0, node = 0; level < 5; ++level) {
          tree.add_children(node, Tokens{level * 10, level * 10 + 1, level * 10 + 2},
                            std::vector<float>{.8f, .15f, .05f});
          node = tree.first_child(node);
        }
      });
  for (const auto& frontier : d.frontiers)
    for (const int32_t n : frontier) EXPECT_NE(d.tree[n].rank, 0) << "a backbone node has children";
  EXPECT_GT(asked, 0);
  EXPECT_EQ(broken(d, {}), "");
  ASSERT_EQ(d.selected.size(), 8u);
  std::vector<int32_t> all, want;
  for (int32_t i = 1; i < d.tree.size(); ++i) {
    int beaten = 0;
    for (int32_t j = 1; j < d.tree.size(); ++j) beaten += ranks_before(d.tree, j, i);
    if (beaten < 8) want.push_back(i);
  }
  EXPECT_EQ(d.selected, want);
}

// The drafter answers the root with everything: then only what it left open is asked.
TEST(Eagle2, DoesNotAskAgainAfterAnAnswerOfManyLevels) {
  auto policy = eagle2(20, 3, 2);
  policy->begin({});
  DraftTree tree;
  tree.reset(0);
  std::vector<int32_t> frontier;
  ASSERT_TRUE(policy->expand(tree, &frontier));
  EXPECT_EQ(frontier, std::vector<int32_t>{0});
  tree.add_children(0, Tokens{1, 2}, std::vector<float>{.6f, .4f});
  for (const int32_t n : {1, 2}) tree.add_children(n, Tokens{3}, std::vector<float>{.9f});
  ASSERT_TRUE(policy->expand(tree, &frontier));
  EXPECT_EQ(frontier, (std::vector<int32_t>{3, 4}));  // level 1 has children: on to level 2
  EXPECT_FALSE(policy->expand(tree, &frontier));      // no candidates came
}

}  // namespace eagle2_test
}  // namespace aerie
