#include <algorithm>
#include <numeric>

#include "unit/kernels/attention_support.h"

namespace aerie::kernels::attention_test {
namespace {

const Shape kShapes[] = {{4, 4, 8},
                         {4, 2, 32},
                         {8, 2, 64},
                         {3, 1, 80},
                         {2, 2, 128},
                         {6, 2, 10},
                         {4, 1, 6},
                         {4, 2, 64, DType::bf16},
                         {5, 1, 10, DType::bf16},
                         {8, 2, 64, DType::int8},
                         {3, 1, 80, DType::int8},
                         {4, 1, 6, DType::int8},
                         {2, 1, 512, DType::bf16}};

TEST(Attention, RopeAnglesAreExact) {
  Ints positions = {0, 1, 77, 131071};
  Floats inv_freq(40), got(4 * 80), want(4 * 80);
  for (size_t i = 0; i < 40; ++i) inv_freq[i] = std::pow(10000.0f, -static_cast<float>(i) / 40);
  RopeAngles op{positions.data(), view(inv_freq, 1, 40), 1.25f, view(got, 4, 80)};
  run_cpu(op);
  op.angles = view(want, 4, 80);
  run_reference(op);
  EXPECT_TRUE(same_bits(got, want));
  EXPECT_EQ(got[0], 1.25f);
  EXPECT_EQ(got[40], 0.0f);
  for (const size_t i : {size_t{7}, size_t{39}}) {
    inv_freq[i] = 0;  // pairs that are not rotated, which no scale changes
    op.angles = view(got, 4, 80);
    run_cpu(op);
    op.angles = view(want, 4, 80);
    run_reference(op);
    EXPECT_TRUE(same_bits(got, want));
    for (size_t r = 0; r < 4; ++r) EXPECT_TRUE(got[r * 80 + i] == 1.0f && got[r * 80 + 40 + i] == 0.0f);
  }
}

// Of queries alone nothing is stored, and they turn as among others.
TEST(Attention, RopeOfQueriesAlone) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.dim);
    constexpr int64_t kRows = 9;
    const int64_t all = (s.heads + 2 * s.kv_heads) * s.dim, own = s.heads * s.dim;
    Floats qkv = random_floats(static_cast<size_t>(kRows * all), 1), q = qkv, angles = random_floats(static_cast<size_t>(kRows * s.dim), 2);
    const Ints slots = {11, 12, 13, 3, -1, 30, 31, 0, 1};
    Cache a(s, 1), b(s, 1);
    const auto before = b.bytes;
    run_cpu(RopeAndStore{view(qkv, kRows, all), view(angles, kRows, s.dim), s.heads, a.kv, 1, slots.data()});
    run_cpu(RopeAndStore{columns(view(q, kRows, all), 0, own), view(angles, kRows, s.dim), s.heads, b.kv, 1, slots.data()});
    EXPECT_EQ(b.bytes, before);
    for (int64_t r = 0; r < kRows; ++r) EXPECT_TRUE(same_bits(q.data() + r * all, qkv.data() + r * all, static_cast<size_t>(own) * 4));
  }
}

TEST(Attention, RopeAndStoreMatchesTheReference) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.dim);
    const int64_t width = (s.heads + 2 * s.kv_heads) * s.dim;
    Floats qkv = random_floats(static_cast<size_t>(19 * width), 1), other = qkv;
    Floats angles = random_floats(static_cast<size_t>(19 * s.dim), 2);
    Ints slots(19);
    std::iota(slots.begin(), slots.end(), 11);
    slots[4] = -1;
    for (const uint32_t odd : {0x7fffffffu, 0x7f800001u, 0xff800000u, 0x7f7fffffu, 0x3f808000u, 0x3f818000u, 1u})
      qkv[static_cast<size_t>(odd % 19 * width + width - 1)] = std::bit_cast<float>(odd);  // values bf16 trips over
    other = qkv;
    Cache a(s, 1), b(s, 1);
    run_cpu(RopeAndStore{view(qkv, 19, width), view(angles, 19, s.dim), s.heads, a.kv, 1, slots.data()});
    run_reference(RopeAndStore{view(other, 19, width), view(angles, 19, s.dim), s.heads, b.kv, 1, slots.data()});
    EXPECT_EQ(a.bytes, b.bytes);
    for (int64_t r = 0; r < 19; ++r)
      EXPECT_TRUE(
          same_bits(qkv.data() + r * width, other.data() + r * width, static_cast<size_t>(s.heads * s.dim) * 4));
  }
}

// One head's value row goes through codes: each element to within half a step, or NaN if one of the row is not finite.
TEST(Attention, Int8RowsStandAlone) {
  constexpr int64_t kDim = 16;
  const Shape s{2, 2, kDim, DType::int8};
  Floats angles(kDim, 0.0f);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {1.0f, -300.0f, 1e30f, 1e-30f, 1e-40f, 0.0f, -0.0f, inf, -inf, std::nanf("")}) {
    SCOPED_TRACE(odd);
    Floats qkv = random_floats(6 * kDim, 7);
    float* row = qkv.data() + 4 * kDim;  // the first head's value
    for (int64_t i = 0; i < kDim; ++i) row[i] *= 1e-3f;
    row[5] = odd;
    Cache c(s, 1, 1), neighbour(s, 1, 1);
    const int32_t slot = 9;
    run_cpu(RopeAndStore{view(qkv, 1, 6 * kDim), view(angles, 1, kDim), 2, c.kv, 0, &slot});
    const int64_t at = 2 * kPageSlots + slot, other = at + kPageSlots;  // behind both heads' keys
    const auto* codes = static_cast<const int8_t*>(c.kv.data) + at * kDim;
    const float scale = c.kv.scales[at];
    float top = 0;
    for (int64_t i = 0; i < kDim; ++i) top = std::max(top, std::fabs(row[i]));
    for (int64_t i = 0; i < kDim; ++i) {
      const float got = codes[i] * scale;
      if (std::isfinite(odd)) {
        EXPECT_LE(std::fabs(got - row[i]), top / 254 * 1.0001f) << i;
      } else {
        EXPECT_TRUE(std::isnan(got)) << i;
      }
    }
    if (std::isfinite(odd) && top == std::fabs(odd)) {
      EXPECT_EQ(codes[5], odd < 0 ? -127 : 127);
    }
    row[5] = 0.5f;  // the other head's codes do not know
    run_cpu(RopeAndStore{view(qkv, 1, 6 * kDim), view(angles, 1, kDim), 2, neighbour.kv, 0, &slot});
    EXPECT_TRUE(same_bits(codes + (other - at) * kDim, static_cast<const int8_t*>(neighbour.kv.data) + other * kDim, kDim));
    EXPECT_EQ(c.kv.scales[other], neighbour.kv.scales[other]);
  }
}

TEST(Attention, KvCopyMovesSlotsOfEveryLayer) {
  for (const Shape& s : kShapes) {
    Cache a(s, 2, 3), b(s, 2, 3);
    for (size_t i = 0; i < a.bytes.size(); ++i) a.bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    b.bytes = a.bytes;
    const auto before = a.bytes;
    Ints src = {40, 3, 63}, dst = {0, 41, 7};
    run_cpu(KvCopy{a.kv, src.data(), dst.data(), 3});
    run_reference(KvCopy{b.kv, src.data(), dst.data(), 3});
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_NE(a.bytes, before);
  }
}

// Two ragged sequences, prefill rows, decode rows, tree rows with tails over a page's end.
void ragged(Cache& c, Rows* rows) {
  rows->stride = 4;
  rows->pages = {5, 2, 7, 0, 1, 6, 3, 4};
  for (int32_t layer = 0; layer < 2; ++layer)
    for (int32_t s = 0; s < 2; ++s)
      for (int32_t p = 0; p < 90; ++p)
        c.store(layer, rows->pages[static_cast<size_t>(s * 4 + p / 32)] * 32 + p % 32,
                static_cast<uint32_t>(layer * 1000 + s * 100 + p));
  for (int32_t t = 0; t < 20; ++t)
    for (int32_t layer = 0; layer < 2; ++layer)
      c.store(layer, 8 * 32 + t, static_cast<uint32_t>(5000 + layer * 100 + t));
  add_ragged(rows, 28, 37, 12);
}

TEST(Attention, MatchesTheReferenceOnEveryIsa) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " x " + std::to_string(s.dim));
    Cache c(s, 9);
    Rows rows;
    ragged(c, &rows);
    const auto n = static_cast<int64_t>(rows.seq.size());
    const int64_t width = int64_t{s.heads} * s.dim;
    Floats q = random_floats(static_cast<size_t>(n * width), 3, 2.0f), on_fused;
    const Floats want = attend_reference(c, rows, q, 1);
    each_isa([&](const Isa& isa) {
      const Floats got = attend(c, rows, q, 1);
      expect_near(got, want, 2e-5f);
      EXPECT_TRUE(same_bits(got, attend(c, rows, q, 1, 40)));  // other tasks
      if (fused(isa)) {
        if (on_fused.empty()) on_fused = got;
        EXPECT_TRUE(same_bits(got, on_fused));
      }
    });
  }
}

// The promise itself: position p's row has the same bits in plain decode, and with any part of its
// context in scratch slots in any place, and in any company.
TEST(Attention, BitsDoNotDependOnWhereContextLiesNorOnCompany) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.dim);
    constexpr int32_t kContext = 75;
    const int64_t width = int64_t{s.heads} * s.dim;
    Cache c(s, 12);
    Rows rows;
    rows.stride = 3;
    rows.pages = {4, 1, 6, 0, 2, 3};
    Ints spare(32 * 5);  // slots behind the pages, handed out in a shuffled order
    std::iota(spare.begin(), spare.end(), 7 * 32);
    std::shuffle(spare.begin(), spare.end(), std::mt19937(4));
    Ints copy(kContext);  // a second copy of every position
    for (int32_t p = 0; p < kContext; ++p) {
      copy[static_cast<size_t>(p)] = spare[static_cast<size_t>(p)];
      for (const int32_t slot : {rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32, copy[static_cast<size_t>(p)]})
        c.store(0, slot, static_cast<uint32_t>(p));
      c.store(0, rows.pages[static_cast<size_t>(3 + p / 32)] * 32 + p % 32,
              static_cast<uint32_t>(900 + p));  // the neighbour
    }
    Floats one = random_floats(static_cast<size_t>(width), 8, 2.0f);
    each_isa([&] {
      for (const int32_t length : {1, 31, 32, 33, 64, kContext}) {
        Rows plain = rows;
        plain.add(0, length, {});
        Floats q = one;
        const Floats want = attend(c, plain, q, 0);
        Rows every = rows, alone;
        Floats many;
        for (int32_t ctx = 0; ctx <= length; ++ctx) {
          const Ints tail(copy.begin() + ctx, copy.begin() + length);
          if (ctx % 7 == 0 || length - ctx < 3) {
            alone = rows;
            alone.add(0, ctx, tail);
            EXPECT_TRUE(same_bits(attend(c, alone, q, 0), want)) << length << " of which committed " << ctx;
          }
          every.add(0, ctx, tail);
          many.insert(many.end(), one.begin(), one.end());
          if (ctx % 3 == 0) {  // company: another sequence, another length
            every.add(ctx % 2, 1 + (ctx * 5) % kContext, {});
            const Floats other = random_floats(static_cast<size_t>(width), static_cast<uint32_t>(ctx + 50));
            many.insert(many.end(), other.begin(), other.end());
          }
        }
        for (const int threads : {1, 8}) {
          const Floats got = attend(c, every, many, 0, threads);
          size_t r = 0;
          for (int32_t ctx = 0; ctx <= length; ++ctx, r += 1 + (ctx % 3 == 1))
            ASSERT_TRUE(
                same_bits(got.data() + r * static_cast<size_t>(width), want.data(), static_cast<size_t>(width) * 4))
                << length << " of which committed " << ctx << ", in a batch";
        }
      }
    });
  }
}

// Codes cannot say "infinite": the row's scale does.
TEST(Attention, AnInt8RowThatIsNotFiniteReachesWhoSeesItAndNobodyElse) {
  const Shape s{4, 2, 32, DType::int8};
  Floats q = random_floats(3 * 128, 3);
  Rows rows;
  rows.stride = 2;
  rows.pages = {1, 0};
  for (const int32_t length : {39, 40, 60}) rows.add(0, length, {});
  for (const size_t where : {128 + 3, 128 + 64 + 3}) {  // a key, a value of the first kv head
    Cache c(s, 2, 1);
    for (int32_t p = 0; p < 60; ++p) {
      const int32_t slot = rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32;
      Floats qkv = random_floats(256, static_cast<uint32_t>(p)), angles(32, 0.5f);
      if (p == 39) qkv[where] = std::numeric_limits<float>::infinity();
      run_cpu(RopeAndStore{view(qkv, 1, 256), view(angles, 1, 32), 4, c.kv, 0, &slot});
    }
    each_isa([&] {
      const Floats got = attend(c, rows, q, 0);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(std::isnan(got[i]), i >= 128 && i % 128 < 64) << "row " << i / 128 << " element " << i % 128;
    });
  }
}

TEST(Attention, ANaNInOneRowStaysInThatRow) {
  const Shape s{4, 2, 32};
  Cache c(s, 9);
  Rows rows;
  ragged(c, &rows);
  const auto n = static_cast<int64_t>(rows.seq.size());
  Floats q = random_floats(static_cast<size_t>(n * 128), 3);
  each_isa([&] {
    const Floats want = attend(c, rows, q, 0);
    Floats bad = q;
    std::fill(bad.begin() + 12 * 128, bad.begin() + 13 * 128, std::numeric_limits<float>::quiet_NaN());
    const Floats got = attend(c, rows, bad, 0);
    for (size_t i = 0; i < got.size(); ++i) {
      if (i / 128 == 12)
        ASSERT_TRUE(std::isnan(got[i]));
      else
        ASSERT_EQ(got[i], want[i]);
    }
  });
}

}  // namespace
}  // namespace aerie::kernels::attention_test
