// Linear on the emulated device: the reference's values, and the same bits for a row whatever its company.
#include "kernels/cuda/linear_shape.h"
#include "kernels/e2m1.h"
#include "kernels/narrow_floats.h"
#include "kernels/panel16.h"
#include "unit/cuda/linear_support.h"
#include "unit/kernels/e4m3_support.h"

namespace aerie::kernels::cuda_test {
namespace {

constexpr DType kScaledTypes[] = {DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};

Floats linear(const Weights& w, Floats x, int64_t rows) {
  Floats out(static_cast<size_t>(rows * w.n), std::nanf(""));
  run_cuda(Linear{view(x, rows, w.k), w.tensor(), {}, {}, view(out, rows, w.n)});
  return out;
}

TEST(CudaLinear, IsTheReferenceForEveryNumberOfRowsBitForBit) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{5, 1}, {40, 33}, {150, 300}, {33, 1100}})
    for (const DType t : kWeightTypes) {
      SCOPED_TRACE(testing::Message() << n << " x " << k << " type " << static_cast<int>(t));
      constexpr int64_t kRows = 70;
      const Weights w(n, k, t, 1);
      Floats x = random_floats(static_cast<size_t>(kRows * k), 2), want(static_cast<size_t>(kRows * n));
      run_reference(Linear{view(x, kRows, k), w.tensor(), {}, {}, view(want, kRows, n)});
      const Floats all = linear(w, x, kRows);
      expect_close(all, want, w.tensor(), x, bounds_of(t));
      for (const int64_t m : {1, 2, 8, 9, 17, 33, 64}) {
        const int64_t at = (m * 5) % (kRows - m + 1);
        const Floats part(x.begin() + at * k, x.begin() + (at + m) * k);
        ASSERT_TRUE(same_bits(linear(w, part, m).data(), all.data() + at * n, static_cast<size_t>(m * n) * 4))
            << m << " rows at " << at;
      }
    }
}

// More than a block reads at once, with the largest behind that.
TEST(CudaLinear, LongRowsAreHalvesToTheEnd) {
  constexpr int64_t n = 16, k = 17000, m = 2;
  for (const DType t : kScaledTypes) {
    SCOPED_TRACE(static_cast<int>(t));
    const Weights w(n, k, t, 13);
    Floats x = random_floats(m * k, 14), want(m * n);
    x[16500] = -300.0f;
    x[k + 3] = 200.0f;
    run_reference(Linear{view(x, m, k), w.tensor(), {}, {}, view(want, m, n)});
    expect_close(linear(w, x, m), want, w.tensor(), x, {3e-4, 1.5e-3});
  }
}

// Also without products of warpgroups, which from 17 rows on are used where there are any.
TEST(CudaLinear, ThreadsMayComeInAnyOrder) {
  for (const DType t : kWeightTypes)
    for (const int64_t rows : {3, 20, 40}) {
      const Weights w(150, 600, t, 3);
      const Floats x = random_floats(static_cast<size_t>(rows * 600), 4), want = linear(w, x, rows);
      each_order([&] { EXPECT_TRUE(same_bits(linear(w, x, rows), want)) << static_cast<int>(t) << ", " << rows << " rows"; });
    }
}

TEST(CudaLinear, AddsBiasThenResidualWithinStridedRows) {
  constexpr int64_t n = 37, k = 50, m = 11, wide = 64;
  for (const DType t : kWeightTypes) {
    const Weights w(n, k, t, 5);
    const Floats x = random_floats(m * k, 6), sum = linear(w, x, m);
    Floats bias = random_floats(n, 7), residual = random_floats(m * wide, 8), out = residual;
    Floats xs(m * wide, std::nanf(""));
    for (int64_t r = 0; r < m; ++r) std::copy_n(x.data() + r * k, k, xs.data() + r * wide + 3);
    const Tensor o = columns(view(out, m, wide), 5, n);
    run_cuda(Linear{columns(view(xs, m, wide), 3, k), w.tensor(), view(bias, 1, n), o, o});
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < wide; ++c) {
        const auto at = static_cast<size_t>(r * wide + c);
        const bool inside = c >= 5 && c < 5 + n;
        const float want =
            inside ? residual[at] + (bias[static_cast<size_t>(c - 5)] + sum[static_cast<size_t>(r * n + c - 5)]) : residual[at];
        ASSERT_EQ(out[at], want) << r << "," << c;
      }
  }
}

TEST(CudaLinear, BadRowsStayAlone) {
  constexpr int64_t n = 33, k = 100, m = 8;
  const float inf = std::numeric_limits<float>::infinity();
  for (const DType t : kWeightTypes) {
    const Weights w(n, k, t, 9);
    const Floats x = random_floats(m * k, 10), good = linear(w, x, m);
    Floats bad = x;
    bad[2 * k + 1] = std::nanf("");
    bad[4 * k + 99] = inf;
    bad[5 * k] = -inf;
    std::fill_n(bad.begin() + 6 * k, k, 0.0f);
    std::fill_n(bad.begin() + 7 * k, k, 0.0f);
    bad[7 * k + 5] = -1e-39f;
    const Floats got = linear(w, bad, m);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        const float is = got[static_cast<size_t>(r * n + c)];
        if (r == 2 || r == 4 || r == 5) ASSERT_FALSE(std::isfinite(is)) << r << "," << c;
        else if (r == 6) ASSERT_EQ(is, 0.0f);
        else if (r == 7) ASSERT_LE(std::fabs(is), 1e-38f);
        else ASSERT_EQ(is, good[static_cast<size_t>(r * n + c)]);
      }
  }
}

// Rows that pick one column each.
Floats picks(int64_t k) {
  Floats x(static_cast<size_t>(k * k));
  for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(i * k + i)] = 1;
  return x;
}
void put_nibble(Weights& w, int64_t r, int64_t c, int code) {
  const auto at = static_cast<size_t>(Panel16Place(w.type, r, c, w.k).int4());
  auto* bytes = reinterpret_cast<uint8_t*>(w.data.data());
  bytes[at] = static_cast<uint8_t>(c % kBlock < 16 ? (bytes[at] & 0xf0) | code : (bytes[at] & 0x0f) | code << 4);
}

// Every code of int8 and int4 at every place of a panel.
TEST(CudaLinear, EveryIntegerIsItself) {
  constexpr int64_t n = 16, k = 256;
  for (const DType t : {DType::int8, DType::int4}) {
    Weights w(n, k, t, 1);
    const auto code = [&](int64_t r, int64_t c) { return static_cast<int>(c + r) % (t == DType::int8 ? 256 : 16) - (t == DType::int8 ? 128 : 8); };
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < k; ++c)
        if (t == DType::int4) put_nibble(w, r, c, code(r, c) + 8);
        else reinterpret_cast<uint8_t*>(w.data.data())[Panel16Place(t, r, c, k).int8()] = static_cast<uint8_t>(code(r, c));
    auto* halves = reinterpret_cast<uint16_t*>(w.scales.data());
    auto* floats = reinterpret_cast<float*>(w.scales.data());
    for (int64_t i = 0; i < (t == DType::int8 ? n : n * k / kBlock); ++i)
      if (t == DType::int8) floats[i] = 0.25f;
      else halves[i] = 0x3400;  // the same
    const Floats out = linear(w, picks(k), k);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < k; ++c) ASSERT_EQ(out[static_cast<size_t>(c * n + r)], 0.25f * static_cast<float>(code(r, c))) << r << "," << c;
  }
}

// Of every block of K its own scale and minimum, rounded together; the last block ends before the others do.
TEST(CudaLinear, CodesAboveAMinimumAreRoundedOnce) {
  constexpr int64_t n = 20, k = 310;
  Weights w(n, k, DType::q4_1, 1);
  const Floats random = random_floats(2 * n * (k / kBlock + 1), 2);
  const auto of_block = [&](int64_t r, int64_t c, int64_t which) { return to_half(random[static_cast<size_t>((c / kBlock * n + r) * 2 + which)]); };
  const auto code = [](int64_t r, int64_t c) { return static_cast<int>(r + c) % 16; };
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) {
      put_nibble(w, r, c, code(r, c));
      uint16_t* const scale = reinterpret_cast<uint16_t*>(w.scales.data()) + Panel16Place(w.type, r, c, k).q4_1_scale();
      scale[0] = of_block(r, c, 0), scale[kPanel] = of_block(r, c, 1);
    }
  const Floats out = linear(w, picks(k), k);
  int64_t twice_rounded = 0;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) {
      const float product = static_cast<float>(code(r, c)) * from_half(of_block(r, c, 0)), min = from_half(of_block(r, c, 1));
      const float want = from_half(to_half(product + min));
      ASSERT_EQ(out[static_cast<size_t>(c * n + r)], want) << r << "," << c;
      twice_rounded += from_half(to_half(from_half(to_half(product)) + min)) != want;
    }
  EXPECT_GT(twice_rounded, 0) << "such weights tell nothing";
}

// A code behind K is a minimum, which is not 0.
TEST(CudaLinear, NothingBehindKIsAdded) {
  constexpr int64_t n = 16, k = 33;
  Weights w(n, k, DType::q4_1, 1);
  std::fill_n(reinterpret_cast<uint16_t*>(w.scales.data()), scale_bytes(w.type, n, k) / 2, to_half(1.0f));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) put_nibble(w, r, c, 0);
  EXPECT_EQ(linear(w, Floats(3 * k, 1.0f), 3), Floats(3 * n, 33.0f));
}

void put_power(Weights& w, int64_t r, int64_t c, int byte) {
  reinterpret_cast<uint8_t*>(w.scales.data())[Panel16Place(w.type, r, c, w.k).int4_scale()] = static_cast<uint8_t>(byte);
}

// Every code at every place of a panel, with every power of two by which all of them are halves; the last block ends before the
// others do, and so does the last panel.
TEST(CudaLinear, EveryE2m1NumberIsItselfTimesAPowerOfTwo) {
  constexpr int64_t n = 20, k = 310;
  constexpr int kLeast = 127 - 24, kMost = 127 + 12;  // 12 * 2^12 is below 65504
  Weights w(n, k, DType::mxfp4, 1);
  const auto code = [](int64_t r, int64_t c) { return static_cast<int>(r * 3 + c) % 16; };
  const auto power = [](int64_t r, int64_t c) { return kLeast + static_cast<int>(r * 7 + c / kBlock) % (kMost - kLeast + 1); };
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) put_nibble(w, r, c, code(r, c)), put_power(w, r, c, power(r, c));
  const Floats out = linear(w, picks(k), k);
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c)
      ASSERT_EQ(out[static_cast<size_t>(c * n + r)], std::ldexp(static_cast<float>(kE2m1Twice[code(r, c)]), power(r, c) - 127)) << r << "," << c;
}

// Smaller powers than halves have are 0. A weight that is more than the largest half leaves no output of its row finite.
TEST(CudaLinear, PowersThatNoHalfHasAreZeroOrSaySo) {
  constexpr int64_t n = 16, k = 32;
  const int powers[n] = {0, 1, 60, 101, 102, 103, 104, 139, 140, 141, 142, 143, 144, 200, 254, 255};
  Weights w(n, k, DType::mxfp4, 1);
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) put_nibble(w, r, c, static_cast<int>(c) % 16), put_power(w, r, c, powers[r]);
  const Floats out = linear(w, picks(k), k);
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) {
      const float is = out[static_cast<size_t>(c * n + r)];
      if (powers[r] < 103) ASSERT_EQ(is, 0.0f) << r << "," << c;
      else if (powers[r] < 140) ASSERT_EQ(is, std::ldexp(static_cast<float>(kE2m1Twice[c % 16]), powers[r] - 127)) << r << "," << c;
      else ASSERT_FALSE(std::isfinite(is)) << r << "," << c;
    }
}

TEST(CudaLinear, EveryE4m3NumberIsItself) {
  Weights w(16, 32, DType::fp8, 1);
  fill_e4m3(w.data.data(), w.scales.data());
  expect_every_e4m3([&](const Floats& x, Floats& out) { out = linear(w, x, 32); });
}

// Halves have few exponents: rows bring a power of two of their own.
TEST(CudaLinear, HalvesServeRowsOfAnySize) {
  for (const DType t : kScaledTypes) {
    const Weights w(20, 40, t, 1);
    const Floats x = random_floats(40, 2), want = linear(w, x, 1);
    for (const int exponent : {-100, -60, 17, 90}) {
      Floats other = x, expected = want;
      for (float& v : other) v = std::ldexp(v, exponent);
      for (float& v : expected) v = std::ldexp(v, exponent);
      EXPECT_TRUE(same_bits(linear(w, other, 1), expected)) << exponent;
    }
  }
}

// Their weights are under way before it is known whether they are wanted.
TEST(CudaLinear, WhatIsNotWantedLeavesNothingBehind) {
  for (const DType type : {DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    const Weights w(300, 200, type, 3);
    Floats x = random_floats(9 * 200, 4);
    Floats out(9 * 300, -7.0f), logp(9 * 5, -7.0f);
    Ints token(9 * 5, -7), wanted = {0};
    const Tensor rows = view(x, 9, 200);
    const Op plan[] = {RunIf{wanted.data(), 2}, Linear{rows, w.tensor(), {}, {}, view(out, 9, 300)},
                       LinearTopK{rows, w.tensor(), {}, 5, 300, nullptr, nullptr, {}, token.data(), logp.data()}};
    const auto device = cuda_device();
    run_plan(*device, plan);
    EXPECT_EQ(out, Floats(9 * 300, -7.0f));
    EXPECT_EQ(token, Ints(9 * 5, -7));
    wanted[0] = 1;
    run_plan(*device, plan);
    EXPECT_EQ(std::count(out.begin(), out.end(), -7.0f), 0);
    EXPECT_EQ(std::count(token.begin(), token.end(), -7), 0);
  }
}

TEST(CudaLinear, RowsOfIdsHaveLinearsBits) {
  for (const DType t : kWeightTypes)
    for (const int64_t k : {200, 300, 620}) {  // of the last two the pieces of a warp's ids end apart
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(t)) + ", " + std::to_string(k));
      const Weights w(300, k, t, 11);
      Floats x = random_floats(static_cast<size_t>(19 * k), 12), got(19 * 21);
      const Floats all = linear(w, x, 19);
      Ints ids(19 * 21);
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = i % 6 == 5 ? -1 : static_cast<int32_t>(i * 7919 % 300);
      run_cuda(LinearRows{view(x, 19, k), w.tensor(), ids.data(), view(got, 19, 21)});
      for (size_t i = 0; i < ids.size(); ++i)
        ASSERT_EQ(got[i], ids[i] < 0 ? 0.0f : all[i / 21 * 300 + static_cast<size_t>(ids[i])]) << i;
    }
}

// Parts are all of the units, one after another, and a panel block's pieces are where parts begin.
TEST(CudaLinear, PartsAndPiecesAreAllOfAMatrix) {
  using cuda::LinearPlace;
  using cuda::LinearShape;
  for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {16, 64}, {128, 16384}, {300, 300}, {4096, 4096}, {6144, 4096}, {4096, 14336}, {28672, 4096}, {128256, 4096}, {1024, 65}, {17, 70000}})
    for (const DType t : {DType::bf16, DType::int8, DType::int4}) {
      SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(k));
      const LinearShape s(t, n, k);
      ASSERT_EQ(s.part_begin(0), 0u);
      ASSERT_EQ(s.part_begin(s.parts), s.all_units());
      for (uint32_t part = 0; part < s.parts; ++part) {
        ASSERT_LT(s.part_begin(part), s.part_begin(part + 1));
        ASSERT_EQ(s.part_of(s.part_begin(part)), part);
        ASSERT_EQ(s.part_of(s.part_begin(part + 1) - 1), part);
      }
      for (uint32_t block = 0; block < s.blocks; ++block) {
        const uint32_t pieces = s.pieces(block);
        ASSERT_LE(pieces, s.most_pieces());
        uint32_t piece = 0;
        for (uint32_t unit = 0; unit < s.units; ++piece) {
          const LinearPlace place(s, block * s.units + unit);
          ASSERT_EQ(place.piece, piece);
          ASSERT_GT(place.piece_end, unit);
          unit = place.piece_end;
        }
        ASSERT_EQ(piece, pieces);
      }
    }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
