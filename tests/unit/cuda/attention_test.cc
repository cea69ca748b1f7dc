// Attention on the emulated device: the reference's values; a row's bits do not depend on where its context lies, on its
// company, or on how the op is cut.
#include "unit/cuda/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {
const Shape kShapes[] = {{4, 4, 8},  {8, 2, 64},           {3, 1, 80},           {20, 1, 10},
                         {2, 1, 256}, {4, 2, 64, DType::bf16}, {4, 2, 32, DType::int8}, {3, 1, 6, DType::int8},
                         {2, 1, 256, DType::bf16}, {2, 1, 256, DType::int8}, {3, 1, 12, DType::bf16},
                         {8, 2, 128, DType::bf16}, {5, 1, 32, DType::bf16}, {3, 3, 96, DType::bf16},
                         {20, 1, 32, DType::bf16}, {2, 1, 512, DType::bf16}, {3, 1, 512}, {4, 2, 512, DType::int8}, {2, 1, 260, DType::bf16}};

TEST(CudaAttention, RopeIsTheReferences) {
  Ints positions = {0, 1, 77, 131071};
  Floats inv_freq(40), got(4 * 80), want(4 * 80);
  for (size_t i = 0; i < 40; ++i) inv_freq[i] = std::pow(10000.0f, -static_cast<float>(i) / 40);
  run_cuda(RopeAngles{positions.data(), view(inv_freq, 1, 40), 1.25f, view(got, 4, 80)});
  run_reference(RopeAngles{positions.data(), view(inv_freq, 1, 40), 1.25f, view(want, 4, 80)});
  expect_near(got, want, 1e-7f);
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.dim);
    const int64_t width = (s.heads + 2 * s.kv_heads) * s.dim;
    Floats qkv = random_floats(static_cast<size_t>(9 * width), 1);
    Floats angles = random_floats(static_cast<size_t>(9 * s.dim), 2);
    Ints slots = {11, 12, 13, 3, -1, 30, 31, 0, 1};
    for (const uint32_t odd : {0x7fffffffu, 0x7f800001u, 0xff800000u, 0x7f7fffffu, 0x3f808000u, 0x3f818000u, 1u})
      qkv[static_cast<size_t>(odd % 9 * width + width - 1)] = std::bit_cast<float>(odd);  // values bf16 trips over
    Floats other = qkv;
    Cache a(s, 1), b(s, 1);
    run_cuda(RopeAndStore{view(qkv, 9, width), view(angles, 9, s.dim), s.heads, a.kv, 1, slots.data()});
    run_reference(RopeAndStore{view(other, 9, width), view(angles, 9, s.dim), s.heads, b.kv, 1, slots.data()});
    EXPECT_EQ(a.bytes, b.bytes);
    for (int64_t r = 0; r < 9; ++r)
      EXPECT_TRUE(same_bits(qkv.data() + r * width, other.data() + r * width, static_cast<size_t>(s.heads * s.dim) * 4));
  }
}

// Of queries alone nothing is stored, and they turn as among others.
TEST(CudaAttention, RopeOfQueriesAlone) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.dim);
    constexpr int64_t kRows = 9;
    const int64_t all = (s.heads + 2 * s.kv_heads) * s.dim, own = s.heads * s.dim;
    Floats qkv = random_floats(static_cast<size_t>(kRows * all), 1), q = qkv, angles = random_floats(static_cast<size_t>(kRows * s.dim), 2);
    const Ints slots = {11, 12, 13, 3, -1, 30, 31, 0, 1};
    Cache a(s, 1), b(s, 1);
    const auto before = b.bytes;
    run_cuda(RopeAndStore{view(qkv, kRows, all), view(angles, kRows, s.dim), s.heads, a.kv, 1, slots.data()});
    run_cuda(RopeAndStore{columns(view(q, kRows, all), 0, own), view(angles, kRows, s.dim), s.heads, b.kv, 1, slots.data()});
    EXPECT_EQ(b.bytes, before);
    for (int64_t r = 0; r < kRows; ++r) EXPECT_TRUE(same_bits(q.data() + r * all, qkv.data() + r * all, static_cast<size_t>(own) * 4));
  }
}

TEST(CudaAttention, KvCopyMovesSlotsOfEveryLayer) {
  for (const Shape& s : kShapes) {
    Cache a(s, 2, 3), b(s, 2, 3);
    for (size_t i = 0; i < a.bytes.size(); ++i) a.bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    b.bytes = a.bytes;
    Ints src = {40, 3, 63}, dst = {0, 41, 7};
    run_cuda(KvCopy{a.kv, src.data(), dst.data(), 3});
    run_reference(KvCopy{b.kv, src.data(), dst.data(), 3});
    EXPECT_EQ(a.bytes, b.bytes);
  }
}

TEST(CudaAttention, IsTheReferenceAndARowsOwn) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " x " + std::to_string(s.dim));
    Cache c(s, 9, 1);
    Rows rows;
    ragged(c, &rows);
    const auto n = static_cast<int64_t>(rows.seq.size());
    const int64_t width = int64_t{s.heads} * s.dim;
    Floats q = random_floats(static_cast<size_t>(n * width), 3, 2.0f), want(q.size());
    run_reference(Attention{view(q, n, width), s.heads, c.kv, 0, rows.view(), 0.2f, view(want, n, width), {}});
    const Floats all = attend(c, rows, q);
    // Tensor cores take a query and a weight as the sum of two bf16: 17 bits of each.
    expect_near(all, want, s.dtype == DType::bf16 && s.dim % 32 == 0 && s.dim <= 128 ? 1e-4f : 2e-5f);
    each_order([&] { EXPECT_TRUE(same_bits(attend(c, rows, q), all)); });
    for (size_t r = 0; r < rows.seq.size(); r += 3) expect_own_bits(c, rows, r, q, all);
  }
}

TEST(CudaAttention, TreeRowsHaveTheBitsOfPlainDecode) {
  for (const Shape& s : {kShapes[1], kShapes[5], kShapes[6], kShapes[11], kShapes[12]}) {
    const Twice c(s);
    for (const int32_t length : {1, 32, 33, Twice::kContext}) c.expect_plain_bits(length, 0);
  }
}

// Contexts of several chunks and spans: the bits of one op are those of two, and near the reference's.
TEST(CudaAttention, ChunksAndSpansMergeTheSameWay) {
  for (const Shape& s : {Shape{2, 1, 8}, Shape{2, 1, 32, DType::bf16}, Shape{64, 4, 32, DType::bf16}}) {
    constexpr int32_t kContext = 4 * kSpanSlots + 700, kPages = (kContext + 31) / 32;
    Cache c(s, kPages + 1, 1);
    Rows rows = anywhere(c, kPages);
    for (const int32_t n : {0, 127, 128, 129, 1023, 1024, 1025, 1281, 2048, 4097, kContext}) rows.add(0, n, {});
    rows.add(0, kContext, {kPages * 32 + 3, kPages * 32 + 1});
    rows.add(0, 2047, {kPages * 32 + 3, kPages * 32 + 1});
    const auto n = static_cast<int64_t>(rows.seq.size());
    const int64_t width = int64_t{s.heads} * s.dim;
    Floats q = random_floats(static_cast<size_t>(n * width), 3, s.dim > 8 ? 1.0f : 2.0f), want(q.size());
    run_reference(Attention{view(q, n, width), s.heads, c.kv, 0, rows.view(), 0.2f, view(want, n, width), {}});
    const Floats whole = attend(c, rows, q);
    expect_near(whole, want, s.dtype == DType::bf16 ? 1e-4f : 2e-5f);
    for (const int64_t spans : {5, 8}) EXPECT_TRUE(same_bits(attend(c, rows, q, spans), whole)) << spans;
    if (s.heads == 2) continue;
    each_order([&] { EXPECT_TRUE(same_bits(attend(c, rows, q), whole)); });  // wide
    for (const size_t r : {5u, 10u, 11u}) expect_own_bits(c, rows, r, q, whole);
  }
}

// So many rows and heads that a block goes through several chunks: those of a tile, and of rows that go alone.
TEST(CudaAttention, ABlockMayHaveManyChunks) {
  const Shape s{8, 8, 32, DType::bf16};
  constexpr int32_t kPages = 40;
  Cache c(s, kPages, 1);
  Rows rows = anywhere(c, kPages);
  rows.pages.insert(rows.pages.end(), rows.pages.rbegin(), rows.pages.rend());  // another text's, of the same slots
  for (int32_t r = 0; r < 64; ++r) rows.add(r == 5 || r == 40, r == 5 ? 700 : r < 16 ? 1160 + r : 1 + r, {});
  const int64_t width = int64_t{s.heads} * s.dim;
  Floats q = random_floats(static_cast<size_t>(64 * width), 3), want(q.size());
  run_reference(Attention{view(q, 64, width), s.heads, c.kv, 0, rows.view(), 0.2f, view(want, 64, width), {}});
  const Floats all = attend(c, rows, q);
  expect_near(all, want, 1e-4f);
  each_order([&] { EXPECT_TRUE(same_bits(attend(c, rows, q), all)); });
  for (const size_t r : {0u, 5u, 15u, 40u}) expect_own_bits(c, rows, r, q, all);
}

// Rows of one text have fewer blocks for what each sees alone.
TEST(CudaAttention, WhetherItIsSaidThatThereIsOneTextChangesNoBit) {
  const Shape s{16, 4, 32, DType::bf16};
  constexpr int32_t kPages = 9, kTail = kPages * 32;
  Cache c(s, kPages + 4, 1);
  Rows rows = anywhere(c, kPages);
  Ints tail;
  for (int32_t r = 0; r < 64; ++r) {
    if (r < 40) tail.push_back(kTail + r);
    rows.add(0, r == 7 ? 3 : r == 20 ? 100 : 260, r % 3 ? tail : Ints{kTail + r});
  }
  const int64_t width = int64_t{s.heads} * s.dim;
  for (const size_t n : {3u, 16u, 64u}) {
    Rows some = rows;
    for (Ints* v : {&some.seq, &some.ctx, &some.tail_offset, &some.tail_len}) v->resize(n);
    ASSERT_EQ(some.view().sequences, 1);
    Floats q = random_floats(n * static_cast<size_t>(width), 3), want(q.size());
    const auto m = static_cast<int64_t>(n);
    run_reference(Attention{view(q, m, width), s.heads, c.kv, 0, some.view(), 0.2f, view(want, m, width), {}});
    const Floats said = attend(c, some, q);
    expect_near(said, want, 1e-4f);
    EXPECT_TRUE(same_bits(attend(c, some, q, int64_t{0}, false), said)) << n;
  }
}

// Many rows are gone through in another way than few (attention_wide.h): the same bits, whoever is beside them. Three texts,
// of which one is all NaN; rows in one another's company that are not of its text; tails over the ends of pages and chunks, one
// of them with a NaN.
TEST(CudaAttention, ManyRowsHaveTheBitsOfFew) {
  const Shape shapes[] = {{32, 8, 128, DType::bf16}, {32, 8, 32, DType::bf16}, {40, 2, 32, DType::bf16}, {16, 16, 32, DType::bf16},
                          {64, 4, 96, DType::bf16}, {64, 4, 64, DType::bf16}};
  for (const Shape& s : shapes) {
    SCOPED_TRACE(std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " x " + std::to_string(s.dim));
    constexpr int32_t kTexts = 3, kPages = 6, kTail = kTexts * kPages * 32;
    Cache c(s, kTexts * kPages + 2, 1);
    Rows rows = anywhere(c, kTexts * kPages);
    rows.stride = kPages;
    for (size_t p = 2 * kPages; p < 3 * kPages; ++p)
      for (int32_t i = 0; i < 32; ++i) spoil(c, rows.pages[p] * 32 + i);
    spoil(c, kTail + 63);
    const int32_t n = s.heads == s.kv_heads ? 64 : s.heads == 64 ? 17 : s.dim > 64 ? 33 : 50;
    const auto bad = [](int32_t r) { return r % 16 == 9 || r == 14; };
    for (int32_t r = 0; r < n; ++r) {
      Ints tail(static_cast<size_t>(r % 5 == 0 ? 0 : r % 4 * 3 + 1));
      for (size_t i = 0; i < tail.size(); ++i) tail[i] = kTail + static_cast<int32_t>(i * 7 + static_cast<size_t>(r)) % 63;
      if (r == 14) tail.back() = kTail + 63;
      if (r % 16 == 9) rows.add(2, 150, tail);
      else if (r % 16 == 5 || r >= 40) rows.add(1, 60 + r, tail);
      else rows.add(0, r == 3 ? 1 : r < 16 ? 125 : r < 20 ? 128 : 185, tail);
    }
    const int64_t width = int64_t{s.heads} * s.dim;
    Floats q = random_floats(static_cast<size_t>(n * width), 3), want(q.size());
    run_reference(Attention{view(q, n, width), s.heads, c.kv, 0, rows.view(), 0.2f, view(want, n, width), {}});
    const Floats all = attend(c, rows, q);
    for (int32_t r = 0; r < n; ++r)
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        const float got = all[static_cast<size_t>(i)], right = want[static_cast<size_t>(i)];
        ASSERT_TRUE(bad(r) ? std::isnan(got) : std::fabs(got - right) < 1e-4f) << r << ": " << got << ", not " << right;
      }
    if (s.dim > 64) each_order([&] {
      const Floats again = attend(c, rows, q);
      for (int32_t r = 0; r < n; ++r)
        EXPECT_TRUE(bad(r) || same_bits(again.data() + r * width, all.data() + r * width, static_cast<size_t>(width) * 4)) << r;
    });
    for (int32_t r = 0; r < n; r += 3)
      if (!bad(r)) expect_own_bits(c, rows, static_cast<size_t>(r), q, all);
  }
}

TEST(CudaAttention, ANaNStaysWithWhoSeesIt) {
  for (const DType t : {DType::int8, DType::bf16}) {
    const Shape s{4, 2, 32, t};
    Cache c(s, 2, 1);
    Rows rows;
    rows.stride = 2;
    rows.pages = {1, 0};
    for (const int32_t length : {39, 40, 60}) rows.add(0, length, {});
    for (int32_t p = 0; p < 60; ++p) {
      const int32_t slot = rows.pages[static_cast<size_t>(p / 32)] * 32 + p % 32;
      Floats qkv = random_floats(256, static_cast<uint32_t>(p)), angles(32, 0.5f);
      if (p == 39) qkv[192 + 3] = std::numeric_limits<float>::infinity();  // of a value of the first kv head
      const Ints slots = {slot};
      run_cuda(RopeAndStore{view(qkv, 1, 256), view(angles, 1, 32), 4, c.kv, 0, slots.data()});
    }
    Floats q = random_floats(3 * 128, 3);
    const Floats got = attend(c, rows, q);
    for (size_t i = 0; i < got.size(); ++i)  // codes have one scale a row
      ASSERT_EQ(!std::isfinite(got[i]), i >= 128 && i % 128 < 64 && (t == DType::int8 || i % 32 == 3))
          << "row " << i / 128 << " element " << i % 128;
  }
}

TEST(CudaAttention, NoRowsAreNoWork) {
  for (const DType t : {DType::f32, DType::bf16}) {
    const Shape s{4, 2, 32, t};
    Cache c(s, 2, 1);
    Rows rows;
    rows.stride = 1;
    rows.pages = {0};
    Floats none(1);
    run_cuda(Attention{view(none, 0, 128), 4, c.kv, 0, rows.view(), 0.2f, view(none, 0, 128), {}});
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
