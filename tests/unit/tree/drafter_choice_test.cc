// Who takes a cycle, given what each drafter has to offer.
#include <gtest/gtest.h>

#include "core/policy/drafter_choice.h"

namespace aerie::tree_test {
namespace {

// Says what it is told to say.
class Stub final : public TreePolicy {
 public:
  Stub(double tokens, double ms) : rate{tokens, ms} {}
  const char* name() const override { return "stub"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Stub>(*this); }
  void begin(const CycleLimits&) override {}
  int32_t width() const override { return 1; }
  bool expand(const DraftTree&, std::vector<int32_t>*) override { return false; }
  void select(const DraftTree&, std::vector<int32_t>*) override {}
  bool draw_order() const override { return false; }
  CycleRate lately() const override { return rate; }
  CycleRate expected(const DraftTree&) override { return rate; }
  double doubt() const override { return unsure; }
  bool on_trial() const override { return trial; }
  bool resting() const override { return rests; }
  void wake() override { rests = false; }
  CycleRate rate;
  double unsure = 0;
  bool trial = false, rests = false;
};

int32_t choose(std::initializer_list<DrafterOption> options, DrafterChoice choice = {}) {
  return choice.choose(std::span(options.begin(), options.size()), 1.0);
}

TEST(DrafterChoice, TheFastestOneOrNone) {
  Stub slow(2, 1.5), fast(3, 1.5), loses(1.2, 1.5);
  EXPECT_EQ(choose({{&slow, true, nullptr}, {&fast, true, nullptr}}), 1);
  EXPECT_EQ(choose({{&fast, true, nullptr}, {&slow, true, nullptr}}), 0);
  EXPECT_EQ(choose({{&fast, false, nullptr}, {&slow, true, nullptr}}), 1) << "it is out";
  EXPECT_EQ(choose({{&loses, true, nullptr}}), 0) << "until it has lost enough to rest";
  loses.rests = true;
  EXPECT_EQ(choose({{&loses, true, nullptr}}), -1);
  EXPECT_EQ(choose({}), -1);
}

TEST(DrafterChoice, WhoIsTriedGoesFirstAndWhoRestsIsLeftAlone) {
  Stub fast(3, 1.5), fresh(0, 0), rests(1.4, 1.5);
  fresh.trial = rests.rests = true;
  EXPECT_EQ(choose({{&fast, true, nullptr}, {&fresh, true, nullptr}}), 1);
  EXPECT_EQ(choose({{&rests, true, nullptr}}), -1);
}

TEST(DrafterChoice, WhoUsedToBeFasterThanWhoIsLeftIsWoken) {
  Stub gone_bad(1.1, 1.5), before(3, 1.5);
  before.rests = true;
  EXPECT_EQ(choose({{&gone_bad, true, nullptr}, {&before, true, nullptr}}), 1);
  EXPECT_FALSE(before.rests);
}

// A tree that is there already takes the cycles that it has more to offer in than the others on average.
TEST(DrafterChoice, ATreeInHandIsJudgedByItself) {
  Stub usual(3, 1.5), hand(4, 1.4);
  const DraftTree tree;
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&hand, true, &tree}}), 1);
  hand.rate = {1.2, 1.2};
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&hand, true, &tree}}), 0);
}

// One that had bad luck, or too few cycles to tell, is asked again.
TEST(DrafterChoice, InDoubtItIsAsked) {
  Stub usual(3, 1.5), rare(2.8, 1.5);
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&rare, true, nullptr}}), 0);
  rare.unsure = 0.3;
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&rare, true, nullptr}}), 1);
}

// Catching up with what others wrote is to pay for itself within 48 cycles.
TEST(DrafterChoice, WhoIsFarBehindHasToBeSoMuchBetter) {
  Stub usual(3, 1.5), behind(3.1, 1.5);
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&behind, true, nullptr, 0}}), 1);
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&behind, true, nullptr, 1.5}}), 1);
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&behind, true, nullptr, 4.5}}), 0);
  behind.rate.tokens = 3.5;
  EXPECT_EQ(choose({{&usual, true, nullptr}, {&behind, true, nullptr, 4.5}}), 1);
}

// A trial takes no cycles that a tree in hand is good for.
TEST(DrafterChoice, ATrialWaitsForATreeInHand) {
  Stub fresh(0, 0), hand(3, 1.2);
  fresh.trial = true;
  const DraftTree tree;
  EXPECT_EQ(choose({{&fresh, true, nullptr}, {&hand, true, &tree}}), 1);
  hand.rate = {1.1, 1.0};
  EXPECT_EQ(choose({{&fresh, true, nullptr}, {&hand, true, &tree}}), 0);
}

// Means are kept in passes of plain decode: when these take longer, so does everything.
TEST(DrafterChoice, TheSpeedGoesWithThePlainPass) {
  DrafterChoice choice;
  for (int i = 0; i < 2000; ++i) choice.outcome(2, 1.0, 1.0);
  Stub fast(3, 1.0);
  const DrafterOption options[] = {{&fast, true, nullptr}};
  EXPECT_NEAR(choice.speed(options, 1.0), 3, 1e-9) << "what is on offer";
  Stub slow(2, 1.0);
  const DrafterOption offered[] = {{&slow, true, nullptr}};
  EXPECT_NEAR(choice.speed(offered, 1.0), 2, 1e-3);
  slow.rate.ms = 2;
  EXPECT_NEAR(choice.speed(offered, 2.0), 1, 1e-3);
}

TEST(DrafterChoice, WhatACycleIsWorthWithoutOne) {
  Stub one(3, 1.5), other(2.5, 1.5);
  const DrafterOption options[] = {{&one, true, nullptr}, {&other, true, nullptr}};
  EXPECT_DOUBLE_EQ(DrafterChoice::instead(options, 0, 2.0, 1.0), 2.5 - 2 * 1.5);
  EXPECT_DOUBLE_EQ(DrafterChoice::instead(options, 1, 2.0, 1.0), 0);
  other.rests = true;
  EXPECT_DOUBLE_EQ(DrafterChoice::instead(options, 0, 2.0, 1.0), 1 - 2.0) << "plain decode is left";
}

// Who reached more than anybody offers now had luck: that is no reason to draft less.
TEST(DrafterChoice, LuckDoesNotRaiseTheAim) {
  DrafterChoice choice;
  for (int i = 0; i < 200; ++i) choice.outcome(4, 1.5, 1.0);
  Stub usual(3, 2.5);
  EXPECT_EQ(choose({{&usual, true, nullptr}}, choice), 0);
}

}  // namespace
}  // namespace aerie::tree_test
