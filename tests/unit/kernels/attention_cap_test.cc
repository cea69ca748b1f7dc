// Attention whose scores are capped: cap * tanh(score / cap) before the softmax.
#include <cmath>
#include <limits>

#include "unit/kernels/attention_long.h"

namespace aerie::kernels::attention_test {
namespace {

constexpr auto kCappedOnCpu = [](const auto& op) { run_cpu(op, 8); };
constexpr auto kCappedOnReference = [](const auto& op) { run_reference(op); };

// Scores here are some units, and the cap is about one.
template <class RunOp>
Floats attend_capped(const Cache& c, const Rows& rows, Floats& q, float cap, int64_t spans, const RunOp& run) {
  const auto n = static_cast<int64_t>(rows.seq.size());
  const int64_t width = int64_t{c.shape.heads} * c.shape.dim, cols = c.shape.heads * (c.shape.dim + 2);
  Floats out(static_cast<size_t>(n * width)), partial(static_cast<size_t>(n * spans * cols), std::nanf(""));
  const Tensor p = spans ? view(partial, n * spans, cols) : Tensor{}, o = view(out, n, width);
  run(Attention{view(q, n, width), c.shape.heads, c.kv, 0, rows.view(), 0.2f, o, p, {}, cap});
  if (spans) run(AttentionMerge{p, c.shape.heads, rows.view(), o});
  return out;
}

// Contexts of several spans.
TEST(AttentionCap, MatchesTheReferenceWholeAndInSpansOnEveryIsa) {
  for (const Shape& s : kLong) {
    LongCache c(s);
    ragged(c);
    const auto width = static_cast<size_t>(s.heads * s.dim);
    Floats q = random_floats(c.rows.seq.size() * width, 3, 2.0f);
    for (const int32_t window : {0, 150, kSpanSlots + 40}) {
      SCOPED_TRACE("dim " + std::to_string(s.dim) + ", window " + std::to_string(window));
      c.rows.window = window;
      const Floats want = attend_capped(c, c.rows, q, 1.3f, 0, kCappedOnReference);
      expect_near(attend_capped(c, c.rows, q, 1.3f, 4, kCappedOnReference), want, 1e-6f);
      Floats on_fused;
      each_isa([&](const Isa& isa) {
        const Floats got = attend_capped(c, c.rows, q, 1.3f, 0, kCappedOnCpu);
        expect_near(got, want, 2e-5f);
        EXPECT_TRUE(same_bits(attend_capped(c, c.rows, q, 1.3f, 4, kCappedOnCpu), got));
        EXPECT_TRUE(same_bits(attend_capped(c, c.rows, q, 1.3f, 0, [](const auto& op) { run_cpu(op, 1); }), got));
        for (size_t r = 0; r < c.rows.seq.size(); r += 3) {
          Floats own(q.begin() + static_cast<std::ptrdiff_t>(r * width), q.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
          EXPECT_TRUE(same_bits(attend_capped(c, c.rows.only(r), own, 1.3f, 0, kCappedOnCpu).data(), got.data() + r * width, width * 4)) << r;
        }
        if (!fused(isa)) return;
        if (on_fused.empty()) on_fused = got;
        EXPECT_TRUE(same_bits(got, on_fused));
      });
    }
  }
}

// Against the formula in double: two positions, of which one's score is far above the cap.
TEST(AttentionCap, IsTheHyperbolicTangentOfEachScore) {
  const Shape s{2, 1, 8};
  Cache c(s, 1, 1);
  for (const int32_t slot : {0, 1}) c.store(0, slot, static_cast<uint32_t>(5 + slot));
  Rows rows;
  rows.stride = 1;
  rows.pages = {0};
  rows.add(0, 2, {});
  Floats q = random_floats(16, 6, 6.0f);
  const auto line = [&](int64_t which, int64_t slot) { return static_cast<const float*>(c.kv.data) + kv_row(c.kv, 0, which, 0, slot) * s.dim; };
  for (const float cap : {0.5f, 3.0f, 50.0f})
    each_isa([&] {
      const Floats got = attend_capped(c, rows, q, cap, 0, kCappedOnCpu);
      for (size_t h = 0; h < 2; ++h) {
        double weight[2];
        for (const int64_t slot : {0, 1}) {
          double score = 0;
          for (size_t i = 0; i < 8; ++i) score += 0.2 * static_cast<double>(q[h * 8 + i]) * static_cast<double>(line(0, slot)[i]);
          const double most = static_cast<double>(cap);
          weight[slot] = std::exp(most * std::tanh(score / most));
        }
        for (size_t i = 0; i < 8; ++i) {
          const double value = weight[0] * static_cast<double>(line(1, 0)[i]) + weight[1] * static_cast<double>(line(1, 1)[i]);
          EXPECT_NEAR(got[h * 8 + i], value / (weight[0] + weight[1]), 2e-5) << "cap " << cap << ", " << h << "," << i;
        }
      }
    });
}

// What has overflowed is not hidden by a cap, and what a row does not look at is not seen through it.
TEST(AttentionCap, WhatIsNotFiniteStaysThat) {
  const Shape s{2, 1, 8};
  Cache c(s, 1, 1);
  for (int32_t slot = 0; slot < 5; ++slot) c.store(0, slot, static_cast<uint32_t>(slot));
  Rows rows;
  rows.stride = 1;
  rows.pages = {0};
  rows.add(0, 3, {});
  rows.add(0, 5, {});
  auto* key = static_cast<float*>(c.kv.data) + kv_row(c.kv, 0, 0, 0, 3) * s.dim;
  Floats q = random_floats(2 * 16, 3);
  for (const float odd : {3e38f, -3e38f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (size_t i = 0; i < 8; ++i) key[i] = q[16 + i] > 0 ? odd : -odd;  // of the second row's first head
    each_isa([&] {
      const Floats got = attend_capped(c, rows, q, 2.0f, 0, kCappedOnCpu);
      for (size_t i = 0; i < 24; ++i) ASSERT_EQ(std::isnan(got[i]), i >= 16) << odd << ", " << i;
    });
  }
}

}  // namespace
}  // namespace aerie::kernels::attention_test
