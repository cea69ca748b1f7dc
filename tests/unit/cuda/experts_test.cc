// Mixtures of experts on the emulated device: the host's routes bit for bit, the reference's products, and for an output the same bits
// whatever else its expert is asked for.
#include "kernels/cuda/linear_shape.h"
#include "kernels/route_math.h"
#include "unit/cuda/linear_support.h"

namespace aerie::kernels::cuda_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- Route -------------------------------------------------------------------------------------

struct Routes {
  Ints experts;
  Floats weights;
  bool operator==(const Routes& o) const { return experts == o.experts && same_bits(weights, o.weights); }
};
Routes none(int64_t rows, int32_t k) { return {Ints(static_cast<size_t>(rows * k), -7), Floats(static_cast<size_t>(rows * k), -7.0f)}; }
struct Scores {
  bool sigmoid = false;
  float scale = 1;
  Floats choice, gain = {};  // empty: none
  Route op(const Tensor& logits, int32_t k, bool normed, Routes& r) {
    const Tensor of_choice = choice.empty() ? Tensor{} : view(choice, 1, logits.cols);
    const Tensor of_gain = gain.empty() ? Tensor{} : view(gain, 1, logits.cols);
    return {logits, k, normed, r.experts.data(), view(r.weights, logits.rows, k), sigmoid, of_choice, scale, of_gain};
  }
};
Routes route(Floats logits, int64_t rows, int32_t k, bool normed, Scores scores = {}) {
  Routes r = none(rows, k);
  run_cuda(scores.op(view(logits, rows, static_cast<int64_t>(logits.size()) / rows), k, normed, r));
  return r;
}
Routes host_routes(Floats logits, int64_t rows, int32_t k, bool normed, Scores scores = {}) {
  Routes r = none(rows, k);
  const Route op = scores.op(view(logits, rows, static_cast<int64_t>(logits.size()) / rows), k, normed, r);
  for (int64_t i = 0; i < rows; ++i) route_row(op, i);
  return r;
}

TEST(CudaExperts, RoutesAreTheHostsBitForBit) {
  struct Case {
    int64_t rows, n;
    int32_t k;
  };
  for (const Case& c : {Case{1, 1, 1}, {5, 8, 2}, {3, 32, 32}, {9, 60, 4}, {17, 128, 8}, {2, 1000, 31}, {2, kMaxExperts, kMaxExpertsUsed}})
    for (const bool normed : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.k << " of " << c.n << (normed ? ", normed" : ""));
      Floats logits = random_floats(static_cast<size_t>(c.rows * c.n), 1, 3.0f);
      EXPECT_EQ(route(logits, c.rows, c.k, normed), host_routes(logits, c.rows, c.k, normed));
      for (float& x : logits) x = std::round(x);  // many ties
      EXPECT_EQ(route(logits, c.rows, c.k, normed), host_routes(logits, c.rows, c.k, normed)) << "ties";
      std::fill(logits.begin(), logits.end(), 0.0f);
      logits.back() = -0.0f;
      const Routes same = route(logits, c.rows, c.k, normed);
      EXPECT_EQ(same, host_routes(logits, c.rows, c.k, normed)) << "all the same";
      for (int32_t i = 0; i < c.k; ++i) EXPECT_EQ(same.experts[static_cast<size_t>(i)], i);
    }
}

TEST(CudaExperts, RoutesByScoresAreTheHostsBitForBit) {
  for (const auto& [rows, n, k] : {std::tuple<int64_t, int64_t, int32_t>{1, 1, 1}, {5, 8, 2}, {3, 32, 32}, {9, 60, 4}, {2, kMaxExperts, kMaxExpertsUsed}})
    for (const bool normed : {false, true})
      for (const bool sigmoid : {false, true})
        for (const bool choice : {false, true}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << k << " of " << n << (normed ? ", normed" : "") << (sigmoid ? ", sigmoids" : ""));
          Scores s{sigmoid, 2.5f, choice ? random_floats(static_cast<size_t>(n), 5, 0.2f) : Floats()};
          Floats logits = random_floats(static_cast<size_t>(rows * n), 6, 3.0f);
          EXPECT_EQ(route(logits, rows, k, normed, s), host_routes(logits, rows, k, normed, s));
          for (float& x : logits) x = std::round(x);
          for (float& x : s.choice) x = std::round(4 * x) / 4;
          EXPECT_EQ(route(logits, rows, k, normed, s), host_routes(logits, rows, k, normed, s)) << "ties";
          s.gain = random_floats(static_cast<size_t>(n), 7);
          EXPECT_EQ(route(logits, rows, k, normed, s), host_routes(logits, rows, k, normed, s)) << "gains";
          logits.front() = kNan;
          EXPECT_EQ(route(logits, rows, k, normed, s), host_routes(logits, rows, k, normed, s)) << "not a number";
        }
}

TEST(CudaExperts, RowsThatAreNotFiniteTakeTheFirstExperts) {
  constexpr int64_t kRows = 6, kAll = 70;
  constexpr int32_t kUsed = 3;
  const float infinity = std::numeric_limits<float>::infinity();
  const Floats good = random_floats(kRows * kAll, 2);
  Floats logits = good;
  logits[1 * kAll + 69] = kNan;
  logits[3 * kAll] = infinity;
  logits[4 * kAll + 33] = -infinity;
  each_order([&] {
    const Routes got = route(logits, kRows, kUsed, true), want = route(good, kRows, kUsed, true);
    EXPECT_EQ(got, host_routes(logits, kRows, kUsed, true));
    for (size_t at = 0; at < kRows * kUsed; ++at) {
      const size_t r = at / kUsed, i = at % kUsed;
      if (r == 1 || r == 3 || r == 4) {
        EXPECT_EQ(got.experts[at], static_cast<int32_t>(i));
        EXPECT_TRUE(std::isnan(got.weights[at]));
      } else {
        EXPECT_EQ(got.experts[at], want.experts[at]);
        EXPECT_EQ(got.weights[at], want.weights[at]);
      }
    }
  });
}

TEST(CudaExperts, CombinesInOrder) {
  constexpr int64_t kRows = 5, kCols = 300, kUsed = 7, kWide = 310;
  Floats x = random_floats(kRows * kUsed * kCols, 3), weights = random_floats(kRows * kUsed, 4), got(kRows * kWide, -7.0f), want = got;
  const auto op = [&](Floats& out) {
    return CombineExperts{view(x, kRows * kUsed, kCols), view(weights, kRows, kUsed), columns(view(out, kRows, kWide), 4, kCols)};
  };
  run_reference(op(want));
  each_order([&] {
    std::fill(got.begin(), got.end(), -7.0f);
    run_cuda(op(got));
    EXPECT_TRUE(same_bits(got, want));
  });
}

// ---- ExpertLinear --------------------------------------------------------------------------------

// So many experts' weights.
struct ExpertOp {
  int32_t all, k;
  int64_t n, in;
  Weights w;
  ExpertOp(int32_t all_, int32_t k_, int64_t n_, int64_t in_, DType t, uint32_t seed) : all(all_), k(k_), n(n_), in(in_), w(all_ * n_, in_, t, seed) {}
  Tensor of_expert(int64_t e) const { return panels(w.tensor(), e * n / kPanel, n / kPanel); }
  // An output has the row x[output / same].
  int64_t same(const Floats& x, const Ints& experts) const { return static_cast<int64_t>(experts.size()) / (static_cast<int64_t>(x.size()) / in); }
  ExpertLinear op(Floats& x, Ints& experts, Floats& out) const {
    const auto outputs = static_cast<int64_t>(experts.size());
    return {view(x, static_cast<int64_t>(x.size()) / in, in), w.tensor(), experts.data(), k, view(out, outputs, n)};
  }
  Floats nothing(const Ints& experts) const { return Floats(experts.size() * static_cast<size_t>(n), kNan); }
  Floats run(Floats x, Ints experts) const {
    Floats out = nothing(experts);
    run_cuda(op(x, experts, out));
    return out;
  }
};

Floats part_of(const Floats& v, int64_t first, int64_t count) { return {v.begin() + first, v.begin() + first + count}; }

Ints random_experts(int64_t outputs, int32_t all, uint32_t seed) {
  std::mt19937 rng(seed);
  Ints experts;
  for (int64_t i = 0; i < outputs; ++i) experts.push_back(static_cast<int32_t>(rng() % static_cast<uint32_t>(all)));
  return experts;
}

void expect_reference(const ExpertOp& m, const Floats& x, const Ints& experts) {
  Floats in = x, want = m.nothing(experts);
  Ints chosen = experts;
  run_reference(m.op(in, chosen, want));
  const Floats got = m.run(x, experts);
  Closeness closeness(bounds_of(m.w.type));
  for (int32_t e = 0; e < m.all; ++e) {
    Floats its_got, its_want, its_x;
    for (size_t i = 0; i < experts.size(); ++i) {
      if (experts[i] != e) continue;
      const auto add = [i](Floats* to, const Floats& from, int64_t width, int64_t same) {
        const Floats part = part_of(from, static_cast<int64_t>(i) / same * width, width);
        to->insert(to->end(), part.begin(), part.end());
      };
      add(&its_got, got, m.n, 1), add(&its_want, want, m.n, 1), add(&its_x, x, m.in, m.same(x, experts));
    }
    closeness.add(its_got, its_want, m.of_expert(e), its_x);
  }
  closeness.expect();
}

TEST(CudaExperts, ProductsAreTheReferences) {
  struct Case {
    int32_t all, k;
    int64_t n, in, rows;
  };
  for (const Case& c : {Case{3, 2, 16, 33, 5}, {6, 3, 48, 300, 11}, {2, 1, 32, 1100, 12}, {40, 8, 32, 200, 2}, {2, 2, 16, 64, 45}})  // the last: more than a tile
    for (const DType t : kWeightTypes)
      for (const bool shared : {true, false}) {
        SCOPED_TRACE(testing::Message() << c.n << " x " << c.in << " type " << static_cast<int>(t) << (shared ? "" : ", a row for each"));
        const ExpertOp m(c.all, c.k, c.n, c.in, t, 5);
        expect_reference(m, random_floats(static_cast<size_t>(c.rows * c.in * (shared ? 1 : c.k)), 6), random_experts(c.rows * c.k, c.all, 7));
      }
}

// Where there is little to cut, an expert is cut as a Linear is.
TEST(CudaExperts, ASmallExpertIsALinearBitForBit) {
  constexpr int64_t kRows = 4, kOutputs = 12;
  for (const DType t : kWeightTypes) {
    const ExpertOp m(5, 3, 48, 300, t, 8);
    Floats x = random_floats(kRows * 300, 9);
    const Ints experts = random_experts(kOutputs, 5, 10);
    const Floats all = m.run(x, experts);
    for (int64_t i = 0; i < kOutputs; ++i) {
      Floats in = part_of(x, i / 3 * 300, 300), out(48, kNan);
      run_cuda(Linear{view(in, 1, 300), m.of_expert(experts[static_cast<size_t>(i)]), {}, {}, view(out, 1, 48)});
      EXPECT_TRUE(same_bits(out, part_of(all, i * 48, 48))) << static_cast<int>(t) << ", output " << i;
    }
  }
}

// K in pieces, and more outputs of an expert than pass its weights at once.
struct Crowd {
  static constexpr int32_t kAll = 3, kUsed = 32;
  static constexpr int64_t kOut = 144, kIn = 700, kRows = 2;
  ExpertOp m;
  Floats x = random_floats(kRows * kUsed * kIn, 12);
  Ints experts = random_experts(kRows * kUsed, kAll, 13);
  explicit Crowd(DType t) : m(kAll, kUsed, kOut, kIn, t, 11) {
    for (size_t i = 0; i < experts.size(); i += 3) experts[i] = 1;
  }
};

TEST(CudaExperts, AnOutputHasBitsOfItsOwn) {
  for (const DType t : kWeightTypes) {
    SCOPED_TRACE(static_cast<int>(t));
    const Crowd c(t);
    using C = Crowd;
    const cuda::LinearShape shape(t, C::kOut, C::kIn, cuda::kWantedParts / C::kUsed);
    ASSERT_TRUE(t == DType::f32 || shape.pieces(0) > 2);
    ASSERT_GT(std::count(c.experts.begin(), c.experts.end(), 1), 32);
    const Floats all = c.m.run(c.x, c.experts);
    // Others go elsewhere, or are nonsense; one of them for whom there is no expert. So an expert has 1, 2, .. of these outputs.
    for (const size_t kept : {1, 9, 30}) {
      Ints experts(c.experts.size());
      Floats x = c.x;
      for (size_t i = 0; i < experts.size(); ++i) {
        if (i * 5 % 64 < kept) {
          experts[i] = c.experts[i];
          continue;
        }
        experts[i] = i % 7 == 0 ? -1 : (c.experts[i] + 1) % C::kAll;
        x[i * C::kIn + i] = kNan;
      }
      const Floats got = c.m.run(x, experts);
      for (size_t i = 0; i < experts.size(); ++i) {
        const auto at = static_cast<int64_t>(i) * C::kOut;
        if (i * 5 % 64 < kept) ASSERT_TRUE(same_bits(part_of(got, at, C::kOut), part_of(all, at, C::kOut))) << kept << " kept, output " << i;
        else if (experts[i] < 0) ASSERT_EQ(part_of(got, at, C::kOut), Floats(C::kOut)) << i;
        else ASSERT_TRUE(std::isnan(got[static_cast<size_t>(at)])) << i;
      }
    }
  }
}

// Rows of other passes: their number is another, and so are grids, lists and fragments; of the second case K is in pieces.
TEST(CudaExperts, ARowHasItsBitsInEveryPass) {
  struct Case {
    int32_t k;
    int64_t rows, n, in;
  };
  for (const Case& c : {Case{4, 11, 32, 160}, {32, 2, 16, 520}})
    for (const DType t : kWeightTypes) {
      const ExpertOp m(9, c.k, c.n, c.in, t, 14);
      const Floats x = random_floats(static_cast<size_t>(c.rows * c.in), 15);
      const Ints experts = random_experts(c.rows * c.k, 9, 16);
      const Floats all = m.run(x, experts);
      for (const int64_t rows : {int64_t{1}, c.rows / 2, c.rows - 1}) {
        const int64_t first = c.rows - rows;
        const Ints its(experts.begin() + first * c.k, experts.end());
        EXPECT_TRUE(same_bits(m.run(part_of(x, first * c.in, rows * c.in), its), part_of(all, first * c.k * c.n, rows * c.k * c.n)))
            << static_cast<int>(t) << ", " << rows << " rows, " << c.k << " each";
      }
    }
}

TEST(CudaExperts, ThreadsMayComeInAnyOrder) {
  for (const DType t : kWeightTypes) {
    const Crowd c(t);
    const Floats want = c.m.run(c.x, c.experts);
    each_order([&] { EXPECT_TRUE(same_bits(c.m.run(c.x, c.experts), want)) << static_cast<int>(t); });
  }
}

TEST(CudaExperts, AnExpertThatIsNotThereGivesZeros) {
  constexpr int64_t kOut = 16, kIn = 40, kWide = 64;
  for (const DType t : kWeightTypes) {
    const ExpertOp m(4, 2, kOut, kIn, t, 17);
    Ints experts = {-1, 3, 4, 0, 1 << 30, std::numeric_limits<int32_t>::min()};
    const Floats x = random_floats(3 * kIn, 18), all = m.run(x, {2, 3, 1, 0, 1, 1});
    Floats xs(3 * kWide, kNan), out(6 * kWide, -7.0f);  // of wider rows, whose other columns are left alone
    for (int64_t r = 0; r < 3; ++r) std::copy_n(x.data() + r * kIn, kIn, xs.data() + r * kWide + 8);
    run_cuda(ExpertLinear{columns(view(xs, 3, kWide), 8, kIn), m.w.tensor(), experts.data(), 2, columns(view(out, 6, kWide), 5, kOut)});
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t c = 0; c < kWide; ++c) {
        const bool inside = c >= 5 && c < 5 + kOut, there = i == 1 || i == 3;
        const float want = !inside ? -7.0f : there ? all[static_cast<size_t>(i * kOut + c - 5)] : 0.0f;
        ASSERT_EQ(out[static_cast<size_t>(i * kWide + c)], want) << i << "," << c;
      }
    Ints nobody(6, -1);
    EXPECT_EQ(m.run(x, nobody), Floats(6 * kOut)) << static_cast<int>(t);
  }
}

// As Linear adds it: bias + sum. An output without an expert has none. Of the second case K is in many pieces; rows of biases lie apart.
TEST(CudaExperts, AddsTheBiasOfTheExpert) {
  struct Case {
    int64_t n, in;
  };
  constexpr int64_t kAll = 4, kOutputs = 8, kApart = 7;
  for (const Case& c : {Case{48, 70}, {32, 1300}})
    for (const DType t : kWeightTypes) {
      const ExpertOp m(kAll, 2, c.n, c.in, t, 20);
      Ints experts = {2, 3, -1, 0, 1, kAll, 2, 2};
      Floats x = random_floats(static_cast<size_t>(kOutputs / 2 * c.in), 21);
      Floats bias = random_floats(static_cast<size_t>(kAll * (c.n + kApart)), 22);
      const Floats sums = m.run(x, experts);
      Floats got = m.nothing(experts), want = got;
      for (const auto& [out, reference] : {std::pair(&got, false), {&want, true}}) {
        ExpertLinear op = m.op(x, experts, *out);
        op.bias = columns(view(bias, kAll, c.n + kApart), 3, c.n);
        if (reference) run_reference(op);
        else run_cuda(op);
      }
      for (size_t i = 0; i < got.size(); ++i) {
        const int32_t e = experts[i / static_cast<size_t>(c.n)];
        const bool there = e >= 0 && e < kAll;
        const float of_expert = there ? bias[static_cast<size_t>(e * (c.n + kApart) + 3) + i % static_cast<size_t>(c.n)] : 0.0f;
        ASSERT_EQ(got[i], there ? of_expert + sums[i] : 0.0f) << static_cast<int>(t) << ", " << c.in << ": " << i;
        ASSERT_NEAR(got[i], want[i], 0.05f) << i;
      }
    }
}

TEST(CudaExperts, MoreThanItKnowsAreRefused) {
  const auto device = cuda_device();
  auto queue = std::move(device->make_queue()).value();
  Floats logits(kMaxExperts + 1), weights(1);
  Ints experts(1);
  const Op plan[] = {Route{view(logits, 1, kMaxExperts + 1), 1, true, experts.data(), view(weights, 1, 1)}};
  EXPECT_EQ(queue->submit(plan).code(), Code::unsupported);
  const ExpertOp m(kMaxExperts + 1, 1, 16, 2, DType::f32, 19);
  Floats x(2), out(16);
  const Op product[] = {m.op(x, experts, out)};
  EXPECT_EQ(queue->submit(product).code(), Code::unsupported);
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
