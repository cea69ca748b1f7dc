// Successors: what has come behind a token, the usual first.
#include <gtest/gtest.h>

#include <thread>

#include "core/sampling/successors.h"

namespace aerie::test {
namespace {

TEST(Successors, AreKnownBestFirstAndForgotten) {
  Successors s;
  s.learn(1, 2);
  EXPECT_EQ(s.after(1)[0].weight, 0) << "nothing is learned before there is room";
  s.prepare();
  EXPECT_EQ(s.after(1)[0].weight, 0);
  s.learn(1, 2);
  s.learn(1, 3);
  s.learn(1, 3);
  EXPECT_EQ(s.after(1)[0].token, 3);
  EXPECT_EQ(s.after(1)[1].token, 2);
  EXPECT_EQ(s.after(1)[2].weight, 0);
  EXPECT_EQ(s.after(2)[0].weight, 0);
  for (int i = 0; i < 10; ++i) s.learn(1, 4);
  EXPECT_EQ(s.after(1)[0].token, 4) << "what comes now";
  for (const int32_t t : {5, 6, 7, 8}) s.learn(1, t);
  EXPECT_EQ(s.after(1)[0].token, 4) << "once in a while something else comes";
  float before = s.after(1)[0].weight;
  for (const auto& g : s.after(1)) {
    EXPECT_LE(g.weight, before);
    before = g.weight;
  }
  s.prepare();
  EXPECT_EQ(s.after(1)[0].token, 4) << "what is known stays";
}

// As many tokens as a vocabulary has, for a place each and far more: the usual ones keep theirs.
TEST(Successors, TheUsualOnesKeepTheirPlace) {
  Successors s;
  s.prepare();
  for (int i = 0; i < 20; ++i) s.learn(42, 43);
  for (int32_t t = 1000; t < 9000; ++t) s.learn(t, t + 1);
  EXPECT_EQ(s.after(42)[0].token, 43);
  int known = 0;
  for (int32_t t = 1000; t < 9000; ++t)
    if (s.after(t)[0].weight > 0) {
      ++known;
      EXPECT_EQ(s.after(t)[0].token, t + 1);
    }
  EXPECT_GT(known, 1000);
  EXPECT_LT(known, 8000);
}

TEST(Successors, AreLearnedByManyThreads) {
  Successors s;
  s.prepare();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&s] {
      for (int32_t t = 0; t < 3000; ++t) {
        s.learn(t % 7, t % 7 + 1);
        (void)s.after(t % 5);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int32_t t = 0; t < 7; ++t) EXPECT_EQ(s.after(t)[0].token, t + 1);
}

}  // namespace
}  // namespace aerie::test
