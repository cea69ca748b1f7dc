// Real passes correct a table, wherever it came from.
#include <cmath>

#include "core/cost/live_cost.h"
#include "tests/unit/cost/cost_fixtures.h"

namespace aerie::cost_test {
namespace {

double truth(double context, double n) { return 4 + 0.25 * n + 0.01 * context + 0.0005 * context * n; }

std::shared_ptr<const CostGrid> table() {
  std::vector<CostPoint> points;
  for (const int32_t c : {32, 128, 512, 2048})
    for (const int32_t n : {1, 2, 4, 8, 16, 32, 64, 128}) points.push_back({1, c, n, truth(c, n), truth(c, n), truth(c, n), 3});
  return std::make_shared<const CostGrid>(CostGrid::make(points).value());
}

TEST(LiveCost, FollowsTheContext) {
  LiveCost cost;
  EXPECT_FALSE(cost.known());
  cost.start(table(), 0);
  EXPECT_TRUE(cost.known());
  EXPECT_NEAR(cost.ms(64), truth(32, 64), 1e-9);
  for (int64_t c = 32; c <= 2048; ++c) cost.at(c);
  EXPECT_NEAR(cost.ms(64), truth(2048, 64), truth(2048, 64) * 0.01);
  cost.at(32);
  EXPECT_NEAR(cost.ms(64), truth(32, 64), 1e-9) << "and back, after a rewind";
}

TEST(LiveCost, AMachineTwiceAsSlowIsKnownWithin20Passes) {
  LiveCost cost;
  cost.start(table(), 128);
  for (int i = 0; i < 20; ++i) cost.measured(16, 2 * truth(128, 16));
  EXPECT_NEAR(cost.ms(16), 2 * truth(128, 16), 0.04 * truth(128, 16));
  for (const int32_t n : {1, 4, 64, 128}) EXPECT_NEAR(cost.ms(n), 2 * truth(128, n), 0.15 * truth(128, n)) << n;
  cost.at(2048);  // the text has grown meanwhile: still busy
  EXPECT_NEAR(cost.ms(16), 2 * truth(2048, 16), 0.05 * truth(2048, 16));
  for (int i = 0; i < 20; ++i) cost.measured(i % 2 ? 4 : 16, truth(2048, i % 2 ? 4 : 16));
  EXPECT_NEAR(cost.ms(16), truth(2048, 16), 0.1 * truth(2048, 16)) << "and when the game pauses";
  for (int32_t n = 2; n <= kMaxCostRows; ++n) EXPECT_GE(cost.ms(n), cost.ms(n - 1)) << n;
}

// In a batch not all sequences ask for as much: what such passes take says the same about those that are alike.
TEST(LiveCost, RaggedPassesOfABatch) {
  const auto both = [](int32_t batch, double n) { return 4 + 0.5 * batch + 0.25 * batch * n; };
  std::vector<CostPoint> points;
  for (const int32_t b : {1, 4})
    for (const int32_t n : {1, 2, 4, 8, 16}) points.push_back({b, 64, n, both(b, n), both(b, n), both(b, n), 3});
  const auto grid = std::make_shared<const CostGrid>(CostGrid::make(points).value());
  LiveCost cost;
  cost.start(grid, 64);
  ASSERT_TRUE(cost.at(64, 4));
  for (int i = 0; i < 300; ++i) {
    const int32_t rows = 1 + i % 20;
    cost.measured(rows, 1.2 * (rows < 4 ? grid->ms(rows, 64, 1) : grid->ms(4, 64, rows / 4.0)));
  }
  for (int32_t n = 1; n <= 5; ++n) EXPECT_NEAR(cost.ms(n), 1.2 * both(4, n), 0.02 * both(4, n)) << n;

  LiveCost alone;  // nobody has measured several
  alone.start(table(), 64);
  EXPECT_FALSE(alone.at(64, 4));
  EXPECT_NEAR(alone.ms(8), truth(64, 8), 1e-9);
  EXPECT_TRUE(alone.at(64, 1));
}

TEST(LiveCost, AnotherSessionGoesOnWithWhatOneHasSeen) {
  const auto grid = table();
  LiveCost first, second;
  first.start(grid, 128);
  for (int i = 0; i < 20; ++i) first.measured(16, 1.5 * truth(128, 16));
  ASSERT_TRUE(second.resume(first, grid.get(), 2048));
  EXPECT_NEAR(second.ms(16), 1.5 * truth(2048, 16), 0.05 * truth(2048, 16));
  for (int i = 0; i < 2; ++i) second.measured(16, truth(2048, 16));  // no longer busy
  EXPECT_NEAR(second.ms(16), truth(2048, 16), 0.1 * truth(2048, 16)) << "what may be old is soon given up";
  LiveCost other;
  EXPECT_FALSE(other.resume(first, table().get(), 128)) << "another table's";
  EXPECT_FALSE(other.resume(first, nullptr, 128));
  EXPECT_FALSE(other.resume(LiveCost(), nullptr, 128)) << "nothing was seen";
  EXPECT_FALSE(other.known());
}

// Sequences cost something each, whatever their rows. Passes over one row of each say how much; they do not say that every
// row is so much dearer.
TEST(LiveCost, WhatMoreSequencesAddIsNotTakenForSlowness) {
  const double each = 0.3;
  LiveCost cost;
  cost.start(table(), 64);
  for (int i = 0; i < 20; ++i) cost.measured(1, truth(64, 1));
  ASSERT_FALSE(cost.at(64, 16));
  for (int i = 0; i < 40; ++i) cost.measured(16, truth(64, 16) + 15 * each);
  EXPECT_NEAR(cost.ms(16), truth(64, 16) + 15 * each, 0.1);
  EXPECT_NEAR(cost.ms(96), truth(64, 96) + 15 * each, 0.06 * truth(64, 96)) << "not half as much again, as 16 rows are";
  for (int i = 0; i < 40; ++i) cost.measured(16, 2 * (truth(64, 16) + 15 * each));  // but a machine may get slower
  EXPECT_NEAR(cost.ms(96), 2 * (truth(64, 96) + 15 * each), 0.1 * 2 * truth(64, 96));
  for (int i = 0; i < 40; ++i) cost.measured(16, truth(64, 16) + 15 * each);
  cost.at(64, 1);
  EXPECT_NEAR(cost.ms(1), truth(64, 1), 0.1 * truth(64, 1)) << "and it is alone again";
  cost.at(64, 8);
  EXPECT_NEAR(cost.ms(8), truth(64, 8) + 7 * each, 0.08 * truth(64, 8)) << "this is known";
}

TEST(LiveCost, WithoutATableTheFirstPassTells) {
  LiveCost cost;
  cost.start(PassCost{});
  EXPECT_FALSE(cost.known());
  cost.at(100);
  cost.measured(1, 250);
  EXPECT_TRUE(cost.known());
  EXPECT_EQ(cost.ms(1), 250);
  EXPECT_GT(cost.ms(16), 250);
}

}  // namespace
}  // namespace aerie::cost_test
