// Sharing: whether all threads run an op or only the one that came upon it, whichever was faster lately for ops of its kind
// and length. What sharing costs is not known beforehand: two cores of one die hand over in a fraction of a microsecond, two
// virtual CPUs far from each other in several, and of a core that others want too nobody can say; and rows go from cache to cache.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace aerie::kernels::cpu {

class Sharing {
 public:
  struct Turn {
    bool share;
    bool timed;  // took() is to be told
    size_t at;
    int64_t work;
  };
  // Ops that take one thread about `work` nanoseconds: short ones never pay, long ones always do.
  static constexpr int64_t kShort = 512, kLong = 1 << 17;

  // The next op of a kind. [any thread; where two meet, one's time is lost]
  Turn next(size_t kind, int64_t work) {
    if (work < kShort || work >= kLong || kind >= kKinds) return {work >= kShort, false, 0, work};
    const size_t at = kind * kLengths + static_cast<size_t>(std::bit_width(static_cast<uint64_t>(work / kShort))) - 1;
    Times& t = times_[at];
    const uint32_t n = t.turns.fetch_add(1, std::memory_order_relaxed);
    const float alone = known(t.alone, 1), shared = known(t.shared, 0.5f + kUsual / static_cast<float>(work));
    const bool share = shared < alone;
    if (t.left.fetch_sub(1, std::memory_order_relaxed) > 0) return {share, n % 5 == 0, at, work};
    // The other way, once in a while, the more seldom the worse it was.
    const float times = std::max(shared, alone) / std::min(shared, alone);
    t.left.store(n < kNew ? kOften : static_cast<int32_t>(kSeldom * std::min(times, 64.0f)), std::memory_order_relaxed);
    return {!share, true, at, work};
  }
  // A step towards the median, which the few that were held up do not move.
  void took(const Turn& turn, int64_t ns) {
    Times& t = times_[turn.at];
    std::atomic<float>& typical = turn.share ? t.shared : t.alone;
    const float now = static_cast<float>(ns) / static_cast<float>(turn.work), before = known(typical, now);
    const float step = t.turns.load(std::memory_order_relaxed) < kNew ? 1.25f : 1.0625f;
    typical.store(now > before ? before * step : now < before ? before / step : now, std::memory_order_relaxed);
    // The way not gone seems to be the faster one now: it is soon tried again.
    const float other = known(turn.share ? t.alone : t.shared, now);
    if (before > other && now < other) t.left.store(kOften / 2, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kKinds = 32, kLengths = 8;
  static constexpr float kUsual = 5000;  // ns that sharing is thought to cost until it was tried
  static constexpr uint32_t kNew = 256;
  static constexpr int32_t kOften = 16, kSeldom = 128;
  struct Times {  // of a nanosecond of work; 0: never seen
    std::atomic<float> alone{0}, shared{0};
    std::atomic<uint32_t> turns{0};
    std::atomic<int32_t> left{kOften};
  };
  static float known(const std::atomic<float>& time, float otherwise) {
    const float seen = time.load(std::memory_order_relaxed);
    return seen > 0 ? seen : otherwise;
  }
  std::array<Times, kKinds * kLengths> times_;
};

}  // namespace aerie::kernels::cpu
