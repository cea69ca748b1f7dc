// Pages with several holders: who writes has its own, and what nobody holds is free.
#include "tests/unit/kv/kv_fixtures.h"

namespace aerie::test {
namespace {

using kernels::kPageSlots;

TEST(KvPool, PagesAreSharedUntilOneWrites) {
  const auto pool = pool_of(8);
  KvSequence a(pool, 256, 0), b(pool, 256, 0);
  ASSERT_TRUE(a.reserve(40).ok());
  write(*pool, a, 0, 40, 100);
  b.share(a, 40);
  EXPECT_EQ(b.pages(), a.pages());
  EXPECT_EQ(pool->free_positions(), 6 * kPageSlots);
  // b writes from 40 on: the second page becomes its own, with the 8 rows that stay.
  EXPECT_EQ(b.missing(45, 40), 1);
  ASSERT_TRUE(b.reserve(45, 40).ok());
  EXPECT_EQ(b.pages()[0], a.pages()[0]);
  EXPECT_NE(b.pages()[1], a.pages()[1]);
  write(*pool, b, 40, 45, 200);
  EXPECT_EQ(b.missing(45, 40), 0);
  // a is the only holder of its second page now, and copies nothing.
  EXPECT_EQ(a.missing(45, 40), 0);
  ASSERT_TRUE(a.reserve(45, 40).ok());
  write(*pool, a, 40, 45, 300);
  for (int i = 0; i < 45; ++i) {
    EXPECT_EQ(read(*pool, a, 45)[static_cast<size_t>(i)], i < 40 ? 100 + i : 300 + i);
    EXPECT_EQ(read(*pool, b, 45)[static_cast<size_t>(i)], i < 40 ? 100 + i : 200 + i);
  }
}

// Who goes back and writes again takes pages of its own all the way.
TEST(KvPool, AWriterFurtherBackLeavesTheOthersAlone) {
  const auto pool = pool_of(8);
  KvSequence a(pool, 256, 0), b(pool, 256, 0);
  ASSERT_TRUE(a.reserve(96).ok());
  write(*pool, a, 0, 96, 0);
  b.share(a, 96);
  EXPECT_EQ(b.missing(96, 10), 3);
  ASSERT_TRUE(b.reserve(96, 10).ok());
  write(*pool, b, 10, 96, 500);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(read(*pool, a, 96)[static_cast<size_t>(i)], i);
  EXPECT_EQ(read(*pool, b, 96)[9], 9);
  EXPECT_EQ(pool->free_positions(), 2 * kPageSlots);
}

TEST(KvPool, HoldersMayGoInAnyOrder) {
  const auto pool = pool_of(4);
  auto a = std::make_unique<KvSequence>(pool, 128, 0);
  ASSERT_TRUE(a->reserve(64).ok());
  write(*pool, *a, 0, 64, 7);
  auto b = std::make_unique<KvSequence>(pool, 128, 0), c = std::make_unique<KvSequence>(pool, 128, 0);
  b->share(*a, 64);
  c->share(*b, 50);
  a.reset();
  b.reset();
  EXPECT_EQ(pool->free_positions(), 64);
  EXPECT_EQ(read(*pool, *c, 50)[49], 7 + 49);
  c->shrink(10);
  EXPECT_EQ(pool->free_positions(), 96);
  c.reset();
  EXPECT_EQ(pool->free_positions(), 128);
}

TEST(KvPool, AFailedReserveChangesNothing) {
  const auto pool = pool_of(4);
  KvSequence a(pool, 256, 0), b(pool, 256, 32);
  ASSERT_TRUE(a.reserve(90).ok());
  write(*pool, a, 0, 90, 0);
  b.share(a, 90);
  // Scratch, a copy of the border and a new page: three, and there is one.
  const Status s = b.reserve(100, 90);
  EXPECT_EQ(s.code(), Code::limit);
  EXPECT_NE(s.message().find("128 positions"), std::string::npos) << s.message();
  EXPECT_EQ(b.pages(), a.pages());
  EXPECT_EQ(pool->free_positions(), 32);
}

TEST(KvPool, AThousandHoldersTakeNoPage) {
  const auto pool = pool_of(4);
  KvSequence a(pool, 128, 0);
  ASSERT_TRUE(a.reserve(100).ok());
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<KvSequence>> forks;
    for (int i = 0; i < 1000; ++i) {
      forks.push_back(std::make_unique<KvSequence>(pool, 128, 0));
      forks.back()->share(forks.size() > 1 ? *forks[forks.size() - 2] : a, 100);
    }
    EXPECT_EQ(pool->free_positions(), 0);
    EXPECT_EQ(pool->holders(a.pages()[3]), 1001);
  }
  EXPECT_EQ(pool->holders(a.pages()[3]), 1);
}

// The largest shape a package may state, times the largest budget: 2^66 bytes, which a 64-bit product takes for nothing.
TEST(KvPool, ASizePastWhatCanBeCountedIsNotMadeSmall) {
  std::shared_ptr<kernels::Device> device = std::move(*kernels::make_cpu_device({}));
  const auto pool = KvPool::create(device, {1024, 4096, 1024}, int64_t{1} << 30);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), Code::out_of_memory);
}

}  // namespace
}  // namespace aerie::test
