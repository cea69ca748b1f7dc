// States of recurrent layers: with several holders, given back and gone back to.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "tests/support/wrapped_device.h"
#include "tests/unit/kv/kv_fixtures.h"

namespace aerie::test {
namespace {

constexpr int64_t kFloats = 10;  // of a state

// Counts what is allocated, and has no more than `left` of it.
class ScarceDevice : public WrappedDevice {
 public:
  ScarceDevice() : WrappedDevice(std::move(*kernels::make_cpu_device({}))) {}
  void* allocate(size_t bytes) override {
    if (left == 0) return nullptr;
    --left, ++held;
    sizes.push_back(bytes);
    return WrappedDevice::allocate(bytes);
  }
  void release(void* memory) override {
    if (memory) --held;
    WrappedDevice::release(memory);
  }
  int left = 100, held = 0;
  std::vector<size_t> sizes;

 protected:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override { return inner; }
};

std::vector<int32_t> take_states(StatePool& pool, int n) {
  std::vector<int32_t> all;
  for (int i = 0; i < n; ++i) {
    const auto state = pool.take();
    EXPECT_TRUE(state.ok()) << state.status().message();
    if (state.ok()) all.push_back(*state);
  }
  return all;
}

// What a pass does: the next state is there.
void read_on(StateSequence& s, int64_t position, float mark) {
  ASSERT_TRUE(s.reserve().ok());
  std::fill_n(s.pool()->cache().at(s.next()), kFloats, mark);
  s.advance(position);
}
float mark_of(const StateSequence& s, int32_t state) { return state < 0 ? 0 : s.pool()->cache().at(state)[kFloats - 1]; }

TEST(StatePool, GrowsInChunksAndMovesNothing) {
  const auto device = std::make_shared<ScarceDevice>();
  {
    StatePool pool(device, kFloats);
    EXPECT_TRUE(device->sizes.empty()) << "before anyone wants one";
    std::vector<int32_t> states = take_states(pool, 4);
    EXPECT_EQ(device->sizes, (std::vector<size_t>{kFloats * 4, 2 * kFloats * 4, 4 * kFloats * 4}));
    const kernels::StateCache first = pool.cache();
    const auto more = take_states(pool, 24);
    states.insert(states.end(), more.begin(), more.end());
    EXPECT_EQ(device->sizes, (std::vector<size_t>{kFloats * 4, 2 * kFloats * 4, 4 * kFloats * 4, 8 * kFloats * 4, 16 * kFloats * 4}));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(first.at(states[i]), pool.cache().at(states[i])) << "plans have its address";
    // No two share memory: each still has what was written to it when all were.
    for (size_t i = 0; i < states.size(); ++i) std::fill_n(pool.cache().at(states[i]), kFloats, static_cast<float>(i));
    for (size_t i = 0; i < states.size(); ++i) {
      const float* at = pool.cache().at(states[i]);
      EXPECT_TRUE(std::all_of(at, at + kFloats, [&](float v) { return v == static_cast<float>(i); })) << i;
    }
    for (const int32_t s : states) pool.give_back(s);
    take_states(pool, 28);
    EXPECT_EQ(device->sizes.size(), 5u) << "memory is used again";
    EXPECT_EQ(device->held, 5);
  }
  EXPECT_EQ(device->held, 0);
}

TEST(StatePool, AStateIsFreeWhenItsLastHolderLetsGo) {
  StatePool pool(std::make_shared<ScarceDevice>(), kFloats);
  const int32_t held = *pool.take();
  pool.retain(held);
  pool.retain(held);
  const auto others = take_states(pool, 3);
  for (int holders = 3; holders > 1; --holders) {
    pool.give_back(held);
    for (const int32_t s : take_states(pool, 4)) {
      EXPECT_NE(s, held) << holders;
      pool.give_back(s);
    }
  }
  pool.give_back(held);
  EXPECT_EQ(*pool.take(), held) << "the last that was given back is the first to go";
}

TEST(StatePool, NoMemoryIsAnErrorAndMemoryMayCome) {
  const auto device = std::make_shared<ScarceDevice>();
  device->left = 2;
  const auto pool = std::make_shared<StatePool>(device, kFloats);
  StateSequence text(pool);
  read_on(text, 7, 1);
  ASSERT_TRUE(text.reserve().ok());
  const int32_t now = text.now(), next = text.next();
  const auto others = take_states(*pool, 1);
  StateSequence other(pool);
  for (int again = 0; again < 3; ++again) {
    const Status s = other.reserve();
    EXPECT_EQ(s.code(), Code::out_of_memory);
    for (const char* words : {"4 states of recurrent layers", "160 bytes", "no device memory"})
      EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    EXPECT_EQ(other.next(), -1);
  }
  EXPECT_EQ(device->held, 2);
  EXPECT_EQ(mark_of(text, now), 1);
  pool->give_back(others[0]);
  ASSERT_TRUE(other.reserve().ok()) << "one was given back";
  EXPECT_EQ(other.next(), others[0]);
  device->left = 1;
  take_states(*pool, 4);
  EXPECT_EQ(device->sizes.back(), 4u * kFloats * 4) << "as much as it was not given";
  EXPECT_EQ(text.now(), now);
  EXPECT_EQ(text.next(), next);
}

TEST(StatePool, EndsWhereItsChunksDo) {
  StatePool pool(std::make_shared<ScarceDevice>(), 1);
  constexpr int kMost = (1 << kernels::StateCache::kChunks) - 1;
  const auto all = take_states(pool, kMost);
  EXPECT_EQ(*std::max_element(all.begin(), all.end()), kMost - 1);
  const auto none = pool.take();
  EXPECT_EQ(none.status().code(), Code::out_of_memory);
  EXPECT_NE(none.status().message().find(std::to_string(kMost) + " are the most"), std::string::npos) << none.status().message();
  pool.give_back(all[5]);
  EXPECT_EQ(*pool.take(), all[5]);
}

TEST(StatePool, ThreadsTakeAndGiveBackAtOnce) {
  StatePool pool(std::make_shared<ScarceDevice>(), kFloats);
  constexpr int kThreads = 4, kHeld = 7;
  std::vector<std::atomic<int>> holder((1 << kernels::StateCache::kChunks) - 1);
  std::atomic<int> twice{0};
  std::vector<std::thread> threads;
  const int32_t shared = *pool.take();
  for (int t = 1; t <= kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 1000; ++round) {
        std::vector<int32_t> mine;
        for (int i = 0; i < kHeld; ++i) {
          pool.retain(shared);
          const int32_t s = *pool.take();
          if (holder[static_cast<size_t>(s)].exchange(t) != 0) ++twice;
          pool.cache().at(s)[round % kFloats] = static_cast<float>(t);  // a chunk that another thread has had made is there
          pool.retain(s);
          mine.push_back(s);
        }
        for (const int32_t s : mine) {
          pool.give_back(shared);
          pool.give_back(s);
          if (pool.cache().at(s)[round % kFloats] != static_cast<float>(t) || holder[static_cast<size_t>(s)].exchange(0) != t) ++twice;
          pool.give_back(s);
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(twice, 0);
  auto all = take_states(pool, 1 + 2 + 4 + 8 + 16 - 1);  // which is enough for the 29 that were held at most
  EXPECT_TRUE(std::find(all.begin(), all.end(), shared) == all.end()) << "it still has its first holder";
  pool.give_back(shared);
  all.push_back(*pool.take());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.back(), 30) << "none was lost";
}

TEST(StateSequence, BeginsWithNothing) {
  StateSequence s(std::make_shared<StatePool>(std::make_shared<ScarceDevice>(), kFloats));
  EXPECT_TRUE(static_cast<bool>(s));
  EXPECT_EQ(s.now(), -1);
  EXPECT_EQ(s.before(), -1);
  EXPECT_EQ(s.position(), 0);
  s.keep();  // of nothing
  EXPECT_EQ(s.rewind(0), 0);
  ASSERT_TRUE(s.reserve().ok());
  const int32_t next = s.next();
  ASSERT_TRUE(s.reserve().ok());
  EXPECT_EQ(s.next(), next) << "there is room already";
  s.advance(12);
  EXPECT_EQ(s.now(), next);
  EXPECT_EQ(s.next(), -1);
  EXPECT_EQ(s.position(), 12);
}

TEST(StateSequence, WithoutAPoolItDoesNothing) {
  StateSequence s(nullptr), other(nullptr);
  EXPECT_FALSE(static_cast<bool>(s));
  EXPECT_TRUE(s.reserve().ok());
  s.advance(9);
  s.keep();
  s.share(other);
  EXPECT_EQ(s.rewind(4), 0);
  EXPECT_EQ(s.now(), -1);
}

TEST(StateSequence, GoesBackToTheLastStateThatIsNotBeyond) {
  const auto text = [](std::shared_ptr<StatePool> pool) {
    auto s = std::make_unique<StateSequence>(std::move(pool));
    for (const int position : {10, 20, 30, 31, 32}) {
      read_on(*s, position, static_cast<float>(position));
      if (position <= 30) s->keep();
    }
    return s;
  };
  // Kept are 20 and 30; 31 is the one before.
  for (const auto& [to, at] : {std::pair{40, 32}, {32, 32}, {31, 31}, {30, 30}, {29, 20}, {21, 20}, {20, 20}, {19, 0}, {10, 0}, {0, 0}}) {
    SCOPED_TRACE(to);
    const auto pool = std::make_shared<StatePool>(std::make_shared<ScarceDevice>(), kFloats);
    const auto s = text(pool);
    EXPECT_EQ(s->position_before(), 31);
    EXPECT_EQ(mark_of(*s, s->before()), 31);
    EXPECT_EQ(s->rewind(to), at);
    EXPECT_EQ(s->position(), at);
    EXPECT_EQ(mark_of(*s, s->now()), static_cast<float>(at));
    EXPECT_EQ(s->now() < 0, at == 0);
    EXPECT_EQ(s->rewind(to), at) << "again";
    // Nothing of the longer text comes back.
    read_on(*s, at + 2, 99);
    EXPECT_EQ(mark_of(*s, s->now()), 99);
    EXPECT_LE(s->position_before(), at);
    EXPECT_EQ(s->rewind(at + 1), at);
    EXPECT_EQ(mark_of(*s, s->now()), static_cast<float>(at));
  }
}

TEST(StateSequence, KeepsTheLastFew) {
  StateSequence s(std::make_shared<StatePool>(std::make_shared<ScarceDevice>(), kFloats));
  for (const int position : {10, 20, 30}) {
    read_on(s, position, static_cast<float>(position));
    for (int again = 0; again < 3; ++again) s.keep();  // the same one: it takes no other's place
  }
  read_on(s, 40, 40);
  read_on(s, 50, 50);
  EXPECT_EQ(s.rewind(35), 30);
  s.keep();  // it is kept
  EXPECT_EQ(s.rewind(25), 20);
  read_on(s, 28, 28);
  s.keep();
  read_on(s, 29, 29);
  read_on(s, 30, 30);
  EXPECT_EQ(s.rewind(28), 28);
  EXPECT_EQ(s.rewind(27), 20);
  EXPECT_EQ(s.rewind(19), 0) << "10 is one too many";
}

TEST(StateSequence, SharersGoTheirOwnWays) {
  const auto pool = std::make_shared<StatePool>(std::make_shared<ScarceDevice>(), kFloats);
  auto a = std::make_unique<StateSequence>(pool);
  StateSequence b(pool);
  read_on(b, 3, 3);  // which it gives up
  read_on(*a, 10, 10);
  a->keep();
  read_on(*a, 20, 20);
  read_on(*a, 30, 30);
  ASSERT_TRUE(a->reserve().ok() && b.reserve().ok());
  b.share(*a);
  EXPECT_EQ(b.now(), a->now());
  EXPECT_EQ(b.before(), a->before());
  EXPECT_EQ(b.position(), 30);
  EXPECT_NE(b.next(), a->next()) << "what is written is one's own";
  read_on(*a, 40, 41);
  read_on(b, 40, 42);
  EXPECT_EQ(mark_of(*a, a->now()), 41);
  EXPECT_EQ(mark_of(b, b.now()), 42);
  EXPECT_EQ(b.before(), a->before());
  EXPECT_EQ(a->rewind(15), 10);
  read_on(*a, 50, 50);
  EXPECT_EQ(b.position(), 40);
  EXPECT_EQ(b.rewind(30), 30);
  EXPECT_EQ(mark_of(b, b.now()), 30);
  a.reset();
  read_on(b, 31, 31);
  read_on(b, 32, 32);
  EXPECT_EQ(b.rewind(29), 10);
  EXPECT_EQ(mark_of(b, b.now()), 10) << "kept by the one that is gone";
}

// Any number of texts that do what they like: each finds what it has left, and when they are gone no state is lost.
TEST(StateSequence, AnyOrderOfAllThis) {
  struct Want {
    int64_t position = 0;
    float mark = 0;  // 0: no state
  };
  struct Text {
    std::unique_ptr<StateSequence> states;
    Want now, before;
    std::vector<Want> kept;
  };
  const auto device = std::make_shared<ScarceDevice>();
  const auto pool = std::make_shared<StatePool>(device, kFloats);
  std::mt19937 random(9);
  float made = 0;
  std::vector<Text> texts(3);
  for (Text& t : texts) t.states = std::make_unique<StateSequence>(pool);
  for (int round = 0; round < 20000; ++round) {
    Text& t = texts[random() % texts.size()];
    switch (random() % 8) {
      case 0: {
        const auto to = static_cast<int64_t>(random() % static_cast<uint64_t>(t.now.position + 2));
        if (t.now.position > to) {
          if (t.before.position > to) t.before = {};
          std::erase_if(t.kept, [&](const Want& k) { return k.position > to; });
          const bool of_kept = t.before.mark == 0 || (!t.kept.empty() && t.kept.back().position > t.before.position);
          t.now = !of_kept ? std::exchange(t.before, {}) : t.kept.empty() ? Want() : t.kept.back();
        }
        ASSERT_EQ(t.states->rewind(to), t.now.position);
        break;
      }
      case 1:
        t.states->keep();
        if (t.now.mark != 0 && (t.kept.empty() || t.kept.back().mark != t.now.mark)) t.kept.push_back(t.now);
        if (t.kept.size() > 2) t.kept.erase(t.kept.begin());
        break;
      case 2: {
        Text& other = texts[random() % texts.size()];
        if (&other == &t) break;
        t.states->share(*other.states);
        t.now = other.now, t.before = other.before, t.kept = other.kept;
        break;
      }
      case 3:
        if (random() % 20) break;
        t = {};
        t.states = std::make_unique<StateSequence>(pool);
        break;
      case 4:
        ASSERT_TRUE(t.states->reserve().ok());  // of a pass that does not come to its end
        break;
      default: {
        const Want next{t.now.position + 1 + static_cast<int64_t>(random() % 9), ++made};
        read_on(*t.states, next.position, next.mark);
        t.before = std::exchange(t.now, next);
      }
    }
    for (const Text& each : texts) {
      ASSERT_EQ(each.states->position(), each.now.position) << round;
      ASSERT_EQ(mark_of(*each.states, each.states->now()), each.now.mark) << round;
      ASSERT_EQ(mark_of(*each.states, each.states->before()), each.before.mark) << round;
    }
  }
  EXPECT_LE(device->sizes.size(), 4u) << "three texts hold no more than five each";
  texts.clear();
  auto all = take_states(*pool, 15);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(device->sizes.size(), 4u);
}

TEST(StateSequence, ComesWithASequenceOfKeysAndValues) {
  const auto device = std::make_shared<ScarceDevice>();
  device->left = 3;
  {
    const auto pool = *KvPool::create(device, {2, 1, 4}, 128, kFloats);
    KvSequence a(pool, 128, 0), b(pool, 128, 0);
    ASSERT_TRUE(a.reserve(40).ok());
    EXPECT_GE(a.state().next(), 0);
    a.state().advance(40);
    b.share(a, 40);
    EXPECT_EQ(b.state().now(), a.state().now());
    const auto rest = take_states(*pool->states(), 2);
    const Status s = b.reserve(128, 40);
    EXPECT_EQ(s.code(), Code::out_of_memory);
    EXPECT_NE(s.message().find("states of recurrent layers"), std::string::npos) << s.message();
    EXPECT_EQ(b.pages(), a.pages()) << "a failed reserve changes nothing";
    EXPECT_EQ(pool->free_positions(), 64);
    pool->states()->give_back(rest[0]);
    device->left = 1;  // for what copies the page
    EXPECT_TRUE(b.reserve(64, 40).ok());
    EXPECT_EQ(b.state().next(), rest[0]);
  }
  EXPECT_EQ(device->held, 0);
  const auto plain = pool_of(4);
  KvSequence without(plain, 128, 0);
  EXPECT_FALSE(static_cast<bool>(without.state())) << "no layer is recurrent";
  EXPECT_TRUE(without.reserve(10).ok());
}

}  // namespace
}  // namespace aerie::test
