#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "unit/kernels/ops_support.h"

namespace aerie::kernels::rows_test {
using namespace aerie::kernels::test;

constexpr int64_t kWidths[] = {1, 5, 16, 33, 64, 100, 257, 1024};

TEST(Rows, UploadAndDownloadMoveBytes) {
  const Floats host = random_floats(1000, 1);
  Floats device(1000), back(1000);
  run_cpu(Upload{device.data(), host.data(), 4000});
  run_cpu(Download{back.data(), device.data(), 4000});
  EXPECT_TRUE(same_bits(host, back));
  EXPECT_EQ(cpu::tasks(Upload{nullptr, nullptr, 0}, 4), 0);
}

TEST(Rows, CopyRowsFollowsBothIndexes) {
  Floats src = random_floats(6 * 7, 2);
  Ints from = {5, -1, 0, 6}, to = {1, 0, -1, 3};
  for (int variant = 0; variant < 4; ++variant) {
    Floats got(6 * 9, -1.0f), want = got;  // wider rows: the rest of a row stays
    CopyRows op{view(src, 6, 7), variant & 1 ? from.data() : nullptr, view(got, 6, 9),
                variant & 2 ? to.data() : nullptr, 4};
    run_cpu(op);
    op.dst = view(want, 6, 9);
    run_reference(op);
    EXPECT_TRUE(same_bits(got, want)) << variant;
  }
}

TEST(Rows, CopyRowsLeavesAloneWhatAnIndexOutsideNames) {
  Floats src = random_floats(4 * 8, 2), got(5 * 8, -1.0f), want = got;
  std::copy_n(&src[8], 8, &want[16]);
  Ints from = {1, 4, 0, 2000000000, -7}, to = {2, 0, 4, 1, 3};
  // The views are of 4 rows each; there is a fifth behind got's.
  run_cpu(CopyRows{view(src, 4, 8), from.data(), view(got, 4, 8), to.data(), 5});
  EXPECT_TRUE(same_bits(got, want));
}

TEST(Rows, EmbedReadsEveryTypeAndLayout) {
  constexpr int64_t v = 37, h = 70;
  const Floats table = random_floats(v * h, 3);
  Ints ids = {36, 0, 17, 17, 15, 16};
  const auto n = static_cast<int64_t>(ids.size());
  const auto check = [&](const Tensor& t, float error) {
    Floats got(static_cast<size_t>(n * h)), want = got;
    run_cpu(Embed{t, ids.data(), view(got, n, h)});
    run_reference(Embed{t, ids.data(), view(want, n, h)});
    EXPECT_TRUE(same_bits(got, want));
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < h; ++c)
        ASSERT_NEAR(got[static_cast<size_t>(r * h + c)],
                    table[static_cast<size_t>(ids[static_cast<size_t>(r)] * h + c)], error);
    Floats scaled = got;
    run_cpu(Embed{t, ids.data(), view(scaled, n, h), 33.9f});
    run_reference(Embed{t, ids.data(), view(want, n, h), 33.9f});
    EXPECT_TRUE(same_bits(scaled, want));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(scaled[i], got[i] * 33.9f);
  };
  Floats plain = table;
  check(view(plain, v, h), 0);
  std::vector<uint16_t> half(table.size());
  for (size_t i = 0; i < half.size(); ++i) half[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(table[i]) >> 16);
  check(matrix(half.data(), v, h, DType::bf16), 0.04f);
  for (const DType t : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    SCOPED_TRACE(static_cast<int>(t));
    std::vector<char> data(static_cast<size_t>(data_bytes(t, Layout::panel16, v, h)));
    std::vector<char> scales(static_cast<size_t>(scale_bytes(t, v, h)));
    pack_panel16(table.data(), v, h, t, data.data(), scales.data());
    check(Tensor{data.data(), scales.data(), v, h, 0, t, Layout::panel16}, t == DType::mxfp4 ? 0.9f
                                                                           : is_nibbles(t)   ? 0.5f
                                                                           : t == DType::fp8 ? 0.3f
                                                                           : t == DType::f32 ? 0
                                                                                             : 0.04f);
  }
}

TEST(Rows, EmbedOfATokenOutsideTheTableIsZeros) {
  Floats table = random_floats(4 * 8, 4), out(3 * 8, 9.0f);
  Ints ids = {-1, 4, 2};
  run_cpu(Embed{view(table, 4, 8), ids.data(), view(out, 3, 8)});
  for (int i = 0; i < 16; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 0.0f);
  EXPECT_EQ(out[16], table[16]);
}

TEST(Rows, RmsNormMatchesTheReference) {
  for (const int64_t n : kWidths) {
    Floats x = random_floats(static_cast<size_t>(5 * n), 5, 3.0f), w = random_floats(static_cast<size_t>(n), 6),
           want(x.size());
    run_reference(RmsNorm{view(x, 5, n), view(w, 1, n), 1e-5f, view(want, 5, n)});
    Floats on_fused;
    each_isa([&](const Isa& isa) {
      Floats got(x.size());
      const RmsNorm op{view(x, 5, n), view(w, 1, n), 1e-5f, view(got, 5, n)};
      run_cpu(op);
      expect_near(got, want, 3e-6f);
      if (fused(isa)) {
        if (on_fused.empty()) on_fused = got;
        EXPECT_TRUE(same_bits(got, on_fused));
      }
      Floats again = x;  // in place, other tasks, one row alone: the same bits
      run_cpu(RmsNorm{view(again, 5, n), view(w, 1, n), 1e-5f, view(again, 5, n)}, 16);
      EXPECT_TRUE(same_bits(got, again));
      Floats alone(static_cast<size_t>(n));
      run_cpu(RmsNorm{rows(view(x, 5, n), 3, 1), view(w, 1, n), 1e-5f, view(alone, 1, n)});
      EXPECT_TRUE(same_bits(alone.data(), got.data() + 3 * n, static_cast<size_t>(n) * 4));
    });
  }
}

// So q and k of Qwen3: heads side by side in wider rows, in place, each as if it were alone.
TEST(Rows, RmsNormOfHeads) {
  constexpr int64_t kRows = 5, kHeads = 3, kDim = 20, kWide = 90;
  Floats x = random_floats(kRows * kWide, 7, 3.0f), w = random_floats(kDim, 8);
  const auto heads = [&](Floats& all) { return columns(view(all, kRows, kWide), 10, kHeads * kDim); };
  Floats want = x;
  run_reference(RmsNorm{heads(want), view(w, 1, kDim), 1e-5f, heads(want), kHeads});
  each_isa([&](const Isa&) {
    Floats got = x;
    run_cpu(RmsNorm{heads(got), view(w, 1, kDim), 1e-5f, heads(got), kHeads});
    expect_near(got, want, 3e-6f);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const auto at = static_cast<size_t>(r * kWide + 10 + h * kDim);
        Floats alone(x.begin() + static_cast<std::ptrdiff_t>(at), x.begin() + static_cast<std::ptrdiff_t>(at) + kDim);
        run_cpu(RmsNorm{view(alone, 1, kDim), view(w, 1, kDim), 1e-5f, view(alone, 1, kDim)});
        EXPECT_TRUE(same_bits(alone.data(), got.data() + at, kDim * 4));
      }
      const auto row = static_cast<size_t>(r * kWide);
      EXPECT_TRUE(same_bits(got.data() + row, x.data() + row, 10 * 4));  // what is beside them stays
      EXPECT_TRUE(same_bits(got.data() + row + 70, x.data() + row + 70, 20 * 4));
    }
  });
}

TEST(Rows, ActivationsMatchTheReferenceWithEqualBitsOnEveryIsa) {
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
    for (const int64_t n : kWidths) {
      Floats x = random_floats(static_cast<size_t>(3 * 2 * n), 7, 4.0f), first_plain, first_gated;
      if (n >= 5) {  // far out on both sides
        x[0] = 60.0f, x[1] = -60.0f, x[2] = 1e4f, x[3] = -1e4f, x[4] = 0.0f;
      }
      Floats want(x.size()), want_gated(static_cast<size_t>(3 * n));
      run_reference(Activate{view(x, 3, 2 * n), kind, view(want, 3, 2 * n)});
      run_reference(GatedActivate{view(x, 3, 2 * n), kind, view(want_gated, 3, n)});
      each_isa([&] {
        Floats got(x.size()), gated(want_gated.size());
        run_cpu(Activate{view(x, 3, 2 * n), kind, view(got, 3, 2 * n)});
        run_cpu(GatedActivate{view(x, 3, 2 * n), kind, view(gated, 3, n)}, 9);
        expect_near(got, want, 2e-6f);
        expect_near(gated, want_gated, 4e-6f);
        if (first_plain.empty()) first_plain = got, first_gated = gated;
        EXPECT_TRUE(same_bits(got, first_plain));
        EXPECT_TRUE(same_bits(gated, first_gated));
        Floats in_place = x;
        run_cpu(Activate{view(in_place, 3, 2 * n), kind, view(in_place, 3, 2 * n)});
        EXPECT_TRUE(same_bits(in_place, got));
      });
    }
  }
}

// gpt-oss's: the gate has a largest value, what it is multiplied by a smallest, too.
TEST(Rows, GatesWithALimitMatchTheReferenceWithEqualBitsOnEveryIsa) {
  for (const float limit : {7.0f, 0.5f})
    for (const int64_t n : kWidths) {
      SCOPED_TRACE(testing::Message() << "limit " << limit << ", " << n << " wide");
      constexpr int64_t kRows = 3;
      Floats x = random_floats(static_cast<size_t>(kRows * 2 * n), 7, 4.0f), first;
      constexpr float kOdd[] = {7.0f, 7.000001f, 60.0f, -60.0f, 1e4f, -1e4f, 1e30f, -1e30f, -7.0f, -7.000001f, 0.0f, 0.5f, -0.5f};
      for (size_t i = 0; n >= 33 && i < std::size(kOdd); ++i) x[i] = kOdd[i], x[static_cast<size_t>(n) + 2 * i] = kOdd[i];
      Floats want(static_cast<size_t>(kRows * n)), clamped = x;
      run_reference(GatedActivate{view(x, kRows, 2 * n), Activation::silu, view(want, kRows, n), limit});
      for (size_t i = 0; i < x.size(); ++i) {
        const bool gate = static_cast<int64_t>(i) % (2 * n) < n;
        clamped[i] = std::min(gate ? x[i] : std::max(x[i], -limit), limit);
      }
      each_isa([&] {
        Floats got(want.size()), again(want.size()), inside(want.size());
        run_cpu(GatedActivate{view(x, kRows, 2 * n), Activation::silu, view(got, kRows, n), limit}, 9);
        expect_near(got, want, 4e-6f);
        if (first.empty()) first = got;
        EXPECT_TRUE(same_bits(got, first));
        run_cpu(GatedActivate{view(x, kRows, 2 * n), Activation::relu, view(again, kRows, n), limit}, 1);
        EXPECT_TRUE(same_bits(again, got)) << "whatever the kind";
        run_cpu(GatedActivate{view(clamped, kRows, 2 * n), Activation::silu, view(inside, kRows, n), limit});
        EXPECT_TRUE(same_bits(inside, got)) << "beyond the limits is as at them";
      });
    }
}

TEST(Rows, ANaNStaysVisibleBesideALimit) {
  constexpr int64_t n = 37;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  Floats x(2 * n, 1.0f);
  x[3] = x[n + 5] = x[36] = x[n + 35] = kNaN;  // gates and what they are multiplied by, in a whole vector and behind
  each_isa([&] {
    Floats got(n);
    run_cpu(GatedActivate{view(x, 1, 2 * n), Activation::silu, view(got, 1, n), 7.0f});
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(got[static_cast<size_t>(i)]), i == 3 || i == 5 || i == 35 || i == 36) << i;
  });
}

TEST(Rows, ANaNStaysVisible) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
    Floats x(40, 1.0f);
    x[3] = x[38] = nan;
    each_isa([&] {
      Floats got(40);
      run_cpu(Activate{view(x, 1, 40), kind, view(got, 1, 40)});
      EXPECT_TRUE(std::isnan(got[3]) && std::isnan(got[38])) << static_cast<int>(kind);
      EXPECT_FALSE(std::isnan(got[2]) || std::isnan(got[39]));
    });
  }
}

// What gates let through may lie elsewhere than behind them.
TEST(Rows, GatesApartFromWhatTheyGateGiveTheSameBits) {
  for (const int64_t n : kWidths) {
    Floats x = random_floats(static_cast<size_t>(3 * 2 * n), 7, 4.0f), up(static_cast<size_t>(3 * n)), together(up.size()), apart(up.size()), want(up.size());
    for (int64_t r = 0; r < 3; ++r) std::copy_n(x.begin() + (2 * r + 1) * n, n, up.begin() + r * n);
    const Tensor gates = columns(view(x, 3, 2 * n), 0, n);
    run_cpu(GatedActivate{view(x, 3, 2 * n), Activation::gelu_tanh, view(together, 3, n)});
    run_cpu(GatedActivate{gates, Activation::gelu_tanh, view(apart, 3, n), 0, view(up, 3, n)});
    EXPECT_TRUE(same_bits(apart, together)) << n;
    run_reference(GatedActivate{gates, Activation::gelu_tanh, view(want, 3, n), 0, view(up, 3, n)});
    expect_near(apart, want, 4e-6f);
    run_cpu(GatedActivate{gates, Activation::gelu_tanh, gates, 0, view(up, 3, n)});  // in place
    for (int64_t r = 0; r < 3; ++r) EXPECT_TRUE(same_bits(x.data() + 2 * r * n, together.data() + r * n, static_cast<size_t>(n) * 4));
  }
}

TEST(Rows, SoftCapMatchesTheReferenceWithEqualBitsOnEveryIsa) {
  for (const float cap : {30.0f, 4.0f})
    for (const int64_t n : {int64_t{5}, int64_t{300}, int64_t{40001}}) {
      SCOPED_TRACE(testing::Message() << "cap " << cap << ", " << n << " wide");
      Floats x = random_floats(static_cast<size_t>(3 * n), 7, 20.0f), want(x.size()), first;
      x[0] = 1e30f, x[1] = -1e30f, x[2] = 0, x[3] = -1e-30f, x[4] = -200.0f;
      run_reference(SoftCap{view(x, 3, n), cap, view(want, 3, n)});
      each_isa([&] {
        Floats got = x;
        run_cpu(SoftCap{view(got, 3, n), cap, view(got, 3, n)}, 3);  // in place
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 4e-7f * cap) << x[i];
        EXPECT_EQ(got[0], cap);
        EXPECT_EQ(got[1], -cap);
        if (first.empty()) first = got;
        EXPECT_TRUE(same_bits(got, first));
        const float inf = std::numeric_limits<float>::infinity();
        Floats odd = {std::nanf(""), inf, -inf, 1};  // whoever samples sees it
        run_cpu(SoftCap{view(odd, 1, 4), cap, view(odd, 1, 4)});
        EXPECT_TRUE(std::isnan(odd[0]) && std::isnan(odd[1]) && std::isnan(odd[2]) && !std::isnan(odd[3]));
      });
    }
}

TEST(Rows, AddTakesStridedRowsAndRunsInPlace) {
  Floats a = random_floats(4 * 50, 8), b = random_floats(4 * 30, 9), want(4 * 30);
  const Tensor wide = columns(view(a, 4, 50), 20, 30);
  const Floats before = a;
  for (const float scale : {1.0f, 0.22f}) {
    a = before;
    run_reference(Add{wide, view(b, 4, 30), view(want, 4, 30), scale});
    run_cpu(Add{wide, view(b, 4, 30), wide, scale});
    for (size_t r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(a.data() + r * 50 + 20, want.data() + r * 30, 30 * 4));
    EXPECT_EQ(want[31], before[50 + 21] + b[31] * scale);
    a = before;
    run_cpu(Add{wide, view(b, 4, 30), wide, scale, 0.7f});
    for (size_t r = 0; r < 4; ++r)
      for (size_t c = 0; c < 30; ++c) EXPECT_EQ(a[r * 50 + 20 + c], want[r * 30 + c] * 0.7f);
  }
}

}  // namespace aerie::kernels::rows_test
