// Linear by the real cuBLASLt, which the emulation stands in for elsewhere: near the exact one.
#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {
namespace {

struct Size {
  int64_t n, k, rows;
};

TEST(CudaLibrary, FastLinearIsNearTheExactOne) {
  if (const Status s = cuda_device()->load_fast_linear(); !s.ok()) GTEST_SKIP() << s.message();
  for (const Size& size : {Size{150, 77, 130}, {1032, 515, 130}, {640, 1025, 512}})
    for (const DType t : {DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
      const auto [n, k, rows] = size;
      SCOPED_TRACE(testing::Message() << rows << " rows by (" << n << ", " << k << ") of type " << static_cast<int>(t));
      const Weights w(n, k, t, 1);
      const int64_t wide = n + 11;  // rows lie apart
      Floats x = random_floats(static_cast<size_t>(rows * k), 2), bias = random_floats(static_cast<size_t>(n), 3);
      Floats fast = random_floats(static_cast<size_t>(rows * wide), 4), exact = fast;
      const Floats before = fast;
      const auto run = [&](Floats& out, bool hurry) {
        const Tensor o = columns(view(out, rows, wide), 5, n);
        run_cuda(Linear{view(x, rows, k), w.tensor(), view(bias, 1, n), o, o, hurry}, true);
      };
      run(exact, false);
      run(fast, true);
      double error = 0, length = 0;
      bool same = true;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < wide; ++c) {
          const auto at = static_cast<size_t>(r * wide + c);
          if (c < 5 || c >= 5 + n) {
            ASSERT_EQ(fast[at], before[at]) << "outside, row " << r << " column " << c;
            continue;
          }
          ASSERT_TRUE(std::isfinite(fast[at])) << "row " << r << " column " << c;
          error += (fast[at] - exact[at]) * (fast[at] - exact[at]);
          length += (exact[at] - before[at]) * (exact[at] - before[at]);  // of what was added
          same &= fast[at] == exact[at];
        }
      EXPECT_LT(std::sqrt(error / length), 1e-2);
      EXPECT_FALSE(same) << "nothing was fast";
    }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
