// How many rows and levels a plan has for a tree that is not there yet.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/policy/level_habit.h"
#include "core/policy/level_worth.h"
#include "core/policy/row_room.h"

namespace aerie::tree_test {
namespace {

// Nodes that are worth less and less, `share` of the one before.
std::vector<double> falling(double share, size_t nodes) {
  std::vector<double> utility(1, 1.0);
  double worth = 1;
  for (size_t i = 0; i < nodes; ++i) utility.push_back(utility.back() + (worth *= share));
  return utility;
}
double steps(int32_t rows) { return rows <= 8 ? 1.0 : rows <= 16 ? 1.5 : rows <= 64 ? 2.5 : 6.0; }

TEST(RowRoom, IsTheOneInWhichTreesWereWorthMost) {
  RowRoom room(kTargetRows);
  EXPECT_EQ(room.best(2, 128, 0.5, steps), 16) << "nothing is known";
  EXPECT_EQ(room.best(2, 12, 0.5, steps), 12) << "of those there may be";
  EXPECT_EQ(room.best(2, 2, 0.5, steps), 2);
  room.drew(falling(0.9, 100));  // 6.7 tokens of 8 rows, 9.1 of 16, 10 of 64 and more
  EXPECT_EQ(room.best(2, 128, 0.1, steps), 64);
  EXPECT_EQ(room.best(2, 128, 2, steps), 16);
  EXPECT_EQ(room.best(2, 128, 6, steps), 8);
  EXPECT_EQ(room.best(2, 15, 0.1, steps), 15) << "all there may be";
  EXPECT_EQ(room.best(1, 16, 100, [](int32_t rows) { return static_cast<double>(rows); }), 1);
  EXPECT_EQ(room.best(2, 16, 100, [](int32_t rows) { return static_cast<double>(rows); }), 2);
  EXPECT_EQ(room.best(2, 128, 1, [](int32_t) { return 1.0; }), 128) << "rows for nothing";
}

TEST(RowRoom, FollowsTheText) {
  RowRoom room(kTargetRows);
  for (int i = 0; i < 100; ++i) room.drew(falling(0.95, 127));
  EXPECT_EQ(room.best(2, 128, 2, steps), 64);
  room.drew(falling(0.1, 127));
  EXPECT_EQ(room.best(2, 128, 2, steps), 64) << "one tree says little";
  for (int i = 0; i < 60; ++i) room.drew(falling(0.1, 127));
  EXPECT_EQ(room.best(2, 128, 2, steps), 8);
}

// A tree of few nodes fills no larger room.
TEST(RowRoom, OfTreesWithFewNodes) {
  RowRoom room(kTargetRows);
  room.drew(falling(1, 5));
  EXPECT_EQ(room.best(2, 128, 1e-6, steps), 8) << "six rows";
  RowRoom none(kTargetRows);
  none.drew({});
  EXPECT_EQ(none.best(2, 128, 0.5, steps), 16) << "no tree";
}

// Each level is worth half of the one before.
TEST(LevelWorth, ALevelIsDrawnThatHasBeenWorthIt) {
  LevelWorth worth;
  EXPECT_EQ(worth.levels(16, 0), 16) << "for nothing";
  EXPECT_EQ(worth.levels(16, 0.3), 4) << "nothing is known: as it is with most drafters";
  EXPECT_EQ(worth.levels(2, 0.3), 2);
  EXPECT_EQ(worth.levels(16, 10), 1);
  for (int tree = 0; tree < 20; ++tree)
    for (int32_t depth = 1; depth <= 5; ++depth) worth.saw(depth, std::exp2(1 - depth));  // 1, 1/2, ...
  EXPECT_EQ(worth.levels(16, 0.2), 4);
  EXPECT_EQ(worth.levels(16, 0.1), 5);
  for (int tree = 0; tree < 300; ++tree) worth.saw(1, 0.01);
  EXPECT_EQ(worth.levels(16, 0.1), 1) << "what is behind it comes after it";
}

TEST(LevelHabit, HasRoomForOneMore) {
  LevelHabit habit;
  EXPECT_EQ(habit.room(), 64);
  habit.asked(3);
  EXPECT_EQ(habit.room(), 4);
  habit.asked(4);
  EXPECT_EQ(habit.room(), 6) << "and for an even number";
  for (int i = 0; i < 60; ++i) habit.asked(1);
  EXPECT_EQ(habit.room(), 2);
}

}  // namespace
}  // namespace aerie::tree_test
