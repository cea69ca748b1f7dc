// Attention with sinks on the emulated device: the reference's values, and the bits of a row in whole, in spans and whatever its
// company; and what a sink is where it is all or nothing.
#include "unit/cuda/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {

const Shape kSinkShapes[] = {{8, 2, 64}, {3, 1, 10}, {2, 1, 256}, {4, 2, 32, DType::int8}, {3, 1, 12, DType::bf16},
                             {8, 2, 128, DType::bf16}, {5, 1, 32, DType::bf16}, {20, 1, 32, DType::bf16}};

// Beside the scores, above and below them, and so far away that one of the two is nothing.
Floats some_sinks(int32_t heads) {
  constexpr float kSome[] = {0.3f, -2.0f, 4.0f, 25.0f, -30.0f, 300.0f, -300.0f};
  Floats sinks;
  for (int32_t h = 0; h < heads; ++h) sinks.push_back(kSome[(h * 3 + 2) % 7]);
  return sinks;
}

Floats sunk(const Cache& c, const Rows& rows, Floats& q, const Floats& sinks, int64_t spans = 0) { return attend(c, rows, q, spans, true, &sinks); }

Floats sunk_reference(const Cache& c, const Rows& rows, Floats& q, Floats sinks) {
  const auto n = static_cast<int64_t>(rows.seq.size()), width = int64_t{c.shape.heads} * c.shape.dim;
  Floats out(static_cast<size_t>(n * width));
  run_reference(Attention{view(q, n, width), c.shape.heads, c.kv, 0, rows.view(), 0.2f, view(out, n, width), {}, view(sinks, 1, c.shape.heads)});
  return out;
}

struct Ragged : Cache {
  Rows rows;
  Floats q;
  explicit Ragged(const Shape& s) : Cache(s, 9, 1) {
    ragged(*this, &rows);
    q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3, 2.0f);
  }
};

TEST(CudaSinks, AreTheReferencesAndARowsOwn) {
  for (const Shape& s : kSinkShapes) {
    Ragged c(s);
    const Floats sinks = some_sinks(s.heads);
    for (const int32_t window : {0, 7, 50}) {
      SCOPED_TRACE(testing::Message() << s.heads << "/" << s.kv_heads << " x " << s.dim << ", window " << window);
      c.rows.window = window;
      const Floats all = sunk(c, c.rows, c.q, sinks);
      expect_near(all, sunk_reference(c, c.rows, c.q, sinks), s.dtype == DType::bf16 && s.dim % 32 == 0 && window == 0 ? 1e-4f : 2e-5f);
      EXPECT_TRUE(same_bits(sunk(c, c.rows, c.q, sinks, 1), all)) << "in two ops";
      for (size_t r = static_cast<size_t>(window) % 3; r < c.rows.seq.size(); r += 4) expect_own_bits(c, c.rows, r, c.q, all, &sinks);
      if (window == 7) each_order([&] { EXPECT_TRUE(same_bits(sunk(c, c.rows, c.q, sinks), all)); });
    }
  }
}

TEST(CudaSinks, FarBelowAllScoresTheyChangeNoBitAndFarAboveTheyLeaveNothing) {
  for (const Shape& s : {kSinkShapes[0], kSinkShapes[3], kSinkShapes[6]}) {
    Ragged c(s);
    const auto heads = static_cast<size_t>(s.heads);
    const Floats without = attend(c, c.rows, c.q);
    for (const int64_t spans : {0, 1}) {
      EXPECT_TRUE(same_bits(sunk(c, c.rows, c.q, Floats(heads, -1000.0f), spans), without));
      EXPECT_EQ(sunk(c, c.rows, c.q, Floats(heads, 1000.0f), spans), Floats(without.size(), 0.0f));
      EXPECT_FALSE(same_bits(sunk(c, c.rows, c.q, Floats(heads, 0.0f), spans), without));
    }
  }
}

// Over chunks and spans, with and without a window. A row that sees nothing is zeros.
TEST(CudaSinks, ChunksAndSpansMergeTheSameWay) {
  for (const Shape& s : {Shape{3, 1, 8}, Shape{2, 1, 32, DType::bf16}, Shape{2, 2, 16, DType::int8}}) {
    constexpr int32_t kContext = 4 * kSpanSlots + 700, kPages = (kContext + 31) / 32;
    Cache c(s, kPages + 1, 1);
    Rows rows = anywhere(c, kPages);
    for (const int32_t n : {0, 127, 1024, 1025, 2048, kContext}) rows.add(0, n, {});
    rows.add(0, 2047, {kPages * 32 + 3, kPages * 32 + 1});
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3), sinks = {2.5f, 7.0f, -1.0f};
    sinks.resize(static_cast<size_t>(s.heads));
    for (const int32_t window : {0, 1500}) {
      SCOPED_TRACE(testing::Message() << s.heads << "/" << s.kv_heads << " x " << s.dim << ", window " << window);
      rows.window = window;
      const Floats whole = sunk(c, rows, q, sinks);
      expect_near(whole, sunk_reference(c, rows, q, sinks), s.dtype == DType::bf16 && window == 0 ? 1e-4f : 3e-5f);
      EXPECT_TRUE(std::all_of(whole.begin(), whole.begin() + s.heads * s.dim, [](float v) { return v == 0; })) << "it sees nothing";
      for (const int64_t spans : {5, 8}) EXPECT_TRUE(same_bits(sunk(c, rows, q, sinks, spans), whole)) << spans;
      for (const size_t r : {1u, 5u, 6u}) expect_own_bits(c, rows, r, q, whole, &sinks);
    }
  }
}

// A sink that leaves nothing of a row hides nothing either.
TEST(CudaSinks, WhatIsNoNumberStaysThat) {
  for (const Shape& s : {Shape{4, 2, 32}, Shape{4, 2, 32, DType::bf16}}) {
    Cache c(s, 2, 1);
    Rows rows = anywhere(c, 2);
    for (const int32_t length : {39, 40, 60}) rows.add(0, length, {});
    spoil(c, rows.pages[1] * 32 + 39 % 32);
    Floats q = random_floats(3 * 128, 3);
    for (const float sink : {-1000.0f, 0.0f, 1000.0f})
      for (const int64_t spans : {0, 1}) {
        const Floats got = sunk(c, rows, q, Floats(4, sink), spans);
        for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), i >= 128) << "sink " << sink << ", row " << i / 128;
      }
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
