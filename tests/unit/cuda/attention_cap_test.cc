// Attention whose scores are capped, on the emulated device: the reference's values, whatever the cache's elements and the width of heads,
// and the bits of a row in whole, in spans and whatever its company.
#include "unit/cuda/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {

constexpr float kScoreCap = 1.3f;  // of scores of some units

Floats capped_reference(const Cache& c, const Rows& rows, Floats& q) {
  const auto n = static_cast<int64_t>(rows.seq.size()), width = int64_t{c.shape.heads} * c.shape.dim;
  Floats out(static_cast<size_t>(n * width));
  run_reference(Attention{view(q, n, width), c.shape.heads, c.kv, 0, rows.view(), 0.2f, view(out, n, width), {}, {}, kScoreCap});
  return out;
}

TEST(CudaCap, IsTheReferenceAndARowsOwn) {
  for (const Shape& s : {Shape{8, 2, 64}, Shape{3, 1, 10}, Shape{2, 1, 256, DType::bf16}, Shape{2, 2, 320}, Shape{4, 2, 32, DType::int8},
                         Shape{8, 2, 128, DType::bf16}, Shape{20, 1, 32, DType::bf16}}) {
    Cache c(s, 9, 1);
    Rows rows;
    ragged(c, &rows);
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3, 2.0f);
    for (const int32_t window : {0, 7, 50}) {
      SCOPED_TRACE(testing::Message() << s.heads << "/" << s.kv_heads << " x " << s.dim << ", window " << window);
      rows.window = window;
      const Floats all = attend(c, rows, q, 0, true, nullptr, kScoreCap);
      expect_near(all, capped_reference(c, rows, q), 3e-5f);
      EXPECT_TRUE(same_bits(attend(c, rows, q, 1, true, nullptr, kScoreCap), all)) << "in two ops";
      for (size_t r = static_cast<size_t>(window) % 3; r < rows.seq.size(); r += 4) expect_own_bits(c, rows, r, q, all, nullptr, kScoreCap);
      if (window == 7) each_order([&] { EXPECT_TRUE(same_bits(attend(c, rows, q, 0, true, nullptr, kScoreCap), all)); });
    }
  }
}

TEST(CudaCap, ChunksAndSpansMergeTheSameWay) {
  for (const Shape& s : {Shape{3, 1, 8}, Shape{2, 1, 32, DType::bf16}}) {
    constexpr int32_t kContext = 4 * kSpanSlots + 700, kPages = (kContext + 31) / 32;
    Cache c(s, kPages + 1, 1);
    Rows rows = anywhere(c, kPages);
    for (const int32_t n : {127, 1025, kContext}) rows.add(0, n, {});
    rows.add(0, 2047, {kPages * 32 + 3, kPages * 32 + 1});
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3, 2.0f);
    const Floats whole = attend(c, rows, q, 0, true, nullptr, kScoreCap);
    expect_near(whole, capped_reference(c, rows, q), 3e-5f);
    for (const int64_t spans : {5, 8}) EXPECT_TRUE(same_bits(attend(c, rows, q, spans, true, nullptr, kScoreCap), whole)) << spans;
    for (const size_t r : {1u, 2u, 3u}) expect_own_bits(c, rows, r, q, whole, nullptr, kScoreCap);
  }
}

TEST(CudaCap, WhatIsNoNumberStaysThat) {
  for (const Shape& s : {Shape{4, 2, 32}, Shape{4, 2, 32, DType::bf16}}) {
    Cache c(s, 2, 1);
    Rows rows = anywhere(c, 2);
    for (const int32_t length : {39, 40, 60}) rows.add(0, length, {});
    spoil(c, rows.pages[1] * 32 + 39 % 32);
    Floats q = random_floats(3 * 128, 3);
    const Floats got = attend(c, rows, q, 0, true, nullptr, kScoreCap);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), i >= 128) << "row " << i / 128;
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
