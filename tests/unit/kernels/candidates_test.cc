// The second look of a candidate head: exact logits of chosen rows, and the best of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "kernels/noise.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::candidates_test {
using namespace aerie::kernels::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Packed weights in memory of the device.
struct Packed {
  std::unique_ptr<Device> device = make_reference_device();
  Tensor w;
  Packed(const Floats& values, int64_t n, int64_t k, DType t) : w{nullptr, nullptr, n, k, 0, t, Layout::panel16} {
    w.data = device->allocate(static_cast<size_t>(data_bytes(t, Layout::panel16, n, k)));
    if (has_scales(t)) w.scales = device->allocate(static_cast<size_t>(scale_bytes(t, n, k)));
    pack_panel16(values.data(), n, k, t, w.data, w.scales);
  }
  ~Packed() {
    device->release(w.data);
    device->release(w.scales);
  }
};

TEST(LinearRows, GivesTheBitsOfLinear) {
  constexpr int64_t R = 3;
  for (const auto& [v, k] : {std::pair<int64_t, int64_t>{5, 7}, {33, 64}, {1000, 100}}) {
    Floats x = random_floats(static_cast<size_t>(R * k), 2);
    const Floats values = random_floats(static_cast<size_t>(v * k), 1, 0.3f);
    std::mt19937 random(3);
    Ints ids(R * 21);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(v));
    ids[4] = ids[20] = -1;
    ids[7] = static_cast<int32_t>(v) - 1;
    for (const DType t : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
      SCOPED_TRACE(testing::Message() << v << "x" << k << " type " << static_cast<int>(t));
      const Packed packed(values, v, k, t);
      each_isa([&] {
        Floats want(ids.size());
        const RoundsAsCpu same;
        run_reference(LinearRows{view(x, R, k), packed.w, ids.data(), view(want, R, 21)});
        Floats all(static_cast<size_t>(R * v)), got(ids.size(), NAN);
        run_cpu(Linear{view(x, R, k), packed.w, {}, {}, view(all, R, v)});
        run_cpu(LinearRows{view(x, R, k), packed.w, ids.data(), view(got, R, 21)});
        for (size_t i = 0; i < ids.size(); ++i) {
          const float exact = ids[i] < 0 ? 0.0f : all[i / 21 * static_cast<size_t>(v) + static_cast<size_t>(ids[i])];
          ASSERT_TRUE(same_bits(&got[i], &exact, 4)) << i << ": " << got[i] << " " << exact;
        }
        expect_near(got, want, 1e-4f);
      });
      // And on the device, where a thread meets many rows of one op and keeps what it may.
      auto device = make_cpu_device({.threads = 2});
      ASSERT_TRUE(device.ok());
      Floats on_device(ids.size()), alone(ids.size());
      const Op plan[] = {LinearRows{view(x, R, k), packed.w, ids.data(), view(on_device, R, 21)}};
      run_plan(**device, plan);
      run_cpu(LinearRows{view(x, R, k), packed.w, ids.data(), view(alone, R, 21)});
      EXPECT_TRUE(same_bits(on_device, alone));
    }
  }
}

struct Looks {  // approximate and exact logits of the whole vocabulary
  int64_t rows, vocab;
  int32_t used, n, k;
  Floats approx, exact;
  std::vector<DrawKey> keys;
};
struct Best {
  Ints token;
  Floats logp, slack;
};

// TopK, the exact logits of what it found, Rescore; `run` runs an op.
template <class Run>
Best two_looks(Looks& s, const Run& run) {
  const auto size = static_cast<size_t>(s.rows * s.n);
  Ints ids(size);
  Floats logp(size), exact(size);
  const DrawKey* keys = s.keys.empty() ? nullptr : s.keys.data();
  run(TopK{view(s.approx, s.rows, s.vocab), s.n, s.used, nullptr, keys, ids.data(), logp.data()});
  for (size_t i = 0; i < size; ++i)
    exact[i] = ids[i] < 0 ? 0.0f : s.exact[i / static_cast<size_t>(s.n) * static_cast<size_t>(s.vocab) + static_cast<size_t>(ids[i])];
  Best b{Ints(static_cast<size_t>(s.rows * s.k), -7), Floats(static_cast<size_t>(s.rows * s.k), 7.0f), {}};
  run(Rescore{view(s.approx, s.rows, s.vocab), ids.data(), logp.data(), view(exact, s.rows, s.n), s.k, keys,
              b.token.data(), b.logp.data()});
  return b;
}
const auto kOnCpu = [](const auto& op) { run_cpu(op); };
const auto kOnReference = [](const auto& op) { run_reference(op); };

// By sorting, straight from the definition.
Best defined(const Looks& s) {
  Best b;
  for (size_t r = 0; r < static_cast<size_t>(s.rows); ++r) {
    const auto score = [&](const Floats& logits, size_t t) {
      const float x = logits[r * static_cast<size_t>(s.vocab) + t];
      if (s.keys.empty() || !(s.keys[r].temperature > 0)) return x;
      const DrawKey& key = s.keys[r];
      return x / key.temperature + gumbel(key.seed, key.stream, key.position, static_cast<int32_t>(t));
    };
    std::vector<std::pair<float, size_t>> near, best;
    for (size_t t = 0; t < static_cast<size_t>(s.used); ++t) near.push_back({-score(s.approx, t), t});
    std::sort(near.begin(), near.end());
    double total = 0, seen = 0;
    for (size_t i = 0; i < near.size(); ++i) {
      const size_t t = near[i].second;
      const bool looked_at = i < static_cast<size_t>(s.n);
      total += std::exp(static_cast<double>(looked_at ? score(s.exact, t) : score(s.approx, t)));
      seen += std::exp(static_cast<double>(score(s.approx, t)));
      if (looked_at) best.push_back({-score(s.exact, t), t});
    }
    std::sort(best.begin(), best.end());
    for (size_t i = 0; i < static_cast<size_t>(s.k); ++i) {
      b.token.push_back(i < best.size() ? static_cast<int32_t>(best[i].second) : -1);
      b.logp.push_back(i < best.size() ? static_cast<float>(-best[i].first - std::log(total)) : -kInfinity);
      b.slack.push_back(static_cast<float>(std::log1p(1e-6 * seen / total)));
    }
  }
  return b;
}

Looks looks(int64_t vocab, int32_t n, int32_t k, float error, bool noise) {
  Looks s{3, vocab, static_cast<int32_t>(vocab - vocab / 10), n, k, {}, {}, {}};
  s.exact = random_floats(static_cast<size_t>(3 * vocab), 1, 3.0f);
  s.approx = random_floats(static_cast<size_t>(3 * vocab), 2, error);
  for (size_t i = 0; i < s.exact.size(); ++i) s.approx[i] += s.exact[i];
  if (noise) s.keys = {{1, 2, 3, 1.0f, 0}, {4, 5, 6, 0.3f, 0}, {7, 8, -9, 0.0f, 0}};
  return s;
}

TEST(Rescore, IsTheBestOfTheRetrievedByExactScore) {
  for (const bool noise : {false, true})
    for (const float error : {0.0f, 0.5f, 3.0f})
      for (const int64_t vocab : {3, 100, 5003})
        for (const auto& [n, k] : {std::pair{64, 10}, {128, 32}, {8, 8}, {64, 1}}) {
          SCOPED_TRACE(testing::Message() << vocab << " n " << n << " k " << k << " error " << error << " noise " << noise);
          Looks s = looks(vocab, n, k, error, noise);
          const Best want = defined(s);
          const auto check = [&](const Best& got) {
            ASSERT_EQ(got.token, want.token);
            for (size_t i = 0; i < got.logp.size(); ++i)
              if (got.token[i] < 0) ASSERT_EQ(got.logp[i], -kInfinity);
              else ASSERT_NEAR(got.logp[i], want.logp[i], 3e-5 * (1 + std::fabs(want.logp[i])) + want.slack[i]) << i;
          };
          check(two_looks(s, kOnReference));
          Floats first;
          each_isa([&] {
            const Best got = two_looks(s, kOnCpu);
            check(got);
            if (first.empty()) first = got.logp;
            EXPECT_TRUE(same_bits(got.logp, first));  // the same on every ISA
          });
        }
}

// An exact first look: nothing changes against the one look of TopK.
TEST(Rescore, OfExactLogitsIsTopK) {
  Looks s = looks(3000, 64, 10, 0.0f, true);
  Best want{Ints(30), Floats(30), {}};
  run_cpu(TopK{view(s.exact, 3, 3000), 10, s.used, nullptr, s.keys.data(), want.token.data(), want.logp.data()});
  const Best got = two_looks(s, kOnCpu);
  EXPECT_EQ(got.token, want.token);
  for (size_t i = 0; i < 30; ++i) EXPECT_NEAR(got.logp[i], want.logp[i], 1e-5);
}

// Approximations may be wrong by any amount; a confidence stays one.
TEST(Rescore, ConfidencesStayConfidences) {
  for (const float off : {-1e30f, -200.0f, -40.0f, 40.0f, 200.0f, 1e30f})
    for (const bool noise : {false, true}) {
      Looks s = looks(500, 64, 8, 0.5f, noise);
      for (float& x : s.approx) x += off;
      const auto check = [&](const Best& b) {
        for (size_t i = 0; i < b.logp.size(); ++i) {
          ASSERT_GE(b.token[i], 0);
          ASSERT_FALSE(std::isnan(b.logp[i])) << off;
          ASSERT_LE(b.logp[i], 1e-5f) << off;
        }
      };
      check(two_looks(s, kOnCpu));
      check(two_looks(s, kOnReference));
    }
}

TEST(Rescore, WhatIsNotFiniteIsNothing) {
  for (const float bad : {NAN, kInfinity, -kInfinity})
    for (const bool approx : {true, false}) {
      Looks s = looks(100, 64, 5, 0.1f, false);
      for (size_t t = 0; t < 100; ++t) (approx ? s.approx : s.exact)[t] = bad;  // row 0
      for (const Best& b : {two_looks(s, kOnCpu), two_looks(s, kOnReference)}) {
        for (size_t i = 0; i < 5; ++i) EXPECT_EQ(b.token[i], -1);
        EXPECT_GE(b.token[5], 0);
      }
    }
  // A temperature so small that logits overflow is no temperature.
  Looks s = looks(100, 64, 5, 0.0f, false);
  const Best want = two_looks(s, kOnCpu);
  s.keys.assign(3, {1, 2, 3, 1e-38f, 0});
  EXPECT_EQ(two_looks(s, kOnCpu).token, want.token);
  EXPECT_EQ(two_looks(s, kOnReference).token, want.token);
}

}  // namespace aerie::kernels::candidates_test
