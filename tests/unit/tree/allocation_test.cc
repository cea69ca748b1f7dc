// "A cycle allocates nothing": after one warm-up cycle, drafting, selecting, building rows and the
// sampled rule ask the heap for nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "core/policy/tree_policy.h"
#include "core/sampling/distribution.h"
#include "core/tree/draft_tree.h"
#include "core/verify/multi_round.h"

namespace {
size_t g_allocations = 0;

void* counted(size_t bytes) {
  ++g_allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return ++g_allocations, std::malloc(bytes ? bytes : 1);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return ++g_allocations, std::malloc(bytes ? bytes : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace aerie {
namespace allocation_test {

constexpr int32_t kVocab = 50;

struct FlatLaw final : TargetLaw {
  std::vector<float> logits = std::vector<float>(kVocab, 0.5f);
  Distribution distribution;
  int32_t vocab() const override { return kVocab; }
  Status probabilities(int32_t row, std::span<double> p) override {
    kernels::Sampling s;
    s.temperature = 1;
    s.top_k = 40;
    s.top_p = 0.99f;
    logits[static_cast<size_t>(row % kVocab)] += 0.01f;
    return distribution.compute(logits, kVocab, s, p);
  }
};

TEST(Allocation, ACycleTakesNothingFromTheHeap) {
  std::vector<std::unique_ptr<TreePolicy>> policies;
  policies.push_back(make_chain_policy(5));
  policies.push_back(make_eagle_static_policy());
  policies.push_back(std::move(make_eagle2_policy({})).value());
  for (const auto& policy : policies) {
    DraftTree tree;
    TreeRows rows;
    DrawnTree drawn;
    MultiRound rule;
    FlatLaw law;
    KeyedDice dice(1, 2);
    std::vector<int32_t> frontier, selected;
    std::vector<double> q(kVocab, 1.0 / kVocab);
    std::vector<SampledStep> steps;
    steps.reserve(kMaxTreeNodes);
    for (int64_t round = 0; round < 40; ++round) {
      if (round == 1) g_allocations = 0;
      policy->begin({});
      tree.reset(0);
      drawn.reset();
      while (policy->expand(tree, &frontier)) {
        for (const int32_t node : frontier) {
          auto c = drawn.draw(node, q, policy->width(), round * 100 + tree[node].depth + 1, dice);
          ASSERT_TRUE(c.ok());
          tree.add_children(node, (*c)->token, (*c)->confidence);
        }
      }
      policy->select(tree, &selected);
      rows.build(tree, selected);
      if (!policy->draw_order()) continue;  // refused, with a message
      ASSERT_TRUE(rule.verify(rows, drawn, true, round * 100, law, dice, &steps).ok());
    }
    EXPECT_EQ(g_allocations, 0u) << policy->name();
  }
}

}  // namespace allocation_test
}  // namespace aerie
