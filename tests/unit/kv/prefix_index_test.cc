// Kept prefixes: found by hash, taken only when the tokens are equal, gone when their room is wanted.
#include "tests/unit/kv/kv_fixtures.h"

namespace aerie::test {
namespace {

using kernels::kPageSlots;
using Tokens = std::vector<int32_t>;
using Drafts = std::vector<DraftRows>;

Tokens text_of(int64_t pages, int32_t first, int64_t more = 1) {
  Tokens t(static_cast<size_t>(pages * kPageSlots + more));
  std::iota(t.begin(), t.end(), first);
  return t;
}

class PrefixIndexTest : public testing::Test {
 protected:
  void open(int64_t pages, PrefixIndex::Hash hash = nullptr) {
    pool_ = pool_of(pages);
    index_ = std::make_unique<PrefixIndex>(pool_, hash);
    pool_->on_shortage([this] { return index_->drop_one(*pool_); });
  }
  std::unique_ptr<KvSequence> sequence(int64_t positions) {
    auto s = std::make_unique<KvSequence>(pool_, 1024, 0);
    EXPECT_TRUE(s->reserve(positions).ok());
    return s;
  }
  // A text that was read and is gone; the pages it had.
  Tokens leave(const Tokens& text) {
    const auto pages = static_cast<int64_t>(text.size()) / kPageSlots;
    const auto s = sequence(pages * kPageSlots);
    PrefixPlace place;
    index_->keep(&place, text, *s, pages, {});
    EXPECT_EQ(place.pages, pages);
    return s->pages();
  }
  int64_t hit(const Tokens& text) { return index_->find(text, {}).place.pages; }

  std::shared_ptr<KvPool> pool_;
  std::unique_ptr<PrefixIndex> index_;
};

TEST_F(PrefixIndexTest, FindsTheLongestBeginning) {
  open(8);
  const Tokens text = text_of(3, 5);
  const Tokens pages = leave(text);
  EXPECT_EQ(pool_->free_positions(), 8 * kPageSlots);  // kept, not used
  {
    const Prefix p = index_->find(text, {});
    EXPECT_EQ(p.place.pages, 3);
    EXPECT_EQ(p.target.ids(), pages);
    EXPECT_EQ(pool_->free_positions(), 5 * kPageSlots);  // used now
  }
  EXPECT_EQ(hit(text_of(3, 5, 0)), 2);  // never the whole text
  EXPECT_EQ(hit(text_of(9, 5)), 3);
  Tokens other = text;
  other[40] = 7;
  EXPECT_EQ(hit(other), 1);
  other[0] = 7;
  EXPECT_EQ(hit(other), 0);
  // The same tokens elsewhere in a text are something else.
  EXPECT_EQ(hit(Tokens(text.begin() + kPageSlots, text.end())), 0);
  EXPECT_EQ(hit({}), 0);
  EXPECT_FALSE(index_->has_more({}, Tokens(text.begin(), text.begin() + kPageSlots)));
  EXPECT_TRUE(index_->has_more({}, text));
}

uint64_t by_first(std::span<const int32_t> tokens, uint64_t before) { return before * 31 + static_cast<uint64_t>(tokens[0]) + 1; }
uint64_t always(std::span<const int32_t>, uint64_t) { return 42; }

TEST_F(PrefixIndexTest, ACollisionIsNoHit) {
  open(16, by_first);
  const Tokens text = text_of(2, 5);
  leave(text);
  Tokens same_hash = text;
  same_hash[kPageSlots - 1] = 999;
  EXPECT_EQ(hit(text), 2);
  EXPECT_EQ(hit(same_hash), 0);
  // Its second page has the hash and the tokens of the first text's, after another beginning: no hit either.
  leave(same_hash);
  EXPECT_EQ(hit(same_hash), 2);
  EXPECT_EQ(hit(text), 0);
  // Where all hashes are one, a text's pages push each other out.
  open(16, always);
  PrefixPlace place;
  const auto s = sequence(2 * kPageSlots);
  index_->keep(&place, text, *s, 2, {});
  EXPECT_LE(hit(text), 1);
  EXPECT_EQ(hit(text_of(2, 6)), 0);
}

TEST_F(PrefixIndexTest, RoomIsMadeByTheLongestUnused) {
  open(8);
  const Tokens a = text_of(3, 1000), b = text_of(3, 2000);
  leave(a);
  leave(b);
  EXPECT_EQ(hit(a), 3);  // used last
  const auto s = sequence(4 * kPageSlots);  // two were free
  EXPECT_EQ(hit(a), 3);
  EXPECT_EQ(hit(b), 1);  // its end went first
  const auto more = sequence(4 * kPageSlots);
  EXPECT_EQ(index_->size(), 0u);
  KvSequence last(pool_, 64, 0);
  EXPECT_EQ(last.reserve(1).code(), Code::limit);
}

TEST_F(PrefixIndexTest, PagesInUseAreNotDropped) {
  open(4);
  const Tokens a = text_of(2, 1000);
  leave(a);
  const Prefix used = index_->find(a, {});
  const auto s = sequence(2 * kPageSlots);
  KvSequence last(pool_, 64, 0);
  EXPECT_EQ(last.reserve(1).code(), Code::limit);
  EXPECT_EQ(hit(a), 2);
}

// A drafter that looks ahead: the last row of a page depends on the token after it.
TEST_F(PrefixIndexTest, ADraftersPageAnswersForTheTokenAfterIt) {
  open(16);
  const auto drafts = pool_of(16), others = pool_of(16);
  const Tokens text = text_of(2, 5, 10);
  const auto target = sequence(2 * kPageSlots);
  KvSequence rows(drafts, 1024, 0), none(drafts, 1024, 0), strange(others, 1024, 0);
  ASSERT_TRUE(rows.reserve(70).ok());
  PrefixPlace place;
  // Its second page is not full yet: it is kept at a later call.
  index_->keep(&place, text, *target, 2, Drafts{{&rows, 63, true}});
  EXPECT_EQ(place.pages, 1);
  EXPECT_EQ(index_->find(text, Drafts{{&none, 0, true}}).drafts[0].rows, 32);
  EXPECT_EQ(hit(text), 2);
  index_->keep(&place, text, *target, 2, Drafts{{&rows, 70, true}});
  EXPECT_EQ(place.pages, 2);
  EXPECT_EQ(index_->find(text, Drafts{{&none, 0, true}}).drafts[0].rows, 64);
  EXPECT_EQ(index_->find(text, Drafts{{&strange, 0, true}}).drafts[0].rows, 0);  // another drafter's
  Tokens parted = text;
  parted[64] = 999;
  EXPECT_EQ(index_->find(parted, Drafts{{&none, 0, true}}).drafts[0].rows, 63);
  EXPECT_EQ(index_->find(parted, Drafts{{&none, 0, true}}).place.pages, 2);
  // Both are kept side by side, and go with their page.
  const auto again = sequence(2 * kPageSlots);
  KvSequence theirs(drafts, 1024, 0);
  ASSERT_TRUE(theirs.reserve(70).ok());
  place = {};
  index_->keep(&place, parted, *again, 2, Drafts{{&theirs, 70, true}});
  for (const Tokens& t : {text, parted}) {
    const Prefix p = index_->find(t, Drafts{{&none, 0, true}});
    EXPECT_EQ(p.drafts[0].rows, 64);
    EXPECT_EQ(p.drafts[0].pages.ids()[1], (t == text ? rows : theirs).pages()[1]);
    EXPECT_EQ(p.drafts[0].pages.ids()[0], rows.pages()[0]);
  }
  rows.shrink(0);
  theirs.shrink(0);
  EXPECT_EQ(drafts->free_positions(), 16 * kPageSlots);
  EXPECT_TRUE(index_->drop_one(*drafts));
  EXPECT_TRUE(index_->drop_one(*drafts));
  EXPECT_FALSE(index_->drop_one(*drafts));
  ASSERT_TRUE(none.reserve(16 * kPageSlots).ok());
}

// Drafters of one text, each as far as its own rows go.
TEST_F(PrefixIndexTest, SeveralDraftersSideBySide) {
  open(16);
  const auto one = pool_of(16), two = pool_of(16);
  const Tokens text = text_of(3, 5, 10);
  const auto target = sequence(3 * kPageSlots);
  KvSequence ahead(one, 1024, 0), behind(two, 1024, 0), none(one, 1024, 0), nothing(two, 1024, 0);
  ASSERT_TRUE(ahead.reserve(100).ok() && behind.reserve(40).ok());
  PrefixPlace place;
  index_->keep(&place, text, *target, 3, Drafts{{&ahead, 100, true}, {&behind, 40, false}, {}});
  EXPECT_EQ(place.pages, 1) << "as far as all of them are kept";
  const auto rows = [&](const Drafts& drafts) {
    const Prefix found = index_->find(text, drafts);
    EXPECT_EQ(found.place.pages, 3);
    std::vector<int64_t> n;
    for (const Prefix::Draft& d : found.drafts) n.push_back(d.rows);
    return n;
  };
  EXPECT_EQ(rows({{&none, 0, true}, {&nothing, 0, false}, {}}), (std::vector<int64_t>{96, 32, 0}));
  ASSERT_TRUE(behind.reserve(96).ok());
  index_->keep(&place, text, *target, 3, Drafts{{&ahead, 100, true}, {&behind, 96, false}});
  EXPECT_EQ(place.pages, 3);
  EXPECT_EQ(rows({{&nothing, 0, false}, {}, {&none, 0, true}}), (std::vector<int64_t>{96, 0, 96})) << "whatever their order";
  // What the second one's pool is short of goes, and what stands beside it.
  behind.shrink(0);
  ahead.shrink(0);
  EXPECT_TRUE(index_->drop_one(*two));
  EXPECT_EQ(one->free_positions(), 16 * kPageSlots);
  EXPECT_EQ(index_->find(text, Drafts{{&none, 0, true}}).drafts[0].rows, 64);
}

TEST_F(PrefixIndexTest, ADrafterThatIsGoneIsForgotten) {
  open(8);
  auto drafts = pool_of(8);
  const Tokens text = text_of(2, 5);
  const auto target = sequence(2 * kPageSlots);
  PrefixPlace place;
  {
    KvSequence rows(drafts, 1024, 0);
    ASSERT_TRUE(rows.reserve(64).ok());
    index_->keep(&place, text, *target, 2, Drafts{{&rows, 64, true}});
  }
  std::weak_ptr<KvPool> gone = drafts;
  drafts.reset();
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(hit(text), 2);
}

}  // namespace
}  // namespace aerie::test
