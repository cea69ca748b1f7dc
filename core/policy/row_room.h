// RowRoom: how many rows the target's pass of a cycle is given where that must be said before the tree is drawn, since a device runs
// both in one plan. The pass then takes as long as its room, whatever of it is filled, so the tree fills it; and the room is the one
// in which the trees of the cycles before, filled up likewise, would have been worth most. A power of two, as devices work for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie {

class RowRoom {
 public:
  // What the best nodes of a tree have been worth, by the rows of a pass for them: the root's alone, with one node, with two ...
  void drew(std::span<const double> utility) {
    if (utility.empty()) return;
    cycles_ = std::min(cycles_ + 1, kMemory);
    for (size_t i = 0; i < kRooms; ++i) mean_[i] += (utility[std::min(utility.size(), rows(i)) - 1] - mean_[i]) / cycles_;
  }
  // The rows, at most `most`, for which utility - threshold * cost(rows) is largest; before the first tree as many as are seldom wrong.
  template <class CostOf>
  int32_t best(int32_t most, double threshold, const CostOf& cost) const {
    size_t best = 0;
    double best_net = 0;
    for (size_t i = 0; i < kRooms && static_cast<int32_t>(rows(i)) <= most; ++i) {
      const double net = cycles_ > 0 ? mean_[i] - threshold * cost(static_cast<int32_t>(rows(i))) : rows(i) <= kFirst;
      if (i > 0 && net < best_net) continue;
      best = i;
      best_net = net;
    }
    return static_cast<int32_t>(rows(best));
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    f(self.cycles_, 0, kMemory);
    for (auto& m : self.mean_) f(m, 0, 1e6);
  }

 private:
  static constexpr size_t kRooms = 7, kFirst = 16;  // 2, 4, ... 128
  static constexpr double kMemory = 32;
  static constexpr size_t rows(size_t i) { return size_t{2} << i; }
  double cycles_ = 0;
  std::array<double, kRooms> mean_{};
};

}  // namespace aerie
