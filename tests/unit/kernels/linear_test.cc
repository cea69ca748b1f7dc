// Linear and packing against scalar oracles written from ops.h and tensor.h alone, on every ISA.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>

#include "kernels/cpu/fetching.h"
#include "kernels/e2m1.h"
#include "kernels/e4m3.h"
#include "unit/kernels/e4m3_support.h"

namespace aerie::kernels::linear_test {
using namespace aerie::kernels::test;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// 64-byte aligned bytes, as packages and devices give them.
class Bytes {
 public:
  explicit Bytes(int64_t n)
      : memory_(static_cast<char*>(::operator new (static_cast<size_t>(n) + 64, std::align_val_t{64}))) {
    std::memset(memory_.get(), 0, static_cast<size_t>(n) + 64);
  }
  char* data() const { return memory_.get(); }

 private:
  struct Delete {
    void operator()(char* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<char, Delete> memory_;
};

struct Packed {
  DType type;
  int64_t n, k;
  Bytes data, scales;
  Packed(const Floats& w, int64_t n_, int64_t k_, DType t)
      : type(t), n(n_), k(k_), data(data_bytes(t, Layout::panel16, n, k)), scales(scale_bytes(t, n, k)) {
    pack_panel16(w.data(), n, k, t, data.data(), has_scales(t) ? scales.data() : nullptr);
  }
  Tensor tensor() const {
    return {data.data(), has_scales(type) ? scales.data() : nullptr, n, k, 0, type, Layout::panel16};
  }
};

float half(uint16_t h) {
  const int e = h >> 10 & 31, m = h & 1023;
  const float v = e == 31  ? (m ? kNaN : kInf)
                  : e == 0 ? std::ldexp(static_cast<float>(m), -24)
                           : std::ldexp(static_cast<float>(m + 1024), e - 25);
  return h & 0x8000 ? -v : v;
}

// What a block of q4_1 has, straight from the layout in tensor.h.
struct Grid {
  float scale, min;
};
Grid grid_of(const Packed& p, int64_t row, int64_t col) {
  const int64_t blocks = k_padded(p.type, p.k) / 32;
  const auto* h = reinterpret_cast<const uint16_t*>(p.scales.data()) + (row / 16 * blocks + col / 32) * 32 + row % 16;
  return {half(h[0]), half(h[16])};
}

// The packed element, too.
float element(const Packed& p, int64_t row, int64_t col) {
  const int64_t panel = row / 16, l = row % 16, kp = k_padded(p.type, p.k), blocks = kp / 32;
  const auto* bytes = reinterpret_cast<const uint8_t*>(p.data.data());
  const auto* h = reinterpret_cast<const uint16_t*>(p.scales.data());
  switch (p.type) {
    case DType::f32: {
      float v;
      std::memcpy(&v, bytes + 4 * ((panel * kp + col) * 16 + l), 4);
      return v;
    }
    case DType::bf16: {
      uint16_t v;
      std::memcpy(&v, bytes + 2 * (((panel * (kp / 2) + col / 2) * 16 + l) * 2 + col % 2), 2);
      return std::bit_cast<float>(static_cast<uint32_t>(v) << 16);
    }
    case DType::int8: {
      const auto q = static_cast<int8_t>(bytes[((panel * (kp / 4) + col / 4) * 16 + l) * 4 + col % 4]);
      return static_cast<float>(q) * reinterpret_cast<const float*>(p.scales.data())[panel * 16 + l];
    }
    case DType::fp8:
      return e4m3_value(bytes[((panel * (kp / 4) + col / 4) * 16 + l) * 4 + col % 4]) *
             reinterpret_cast<const float*>(p.scales.data())[panel * 16 + l];
    default: {
      const int64_t in = col % 32, j = in % 16 / 4, i = in % 4;
      const uint8_t b = bytes[(((panel * blocks + col / 32) * 4 + j) * 16 + l) * 4 + i];
      const int q = in < 16 ? b & 15 : b >> 4;
      if (p.type == DType::mxfp4) {
        constexpr float kNumbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
        const int exponent = static_cast<uint8_t>(p.scales.data()[(panel * blocks + col / 32) * 16 + l]);
        return (q & 8 ? -2 : 2) * kNumbers[q & 7] * (exponent > 0 ? std::ldexp(1.0f, exponent - 127) : 0.0f);
      }
      if (p.type == DType::q4_1) {
        const Grid g = grid_of(p, row, col);
        return static_cast<float>(q) * g.scale + g.min;
      }
      return static_cast<float>(q - 8) * half(h[(panel * blocks + col / 32) * 16 + l]);
    }
  }
}

// Magnitudes of what is multiplied with an activation: of q4_1 two numbers.
float magnitude(const Packed& p, int64_t row, int64_t col) {
  const float v = element(p, row, col);
  if (p.type != DType::q4_1) return std::fabs(v);
  const Grid g = grid_of(p, row, col);
  return std::fabs(v - g.min) + std::fabs(g.min);
}

// What an output must be, in double, and how far float rounding may take it. Integers: activations
// quantised as ops.h says; `quantum` bounds what that costs against the unquantised product.
struct Oracle {
  std::vector<double> want, slack, exact, quantum;
  Oracle(const Packed& p, const Floats& x, int64_t rows, const ActivationCodes& codes) {
    Floats w(static_cast<size_t>(p.n * p.k)), sizes(w.size());
    for (int64_t r = 0; r < p.n; ++r)
      for (int64_t c = 0; c < p.k; ++c) {
        w[static_cast<size_t>(r * p.k + c)] = element(p, r, c);
        sizes[static_cast<size_t>(r * p.k + c)] = magnitude(p, r, c);
      }
    std::vector<double> a(static_cast<size_t>(p.k));
    for (int64_t m = 0; m < rows; ++m) {
      const float* row = x.data() + m * p.k;
      const int64_t step = codes.by_block ? kBlock : p.k;
      std::vector<double> scale(static_cast<size_t>(p.k));
      for (int64_t first = 0; first < p.k; first += step) {
        const int64_t last = std::min(p.k, first + step);
        float top = 0;
        double magnitudes = 0;
        for (int64_t c = first; c < last; ++c) {
          top = std::max(top, std::fabs(row[c]));
          magnitudes += static_cast<double>(std::fabs(row[c]));
        }
        const float most = codes.most_of(last - first, top, static_cast<float>(magnitudes));
        for (int64_t c = first; c < last; ++c) {
          const auto i = static_cast<size_t>(c);
          scale[i] = static_cast<double>(top) / static_cast<double>(most);
          a[i] = is_integer(p.type) && top > 0 ? std::nearbyint(row[c] * (most / top)) * scale[i] : static_cast<double>(row[c]);
        }
      }
      for (int64_t n = 0; n < p.n; ++n) {
        double sum = 0, size = 0, plain = 0, rounding = 0;
        for (int64_t c = 0; c < p.k; ++c) {
          const double v = w[static_cast<size_t>(n * p.k + c)], t = v * a[static_cast<size_t>(c)];
          sum += t;
          size += static_cast<double>(sizes[static_cast<size_t>(n * p.k + c)]) * std::fabs(a[static_cast<size_t>(c)]);
          plain += v * row[c];
          rounding += std::fabs(v) * scale[static_cast<size_t>(c)];
        }
        want.push_back(sum);
        slack.push_back(size * static_cast<double>(p.k + 4) * 0x1p-23 + 1e-37);
        exact.push_back(plain);
        quantum.push_back(rounding * 0.5001);
      }
    }
  }
};

Floats run_linear(const Packed& p, Floats x, int64_t rows, int threads = 2) {
  Floats out(static_cast<size_t>(rows * p.n), kNaN);
  run_cpu(Linear{view(x, rows, p.k), p.tensor(), {}, {}, view(out, rows, p.n)}, threads);
  return out;
}

Floats part(const Floats& v, int64_t first, int64_t n, int64_t width) {
  return Floats(v.begin() + first * width, v.begin() + (first + n) * width);
}

// ---- packing --------------------------------------------------------------------------------------

TEST(Pack, KeepsTheLayoutAndRoundsToTheNearest) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {17, 33}, {48, 100}, {20, 192}}) {
    const Floats w = random_floats(static_cast<size_t>(n * k), 7, 0.3f);
    for (const DType t : kTypes) {
      SCOPED_TRACE(testing::Message() << n << "x" << k << " type " << static_cast<int>(t));
      const Packed p(w, n, k, t);
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < k; ++c) {
          const float was = w[static_cast<size_t>(r * k + c)], is = element(p, r, c);
          ASSERT_EQ(is, panel16_at(p.tensor(), r, c)) << r << "," << c;
          if (t == DType::f32) {
            ASSERT_EQ(is, was);
          }
          if (t == DType::bf16) {
            ASSERT_LE(std::fabs(is - was), std::fabs(was) * 0x1p-8f);
          }
          if (t == DType::fp8) {  // three bits of fraction, and subnormals that are 2^-9 apart
            float top = 0;
            for (int64_t i = 0; i < k; ++i) top = std::max(top, std::fabs(w[static_cast<size_t>(r * k + i)]));
            ASSERT_LE(std::fabs(is - was), std::max(std::fabs(was) * 0x1.01p-4f, top / 448 * 0x1.01p-10f)) << r << "," << c << " " << was;
          }
          if (t == DType::q4_1) {  // the least squares may leave the ends of the range up to a step out
            float low = was, high = was;
            for (int64_t i = c / 32 * 32; i < std::min(k, c / 32 * 32 + 32); ++i) {
              low = std::min(low, w[static_cast<size_t>(r * k + i)]);
              high = std::max(high, w[static_cast<size_t>(r * k + i)]);
            }
            const float steps = was > low && was < high ? 0.75f : 1.25f;
            ASSERT_LE(std::fabs(is - was), steps * (high - low) / 15 + std::fabs(was) * 0x1p-10f) << r << "," << c << " " << was;
          }
          if (t == DType::mxfp4) {  // a bit of fraction, or halves of what is less than 1; the largest may be a quarter beyond 6
            const float scale = std::ldexp(1.0f, static_cast<uint8_t>(p.scales.data()[(r / 16 * (k_padded(t, k) / 32) + c / 32) * 16 + r % 16]) - 127);
            ASSERT_LE(std::fabs(is - was), std::max(0.25f * std::fabs(was), 0.5f * scale)) << r << "," << c << " " << was;
          }
          if (t != DType::int8 && t != DType::int4) continue;
          const auto* h = reinterpret_cast<const uint16_t*>(p.scales.data());
          const float d = t == DType::int8 ? reinterpret_cast<const float*>(h)[r / 16 * 16 + r % 16]
                                           : half(h[(r / 16 * (k_padded(t, k) / 32) + c / 32) * 16 + r % 16]);
          float top = 0;  // of what shares a scale: a row, or 32 of it
          const int64_t first = t == DType::int8 ? 0 : c / 32 * 32, last = t == DType::int8 ? k : std::min(k, first + 32);
          for (int64_t i = first; i < last; ++i) top = std::max(top, std::fabs(w[static_cast<size_t>(r * k + i)]));
          ASSERT_NEAR(std::fabs(d), top / (t == DType::int8 ? 127.0f : 8.0f), top * 0x1p-11f);
          // Half a step; int4 has no +8, so the far end may be a whole step off.
          const float steps = t == DType::int4 && was / d > 7.0f  ? 1.01f
                              : t == DType::int8 && was / d > 127 ? 0.6f
                                                                  : 0.5001f;
          ASSERT_LE(std::fabs(is - was), std::fabs(d) * steps) << r << "," << c << " " << was;
        }
      // Padding stands for zero: it takes part in the sums. (A block of q4_1 has no zero: behind K it meets activations that are.)
      Tensor padded = p.tensor();
      padded.rows = round_up(n, kPanel);
      padded.cols = k_padded(t, k);
      for (int64_t r = 0; r < padded.rows; ++r)
        for (int64_t c = 0; c < padded.cols; ++c)
          if (r >= n || (c >= k && t != DType::q4_1)) {
            ASSERT_EQ(panel16_at(padded, r, c), 0.0f) << r << "," << c;
          }
    }
  }
}

TEST(Pack, Bfloat16TiesGoToEven) {
  const auto bits = [](uint32_t u) { return std::bit_cast<float>(u); };
  const Floats w = {bits(0x3f808000), bits(0x3f818000), bits(0x3f808001), bits(0x3f817fff), bits(0xbf818000)};
  const Packed p(w, 1, 5, DType::bf16);
  const uint32_t want[] = {0x3f800000, 0x3f820000, 0x3f810000, 0x3f810000, 0xbf820000};
  for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(panel16_at(p.tensor(), 0, c), bits(want[c])) << c;
}

TEST(Pack, Int4TakesTheSignedExtremeToMinusEight) {
  Floats w(32, 0.0f);
  w[3] = 4.0f, w[20] = -2.0f, w[21] = 1.0f;
  const Packed p(w, 1, 32, DType::int4);
  EXPECT_EQ(half(*reinterpret_cast<const uint16_t*>(p.scales.data())), -0.5f);
  EXPECT_EQ(panel16_at(p.tensor(), 0, 3), 4.0f);
  EXPECT_EQ(panel16_at(p.tensor(), 0, 20), -2.0f);
  EXPECT_EQ(panel16_at(p.tensor(), 0, 21), 1.0f);
  EXPECT_EQ(panel16_at(p.tensor(), 0, 22), 0.0f);
}

TEST(Pack, E4m3IsTheNearestTiesToEven) {
  std::vector<float> all;  // ascending
  for (int code = 0; code < 127; ++code) {
    all.push_back(e4m3_value(static_cast<uint8_t>(code)));
    EXPECT_EQ(from_e4m3(static_cast<uint32_t>(code)), all.back());
    EXPECT_EQ(from_e4m3(static_cast<uint32_t>(code + 128)), -all.back());
  }
  EXPECT_TRUE(std::isnan(from_e4m3(127)) && std::isnan(from_e4m3(255)));
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const float middle = (all[i] + all[i + 1]) / 2;
    EXPECT_EQ(to_e4m3(all[i]), i);
    EXPECT_EQ(to_e4m3(-all[i + 1]), i + 129);
    EXPECT_EQ(to_e4m3(middle), i + i % 2) << middle;
    EXPECT_EQ(to_e4m3(std::nextafter(middle, 0.0f)), i) << middle;
    EXPECT_EQ(to_e4m3(std::nextafter(middle, 1e3f)), i + 1) << middle;
  }
  EXPECT_EQ(to_e4m3(1e9f), 126);
  EXPECT_EQ(to_e4m3(-kInf), 254);
}

TEST(Pack, ExtremeWeightsStayFinite) {
  for (const DType t : {DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const float v : {1e30f, -1e30f, 1e-30f, 0.0f}) {
      const Packed p(Floats(32, v), 1, 32, t);
      const float is = panel16_at(p.tensor(), 0, 5);
      EXPECT_TRUE(std::isfinite(is)) << v;
      EXPECT_LE(std::fabs(is), (t == DType::mxfp4 ? 1.2f : 1.0f) * std::fabs(v)) << v;  // whose scale is a power of two
    }
}

// ---- values and invariance ------------------------------------------------------------------------

struct Shape {
  int64_t n, k;
};
constexpr Shape kShapes[] = {{16, 1}, {40, 33}, {130, 172}, {101, 192}, {64, 512}};
constexpr int64_t kRows = 128;

// While it lives; then as this machine does.
class FetchInTwoSteps {
 public:
  explicit FetchInTwoSteps(bool two) { cpu::set_fetch_in_two_steps(two); }
  ~FetchInTwoSteps() { cpu::set_fetch_in_two_steps(before_); }

 private:
  const bool before_ = cpu::fetch_in_two_steps();
};

TEST(Linear, MatchesTheOracleForEveryBatchSizeBitForBit) {
  for (const Shape s : kShapes) {
    const Floats w = random_floats(static_cast<size_t>(s.n * s.k), 1, 0.2f);
    const Floats x = random_floats(static_cast<size_t>(kRows * s.k), 2);
    for (const DType t : kTypes) {
      SCOPED_TRACE(testing::Message() << s.n << "x" << s.k << " type " << static_cast<int>(t));
      const Packed p(w, s.n, s.k, t);
      each_isa([&] {
        const Oracle oracle(p, x, kRows, is_integer(t) ? cpu::activation_codes(t) : ActivationCodes());
        const Floats all = run_linear(p, x, kRows);
        for (size_t i = 0; i < all.size(); ++i) {
          ASSERT_NEAR(all[i], oracle.want[i], oracle.slack[i]) << i;
          if (is_integer(t)) {
            ASSERT_NEAR(all[i], oracle.exact[i], oracle.quantum[i] + oracle.slack[i]) << i;
          }
        }
        // Every batch size, at another place of the batch, however weights are fetched: the same rows, the same bits.
        for (int64_t m = 1; m <= 64; m = m < 17 ? m + 1 : m < 64 ? 64 : 65) {
          const int64_t at = (m * 5) % (kRows - m + 1);
          for (const bool two_steps : {false, true}) {
            const FetchInTwoSteps fetching(two_steps);
            ASSERT_TRUE(same_bits(run_linear(p, part(x, at, m, s.k), m), part(all, at, m, s.n)))
                << m << " rows at " << at << ", in two steps " << two_steps;
          }
        }
      });
    }
  }
}

TEST(Linear, TasksAndThreadsDoNotChangeBits) {
  constexpr int64_t n = 1501, k = 96;
  const Floats w = random_floats(n * k, 3, 0.2f);
  for (const DType t : kTypes) {
    SCOPED_TRACE(static_cast<int>(t));
    const Packed p(w, n, k, t);
    for (const int64_t m : {1, 5, 64}) {
      const Floats x = random_floats(static_cast<size_t>(m * k), 4);
      const Floats one = run_linear(p, x, m, 1);
      for (int threads = 2; threads <= 16; threads *= 2)
        ASSERT_TRUE(same_bits(one, run_linear(p, x, m, threads))) << m << " rows, " << threads << " threads";
    }
  }
  // The above means something only when the work is really cut.
  Floats x(64 * k), out(64 * n);
  const Packed p(w, n, k, DType::f32);
  const Linear op{view(x, 64, k), p.tensor(), {}, {}, view(out, 64, n)};
  EXPECT_GT(cpu::tasks(op, 4), cpu::tasks(op, 1));
}

TEST(Linear, AddsBiasThenResidualAndMayAliasTheResidual) {
  constexpr int64_t n = 37, k = 50, m = 11;
  const Floats w = random_floats(n * k, 5), x = random_floats(m * k, 6), bias = random_floats(n, 7, 3.0f),
               residual = random_floats(m * n, 8, 100.0f);
  for (const DType t : kTypes) {
    const Packed p(w, n, k, t);
    each_isa([&] {
      const Floats sum = run_linear(p, x, m);
      Floats xs = x, b = bias;
      for (int with = 1; with < 4; ++with) {
        Floats out = residual, want = sum;  // out is the residual
        const bool has_bias = with & 1, has_residual = with & 2;
        for (size_t i = 0; i < want.size(); ++i) {
          if (has_bias) want[i] = bias[i % n] + want[i];
          if (has_residual) want[i] = residual[i] + want[i];
        }
        Linear op{view(xs, m, k), p.tensor(), {}, {}, view(out, m, n)};
        if (has_bias) op.bias = view(b, 1, n);
        if (has_residual) op.residual = view(out, m, n);
        run_cpu(op);
        ASSERT_TRUE(same_bits(out, want)) << "type " << static_cast<int>(t) << " with " << with;
      }
    });
  }
}

TEST(Linear, KeepsToItsColumnsOfStridedRows) {
  constexpr int64_t n = 35, k = 40, m = 9, wide = 64;
  const Floats w = random_floats(n * k, 9), x = random_floats(m * k, 10);
  for (const DType t : kTypes) {
    const Packed p(w, n, k, t);
    each_isa([&] {
      const Floats want = run_linear(p, x, m);
      Floats xs(m * wide, kNaN), out(m * wide, 77.0f);  // what lies beside the rows must not matter
      for (int64_t r = 0; r < m; ++r) std::copy_n(x.data() + r * k, k, xs.data() + r * wide + 3);
      Tensor xv = columns(matrix(xs.data(), m, wide), 3, k), ov = columns(matrix(out.data(), m, wide), 5, n);
      run_cpu(Linear{xv, p.tensor(), {}, {}, ov});
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c < wide; ++c) {
          const bool inside = c >= 5 && c < 5 + n;
          const float is = out[static_cast<size_t>(r * wide + c)];
          ASSERT_EQ(is, inside ? want[static_cast<size_t>(r * n + c - 5)] : 77.0f) << r << "," << c;
        }
    });
  }
}

TEST(Linear, BadRowsStayAlone) {
  constexpr int64_t n = 33, m = 8;
  for (const int64_t k : {33, 64, 100})
    for (const DType t : kTypes) {
      SCOPED_TRACE(testing::Message() << "k " << k << " type " << static_cast<int>(t));
      const Packed p(random_floats(static_cast<size_t>(n * k), 11), n, k, t);
      const Floats x = random_floats(static_cast<size_t>(m * k), 12);
      each_isa([&] {
        const Floats good = run_linear(p, x, m);
        for (const int64_t at : {int64_t{0}, k - 1}) {  // in a whole vector, in the tail
          Floats bad = x;
          bad[static_cast<size_t>(2 * k + at)] = kNaN;
          bad[static_cast<size_t>(4 * k + at)] = kInf;
          bad[static_cast<size_t>(5 * k + at)] = -kInf;
          std::fill_n(bad.begin() + 6 * k, k, 0.0f);
          std::fill_n(bad.begin() + 7 * k, k, 0.0f);
          bad[static_cast<size_t>(7 * k + at)] = -1e-39f;  // the inverse of its scale would be infinite
          const Floats got = run_linear(p, bad, m);
          for (int64_t r = 0; r < m; ++r)
            for (int64_t c = 0; c < n; ++c) {
              const float is = got[static_cast<size_t>(r * n + c)];
              if (r == 2)
                ASSERT_TRUE(std::isnan(is)) << c << " " << is;
              else if (r == 4 || r == 5)
                ASSERT_FALSE(std::isfinite(is)) << r << "," << c << " " << is;
              else if (r == 6)
                ASSERT_EQ(is, 0.0f) << c;
              else if (r == 7)
                ASSERT_LE(std::fabs(is), std::fabs(panel16_at(p.tensor(), c, at)) * 1.1e-39f + 1e-44f) << c;
              else
                ASSERT_EQ(is, good[static_cast<size_t>(r * n + c)]) << r << "," << c;
            }
        }
      });
    }
}

// The code of a doubled number.
int e2m1_of(int twice) { return static_cast<int>(std::find(kE2m1Twice, kE2m1Twice + 16, twice) - kE2m1Twice); }

// The largest integers there are, with every sign: nothing may saturate, and no sum overflow. K of one block: the sum fits a float, so
// every ISA must give the same one. Of more it is right but for floats' rounding, up to the most columns of int8 that a package may
// have. -128 comes from no packer of ours, but a package may hold it.
TEST(Linear, IntegerSumsAreExactAtTheExtremes) {
  constexpr int64_t n = 16, m = 7;
  constexpr std::pair<DType, int64_t> kCases[] = {{DType::int8, 32},   {DType::int4, 32},   {DType::int8, 508},         {DType::int8, 514},
                                                  {DType::int8, 1100}, {DType::int4, 1100}, {DType::int8, kMaxInt8Cols},
                                                  {DType::q4_1, 32},   {DType::q4_1, 1100}, {DType::mxfp4, 32},         {DType::mxfp4, 1100}};
  for (const auto& c : kCases) {
    const DType t = c.first;
    const int64_t k = c.second;
    SCOPED_TRACE(testing::Message() << "k " << k << " type " << static_cast<int>(t));
    Packed p(Floats(static_cast<size_t>(n * k), 1.0f), n, k, t);
    if (t == DType::int8) std::fill_n(reinterpret_cast<float*>(p.scales.data()), n, 1.0f);
    auto* const halves = reinterpret_cast<uint16_t*>(p.scales.data());
    for (int64_t i = 0; t != DType::int8 && i < scale_bytes(t, n, k) / 2; ++i)
      halves[i] = t == DType::mxfp4 ? 0x7f7f : t == DType::q4_1 && i / 16 % 2 == 1 ? 0xc800 : 0x3c00;  // a scale of 1, a minimum of -8
    const std::array<int, 4> values = t == DType::int8    ? std::array{127, -127, -128, 0}
                                      : t == DType::mxfp4 ? std::array{12, -12, 1, 0}
                                                          : std::array{7, -8, 1, 0};
    for (const int v : values)
      for (const int sign : {1, -1, 0}) {  // 0: alternating
        for (int64_t i = 0; i < data_bytes(t, Layout::panel16, n, k); ++i)
          p.data.data()[i] = static_cast<char>(t == DType::int8 ? v : (t == DType::mxfp4 ? e2m1_of(v) : v + 8) * 17);
        Floats x(static_cast<size_t>(m * k));
        for (int64_t i = 0; i < m * k; ++i) x[static_cast<size_t>(i)] = sign ? static_cast<float>(sign) * 127 : i & 1 ? -127.0f : 127.0f;
        const double sum = sign * 127.0 * v * static_cast<double>(k);  // k is even
        each_isa([&] {
          const bool long_chain = k == kMaxInt8Cols && cpu::activation_codes(t).by_block;  // of a float for each block
          const double slack = k == 32 ? 0 : long_chain ? static_cast<double>(k) * 0x1p-29 : 1e-6;
          for (const int64_t rows : {int64_t{1}, m})
            for (const float o : run_linear(p, part(x, 0, rows, k), rows))
              ASSERT_NEAR(o, sum, std::fabs(sum) * slack) << rows << " rows, w " << v << " x sign " << sign;
        });
      }
  }
}

// A number a thousand times the others leaves them the bits that they need: those of its block have fewer, or all have ten. Magnitudes
// too large to be added up, and all alike, leave what the sum has room for.
TEST(Linear, RowsMeetInt8WithAsManyBitsAsFit) {
  constexpr int64_t n = 16, k = 4096;
  const Packed p(random_floats(n * k, 13, 0.2f), n, k, DType::int8);
  struct Case {
    float size, first, step;  // of most numbers, of one, between two codes at most
  };
  for (const Case& c : {Case{1.0f, 1000.0f, 1000.0f / 32639}, Case{1e36f, 3e38f, 3e38f / 4000}, Case{1.0f, 1.0f, 1.0f / 4500}}) {
    Floats x = random_floats(k, 14, c.size);
    x[0] = c.first;
    each_isa([&] {
      const bool by_block = cpu::activation_codes(DType::int8).by_block;
      if (by_block && c.size > 1) return;  // products of such numbers with codes of weights, which are scaled last, are infinite
      const Floats out = run_linear(p, x, 1);
      for (int64_t r = 0; r < n; ++r) {
        double exact = 0, rounding = 0, magnitude = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double w = element(p, r, i), product = w * static_cast<double>(x[static_cast<size_t>(i)]);
          exact += product;
          magnitude += std::fabs(product);
          const float step = !by_block ? c.step : (i < kBlock ? c.first : 4.5f * c.size) / 127;
          rounding += std::fabs(w) * static_cast<double>(step) * 0.5001;
        }
        EXPECT_NEAR(out[static_cast<size_t>(r)], exact, rounding + magnitude * 0x1p-17) << c.size << " " << r;
      }
    });
  }
}

// Rows of the smallest numbers: right to what rounding takes, or nothing; a zero among them takes no part.
TEST(Linear, TinyRowsMeetIntegersAsOthersDoOrAreZeros) {
  constexpr int64_t n = 16, k = 70;
  for (const DType t : {DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    const Packed p(random_floats(n * k, 15, 0.2f), n, k, t);
    for (const float tiny : {1e-33f, 2e-34f, 5e-35f, 1e-35f, 2e-36f, 1e-37f}) {
      Floats x(k);
      for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(i)] = i % 5 == 0 ? 0.0f : i % 2 ? tiny : -tiny;
      each_isa([&] {
        const Floats out = run_linear(p, x, 1);
        for (int64_t r = 0; r < n; ++r) {
          double exact = 0, size = 0;
          for (int64_t i = 0; i < k; ++i) {
            exact += static_cast<double>(element(p, r, i)) * static_cast<double>(x[static_cast<size_t>(i)]);
            size += static_cast<double>(magnitude(p, r, i)) * std::fabs(static_cast<double>(x[static_cast<size_t>(i)]));
          }
          const float o = out[static_cast<size_t>(r)];
          if (tiny < 1e-34f && o == 0) continue;
          EXPECT_NEAR(o, exact, size * 0x1p-7 + 1e-40) << tiny << " type " << static_cast<int>(t) << " row " << r;
        }
      });
    }
  }
}

TEST(Linear, EveryE4m3NumberIsItself) {
  Packed p(Floats(16 * 32, 1.0f), 16, 32, DType::fp8);
  fill_e4m3(p.data.data(), p.scales.data());
  each_isa([&] { expect_every_e4m3([&](const Floats& x, Floats& out) { out = run_linear(p, x, 32); }); });
}

// Weights that are all their minimum: what is left is the sum of the activations, of each block, as they were rounded.
TEST(Linear, MinimaMeetTheSumsOfBlocks) {
  constexpr int64_t n = 16, k = 100, m = 20;
  Packed p(Floats(n * k, 0.0f), n, k, DType::q4_1);
  auto* const halves = reinterpret_cast<uint16_t*>(p.scales.data());
  constexpr uint16_t kPowers[] = {0x3c00, 0x4000, 0x4400, 0x4800};  // 1, 2, 4, 8
  for (int64_t b = 0; b < 4; ++b) std::fill_n(halves + b * 32 + 16, 16, kPowers[b]);
  Floats x(m * k);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < k; ++c) x[static_cast<size_t>(r * k + c)] = c % 32 == 0 ? 127.0f : static_cast<float>((c + r) % 7 - 2);  // scales are 1
  each_isa([&] {
    const Floats out = run_linear(p, x, m);
    for (int64_t r = 0; r < m; ++r) {
      float want = 0;
      for (int64_t c = 0; c < k; ++c) want += x[static_cast<size_t>(r * k + c)] * static_cast<float>(1 << c / 32);
      for (int64_t c = 0; c < n; ++c) ASSERT_EQ(out[static_cast<size_t>(r * n + c)], want) << r << "," << c;
    }
  });
}

// Every code and powers of two, in sums of integers that fit a float: exact on every ISA, whatever the pairs of products on the way.
TEST(Linear, E2m1NumbersAndTheirScalesAreExact) {
  constexpr int64_t n = 48, k = 200, m = 20, blocks = 7;
  Packed p(Floats(n * k, 0.0f), n, k, DType::mxfp4);
  std::mt19937 rng(16);
  for (int64_t i = 0; i < data_bytes(DType::mxfp4, Layout::panel16, n, k); ++i) p.data.data()[i] = static_cast<char>(rng());
  for (int64_t i = 0; i < n * blocks; ++i) p.scales.data()[i] = static_cast<char>(i % 11 == 0 ? 0 : 127 + i % 5);  // 0: nothing counts
  Floats x(m * k);
  for (int64_t i = 0; i < m * k; ++i) x[static_cast<size_t>(i)] = i % k % 32 == 0 ? -127.0f : static_cast<float>(static_cast<int>(rng() % 255) - 127);
  each_isa([&] {
    for (const int64_t rows : {int64_t{1}, int64_t{6}, m}) {
      const Floats out = run_linear(p, part(x, 0, rows, k), rows);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) {
          double want = 0;
          for (int64_t i = 0; i < k; ++i) want += static_cast<double>(element(p, c, i)) * static_cast<double>(x[static_cast<size_t>(r * k + i)]);
          ASSERT_EQ(out[static_cast<size_t>(r * n + c)], want) << r << "," << c << " of " << rows << " rows";
        }
    }
  });
}

// Of all that fuse a product with its sum: scales and sums are then rounded alike.
TEST(Linear, NibblesHaveTheSameBitsOnEveryIsa) {
  constexpr int64_t n = 50, k = 300, m = 9;
  for (const DType t : {DType::int4, DType::q4_1, DType::mxfp4}) {
    const Packed p(random_floats(n * k, 17, 0.2f), n, k, t);
    const Floats x = random_floats(m * k, 18);
    Floats first;
    each_isa([&](const Isa& isa) {
      if (!fused(isa)) return;
      const Floats out = run_linear(p, x, m);
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out, first)) << "type " << static_cast<int>(t);
    });
  }
}

TEST(Linear, NoRowsNoWork) {
  const Packed p(random_floats(16 * 32, 1), 16, 32, DType::int8);
  Floats x(1), out(1, 5.0f);
  run_cpu(Linear{view(x, 0, 32), p.tensor(), {}, {}, view(out, 0, 16)});
  EXPECT_EQ(out[0], 5.0f);
}

}  // namespace aerie::kernels::linear_test
