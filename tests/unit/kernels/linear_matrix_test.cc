// Linear on a matrix unit: its arithmetic on every machine, with the unit emulated; and that the emulation is right, where there is
// one. What Linear promises is tested in linear_test.cc on every instruction set of the machine, this one among them.
#if defined(__linux__)
#include <csignal>
#endif
#include <cstdlib>
#include <fstream>
#include <iterator>

// The choice of targets comes before Highway.
// clang-format off
#include "unit/kernels/ops_support.h"
#include "kernels/cpu/linear_matrix-inl.h"
// clang-format on
#include "kernels/cpu/matrix_unit.h"
#include "tests/support/emulated_tiles.h"

namespace aerie::kernels::linear_matrix_test {
using namespace aerie::kernels::test;
using aerie::test::EmulatedTiles;

constexpr DType kTypes[] = {DType::bf16, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};
struct Shape {
  int64_t n, k;
};
// Whole tiles and parts of them, of panels one to six, K that ends within a pair, a line, a block.
constexpr Shape kShapes[] = {{16, 64}, {40, 65}, {96, 131}, {50, 192}, {130, 288}};
constexpr int64_t kRows = 70;

struct Weights {
  std::vector<char> memory;
  Tensor tensor;
  Weights(const Shape& s, DType t, uint32_t seed) {
    const Floats w = random_floats(static_cast<size_t>(s.n * s.k), seed, 0.2f);
    const int64_t bytes = round_up(data_bytes(t, Layout::panel16, s.n, s.k), 64), scales = scale_bytes(t, s.n, s.k);
    memory.resize(static_cast<size_t>(bytes + scales + 64));
    char* at = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tensor = {at, has_scales(t) ? at + bytes : nullptr, s.n, s.k, 0, t, Layout::panel16};
    pack_panel16(w.data(), s.n, s.k, t, tensor.data, tensor.scales);
  }
};

// from, to: the rows of x and of the outputs that the op's are.
Floats on_emulated(const Weights& w, Floats x, int64_t rows, const int32_t* from = nullptr, const int32_t* to = nullptr) {
  Floats out(static_cast<size_t>(rows * w.tensor.rows));
  const Linear op{view(x, rows, w.tensor.cols), w.tensor, {}, {}, view(out, rows, w.tensor.rows)};
  std::vector<char> packed(static_cast<size_t>(cpu::matrix_rows_bytes(op)), 1);  // where rows are packed something was before
  cpu::PackedRows rows_of = cpu::matrix_rows_at(op, packed.data());
  rows_of.from = from, rows_of.to = to;
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{rows / 3, rows}, {0, rows / 3}})  // as threads share it, in mid-tile
    cpu::HWY_NAMESPACE::pack_all_matrix_rows(op, rows_of, first, last);
  Floats memory(static_cast<size_t>(cpu::matrix_sums_bytes(w.tensor.dtype, rows, w.tensor.cols) / 4 + 16));
  float* sums = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / 4;
  const int64_t panels = round_up(w.tensor.rows, kPanel) / kPanel;
  // In two lots, as tasks would.
  cpu::HWY_NAMESPACE::all_matrix_panels<EmulatedTiles>(op, 0, panels / 2, rows_of, sums);
  cpu::HWY_NAMESPACE::all_matrix_panels<EmulatedTiles>(op, panels / 2, panels, rows_of, sums);
  return out;
}

Floats on_cpu(const Weights& w, Floats x, int64_t rows) {
  Floats out(static_cast<size_t>(rows * w.tensor.rows));
  run_cpu(Linear{view(x, rows, w.tensor.cols), w.tensor, {}, {}, view(out, rows, w.tensor.rows)});
  return out;
}

Floats part(const Floats& v, int64_t first, int64_t n, int64_t width) {
  return Floats(v.begin() + first * width, v.begin() + (first + n) * width);
}

// The order of bf16's sums as linear_matrix-inl.h has it.
float bf16_of(float v) {
  const auto u = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u);
}
float bf16_sum(const Tensor& w, int64_t row, const float* x) {
  float sum = 0;
  for (int64_t first = 0; first < w.cols; first += 32)
    for (const bool rest : {false, true}) {
      float chain[2] = {};
      for (int64_t k = first; k < std::min(w.cols, first + 32); ++k) {
        const float nearest = bf16_of(x[k]);
        chain[k % 2] = std::fma(rest ? bf16_of(x[k] - nearest) : nearest, panel16_at(w, row, k), chain[k % 2]);
      }
      sum += chain[0] + chain[1];
    }
  return sum;
}

TEST(LinearMatrix, Bfloat16AddsUpInTheOrderThatItSays) {
  for (const Shape& s : kShapes) {
    const Weights w(s, DType::bf16, 1);
    const Floats x = random_floats(static_cast<size_t>(kRows * s.k), 2), got = on_emulated(w, x, kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t n = 0; n < s.n; ++n)
        ASSERT_EQ(got[static_cast<size_t>(r * s.n + n)], bf16_sum(w.tensor, n, x.data() + r * s.k)) << s.k << ": " << r << "," << n;
  }
}

// int8 has the bits of machines without VNNI, weights of 4 bits those of machines without the unit: there are more of these, and its texts
// are theirs. (Of these the emulation has the chains of the target that this file is compiled for, fused or not.)
TEST(LinearMatrix, IntegersHaveTheBitsOfOtherInstructionSets) {
  int compared = 0;
  each_isa([&](const Isa& isa) {
    if (isa.matrix_unit) return;
    for (const DType t : {DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
      if (t == DType::int8 ? cpu::activation_codes(t).by_block : isa.target != HWY_TARGET) continue;
      for (const Shape& s : kShapes) {
        const Weights w(s, t, 3);
        for (const float size : {1.0f, 1e-33f, 1e-34f, 1e-35f, 1e-36f}) {  // scales that are no normal numbers
          Floats x = random_floats(static_cast<size_t>(kRows * s.k), 4, size);
          x[0] = 0;
          EXPECT_TRUE(same_bits(on_emulated(w, x, kRows), on_cpu(w, x, kRows))) << s.k << " type " << static_cast<int>(t) << " of " << size;
        }
      }
      ++compared;
    }
  });
  EXPECT_GT(compared, 0);
}

// The unit's target with it and without.
void expect_same_without_the_unit(const Weights& w, const Floats& x, int64_t rows, float size) {
  std::vector<Floats> out;
  for (const Isa& isa : supported_isas()) {
    if (isa.target != supported_isas().front().target) continue;
    set_isa(isa);
    out.push_back(on_cpu(w, x, rows));
  }
  reset_isa();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(same_bits(out[0], out[1])) << rows << " rows of " << w.tensor.cols << ", of " << size;
}

TEST(LinearMatrix, TheUnitGivesNibblesTheBitsThatTheyHaveWithout) {
  if (!cpu::has_matrix_unit()) GTEST_SKIP() << "no matrix unit";
  for (const DType t : {DType::int4, DType::q4_1, DType::mxfp4})
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(static_cast<int>(t));
      const Weights w(s, t, 13);
      for (const float size : {1.0f, 1e30f, 1e-33f, 1e-36f, 1e-37f})
        for (const int64_t m : {cpu::kLeastNibbleRows, int64_t{16}, int64_t{17}, kRows}) {
          Floats x = random_floats(static_cast<size_t>(m * s.k), 14, size);
          x[0] = 0;
          expect_same_without_the_unit(w, x, m, size);
        }
    }
}

// Sums so large that they and a scale have more bits than a float: here it matters that the chain is fused, and its order.
TEST(LinearMatrix, LargeSumsOfNibblesAreAddedUpAsWithoutTheUnit) {
  if (!cpu::has_matrix_unit()) GTEST_SKIP() << "no matrix unit";
  constexpr int64_t n = 48, k = 2048, m = 16;
  for (const DType t : {DType::int4, DType::q4_1, DType::mxfp4}) {
    SCOPED_TRACE(static_cast<int>(t));
    const Weights w({n, k}, t, 11);
    for (int64_t i = 0; i < data_bytes(t, Layout::panel16, n, k); ++i) {
      auto& code = static_cast<uint8_t*>(w.tensor.data)[i];
      const int large = t == DType::mxfp4 ? 7 : 15, small = t == DType::mxfp4 ? 15 : 0;  // the largest and the smallest
      code = static_cast<uint8_t>((code & 0x80 ? large : small) << 4 | (code & 8 ? large : small));
    }
    Floats x(m * k);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 97 == 0 ? 0.3f : 1.0f;
    expect_same_without_the_unit(w, x, m, 1);
  }
}

TEST(LinearMatrix, AnyNumberOfRowsGivesTheSameBits) {
  for (const Shape& s : kShapes)
    for (const DType t : kTypes) {
      const Weights w(s, t, 5);
      const Floats x = random_floats(static_cast<size_t>(kRows * s.k), 6), all = on_emulated(w, x, kRows);
      for (int64_t m = 1; m < kRows; m += m < 34 ? 1 : 7) {
        const int64_t at = m * 5 % (kRows - m + 1);
        ASSERT_TRUE(same_bits(on_emulated(w, part(x, at, m, s.k), m), part(all, at, m, s.n)))
            << m << " rows of " << s.k << " type " << static_cast<int>(t);
      }
    }
}

// So those of an expert.
TEST(LinearMatrix, RowsMayLieAnywhere) {
  for (const int64_t m : {1, 7, 16, 40}) {
    Ints from(static_cast<size_t>(m)), to(from.size());
    for (int64_t r = 0; r < m; ++r) {
      from[static_cast<size_t>(r)] = static_cast<int32_t>(r * 3 % m);
      to[static_cast<size_t>(r)] = static_cast<int32_t>(m - 1 - r);
    }
    for (const Shape& s : kShapes)
      for (const DType t : kTypes) {
        const Weights w(s, t, 5);
        const Floats x = random_floats(static_cast<size_t>(m * s.k), 6), got = on_emulated(w, x, m, from.data(), to.data());
        const Floats in_order = on_emulated(w, x, m);
        for (int64_t r = 0; r < m; ++r)
          ASSERT_TRUE(same_bits(part(got, m - 1 - r, 1, s.n), part(in_order, r * 3 % m, 1, s.n)))
              << "row " << r << " of " << m << ", " << s.k << " type " << static_cast<int>(t);
      }
  }
}

// Others than zero may take a processor a hundred times as long.
TEST(LinearMatrix, NibblesMeetScalesOfZeroInRowsThatThereAreNot) {
  constexpr int64_t k = 160, blocks = 6, rows = 19, missing = 13;  // K in whole lines
  for (const DType t : {DType::int4, DType::q4_1, DType::mxfp4}) {
    const Weights w({16, k}, t, 17);
    Floats x = random_floats(rows * k, 18), out(rows * 16);
    const Linear op{view(x, rows, k), w.tensor, {}, {}, view(out, rows, 16)};
    std::vector<char> packed(static_cast<size_t>(cpu::matrix_rows_bytes(op)), 1);
    const cpu::PackedRows at = cpu::matrix_rows_at(op, packed.data());
    cpu::HWY_NAMESPACE::pack_all_matrix_rows(op, at, 0, rows);
    for (int64_t i = 0; i < blocks * cpu::kSide; ++i) {
      const bool is_there = i % cpu::kSide < cpu::kSide - missing;
      const int64_t of_second_tile = cpu::kSide * blocks + i;
      EXPECT_EQ(at.scale[of_second_tile] == 0, !is_there || i / cpu::kSide * kBlock >= k) << i << " type " << static_cast<int>(t);
      if (t == DType::q4_1 && !is_there) {
        EXPECT_EQ(at.block_sums[of_second_tile], 0) << i;
      }
    }
  }
}

// Of a long K, many rows meet a lot of panels part after part, few rows all at once.
TEST(LinearMatrix, PartsOfKChangeNoBits) {
  constexpr int64_t n = 72, m = 65;
  for (const auto& [t, k] : {std::pair<DType, int64_t>{DType::bf16, 2100}, {DType::int8, 6600}}) {
    ASSERT_GT(k * (t == DType::bf16 ? 2 : 1) / cpu::kLine, cpu::matrix_steps_at_once(t, m));
    const Weights w({n, k}, t, 9);
    const Floats x = random_floats(static_cast<size_t>(m * k), 10), all = on_emulated(w, x, m);
    for (const int64_t at : {int64_t{0}, m - 3})
      ASSERT_TRUE(same_bits(on_emulated(w, part(x, at, 3, k), 3), part(all, at, 3, n))) << "from row " << at << " type " << static_cast<int>(t);
  }
}

// Of nibbles the emulation has the chains of another target (above), if this file is compiled for one.
TEST(LinearMatrix, TheEmulationHasTheBitsOfTheUnit) {
  if (!cpu::has_matrix_unit()) GTEST_SKIP() << "no matrix unit";
  for (const Shape& s : kShapes)
    for (const DType t : {DType::bf16, DType::int8})
      for (const float size : {1.0f, 1e-37f, 1e30f}) {  // subnormal parts and products; sums that overflow
        const Weights w(s, t, 7);
        Floats x = random_floats(static_cast<size_t>(kRows * s.k), 8, size);
        for (size_t i = 0; i < x.size(); i += 97) x[i] *= 1e-3f;
        ASSERT_TRUE(same_bits(on_emulated(w, x, kRows), on_cpu(w, x, kRows))) << s.k << " type " << static_cast<int>(t) << " " << size;
      }
}

#if defined(__linux__) && defined(__x86_64__)
[[noreturn]] void ask_with_a_small_signal_stack() {
  static char memory[4096];
  stack_t small{};
  small.ss_sp = memory;
  small.ss_size = sizeof memory;
  if (sigaltstack(&small, nullptr) != 0) std::exit(2);
  std::exit(cpu::has_matrix_unit() || supported_isas().front().matrix_unit ? 1 : 0);
}

// A program whose thread has a signal stack that the registers would not fit: the kernel says no, and everything goes on without.
TEST(MatrixUnit, IsNotUsedWhereASignalStackIsTooSmall) {
  std::ifstream file("/proc/cpuinfo");
  const std::string about{std::istreambuf_iterator<char>(file), {}};
  if (about.find("amx_int8") == std::string::npos) GTEST_SKIP() << "no matrix unit";
  const std::string style = GTEST_FLAG_GET(death_test_style);
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own, which has not asked yet
  EXPECT_EXIT(ask_with_a_small_signal_stack(), testing::ExitedWithCode(0), "");
  GTEST_FLAG_SET(death_test_style, style);
}
#endif

}  // namespace aerie::kernels::linear_matrix_test
