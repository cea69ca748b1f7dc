// One packed matrix inside a larger one: the small one's codes and scales, random ones around them.
#pragma once

#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "shape.h"

namespace aerie::inflate {

// Random bits from a seed and a tensor's name: the same package every time.
class Random {
 public:
  Random(uint64_t seed, const std::string& name);
  // Those of a part: the same whoever makes it.
  Random part(int64_t i) const {
    Random r = *this;
    r.state_ ^= (static_cast<uint64_t>(i) + 1) * 0xD1342543DE82EF95u;
    return r;
  }
  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  float uniform() { return static_cast<float>(static_cast<double>(next() >> 11) * 0x1p-53); }  // [0, 1)

 private:
  uint64_t state_;
};

struct Matrix {
  std::vector<char> data, scales;
  kernels::Tensor tensor;
};

// Element (r, c): live row and live column: the small one's; kHot column, or live column in a kSilent row: zero; all
// others random, within the scale of a block of the small row that this row copies (or stands for).
Matrix inflate_matrix(const kernels::Tensor& small, const Map& rows, const Map& columns, int32_t unit, Random random);

// A vector (1, n) f32. Live values times `factor`; random rows from [0.5, 1.5) times `typical`; silent rows zero.
std::vector<float> inflate_vector(const kernels::Tensor& small, const Map& places, float factor, float typical, Random random);

}  // namespace aerie::inflate
