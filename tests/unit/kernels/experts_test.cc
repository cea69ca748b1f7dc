// Experts of a mixture: each row has the bits of Linear alone, whatever else an op holds.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/linear_matrix.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::experts_test {
using namespace aerie::kernels::test;

constexpr DType kExpertTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};

// An op over rows that lie apart, in a matrix with something beside them.
struct ExpertOp {
  int64_t rows, experts, n, cols;
  int32_t k;
  bool own;  // each place has a row of x of its own
  std::vector<char> memory;
  Tensor w;
  Floats x, out, bias;  // empty: none
  Ints chosen;
  static constexpr int64_t kBeside = 5;

  ExpertOp(int64_t rows_, int32_t k_, int64_t experts_, int64_t n_, int64_t cols_, DType t, bool own_ = false, uint32_t seed = 1)
      : rows(rows_), experts(experts_), n(n_), cols(cols_), k(k_), own(own_) {
    const int64_t bytes = round_up(data_bytes(t, Layout::panel16, experts * n, cols), 64), scales = scale_bytes(t, experts * n, cols);
    memory.resize(static_cast<size_t>(bytes + scales + 64));
    char* at = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    w = {at, has_scales(t) ? at + bytes : nullptr, experts * n, cols, 0, t, Layout::panel16};
    pack_panel16(random_floats(static_cast<size_t>(experts * n * cols), seed, 0.2f).data(), experts * n, cols, t, w.data, w.scales);
    x = random_floats(static_cast<size_t>((own ? places() : rows) * (cols + kBeside)), seed + 1);
    out.assign(static_cast<size_t>(places() * (n + kBeside)), 77.0f);
    choose(seed);
  }
  int64_t places() const { return rows * k; }
  // Different ones for a row, as Route gives them: some seldom, some by most rows.
  void choose(uint32_t seed) {
    std::mt19937 rng(seed);
    chosen.clear();
    for (int64_t r = 0; r < rows; ++r) {
      Ints all(static_cast<size_t>(experts));
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin() + (r % 2 && experts > k ? 1 : 0), all.end(), rng);
      chosen.insert(chosen.end(), all.begin(), all.begin() + k);
    }
  }
  ExpertLinear op() {
    const Tensor in = columns(view(x, own ? places() : rows, cols + kBeside), 2, cols);
    return {in, w, chosen.data(), k, columns(view(out, places(), n + kBeside), 1, n), bias.empty() ? Tensor{} : view(bias, experts, n)};
  }
  Floats place(int64_t p) const {
    const auto at = out.begin() + p * (n + kBeside) + 1;
    return Floats(at, at + n);
  }
  // What Linear makes of one place's row and expert alone.
  Floats alone(int64_t p) {
    const int64_t e = chosen[static_cast<size_t>(p)];
    Floats one(static_cast<size_t>(n));
    if (e < 0 || e >= experts) return one;
    const Tensor of_expert = bias.empty() ? Tensor{} : kernels::rows(op().bias, e, 1);
    run_cpu(Linear{kernels::rows(op().x, own ? p : p / k, 1), panels(w, e * (n / kPanel), n / kPanel), of_expert, {}, view(one, 1, n)});
    return one;
  }
  void expect_linear() {
    for (int64_t p = 0; p < places(); ++p) ASSERT_TRUE(same_bits(place(p), alone(p))) << "place " << p << " of " << places();
    for (int64_t p = 0; p < places(); ++p)
      for (const int64_t beside : {int64_t{0}, n + 1, n + kBeside - 1}) ASSERT_EQ(out[static_cast<size_t>(p * (n + kBeside) + beside)], 77.0f);
  }
  void forget() {
    for (int64_t p = 0; p < places(); ++p) std::fill_n(out.begin() + p * (n + kBeside) + 1, n, std::numeric_limits<float>::quiet_NaN());
  }
};

struct Size {
  int64_t rows;
  int32_t k;
  int64_t experts, n, cols;
};

TEST(ExpertLinear, EachRowHasTheBitsOfLinearAlone) {
  // One panel; many, of K with a tail; more rows than a tile; more than are packed together.
  for (const Size& s : {Size{1, 1, 1, 16, 1}, {1, 4, 9, 80, 70}, {3, 2, 4, 16, 33}, {40, 3, 5, 48, 96}, {150, 1, 3, 16, 64}})
    for (const DType t : kExpertTypes)
      for (const bool own : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.rows << " x " << s.k << " of " << s.experts << ", " << s.n << " x " << s.cols << " type "
                                        << static_cast<int>(t) << (own ? " own" : ""));
        ExpertOp m(s.rows, s.k, s.experts, s.n, s.cols, t, own);
        each_isa([&] {
          for (const int threads : {1, 3}) {
            m.forget();
            run_cpu(m.op(), threads);
            m.expect_linear();
          }
        });
      }
}

TEST(ExpertLinear, MatchesTheReference) {
  const RoundsAsCpu rounds;
  for (const DType t : kExpertTypes)
    for (const bool own : {false, true}) {
      SCOPED_TRACE(static_cast<int>(t));
      ExpertOp m(9, 3, 6, 32, 100, t, own), want = m;
      m.chosen[4] = want.chosen[4] = 6;
      run_cpu(m.op());
      run_reference(want.op());
      expect_near(m.out, want.out, 5e-5f);  // what a matrix unit may make of bf16
    }
}

TEST(ExpertLinear, AnExpertThatThereIsNotGivesZeros) {
  constexpr int32_t kOutside[] = {-1, 5, 1 << 30, std::numeric_limits<int32_t>::min()};
  for (const bool all : {false, true}) {
    ExpertOp m(70, 2, 5, 32, 40, DType::int8);
    for (size_t p = 0; p < m.chosen.size(); ++p)
      if (all || p % 3 == 0) m.chosen[p] = kOutside[p % 4];
    m.forget();
    run_cpu(m.op());
    m.expect_linear();  // which knows of them
    for (const float v : m.place(0)) EXPECT_EQ(v, 0.0f);
  }
}

// Each expert's own, last; a row without an expert has none.
TEST(ExpertLinear, ABiasIsTheExpertsOwn) {
  const RoundsAsCpu rounds;
  for (const Size& s : {Size{1, 4, 9, 80, 70}, {40, 3, 5, 48, 96}})
    for (const DType t : kExpertTypes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows, type " << static_cast<int>(t));
      ExpertOp m(s.rows, s.k, s.experts, s.n, s.cols, t);
      m.chosen[1] = -1, m.chosen.back() = static_cast<int32_t>(s.experts);
      run_cpu(m.op());
      const Floats plain = m.out;
      m.bias = random_floats(static_cast<size_t>(s.experts * s.n), 9, 3.0f);
      each_isa([&] {
        m.forget();
        run_cpu(m.op(), 3);
        m.expect_linear();
        for (const int64_t p : {int64_t{1}, m.places() - 1})
          for (const float v : m.place(p)) EXPECT_EQ(v, 0.0f);
      });
      run_cpu(m.op());
      for (int64_t p = 0; p < m.places(); ++p) {
        const int64_t e = m.chosen[static_cast<size_t>(p)];
        for (int64_t i = 0; e >= 0 && e < s.experts && i < s.n; ++i) {
          const auto at = static_cast<size_t>(p * (s.n + ExpertOp::kBeside) + 1 + i);
          ASSERT_EQ(m.out[at], m.bias[static_cast<size_t>(e * s.n + i)] + plain[at]) << "place " << p << " output " << i;
        }
      }
      ExpertOp want = m;
      run_reference(want.op());
      expect_near(m.out, want.out, 1e-4f);
    }
}

// On devices, where a thread keeps what it worked out for an op, and every task may be a slice: two ops of one shape whose rows and
// experts differ, of two queues in turn.
TEST(ExpertLinear, ThreadsAndSlicesChangeNoBits) {
  for (const DType t : {DType::bf16, DType::int8, DType::q4_1, DType::mxfp4})
    for (const int64_t rows : {1, 90}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, type " << static_cast<int>(t));
      ExpertOp a(rows, 4, 6, 320, 96, t, false, 1), b(rows, 4, 6, 320, 96, t, false, 2);
      for (const int threads : {1, 2, 5}) {
        auto device = make_cpu_device({.threads = threads});
        ASSERT_TRUE(device.ok());
        for (const auto deadline : {kNoDeadline, Clock::time_point::min()}) {
          a.forget();
          b.forget();
          const Op plan_a[] = {a.op(), a.op()}, plan_b[] = {b.op(), b.op()};
          const auto qa = std::move(*(*device)->make_queue()), qb = std::move(*(*device)->make_queue());
          ASSERT_TRUE(qa->submit(plan_a).ok() && qb->submit(plan_b).ok());
          int calls = 0;
          for (bool more = true; more; ++calls) {
            more = *qa->advance(deadline) == RunState::pending;
            more = *qb->advance(deadline) == RunState::pending || more;
          }
          a.expect_linear();
          b.expect_linear();
          if (deadline != kNoDeadline) {
            EXPECT_GE(calls, 2) << "nothing was cut";
          }
        }
      }
    }
}

// Where one row's experts read the same x, it is packed once; where another's come between, again.
TEST(ExpertLinear, WhatIsPackedServesNoOtherRows) {
  auto device = make_cpu_device({.threads = 1});
  ASSERT_TRUE(device.ok());
  for (const DType t : {DType::f32, DType::int8}) {
    ExpertOp m(2, 2, 4, 16, 64, t);
    for (const Ints& chosen : {Ints{0, 1, 2, 3}, Ints{0, 2, 1, 3}, Ints{3, 1, 1, 3}, Ints{1, -1, 1, 0}, Ints{2, 2, 2, 2}}) {
      m.chosen = chosen;
      m.forget();
      const Op plan[] = {m.op()};
      run_plan(**device, plan);
      m.expect_linear();
    }
  }
}

// One row for all of its experts, and the rows of an expert for all of its tasks: what a thread does later knows nothing of a change.
TEST(ExpertLinear, AThreadPacksItsRowsOnce) {
  for (const auto& [rows, k, n, cols] : {std::tuple<int64_t, int32_t, int64_t, int64_t>{1, 3, 32, 64}, {50, 1, 1024, 256}}) {
    ExpertOp m(rows, k, 3, n, cols, DType::int8);
    if (rows > 1) std::fill(m.chosen.begin(), m.chosen.end(), 1);
    constexpr int kThreads = 8;
    const ExpertLinear op = m.op();
    const int32_t tasks = cpu::tasks(op, kThreads);
    ASSERT_GE(tasks, 3);
    std::vector<Floats> want;
    for (int64_t p = 0; p < m.places(); ++p) want.push_back(m.alone(p));
    cpu::Scratch scratch;
    scratch.enter(1);
    for (int32_t t = 0; t < tasks; ++t) {
      cpu::run(op, t, kThreads, scratch);
      if (t == 0) m.x.assign(m.x.size(), 0.0f);
    }
    for (int64_t p = 0; p < m.places(); ++p) EXPECT_TRUE(same_bits(m.place(p), want[static_cast<size_t>(p)])) << p;
    scratch.enter(2);  // another run, of the rows as they are now
    for (int32_t t = 0; t < tasks; ++t) cpu::run(op, t, kThreads, scratch);
    m.expect_linear();
    scratch.release();
  }
}

// A tenth of a millisecond or two on one core, of few rows and of many, however they choose; and enough tasks for all threads.
TEST(ExpertLinear, TasksOfALargeModelAreShort) {
  constexpr int64_t kMacs = 12 << 20, kWeights = 5 << 19, kExperts = 128, kN = 1536, kCols = 2048;
  for (const int threads : {1, 2, 8})
    for (const int64_t rows : {1, 16, 64, 512})
      for (const int64_t different : {int64_t{8}, kExperts}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << rows << " rows, " << different << " experts");
        Ints chosen(static_cast<size_t>(rows * 8));
        for (size_t p = 0; p < chosen.size(); ++p) chosen[p] = static_cast<int32_t>(p % static_cast<size_t>(different));
        const Tensor w{nullptr, nullptr, kExperts * kN, kCols, 0, DType::bf16, Layout::panel16};
        const ExpertLinear op{matrix(nullptr, rows, kCols), w, chosen.data(), 8, matrix(nullptr, rows * 8, kN)};
        const int64_t taken = std::min(different, rows * 8);
        EXPECT_EQ(cpu::weights_read(op), taken * kN * kCols * 2);
        each_isa([&] {
          const int64_t tasks = cpu::tasks(op, threads);
          const int64_t speed = cpu::on_matrix_unit(Linear{op.x, w, {}, {}, op.out}) ? cpu::matrix_speed(w.dtype) : 1;
          EXPECT_GE(tasks * kMacs * speed, rows * 8 * kN * kCols);
          EXPECT_GE(tasks * kWeights, taken * kN * kCols);
          EXPECT_GE(tasks, threads * 4);
        });
      }
}

}  // namespace aerie::kernels::experts_test
