// Attention within a window on the emulated device: the reference's values; a row's bits are its own, and what lies before its
// window is as if it were not there.
#include "unit/cuda/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {

const Shape kWindowShapes[] = {{8, 2, 64}, {3, 1, 10}, {2, 1, 256}, {4, 2, 32, DType::int8}, {2, 1, 256, DType::int8}, {2, 1, 256, DType::bf16},
                               {8, 2, 128, DType::bf16}, {5, 1, 32, DType::bf16}, {3, 1, 12, DType::bf16}, {2, 1, 512, DType::bf16}};

std::string name_of(const Shape& s) {
  return std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " x " + std::to_string(s.dim) + ", dtype " +
         std::to_string(static_cast<int>(s.dtype));
}

Floats reference_of(const Cache& c, const Rows& rows, Floats& q) { return attention_test::attend_reference(c, rows, q, 0); }

TEST(CudaWindow, IsTheReferenceAndARowsOwn) {
  for (const Shape& s : kWindowShapes) {
    SCOPED_TRACE(name_of(s));
    Cache c(s, 9, 1);
    Rows rows;
    ragged(c, &rows);
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3, 2.0f);
    for (const int32_t window : {1, 7, 32, 50, 1000}) {
      SCOPED_TRACE(window);
      rows.window = window;
      const Floats all = attend(c, rows, q);
      expect_near(all, reference_of(c, rows, q), 2e-5f);
      EXPECT_TRUE(same_bits(attend(c, rows, q, int64_t{1}), all)) << "in two ops";
      for (size_t r = static_cast<size_t>(window) % 3; r < rows.seq.size(); r += 3) expect_own_bits(c, rows, r, q, all);
      if (window == 7) each_order([&] { EXPECT_TRUE(same_bits(attend(c, rows, q), all)); });
    }
  }
}

// No window, and one that reaches back to the beginning.
TEST(CudaWindow, OneLongerThanTheTextIsNone) {
  for (const Shape& s : {kWindowShapes[0], kWindowShapes[3], kWindowShapes[5]}) {  // tensor cores know of none
    Cache c(s, 9, 1);
    Rows rows;
    ragged(c, &rows);
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3, 2.0f);
    const Floats all = attend(c, rows, q);
    for (const int32_t window : {90, 91, 1 << 30}) {
      rows.window = window;
      EXPECT_TRUE(same_bits(attend(c, rows, q), all)) << window;
    }
  }
}

// Over chunks and spans, whose order of sums has an end in front as well.
TEST(CudaWindow, MayBeginInAnyChunkAndSpan) {
  for (const Shape& s : {Shape{2, 1, 8}, Shape{2, 1, 32, DType::bf16}, Shape{2, 2, 16, DType::int8}}) {
    SCOPED_TRACE(name_of(s));
    constexpr int32_t kContext = 6 * kSpanSlots + 700, kPages = (kContext + 31) / 32;
    Cache c(s, kPages + 1, 1);
    Rows rows = anywhere(c, kPages);
    for (const int32_t n : {0, 127, 129, 1024, 1025, 1281, 2048, 4097, 5000, kContext}) rows.add(0, n, {});
    rows.add(0, kContext, {kPages * 32 + 3, kPages * 32 + 1});
    rows.add(0, 2047, {kPages * 32 + 3, kPages * 32 + 1});
    Floats q = random_floats(rows.seq.size() * static_cast<size_t>(s.heads * s.dim), 3);
    for (const int32_t window : {20, 100, 1024, 1500, 3333}) {
      SCOPED_TRACE(window);
      rows.window = window;
      const Floats whole = attend(c, rows, q);
      expect_near(whole, reference_of(c, rows, q), 3e-5f);
      for (const int64_t spans : {7, 9}) EXPECT_TRUE(same_bits(attend(c, rows, q, spans), whole)) << spans;
      for (const size_t r : {4u, 9u, 10u, 11u}) expect_own_bits(c, rows, r, q, whole);
    }
  }
}

// Of the spans, those that a row looks at any of: nothing is written to others.
TEST(CudaWindow, OtherSpansAreLeftAlone) {
  const Shape s{2, 1, 8};
  constexpr int32_t kPages = 96, kSpans = 3, kCols = 2 * (8 + 2);
  Cache c(s, kPages, 1);
  Rows rows = anywhere(c, kPages);
  rows.window = 100;
  const Ints lengths = {50, 1024, 1124, 1125, 2000, 2100, 3072};
  for (const int32_t n : lengths) rows.add(0, n, {});
  const auto n = static_cast<int64_t>(lengths.size());
  Floats q = random_floats(static_cast<size_t>(n * 16), 3), out(q.size()), partial(static_cast<size_t>(n * kSpans * kCols), 7.5f);
  run_cuda(Attention{view(q, n, 16), 2, c.kv, 0, rows.view(), 0.2f, view(out, n, 16), view(partial, n * kSpans, kCols)});
  for (size_t r = 0; r < lengths.size(); ++r)
    for (int32_t span = 0; span < kSpans; ++span) {
      const bool seen = span * kSpanSlots < lengths[r] && (span + 1) * kSpanSlots > lengths[r] - rows.window;
      const float* of = &partial[(r * kSpans + static_cast<size_t>(span)) * kCols];
      for (int i = 0; i < kCols; ++i) ASSERT_EQ(of[i] == 7.5f, !seen) << lengths[r] << ", span " << span << ", at " << i;
    }
}

// Also where what lies in scratch slots is longer than the window.
TEST(CudaWindow, TreeRowsHaveTheBitsOfPlainDecode) {
  for (const Shape& s : {Shape{8, 2, 64}, Shape{4, 2, 32, DType::int8}, Shape{8, 2, 128, DType::bf16}, Shape{2, 1, 256, DType::bf16}}) {
    SCOPED_TRACE(name_of(s));
    const Twice c(s);
    for (const int32_t window : {1, 11, 32, 40})
      for (const int32_t length : {33, Twice::kContext}) c.expect_plain_bits(length, window);
  }
}

// Old slots have been given away: anything may be in them, and in the page table where whole pages are.
TEST(CudaWindow, WhatLiesBeforeItIsNotLookedAt) {
  for (const Shape& s : {Shape{4, 2, 32}, Shape{4, 2, 64, DType::bf16}, Shape{4, 2, 16, DType::int8}, Shape{3, 1, 6, DType::int8}}) {
    SCOPED_TRACE(name_of(s));
    constexpr int32_t kPages = 40, kWindow = 70, kFirst = 1150;
    const auto width = static_cast<size_t>(s.heads * s.dim);
    Cache c(s, kPages + 1, 1);
    Rows rows = anywhere(c, kPages);
    rows.window = kWindow;
    for (int32_t r = 0; r < 12; ++r) rows.add(0, kFirst + 3 * r, r % 4 == 3 ? Ints{kPages * 32 + r, kPages * 32} : Ints{});
    Floats q = random_floats(rows.seq.size() * width, 3);
    const Floats want = attend(c, rows, q);
    expect_near(want, reference_of(c, rows, q), 2e-5f);
    const int32_t from = kFirst - kWindow, old_pages = from / 32;
    for (int32_t p = old_pages * 32; p < from; ++p) spoil(c, rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32);
    for (int32_t page = 0; page < old_pages; ++page) {
      for (int32_t i = 0; i < 32; ++i) spoil(c, rows.pages[static_cast<size_t>(page)] * 32 + i);
      rows.pages[static_cast<size_t>(page)] = 1 << 24;
    }
    EXPECT_TRUE(same_bits(attend(c, rows, q), want));
    EXPECT_TRUE(same_bits(attend(c, rows, q, int64_t{2}), want));
    // What only the rows in front still see concerns none of the others.
    for (int32_t p = from; p < from + 3 * 5; ++p) spoil(c, rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32);
    each_order([&] {
      const Floats got = attend(c, rows, q);
      for (size_t r = 0; r < rows.seq.size(); ++r)
        if (const bool sees = rows.ctx[r] + rows.tail_len[r] - kWindow < from + 3 * 5; sees) EXPECT_TRUE(std::isnan(got[r * width])) << r;
        else EXPECT_TRUE(same_bits(got.data() + r * width, want.data() + r * width, width * 4)) << r;
    });
    expect_own_bits(c, rows, rows.seq.size() - 1, q, want);
  }
}

// Plans that are the same graph but for a window or a scale, on one queue.
TEST(CudaWindow, AGraphIsToldOfEachPlansOwn) {
  const auto device = cuda_device();
  for (const Shape& s : {Shape{4, 2, 32, DType::bf16}, Shape{4, 2, 32}}) {
    Cache c(s, 9, 1);
    Rows rows;
    ragged(c, &rows);
    const auto n = static_cast<int64_t>(rows.seq.size());
    Floats q = random_floats(static_cast<size_t>(n * 128), 3), out(q.size()), sum(q.size());
    auto queue = device->make_queue();
    ASSERT_TRUE(queue.ok());
    int round = 0;
    for (const int32_t window : {0, 0, 0, 9, 9, 9, 40, 9, 0, 40}) {
      rows.window = window;
      const float scale = 1.0f + 0.25f * static_cast<float>(round++ % 3);
      const Tensor to = view(out, n, 128);
      const Op plan[] = {Attention{view(q, n, 128), s.heads, c.kv, 0, rows.view(), 0.2f, to, {}},
                         Add{view(q, n, 128), to, view(sum, n, 128), scale}};
      ASSERT_TRUE((*queue)->submit(plan).ok());
      ASSERT_TRUE((*queue)->advance(kNoDeadline).ok());
      const Floats want = attend(c, rows, q);
      EXPECT_TRUE(same_bits(out, want)) << window;
      for (size_t i = 0; i < sum.size(); ++i) {
        const volatile float product = want[i] * scale;
        ASSERT_EQ(sum[i], q[i] + product) << window;
      }
    }
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
