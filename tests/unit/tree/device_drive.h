// Draws a tree with the ops of kernels/tree_ops.h and holds it against the one that the policy draws on the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/policy/node_values.h"
#include "core/policy/tree_layout.h"
#include "core/tree/level_product.h"
#include "kernels/device.h"
#include "kernels/scalar_math.h"
#include "unit/tree/drive.h"

namespace aerie::tree_test {

constexpr int32_t kVocabulary = 1000;

// Candidates as TopK gives them: sometimes the same token twice or fewer than are wanted, and many ties.
struct Candidates {
  Tokens token;
  std::vector<float> logp;
};
inline Candidates candidates_after(const Tokens& path, int32_t width, uint32_t seed, bool ties) {
  for (const int32_t t : path) seed = seed * 31 + static_cast<uint32_t>(t) + 7;
  std::mt19937 random(seed);
  Candidates c;
  for (int32_t i = 0; i < width; ++i) {
    c.token.push_back(static_cast<int32_t>(random() % (random() % 4 ? kVocabulary : 8)));
    c.logp.push_back(ties ? -static_cast<float>(random() % 12) / 4.0f : -static_cast<float>(random() % 1000000) / 300000.0f);
  }
  std::sort(c.logp.begin(), c.logp.end(), std::greater<>());
  if (random() % 6 == 0)
    for (int32_t i = 1 + static_cast<int32_t>(random() % 3); i < width; ++i) c.token[static_cast<size_t>(i)] = -1;
  return c;
}
inline Drafter host_drafter(uint32_t seed, bool ties = true) {
  return [seed, ties](const Tokens& path, int32_t width) {
    const Candidates c = candidates_after(path, width, seed, ties);
    Answer a{c.token, {}};
    for (const float logp : c.logp) a.confidence.push_back(kernels::exp_own(logp));
    return a;
  };
}

inline void run_op(kernels::Device& device, const kernels::Op& op) {
  auto queue = device.make_queue();
  ASSERT_TRUE(queue.ok());
  const std::vector<kernels::Op> plan = {op};
  const Status s = (*queue)->submit(plan);
  ASSERT_TRUE(s.ok()) << s.message();
  ASSERT_EQ(*(*queue)->advance(kernels::kNoDeadline), kernels::RunState::done);
}

// What the ops write; device memory must be the host's.
struct DeviceTree {
  static constexpr int32_t kRoot = 500, kFirstRow = 3, kNodeBase = 256;
  std::vector<kernels::TreePlace> places{8192};
  Tokens next = Tokens(128, -2), fed_slots = Tokens(1024), row_slots = Tokens(128);
  std::vector<std::vector<int32_t>> frontiers;  // places
  Tokens token = Tokens(128, -7), position = token, tail_len = token, walk_token = token, first_child = token,
         next_sibling = token, tails, draft_token, draft_parent, draft_tails;
  static constexpr size_t kHead = sizeof(kernels::TreeOut) / sizeof(int32_t);
  std::vector<int32_t> out = std::vector<int32_t>(kHead + 4 * 128, -9);
  int32_t rows = 1;
  const kernels::TreeOut& head() const { return *reinterpret_cast<const kernels::TreeOut*>(out.data()); }
  const kernels::TreeNode& node(int32_t i) const {
    return reinterpret_cast<const kernels::TreeNode*>(out.data() + kHead)[i];
  }
  Tokens path_to(int32_t place) const {
    Tokens path;
    for (; place >= 0; place = places[static_cast<size_t>(place)].parent)
      path.insert(path.begin(), places[static_cast<size_t>(place)].token);
    return path;
  }
};

// The rows of the draft pass over the frontier that was just chosen.
inline void expect_draft_rows(const DeviceTree& t, int32_t depth, int32_t rows, int32_t stride) {
  for (int32_t r = 0; r < rows; ++r) {
    const auto at = static_cast<size_t>(r);
    const int32_t* tail = t.draft_tails.data() + r * depth;
    ASSERT_EQ(tail[depth - 1], t.fed_slots[static_cast<size_t>(1 + (depth - 1) * stride + r)]);
    const int32_t place = t.next[at];
    if (place < 0) {
      ASSERT_EQ(t.draft_token[at], 0);
      ASSERT_EQ(t.draft_parent[at], DeviceTree::kNodeBase);
      continue;
    }
    const kernels::TreePlace& node = t.places[static_cast<size_t>(place)];
    ASSERT_EQ(t.draft_token[at], node.token);
    const int32_t parent = node.parent < 0 ? 0 : t.places[static_cast<size_t>(node.parent)].row;
    ASSERT_EQ(t.draft_parent[at], DeviceTree::kNodeBase + parent);
    if (depth > 1) {
      ASSERT_EQ(tail[depth - 2], t.fed_slots[static_cast<size_t>(parent)]);
    }
  }
}

inline DeviceTree draw_on(kernels::Device& device, const TreeShape& shape, bool one_list, uint32_t seed, bool ties) {
  DeviceTree t;
  std::iota(t.fed_slots.begin(), t.fed_slots.end(), 3000);
  std::iota(t.row_slots.begin(), t.row_slots.end(), 5000);
  TreeLayout layout;
  EXPECT_TRUE(layout.lay(shape, one_list));
  std::vector<kernels::Beliefs> beliefs;  // not on the stack, where no device looks
  if (shape.weighing && shape.weighing->beliefs) beliefs.push_back(*shape.weighing->beliefs);
  for (int32_t level = 0; level < shape.levels; ++level) {
    const auto at = static_cast<size_t>(level);
    const int32_t rows = layout.rows[at];
    std::vector<int32_t> tokens;
    std::vector<float> logp;
    std::vector<int32_t> frontier(t.next.begin(), t.next.begin() + rows);
    if (level == 0) frontier = {-1};
    t.frontiers.push_back(frontier);
    for (int32_t r = 0; r < (one_list ? 1 : rows); ++r) {
      const bool blank = level > 0 && frontier[static_cast<size_t>(r)] < 0 && !one_list;
      const Tokens path = one_list ? Tokens(static_cast<size_t>(level), 1) : t.path_to(frontier[static_cast<size_t>(r)]);
      Candidates c = candidates_after(path, shape.width, seed, ties);
      if (blank) c.token.assign(c.token.size(), 77777777), c.logp.assign(c.logp.size(), NAN);  // nobody looks
      tokens.insert(tokens.end(), c.token.begin(), c.token.end());
      logp.insert(logp.end(), c.logp.begin(), c.logp.end());
    }
    const int32_t next_rows = level + 1 < shape.levels ? layout.rows[at + 1] : 0;
    t.draft_token.assign(static_cast<size_t>(next_rows) + 1, -7);
    t.draft_parent = t.draft_token;
    t.draft_tails.assign(static_cast<size_t>(next_rows * (level + 1)) + 1, -7);
    kernels::ExpandTree op{};
    op.places = t.places.data();
    op.out = reinterpret_cast<kernels::TreeOut*>(t.out.data());
    op.first = layout.first[at];
    op.rows = rows;
    op.width = shape.width;
    op.level = level;
    op.from = level > 0 ? t.next.data() : nullptr;
    op.token = tokens.data();
    op.logp = logp.data();
    op.one_list = one_list;
    op.vocab_used = kVocabulary;
    op.beliefs = beliefs.empty() ? nullptr : beliefs.data();
    op.keep = shape.beam == 0 ? 0 : one_list && shape.among > 0 ? shape.among : shape.keep;
    if (next_rows > 0 && !layout.expanded[at].empty()) op.slots = layout.expanded[at].data();
    op.next = next_rows > 0 ? t.next.data() : nullptr;
    op.next_rows = next_rows;
    Tokens flag(1, 0);  // not on the stack, where no device looks
    op.wanted = flag.data();
    if (const TreeWeighing* w = one_list ? nullptr : shape.weighing) {
      op.weigh = {true, w->draft_cost, w->threshold, next_rows > 0 ? w->gain[at + 1] : 0,
                  w->beliefs && next_rows > 0 ? w->gain_by_best.data() + at + 1 : nullptr, w->explore};
      op.next_rows = w->beliefs && next_rows == 0 ? 0 : std::min(shape.beam, rows * shape.width);
    }
    if (next_rows > 0 && !one_list)
      op.draft = {t.draft_token.data(), t.draft_parent.data(), t.draft_tails.data(), t.fed_slots.data(), DeviceTree::kNodeBase, layout.stride};
    run_op(device, op);
    const bool wanted = flag[0] != 0;
    EXPECT_EQ(wanted, next_rows > 0 && std::any_of(t.next.begin(), t.next.begin() + next_rows, [](int32_t p) { return p >= 0; }));
    EXPECT_EQ(t.head().levels, wanted ? level + 2 : level > 0 ? t.head().levels : 1);
    if (next_rows > 0 && !one_list) expect_draft_rows(t, level + 1, next_rows, layout.stride);
  }
  t.rows = layout.verified;
  t.position[0] = DeviceTree::kRoot;
  t.tails.assign(static_cast<size_t>(t.rows * shape.levels), -7);
  kernels::SelectTree op{};
  op.places = t.places.data();
  op.n_places = layout.places;
  op.keep = t.rows - 1;
  op.slots = layout.chosen.empty() ? nullptr : layout.chosen.data();
  op.width = shape.width;
  op.kept_only = shape.weighing && !shape.weighing->beliefs && !one_list;
  op.among = one_list ? shape.among : 0;
  op.rows = t.rows;
  op.first_row = DeviceTree::kFirstRow;
  op.tail_room = shape.levels;
  op.slot = t.row_slots.data();
  op.token = t.token.data();
  op.position = t.position.data();
  op.tail_len = t.tail_len.data();
  op.tail_slots = t.tails.data();
  op.walk_token = t.walk_token.data();
  op.first_child = t.first_child.data();
  op.next_sibling = t.next_sibling.data();
  op.out = reinterpret_cast<kernels::TreeOut*>(t.out.data());
  run_op(device, op);
  return t;
}

// The rows and links that `want` makes, by row.
inline void expect_tree(const DeviceTree& t, const Draft& want, const TreeShape& shape) {
  TreeRows rows;
  rows.build(want.tree, want.selected);
  ASSERT_EQ(t.head().status, 0);
  ASSERT_EQ(t.head().rows, rows.size());
  const auto link = [](int32_t row) { return row < 0 ? -1 : DeviceTree::kFirstRow + row; };
  for (int32_t i = 0; i < t.rows; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool blank = i >= rows.size();
    ASSERT_EQ(t.first_child[at], blank ? -1 : link(rows.first_child[at])) << i;
    ASSERT_EQ(t.next_sibling[at], blank ? -1 : link(rows.next_sibling[at])) << i;
    if (i == 0) continue;
    const int32_t depth = blank ? 1 : rows.depth[at];
    const int32_t* tail = t.tails.data() + (i - 1) * shape.levels;
    ASSERT_EQ(t.tail_len[at], depth);
    ASSERT_EQ(t.position[at], DeviceTree::kRoot + depth);
    ASSERT_EQ(tail[depth - 1], t.row_slots[at]);
    ASSERT_EQ(t.walk_token[at], blank ? -1 : rows.token[at]);
    ASSERT_EQ(t.token[at], blank ? 0 : rows.token[at]);
    if (blank) continue;
    ASSERT_EQ(t.node(i).token, rows.token[at]);
    ASSERT_EQ(t.node(i).parent, rows.parent[at]);
    ASSERT_EQ(t.node(i).confidence, want.tree[rows.node[at]].confidence);
    if (depth > 1) {
      ASSERT_EQ(tail[depth - 2], t.row_slots[static_cast<size_t>(rows.parent[at])]);
    }
  }
}

// A static tree of up to `most` nodes, listed as they come.
inline std::unique_ptr<TreePolicy> random_static_tree(std::mt19937& random, int32_t most, int32_t ranks) {
  std::set<Tokens> paths;
  std::vector<Tokens> listed{{}};
  for (int32_t i = 0; i < most; ++i) {
    Tokens path = listed[random() % listed.size()];
    path.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(ranks)));
    if (paths.insert(path).second) listed.push_back(path);
  }
  listed.erase(listed.begin());
  return std::move(make_static_policy(listed)).value();
}

// The policy's tree of this cycle, node for node, level by level.
inline void expect_the_policys(kernels::Device& device, const Draft& want, const TreeShape& shape, uint32_t seed, bool ties = true) {
  const DeviceTree got = draw_on(device, shape, false, seed, ties);
  expect_tree(got, want, shape);
  ASSERT_EQ(got.head().proposed, want.tree.size() - 1);
  for (size_t level = 0; level < want.frontiers.size(); ++level) {
    std::vector<Tokens> asked;
    ASSERT_LT(level, got.frontiers.size());
    for (const int32_t place : got.frontiers[level])
      if (level == 0 || place >= 0) asked.push_back(got.path_to(place));
    ASSERT_EQ(asked, paths_of(want.tree, want.frontiers[level])) << level;
  }
  for (size_t level = want.frontiers.size(); level < got.frontiers.size(); ++level)
    ASSERT_TRUE(std::all_of(got.frontiers[level].begin(), got.frontiers[level].end(), [](int32_t place) { return place < 0; })) << level;
}

// The same of a drafter that answers all levels at once: the best nodes of the product of its lists. Where nodes are worth the
// same the host takes what it met first. By auto's beliefs many are: then nodes of the same worth.
inline void expect_the_products(kernels::Device& device, TreePolicy& again, TreeShape shape, uint32_t seed) {
  Draft product;
  product.tree.reset(1000);
  std::vector<Answer> answers;
  std::vector<LevelList> lists;
  for (int32_t level = 0; level < shape.levels; ++level)
    answers.push_back(host_drafter(seed, false)(Tokens(static_cast<size_t>(level), 1), shape.width));
  for (const Answer& a : answers) lists.push_back({a.token, a.confidence});
  if (std::any_of(answers.begin(), answers.end(), [](const Answer& a) {  // the product of lists with equal tokens is undefined
        return std::set<int32_t>(a.token.begin(), a.token.end()).size() != a.token.size();
      }))
    return;
  LevelProduct grower;
  grower.grow(&product.tree, lists, again.best_nodes());
  again.select(product.tree, &product.selected);
  const DeviceTree flat = draw_on(device, shape, true, seed, false);
  ASSERT_EQ(flat.head().rows, static_cast<int32_t>(product.selected.size()) + 1);
  if (shape.weighing && shape.weighing->beliefs) {
    NodeValues values;
    values.beliefs = *shape.weighing->beliefs;
    values.update(product.tree);
    std::vector<double> host, drawn;
    for (const int32_t n : product.selected) host.push_back(values.of(n));
    for (int32_t i = 1; i < flat.head().rows; ++i) drawn.push_back(static_cast<double>(flat.places[static_cast<size_t>(flat.node(i).place)].worth));
    std::sort(host.begin(), host.end());
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, host);
    return;
  }
  std::vector<Tokens> chosen;
  for (int32_t i = 1; i < flat.head().rows; ++i) {
    Tokens path;
    for (int32_t a = i; a > 0; a = flat.node(a).parent) path.insert(path.begin(), flat.node(a).token);
    chosen.push_back(path);
  }
  std::vector<Tokens> wanted = paths_of(product.tree, product.selected);
  std::sort(chosen.begin(), chosen.end());
  std::sort(wanted.begin(), wanted.end());
  ASSERT_EQ(chosen, wanted);
}

// Random policies: all that have a shape, in ample and in little room.
inline void expect_policies_trees(kernels::Device& device, int trials) {
  std::mt19937 random(5);
  for (int trial = 0; trial < trials; ++trial) {
    CycleLimits limits;
    if (random() % 3 == 0) limits.max_depth = 1 + static_cast<int32_t>(random() % 5);
    if (random() % 3 == 0) limits.max_nodes = 1 + static_cast<int32_t>(random() % 40);
    const int32_t levels = 1 + static_cast<int32_t>(random() % 7), k = 1 + static_cast<int32_t>(random() % 10);
    std::unique_ptr<TreePolicy> again;  // as it was before this cycle: one that learns does
    std::vector<double> target(kMaxTreeNodes + 1, 1.0), draft(kMaxTreeNodes + 1, 0.02);
    const double cheap = random() % 2 ? 20000 : 800;
    for (size_t n = 1; n < target.size(); ++n) {
      target[n] = target[n - 1] + static_cast<double>(random() % 50) / 2000;
      draft[n] = draft[n - 1] + static_cast<double>(random() % 50) / cheap;
    }
    const CycleCosts costs{.target = target.data(), .draft = draft.data()};
    const auto policy = [&]() -> std::unique_ptr<TreePolicy> {
      switch (random() % 6) {
        case 4:
        case 5: {
          CastOptions o{2 + static_cast<int32_t>(random() % 72), 1 + static_cast<int32_t>(random() % 8), k,
                        static_cast<double>(1 + random() % 60) / 10};
          o.prune_breadth = random() % 4 > 0;
          o.prune_depth = random() % 4 > 0;
          o.rerank = random() % 4 > 0;
          return std::move(make_cast_policy(o)).value();
        }
        case 0: return make_chain_policy(levels);
        case 1: return std::move(make_backbone_policy(levels, k)).value();
        case 2: return random_static_tree(random, 1 + static_cast<int32_t>(random() % 40), k);
        default: return std::move(make_eagle2_policy({2 + static_cast<int32_t>(random() % 70), levels - 2, k})).value();
      }
    }();
    const uint32_t seed = random();
    SCOPED_TRACE(std::string(policy->name()) + " trial " + std::to_string(trial));
    policy->costs(costs);
    for (uint32_t cycle = random() % 5; cycle > 0; --cycle) drive(*policy, host_drafter(random()), limits);
    again = policy->clone();
    again->begin(limits);
    again->costs(costs);
    TreeShape shape;
    ASSERT_TRUE(again->shape(&shape));
    again->drawn_in(shape.keep + 1, shape.levels);
    Draft want = drive(*policy, host_drafter(seed), limits, [&](DraftTree&) { policy->drawn_in(shape.keep + 1, shape.levels); });
    std::sort(want.selected.begin(), want.selected.end());  // a static tree's are as listed, level by level
    expect_the_policys(device, want, shape, seed);
    if (shape.beam > 0) expect_the_products(device, *again, shape, seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// auto, which goes on learning: every cycle's tree is drawn by both from what it has learned so far, in ample and in little
// room, at costs that change, in texts that follow the drafter for a while and then do not.
inline void expect_autos_trees(kernels::Device& device, int cycles) {
  std::mt19937 random(11);
  const auto policy = make_auto_policy();
  std::vector<double> memory = policy->memory();
  memory.back() = 40;  // levels that did not pay, of which one in 48 is asked for all the same
  EXPECT_TRUE(policy->recall(memory));
  std::vector<double> target(kMaxTreeNodes + 1), draft(kMaxTreeNodes + 1);
  size_t drawn = 0, stopped = 0, nodes = 0, explored = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    SCOPED_TRACE("cycle " + std::to_string(cycle));
    const double row = cycle / 10 % 2 ? 0.002 : 0.02, level = cycle / 20 % 3 ? 0.4 : 0.02;
    target[1] = 1, draft[1] = level;
    for (size_t n = 2; n < target.size(); ++n) {
      target[n] = target[n - 1] + row * static_cast<double>(random() % 3);
      draft[n] = draft[n - 1] + level / 20 * static_cast<double>(random() % 3);
    }
    CycleLimits limits;
    limits.max_depth = static_cast<int32_t>(1 + random() % 4 * 2);
    if (random() % 3 == 0) limits.max_nodes = 1 + static_cast<int32_t>(random() % 40);
    policy->begin(limits);
    const int32_t beside = cycle / 30 % 3 == 2 ? 4 : 1;  // in a batch how deep it goes is said beforehand
    policy->costs({.target = target.data(), .draft = draft.data(), .draft_root = draft[1], .beside = beside});
    const auto again = policy->clone();
    TreeShape shape;
    if (!again->shape(&shape)) {
      ASSERT_TRUE(policy->resting());
      policy->idle(1);
      continue;
    }
    if (random() % 3 == 0) {  // cut
      shape.keep = 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(shape.keep));
      shape.levels = 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(shape.levels));
    }
    again->drawn_in(shape.keep + 1, shape.levels);
    const uint32_t seed = random();
    const Draft want = drive(*policy, host_drafter(seed, cycle % 2 == 0), limits,
                             [&](DraftTree&) { policy->drawn_in(shape.keep + 1, shape.levels); });
    expect_the_policys(device, want, shape, seed, cycle % 2 == 0);
    expect_the_products(device, *again, shape, seed);
    if (testing::Test::HasFatalFailure()) return;
    ++drawn;
    nodes += want.selected.size();
    stopped += static_cast<int32_t>(want.frontiers.size()) < shape.levels;
    explored += shape.weighing->explore;
    std::vector<int32_t> path{0};
    int32_t last = -1;
    for (int32_t child = want.tree.first_child(0); child >= 0; child = want.tree.first_child(child)) {
      while (random() % 4 == 0 && want.tree.next_sibling(child) >= 0) child = want.tree.next_sibling(child);
      last = want.tree[child].token;
      const bool follows = random() % 100 < (cycle / 40 % 2 ? 90 : 40);
      if (!follows || std::find(want.selected.begin(), want.selected.end(), child) == want.selected.end()) break;
      path.push_back(child);
      last = -1;
    }
    policy->outcome(want.tree, {path, last, 1 + level * static_cast<double>(want.frontiers.size()), want.selected});
  }
  EXPECT_GT(drawn, static_cast<size_t>(cycles) / 2);
  EXPECT_GT(nodes, 2 * drawn);
  EXPECT_GT(stopped, drawn / 10);
  EXPECT_GT(explored, 0u) << stopped << " of " << drawn;
}

// A drafter's pass that gave nonsense leaves the root alone.
inline void expect_nonsense_is_refused(kernels::Device& device) {
  for (const int what : {0, 1, 2, 3}) {
    std::vector<int32_t> token = {5, 6, 7};
    std::vector<float> logp = {-1, -2, -3};
    if (what == 0) token[0] = -1;
    if (what == 1) token[2] = kVocabulary;
    if (what == 2) logp[1] = NAN;
    if (what == 3) logp[1] = 0.5f;
    DeviceTree t;
    t.position[0] = DeviceTree::kRoot;
    t.tails.assign(8, -7);
    auto* out = reinterpret_cast<kernels::TreeOut*>(t.out.data());
    kernels::ExpandTree expand{};
    expand.places = t.places.data();
    expand.out = out;
    expand.rows = 1;
    expand.width = 3;
    expand.token = token.data();
    expand.logp = logp.data();
    expand.vocab_used = kVocabulary;
    expand.keep = 3;
    run_op(device, expand);
    kernels::SelectTree select{};
    select.places = t.places.data();
    select.n_places = select.keep = 3;
    select.rows = 4;
    select.tail_room = 1;
    select.slot = t.row_slots.data();
    select.token = t.token.data();
    select.position = t.position.data();
    select.tail_len = t.tail_len.data();
    select.tail_slots = t.tails.data();
    select.walk_token = t.walk_token.data();
    select.first_child = t.first_child.data();
    select.next_sibling = t.next_sibling.data();
    select.out = out;
    run_op(device, select);
    EXPECT_EQ(out->status, 1) << what;
    EXPECT_EQ(out->rows, 1) << what;
    EXPECT_EQ(t.first_child[0], -1) << what;
  }
}

// Steps of walks and the slots of their rows, one walk shorter than asked.
inline void expect_path_slots(kernels::Device& device) {
  constexpr int32_t kSteps = 4;
  std::vector<char> walks(2 * kernels::walk_out_bytes(kSteps));
  for (int32_t w = 0; w < 2; ++w) {
    auto* out = reinterpret_cast<kernels::WalkOut*>(walks.data() + w * kernels::walk_out_bytes(kSteps));
    *out = {w == 0 ? 3 : 0, w};
    for (int32_t i = 0; i < kSteps; ++i) reinterpret_cast<kernels::WalkStep*>(out + 1)[i] = {2 * i + 1, 9, 0, 0};
  }
  const Tokens walk = {0, 0, 0, 1}, step = {1, 2, 3, 0}, slot = {10, 11, 12, 13, 14, 15, 16, 17};
  Tokens src(4, -7);
  run_op(device, kernels::PathSlots{walks.data(), kSteps, walk.data(), step.data(), slot.data(), 4, src.data()});
  EXPECT_EQ(src, (Tokens{13, 15, -1, -1}));
}

}  // namespace aerie::tree_test
