// How often a confidence comes true, learned while drafting: by depth, never falling with confidence.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace aerie {

class Calibration {
 public:
  Calibration();
  // The share of candidates with this confidence, as children of a node at `depth`, that the target took.
  double probability(float confidence, int32_t depth) const;
  // A child of a node that the walk came to: was it the one taken?
  void learn(float confidence, int32_t depth, bool taken);
  void refit();  // after a cycle's lessons
  // For policy_memory.h; refit() is to follow.
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    for (auto& row : self.bins_)
      for (auto& bin : row) {
        f(bin.tried, 1e-3, 1e9);
        f(bin.taken, 0, bin.tried * 1.000001);
      }
    if constexpr (!std::is_const_v<Self>) self.touched_ = (1u << kDepths) - 1;
  }

  static constexpr int kDepths = 6, kBins = 16;  // deeper nodes share the last depth

 private:
  struct Bin {
    double tried, taken;
  };
  static int bin_of(float confidence);
  static int row_of(int32_t depth) { return depth < kDepths ? depth : kDepths - 1; }
  std::array<std::array<Bin, kBins>, kDepths> bins_;
  std::array<std::array<double, kBins>, kDepths> fit_;
  uint32_t touched_ = 0;
};

// What the text is like just now, beside what it is like on the whole: a shift of all log-odds that follows the newest
// walks. Texts have easy stretches (a loop, a quotation) and hard ones.
class Mood {
 public:
  double shifted(double probability) const;
  // Candidates were expected to come true with `expected`.
  // memory: what is left of the shift at the next walk.
  void learn(double expected, bool came_true, double memory);
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    f(self.shift_, -4, 4);
    f(self.seen_, 0, 1000);
  }

 private:
  double shift_ = 0;
  int32_t seen_ = 0;
};

}  // namespace aerie
