// What the tests of products share: how near a product is to the reference's.
#pragma once

#include "kernels/panel16.h"
#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {

constexpr DType kWeightTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};

// Relative to the length of the vectors multiplied: cancelling sums have no relative precision of their own. All outputs together
// (root of the mean square), and each.
struct Bounds {
  double together, each;
};
// Halves are off by 2^-11 of themselves at most, and by 2e-4 as a rule: activations that are not two bf16, and weights of int4 and q4_1.
inline Bounds bounds_of(DType t) {
  if (t == DType::f32 || t == DType::bf16) return {3e-5, 1e-4};
  return t == DType::int4 || t == DType::q4_1 ? Bounds{3e-4, 1.5e-3} : Bounds{2.2e-4, 1e-3};
}

class Closeness {
 public:
  explicit Closeness(const Bounds& bounds) : bounds_(bounds) {}
  // Rows of outputs, those that they should be, and the rows that weights were multiplied by.
  void add(const Floats& got, const Floats& want, const Tensor& w, const Floats& x) {
    std::vector<double> of_outputs, of_rows;  // squares of what is multiplied
    for (int64_t n = 0; n < w.rows; ++n) {
      double& a = of_outputs.emplace_back();
      for (int64_t k = 0; k < w.cols; ++k) a += std::pow(panel16_at(w, n, k), 2.0);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % static_cast<size_t>(w.cols) == 0) of_rows.emplace_back();
      of_rows.back() += double{x[i]} * x[i];
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t r = i / static_cast<size_t>(w.rows), n = i % static_cast<size_t>(w.rows);
      const double size = std::sqrt(of_outputs[n] * of_rows[r] / static_cast<double>(w.cols)) + 1e-30, error = (got[i] - want[i]) / size;
      squares_ += error * error;
      ++outputs_;
      ASSERT_LE(std::fabs(error), bounds_.each) << "row " << r << " output " << n;
    }
  }
  void expect() const { EXPECT_LE(std::sqrt(squares_ / static_cast<double>(outputs_)), bounds_.together); }

 private:
  Bounds bounds_;
  double squares_ = 0;
  int64_t outputs_ = 0;
};
inline void expect_close(const Floats& got, const Floats& want, const Tensor& w, const Floats& x, const Bounds& bounds) {
  Closeness closeness(bounds);
  closeness.add(got, want, w, x);
  closeness.expect();
}

}  // namespace aerie::kernels::cuda_test
