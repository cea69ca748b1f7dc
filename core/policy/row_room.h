// RowRoom: how many rows a pass is given where that must be said before the tree is drawn, since a device runs all of a cycle in one
// plan: the target's pass, or that of a level. It then takes as long as its room, whatever of it is filled, so the best nodes fill it;
// and the room is the one in which those of the cycles before, filled up likewise, would have been worth most. A power of two, as
// devices work for, or the most there may be.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace aerie {

class RowRoom {
 public:
  static constexpr size_t kRooms = 8;  // 1, 2, ... 128
  // What such passes are worth as long as nothing is known.
  explicit RowRoom(const std::array<double, kRooms>& prior) : mean_(prior) {}
  // What a pass over 1, 2, ... rows would have been worth.
  void drew(std::span<const double> utility) {
    if (utility.empty()) return;
    cycles_ = std::min(cycles_ + 1, kMemory);
    for (size_t i = 0; i < kRooms; ++i) mean_[i] += (utility[std::min(utility.size(), rows(i)) - 1] - mean_[i]) / cycles_;
  }
  // The rows, from `least` to `most`, for which utility - threshold * cost(rows) is largest.
  template <class CostOf>
  int32_t best(int32_t least, int32_t most, double threshold, const CostOf& cost) const {
    int32_t best = least;
    double best_net = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < kRooms; ++i) {
      const int32_t n = std::min(static_cast<int32_t>(rows(i)), most);
      if (n < least) continue;
      const double net = mean_[i] - threshold * cost(n);
      if (net >= best_net) best = n, best_net = net;
      if (n == most) break;
    }
    return best;
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    f(self.cycles_, 0, kMemory);
    for (auto& m : self.mean_) f(m, -1e6, 1e6);
  }

 private:
  static constexpr double kMemory = 32;
  static constexpr size_t rows(size_t i) { return size_t{1} << i; }
  double cycles_ = 0;
  std::array<double, kRooms> mean_;
};

// For the first cycle, guesses of what heads are worth that fit their target: of a target's pass, whose first row is the root's, in
// tokens; of a level's in what the nodes drafted from are worth themselves.
constexpr std::array<double, RowRoom::kRooms> kTargetRows{1, 1.7, 2.4, 2.9, 3.2, 3.35, 3.45, 3.5}, kLevelRows{0.7, 0.95, 1.15, 1.25, 1.3, 1.3, 1.3, 1.3};

}  // namespace aerie
