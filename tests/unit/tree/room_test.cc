// How many rows and levels a plan has for a tree that is not there yet.
#include <gtest/gtest.h>

#include <vector>

#include "core/policy/level_habit.h"
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
  RowRoom room;
  EXPECT_EQ(room.best(128, 1, steps), 16) << "nothing is known";
  EXPECT_EQ(room.best(12, 1, steps), 8) << "of those there may be";
  EXPECT_EQ(room.best(2, 1, steps), 2);
  room.drew(falling(0.9, 100));  // 6.7 tokens of 8 rows, 9.1 of 16, 10 of 64 and more
  EXPECT_EQ(room.best(128, 0.1, steps), 64);
  EXPECT_EQ(room.best(128, 2, steps), 16);
  EXPECT_EQ(room.best(128, 6, steps), 8);
  EXPECT_EQ(room.best(15, 0.1, steps), 8);
  EXPECT_EQ(room.best(128, 1, [](int32_t) { return 1.0; }), 128) << "rows for nothing";
}

TEST(RowRoom, FollowsTheText) {
  RowRoom room;
  for (int i = 0; i < 100; ++i) room.drew(falling(0.95, 127));
  EXPECT_EQ(room.best(128, 2, steps), 64);
  room.drew(falling(0.1, 127));
  EXPECT_EQ(room.best(128, 2, steps), 64) << "one tree says little";
  for (int i = 0; i < 60; ++i) room.drew(falling(0.1, 127));
  EXPECT_EQ(room.best(128, 2, steps), 8);
}

// A tree of few nodes fills no larger room.
TEST(RowRoom, OfTreesWithFewNodes) {
  RowRoom room;
  room.drew(falling(1, 5));
  EXPECT_EQ(room.best(128, 1e-6, steps), 8) << "six rows";
  room = {};
  room.drew({});
  EXPECT_EQ(room.best(128, 1, steps), 16) << "no tree";
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
