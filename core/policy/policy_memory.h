// The numbers that a policy goes on from, for a saved session: written down one by one, and read back in the same order,
// each with the range it must be in. A class with such numbers names them once, for both directions:
//   template <class Self, class F> static void fields(Self& self, F& f) { f(self.shift_, -4, 4); ... }
#pragma once

#include <cmath>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace aerie {

class MemoryWriter {
 public:
  template <class T>
  void operator()(const T& v, double, double) {
    numbers_.push_back(static_cast<double>(v));
  }
  std::vector<double> take() { return std::move(numbers_); }

 private:
  std::vector<double> numbers_;
};

class MemoryReader {
 public:
  explicit MemoryReader(std::span<const double> numbers) : left_(numbers) {}
  // A number that is out of its range, or missing, is not taken, nor is any behind it.
  template <class T>
  void operator()(T& v, double low, double high) {
    ok_ = ok_ && !left_.empty() && left_[0] >= low && left_[0] <= high &&
          (!std::is_integral_v<T> || left_[0] == std::floor(left_[0]));
    if (!ok_) return;
    v = static_cast<T>(left_[0]);
    left_ = left_.subspan(1);
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }

 private:
  std::span<const double> left_;
  bool ok_ = true;
};

}  // namespace aerie
