// Which ops all threads share, learnt from times that are told: no clock.
#include "kernels/cpu/sharing.h"

#include <gtest/gtest.h>

#include <functional>

namespace aerie::kernels::cpu {
namespace {

constexpr size_t kKind = 5;
using Time = std::function<int64_t(bool shared, int64_t work)>;

// The share of `n` ops that all threads ran, when they take what `time` says.
double shared(Sharing& sharing, int64_t work, int n, const Time& time) {
  int all = 0;
  for (int i = 0; i < n; ++i) {
    const Sharing::Turn turn = sharing.next(kKind, work);
    all += turn.share;
    if (turn.timed) sharing.took(turn, time(turn.share, work));
  }
  return static_cast<double>(all) / n;
}
// Threads that need so long to hear of each other.
Time hand_over(int64_t ns) {
  return [=](bool shared, int64_t work) { return shared ? work / 2 + ns : work; };
}

TEST(Sharing, PaysFromWhereItSavesMoreThanItCosts) {
  for (const int64_t cost : {300, 1500, 6000}) {
    Sharing sharing;
    for (const int64_t work : {700, 1400, 2800, 5600, 11200, 22400, 44800}) {
      if (std::abs(work / 2 - cost) < cost / 4) continue;  // about the same
      (void)shared(sharing, work, 1000, hand_over(cost));
      const double share = shared(sharing, work, 4000, hand_over(cost));
      if (work / 2 > cost) {
        EXPECT_GT(share, 0.97) << cost << " " << work;
      } else {
        EXPECT_LT(share, 0.03) << cost << " " << work;
      }
    }
  }
}

TEST(Sharing, FollowsAMachineThatChanges) {
  Sharing sharing;
  constexpr int64_t kWork = 6000;
  for (int i = 0; i < 3; ++i) {
    (void)shared(sharing, kWork, 4000, hand_over(300));
    EXPECT_GT(shared(sharing, kWork, 1000, hand_over(300)), 0.9) << i;
    (void)shared(sharing, kWork, 4000, hand_over(20000));
    EXPECT_LT(shared(sharing, kWork, 1000, hand_over(20000)), 0.1) << i;
  }
}

// Another program had the core, now and then, for a millisecond.
TEST(Sharing, AFewHeldUpOpsDecideNothing) {
  Sharing sharing;
  int n = 0;
  const Time time = [&](bool shared, int64_t work) { return (++n % 10 == 0 ? 1000000 : 0) + hand_over(300)(shared, work); };
  (void)shared(sharing, 8000, 2000, time);
  EXPECT_GT(shared(sharing, 8000, 4000, time), 0.95);
}

TEST(Sharing, OfLongOpsAllAndOfShortOnesNoneAreShared) {
  Sharing sharing;
  EXPECT_EQ(shared(sharing, Sharing::kLong, 2000, hand_over(1 << 30)), 1);
  EXPECT_EQ(shared(sharing, INT64_MAX, 2000, hand_over(1 << 30)), 1);
  EXPECT_EQ(shared(sharing, Sharing::kShort - 1, 2000, hand_over(0)), 0);
}

// An op of another kind, or much longer, is another matter.
TEST(Sharing, KindsAndLengthsAreApart) {
  Sharing sharing;
  (void)shared(sharing, 12000, 4000, hand_over(50000));
  EXPECT_TRUE(sharing.next(kKind + 1, 12000).share);
  EXPECT_TRUE(sharing.next(kKind, 40000).share);
}

}  // namespace
}  // namespace aerie::kernels::cpu
