#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {
namespace {

TEST(CudaRows, MoveWhatTheIndicesSay) {
  Floats src = random_floats(7 * 300, 1), got(9 * 310, 5.0f), want = got;
  const Ints from = {3, -1, 0, 6, 7, 1}, to = {8, 1, 2, -1, 3, 9};
  for (const bool indexed : {false, true}) {
    const auto op = [&](Floats& v) {
      return CopyRows{view(src, 7, 300), indexed ? from.data() : nullptr, columns(view(v, 9, 310), 4, 300),
                      indexed ? to.data() : nullptr, indexed ? 6 : 7};
    };
    run_cuda(op(got));
    run_reference(op(want));
    EXPECT_TRUE(same_bits(got, want));
  }
}

TEST(CudaRows, EmbedReadsEveryLayout) {
  constexpr int64_t v = 37, h = 70;
  const Floats table = random_floats(v * h, 2);
  const Ints ids = {0, 36, 17, -1, 37, 16};
  for (const DType t : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const Layout layout : {Layout::row_major, Layout::panel16}) {
      if (layout == Layout::row_major && t != DType::f32 && t != DType::bf16) continue;
      std::vector<char> data(static_cast<size_t>(data_bytes(t, layout, v, h)));
      std::vector<char> scales(static_cast<size_t>(scale_bytes(t, v, h)));
      if (layout == Layout::panel16) pack_panel16(table.data(), v, h, t, data.data(), scales.data());
      else if (t == DType::f32) std::memcpy(data.data(), table.data(), data.size());
      else
        for (size_t i = 0; i < table.size(); ++i) std::memcpy(&data[2 * i], reinterpret_cast<const char*>(&table[i]) + 2, 2);
      const Tensor w{data.data(), scales.data(), v, h, h, t, layout};
      for (const float scale : {1.0f, 45.254834f, 0.3f}) {
        Floats got(6 * h), want(6 * h);
        run_cuda(Embed{w, ids.data(), view(got, 6, h), scale});
        run_reference(Embed{w, ids.data(), view(want, 6, h), scale});
        EXPECT_TRUE(same_bits(got, want)) << static_cast<int>(t) << " times " << scale;
        EXPECT_EQ(got[3 * h], 0.0f) << "an id outside the table";
      }
    }
}

TEST(CudaRows, NormIsTheReferencesAndARowsOwn) {
  for (const int64_t n : {1, 33, 256, 1000, 8500}) {
    Floats x = random_floats(static_cast<size_t>(5 * n), 3), weight = random_floats(static_cast<size_t>(n), 4);
    Floats got(x.size()), want(x.size());
    each_order([&] {
      run_cuda(RmsNorm{view(x, 5, n), view(weight, 1, n), 1e-5f, view(got, 5, n)});
      run_reference(RmsNorm{view(x, 5, n), view(weight, 1, n), 1e-5f, view(want, 5, n)});
      expect_near(got, want, 2e-6f);
      for (int64_t r = 0; r < 5; ++r) {
        Floats one(x.begin() + r * n, x.begin() + (r + 1) * n);
        run_cuda(RmsNorm{view(one, 1, n), view(weight, 1, n), 1e-5f, view(one, 1, n)});  // in place
        EXPECT_TRUE(same_bits(one.data(), got.data() + r * n, static_cast<size_t>(n) * 4));
      }
    });
  }
}

TEST(CudaRows, NormOfHeads) {
  constexpr int64_t kRows = 5, kHeads = 3, kDim = 20, kWide = 90;
  Floats x = random_floats(kRows * kWide, 7, 3.0f), w = random_floats(kDim, 8), want = x;
  const auto norm = [&](Floats& all) {
    const Tensor heads = columns(view(all, kRows, kWide), 10, kHeads * kDim);
    return RmsNorm{heads, view(w, 1, kDim), 1e-5f, heads, kHeads};
  };
  run_reference(norm(want));
  each_order([&] {
    Floats got = x;
    run_cuda(norm(got));
    expect_near(got, want, 2e-6f);
  });
}

TEST(CudaRows, ActivationsAndAdd) {
  Floats x = random_floats(3 * 600, 5, 4.0f), b = random_floats(3 * 300, 6);
  x[7] = std::nanf("");
  x[8] = -200.0f;
  x[9] = 200.0f;
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
    Floats got(3 * 300), want(3 * 300);
    const auto check = [&] {
      for (size_t i = 0; i < got.size(); ++i)
        if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i]));
        else ASSERT_NEAR(got[i], want[i], 2e-6f * (1 + std::fabs(want[i]))) << i;
    };
    run_cuda(GatedActivate{view(x, 3, 600), kind, view(got, 3, 300)});
    run_reference(GatedActivate{view(x, 3, 600), kind, view(want, 3, 300)});
    check();
    const Tensor half = columns(view(x, 3, 600), 0, 300);
    run_cuda(Activate{half, kind, view(got, 3, 300)});
    run_reference(Activate{half, kind, view(want, 3, 300)});
    check();
  }
  Floats got(3 * 300), want(3 * 300);
  const Tensor a = columns(view(x, 3, 600), 300, 300);
  run_cuda(Add{a, view(b, 3, 300), view(got, 3, 300)});
  run_reference(Add{a, view(b, 3, 300), view(want, 3, 300)});
  EXPECT_TRUE(same_bits(got, want));
}

// Of gpt-oss; whatever the kind. What is not a number stays that, on either side.
TEST(CudaRows, GatesWithALimit) {
  constexpr int64_t kRows = 3, kCols = 301;
  Floats x = random_floats(kRows * 2 * kCols, 5, 4.0f);
  x[7] = x[kCols + 20] = std::nanf("");
  x[8] = -200.0f, x[9] = 200.0f;
  x[kCols + 8] = 200.0f, x[kCols + 9] = -200.0f, x[kCols + 10] = 200.0f;
  for (const float limit : {0.5f, 7.0f}) {
    Floats want(kRows * kCols), without(want.size());
    const auto op = [&](Activation kind, Floats& out, float at_most) {
      return GatedActivate{view(x, kRows, 2 * kCols), kind, view(out, kRows, kCols), at_most};
    };
    run_reference(op(Activation::silu, want, limit));
    run_cuda(op(Activation::silu, without, 0));
    size_t others = 0;
    for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
      Floats got(want.size());
      run_cuda(op(kind, got, limit));
      for (size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i])) << i;
        else ASSERT_NEAR(got[i], want[i], 2e-6f * (1 + std::fabs(want[i]))) << i;
        others += std::fabs(got[i] - without[i]) > 0.01f;
      }
    }
    EXPECT_TRUE(std::isnan(want[7]) && std::isnan(want[20]));
    EXPECT_GT(others, want.size());
  }
}

// Gates apart from what they gate, and logits with a cap.
TEST(CudaRows, GatesApartAndSoftCap) {
  constexpr int64_t kRows = 3, kCols = 301;
  Floats x = random_floats(kRows * 2 * kCols, 5, 4.0f), up = random_floats(kRows * kCols, 6, 4.0f), want(kRows * kCols);
  const Tensor gates = columns(view(x, kRows, 2 * kCols), 0, kCols);
  const auto gated = [&](Floats& out) { return GatedActivate{gates, Activation::gelu_tanh, view(out, kRows, kCols), 0, view(up, kRows, kCols)}; };
  run_reference(gated(want));
  each_order([&] {
    Floats got(want.size());
    run_cuda(gated(got));
    expect_near(got, want, 4e-6f);
  });
  Floats logits = random_floats(kRows * kCols, 8, 20.0f);
  logits[0] = 1e30f, logits[1] = -1e30f, logits[2] = 0;
  run_reference(SoftCap{view(logits, kRows, kCols), 4.0f, view(want, kRows, kCols)});
  Floats got = logits;
  run_cuda(SoftCap{view(got, kRows, kCols), 4.0f, view(got, kRows, kCols)});
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6f) << logits[i];
  EXPECT_TRUE(got[0] == 4.0f && got[1] == -4.0f);
}

TEST(CudaRows, AddRoundsTheProductByItself) {
  Floats a = random_floats(3 * 300, 5), b = random_floats(3 * 300, 6);
  int fused_otherwise = 0;
  for (const float scale : {1.0f, 0.22f, -1.7f}) {
    Floats got = a;
    run_cuda(Add{view(got, 3, 300), view(b, 3, 300), view(got, 3, 300), scale});  // in place
    Floats shrunk(a.size());
    run_cuda(Add{view(a, 3, 300), view(b, 3, 300), view(shrunk, 3, 300), scale, 0.7f});
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(shrunk[i], got[i] * 0.7f) << i;
      const volatile float product = b[i] * scale;
      ASSERT_EQ(got[i], a[i] + product) << i << " times " << scale;
      fused_otherwise += got[i] != std::fma(b[i], scale, a[i]);
    }
  }
  EXPECT_GT(fused_otherwise, 100);  // what is asked of it is seen
}

TEST(CudaRows, PairsOfFrequencyZeroAreNotRotated) {
  const Ints positions = {0, 1, 77, 131071};
  Floats inv_freq(40), got(4 * 80), want(4 * 80);
  for (size_t i = 0; i < 40; i += 1 + i % 3) inv_freq[i] = std::pow(10000.0f, -static_cast<float>(i) / 40);
  run_cuda(RopeAngles{positions.data(), view(inv_freq, 1, 40), 1.3f, view(got, 4, 80)});
  run_reference(RopeAngles{positions.data(), view(inv_freq, 1, 40), 1.3f, view(want, 4, 80)});
  expect_near(got, want, 1e-7f);
  for (size_t r = 0; r < 4; ++r)
    for (size_t i = 0; i < 40; ++i)
      if (inv_freq[i] == 0) {
        EXPECT_EQ(got[r * 80 + i], 1.0f);
        EXPECT_EQ(got[r * 80 + 40 + i], 0.0f);
      }
  EXPECT_EQ(got[0], 1.3f) << "others have the scale";
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
