// LevelWorth: how deep the trees of a batch are drawn whose plan a device runs by itself. All wait for a level that one asks for, and
// nobody can ask the others meanwhile: so all have it, or none. A level is drawn if, on the mean of the trees before, it was worth it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace aerie {

class LevelWorth {
 public:
  static constexpr int32_t kDepths = 16;

  // What drafting from a tree's nodes at this depth, 1 and more, was expected to bring.
  void saw(int32_t depth, double utility) {
    Mean& m = means_[static_cast<size_t>(depth)];
    m.count = std::min(m.count + 1, kMemory);
    m.mean += (utility - m.mean) / m.count;
  }
  // Levels, the first, from the root, one of them, that have brought at least so much; of what nothing is known, some of what the one
  // before did.
  int32_t levels(int32_t most, double least) const {
    double worth = kFirst;
    int32_t n = 1;
    while (n < std::min(most, kDepths)) {
      const Mean& m = means_[static_cast<size_t>(n)];
      worth = m.count > 0 ? m.mean : kFalls * worth;
      if (worth < least) break;
      ++n;
    }
    return n;
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& m : self.means_) {
      f(m.mean, -1e6, 1e6);
      f(m.count, 0, kMemory);
    }
  }

 private:
  struct Mean {
    double mean = 0, count = 0;
  };
  static constexpr double kMemory = 64, kFirst = 0.7, kFalls = 0.8;
  std::array<Mean, kDepths + 1> means_;
};

}  // namespace aerie
