// Attention over contexts of several spans, as one task a row and as many.
#include "unit/kernels/attention_long.h"

namespace aerie::kernels::attention_test {
namespace {

TEST(AttentionSpans, MatchTheReferenceAndEachOtherOnEveryIsa) {
  for (const Shape& s : kLong) {
    SCOPED_TRACE(s.dim);
    LongCache c(s);
    ragged(c);
    const size_t width = static_cast<size_t>(s.heads) * static_cast<size_t>(s.dim);
    Floats q = random_floats(c.rows.seq.size() * width, 3, 2.0f);
    const Floats want = attend_reference(c, c.rows, q, 0);
    expect_near(attend_split(c, c.rows, q, 3, [](const auto& op) { run_reference(op); }), want, 1e-6f);
    each_isa([&] {
      const Floats whole = attend(c, c.rows, q, 0);
      expect_near(whole, want, 2e-5f);
      for (const int threads : {1, 2, 8, 64})
        for (const int64_t spans : {3, 8}) {
          EXPECT_TRUE(
              same_bits(attend_split(c, c.rows, q, spans, [&](const auto& op) { run_cpu(op, threads); }), whole))
              << threads << " threads, room for " << spans;
          EXPECT_TRUE(same_bits(attend(c, c.rows, q, 0, threads), whole)) << threads << " threads";
        }
      for (size_t r = 0; r < c.rows.seq.size(); r += 2) {  // alone
        const Rows one = c.rows.only(r);
        const auto at = static_cast<int64_t>(r);
        Floats own(q.begin() + at * static_cast<int64_t>(width), q.begin() + (at + 1) * static_cast<int64_t>(width));
        EXPECT_TRUE(same_bits(attend_split(c, one, own, 3, [&](const auto& op) { run_cpu(op, 2); }).data(),
                              whole.data() + r * width, width * 4))
            << "row " << r;
      }
    });
  }
}

// A tree node sees what plain decode would see, whatever part of it lies in its tail.
TEST(AttentionSpans, ATailAcrossASpansEndHasTheBitsOfPlainContext) {
  for (const Shape& s : kLong) {
    SCOPED_TRACE(s.dim);
    LongCache c(s);
    const size_t width = static_cast<size_t>(s.heads) * static_cast<size_t>(s.dim);
    for (const int32_t length : {kSpanSlots + 20, 2 * kSpanSlots + 1}) {
      Floats q = random_floats(width, 8, 2.0f);
      Rows plain = c.rows;
      plain.add(0, length, {});
      const Floats want = attend(c, plain, q, 0);
      for (int32_t n = 1; n <= 40; n += 3) {
        Rows tree = c.rows;
        c.add_with_tail(&tree, length, n);
        EXPECT_TRUE(same_bits(attend(c, tree, q, 0), want)) << n;
        EXPECT_TRUE(same_bits(attend_split(c, tree, q, 4, [&](const auto& op) { run_cpu(op, 2); }), want)) << n;
      }
    }
  }
}

TEST(AttentionSpans, MergeMatchesTheReference) {
  constexpr int64_t kHeads = 3, kDim = 20, kSpans = 5;
  Rows rows;
  rows.stride = kSpans * kSpanSlots / kPageSlots;
  rows.pages.assign(static_cast<size_t>(rows.stride), 0);
  for (const int32_t length : {0, 1, kSpanSlots, kSpanSlots + 1, 3 * kSpanSlots, 5 * kSpanSlots})
    rows.add(0, length, {});
  const auto n = static_cast<int64_t>(rows.seq.size());
  Floats partial = random_floats(static_cast<size_t>(n * kSpans * kHeads * (kDim + 2)), 2, 30.0f);
  for (size_t i = 0; i < partial.size(); i += kDim + 2) partial[i + 1] = 1 + std::fabs(partial[i + 1]);  // totals
  Floats got(static_cast<size_t>(n * kHeads * kDim), 7.0f), want = got;
  AttentionMerge op{view(partial, n * kSpans, kHeads * (kDim + 2)), kHeads, rows.view(), view(got, n, kHeads * kDim)};
  run_cpu(op);
  op.out = view(want, n, kHeads * kDim);
  run_reference(op);
  expect_near(got, want, 1e-5f);
  EXPECT_EQ(got[0], 0.0f) << "a row that looks at nothing";
}

// A frame's budget is looked at between tasks: none may grow with the context.
TEST(AttentionSpans, ATaskIsASpanOfAFewRows) {
  const auto most_macs = [](int64_t rows, int64_t context, int32_t heads, int32_t kv_heads, int32_t dim, int threads) {
    Floats memory(1);
    const int64_t spans = context / kSpanSlots, width = int64_t{heads} * dim;
    AttentionRows a;
    a.page_stride = static_cast<int32_t>(context / kPageSlots);
    const Attention op{view(memory, rows, width),
                       heads,
                       KvCache{memory.data(), context, 1, kv_heads, dim, DType::f32, nullptr},
                       0,
                       a,
                       1.0f,
                       view(memory, rows, width),
                       view(memory, rows * spans, heads * (dim + 2))};
    const int64_t tasks = cpu::tasks(op, threads);
    EXPECT_GE(tasks, spans * kv_heads);
    return 2 * rows * context * width / tasks;
  };
  for (const int threads : {1, 2, 8})
    for (const int64_t rows : {1, 8, 60, 128})
      for (const int64_t context : {4096, 32768, 131072}) {
        EXPECT_LE(most_macs(rows, context, 32, 8, 64, threads), 8 << 20);
        EXPECT_LE(most_macs(rows, context, 32, 8, 128, threads), 8 << 20);
      }
  EXPECT_EQ(most_macs(1, 32768, 32, 8, 64, 2), 2 * kSpanSlots * 4 * 64);
}

}  // namespace
}  // namespace aerie::kernels::attention_test
