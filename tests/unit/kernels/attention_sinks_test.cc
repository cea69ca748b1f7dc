// Attention with sinks: a score more in each head's softmax, without a value.
#include <algorithm>
#include <cmath>
#include <limits>

#include "unit/kernels/attention_long.h"

namespace aerie::kernels::attention_test {
namespace {

// Contexts of several spans; scores here are some units at most.
struct Sinks {
  LongCache cache;
  Floats q, sinks;
  int64_t rows, width;

  explicit Sinks(const Shape& s, int32_t window = 0) : cache(s), sinks(static_cast<size_t>(s.heads)) {
    ragged(cache);
    cache.rows.window = window;
    rows = static_cast<int64_t>(cache.rows.seq.size()), width = int64_t{s.heads} * s.dim;
    q = random_floats(static_cast<size_t>(rows * width), 3, 2.0f);
    for (size_t h = 0; h < sinks.size(); ++h) sinks[h] = 3.0f * static_cast<float>(h) - 2.5f;  // other ones for each head
  }
  void all(float sink) { std::fill(sinks.begin(), sinks.end(), sink); }

  template <class RunOp>
  Floats whole(const RunOp& run) {
    Floats out(static_cast<size_t>(rows * width));
    run(Attention{view(q, rows, width), heads(), cache.kv, 0, cache.rows.view(), 0.2f, view(out, rows, width), {}, of_heads()});
    return out;
  }
  template <class RunOp>
  Floats split(const RunOp& run) {
    constexpr int64_t kSpans = 4;
    const int64_t cols = heads() * (cache.shape.dim + 2);
    Floats out(static_cast<size_t>(rows * width)), partial(static_cast<size_t>(rows * kSpans * cols), std::nanf(""));
    const Tensor p = view(partial, rows * kSpans, cols), o = view(out, rows, width);
    run(Attention{view(q, rows, width), heads(), cache.kv, 0, cache.rows.view(), 0.2f, o, p, of_heads()});
    run(AttentionMerge{p, heads(), cache.rows.view(), o, of_heads()});
    return out;
  }
  int32_t heads() const { return cache.shape.heads; }
  Tensor of_heads() { return sinks.empty() ? Tensor{} : view(sinks, 1, heads()); }
};

constexpr auto kOnCpu = [](const auto& op) { run_cpu(op, 8); };
constexpr auto kOnReference = [](const auto& op) { run_reference(op); };

TEST(AttentionSinks, MatchTheReferenceWholeAndInSpansOnEveryIsa) {
  for (const Shape& s : kLong)
    for (const int32_t window : {0, 1, 150, kSpanSlots + 40}) {
      SCOPED_TRACE("dim " + std::to_string(s.dim) + ", window " + std::to_string(window));
      Sinks t(s, window);
      const Floats want = t.whole(kOnReference);
      expect_near(t.split(kOnReference), want, 1e-6f);
      Floats on_fused;
      each_isa([&](const Isa& isa) {
        const Floats got = t.whole(kOnCpu);
        expect_near(got, want, 2e-5f);
        EXPECT_TRUE(same_bits(t.split(kOnCpu), got));
        EXPECT_TRUE(same_bits(t.whole([](const auto& op) { run_cpu(op, 1); }), got));
        if (!fused(isa)) return;
        if (on_fused.empty()) on_fused = got;
        EXPECT_TRUE(same_bits(got, on_fused));
      });
      Floats without = t.sinks;
      without.swap(t.sinks), t.sinks.clear();
      EXPECT_FALSE(same_bits(t.whole(kOnCpu), on_fused)) << "the sinks did nothing";
    }
}

TEST(AttentionSinks, FarBelowTheScoresTheyChangeNothing) {
  for (const Shape& s : kLong) {
    Sinks t(s);
    each_isa([&] {
      t.sinks.clear();
      const Floats want = t.whole(kOnCpu);
      EXPECT_TRUE(same_bits(want, attend(t.cache, t.cache.rows, t.q, 0)));
      t.sinks.resize(static_cast<size_t>(t.heads()));
      for (const float sink : {-300.0f, -1e30f, -std::numeric_limits<float>::infinity()}) {
        t.all(sink);
        EXPECT_TRUE(same_bits(t.whole(kOnCpu), want)) << sink;
        EXPECT_TRUE(same_bits(t.split(kOnCpu), want)) << sink;
      }
    });
  }
}

TEST(AttentionSinks, FarAboveTheScoresTheyLeaveNothing) {
  for (const Shape& s : kLong) {
    Sinks t(s);
    for (const float sink : {40.0f, 300.0f, 1e30f}) {
      t.all(sink);
      const Floats want = t.whole(kOnReference);
      each_isa([&] {
        const Floats got = t.whole(kOnCpu);
        for (size_t i = 0; i < got.size(); ++i) {
          if (sink > 40) {
            ASSERT_EQ(got[i], 0.0f) << sink << " " << i;
          } else {  // as near as its head's numbers are large
            const auto dim = static_cast<size_t>(s.dim), head = i / dim * dim;
            float most = 0;
            for (size_t j = head; j < head + dim; ++j) most = std::max(most, std::fabs(want[j]));
            ASSERT_NEAR(got[i], want[i], 2e-5f * most) << sink << " " << i;
          }
        }
        EXPECT_TRUE(same_bits(t.split(kOnCpu), got)) << sink;
      });
    }
  }
}

// One position: its value times a logistic of the difference, whatever else is in the batch.
TEST(AttentionSinks, ARowOfOnePositionSharesItWithItsHeadsSink) {
  const Shape s{2, 1, 8};
  Cache c(s, 1, 1);
  c.store(0, 0, 5);
  Rows rows;
  rows.stride = 1;
  rows.pages = {0};
  rows.add(0, 1, {});
  rows.add(0, 0, {});  // which looks at nothing
  Floats q = random_floats(2 * 16, 6), sinks = {0.3f, -1.2f};
  const float* key = static_cast<const float*>(c.kv.data) + kv_row(c.kv, 0, 0, 0, 0) * s.dim;
  const float* value = static_cast<const float*>(c.kv.data) + kv_row(c.kv, 0, 1, 0, 0) * s.dim;
  each_isa([&] {
    Floats out(2 * 16, 7.0f);
    run_cpu(Attention{view(q, 2, 16), 2, c.kv, 0, rows.view(), 0.5f, view(out, 2, 16), {}, view(sinks, 1, 2)});
    for (size_t h = 0; h < 2; ++h) {
      double score = 0;
      for (size_t i = 0; i < 8; ++i) score += 0.5 * static_cast<double>(q[h * 8 + i]) * static_cast<double>(key[i]);
      const double share = 1 / (1 + std::exp(static_cast<double>(sinks[h]) - score));
      for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(out[h * 8 + i], share * static_cast<double>(value[i]), 1e-6) << h << "," << i;
    }
    for (size_t i = 16; i < 32; ++i) EXPECT_EQ(out[i], 0.0f);
  });
}

}  // namespace
}  // namespace aerie::kernels::attention_test
