// The LM head whose logits stay in the cache: bit for bit Linear and then TopK.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unit/kernels/ops_support.h"

namespace aerie::kernels::linear_topk_test {
using namespace aerie::kernels::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Head {
  int64_t rows, vocab, width;
  DType type;
  Floats x, bias;
  std::vector<char> data, scales;
  Tensor w;

  Head(int64_t r, int64_t v, int64_t k, DType t)
      : rows(r), vocab(v), width(k), type(t), x(random_floats(static_cast<size_t>(r * k), 1)),
        data(static_cast<size_t>(data_bytes(t, Layout::panel16, v, k)) + 64),
        scales(static_cast<size_t>(scale_bytes(t, v, k)) + 64), w{nullptr, nullptr, v, k, 0, t, Layout::panel16} {
    const auto aligned = [](std::vector<char>& m) -> void* {
      return m.data() + (64 - reinterpret_cast<uintptr_t>(m.data()) % 64) % 64;
    };
    w.data = aligned(data);
    if (has_scales(t)) w.scales = aligned(scales);
    const Floats values = random_floats(static_cast<size_t>(v * k), 2, 0.5f);
    pack_panel16(values.data(), v, k, t, w.data, w.scales);
  }
};

struct Wanted {
  int32_t k, used;
  const int32_t* map;
  const DrawKey* keys;
};

struct Best {
  Ints token;
  Floats logp;
  Best(const Head& h, int32_t k) : token(static_cast<size_t>(h.rows * k), -7), logp(token.size(), 7.0f) {}
};
void expect_same(const Best& got, const Best& want) {
  ASSERT_EQ(got.token, want.token);
  ASSERT_TRUE(same_bits(got.logp, want.logp));
}

// Each of the two ways; `run` runs an op.
template <class Run>
Best two_ops(Head& h, const Wanted& q, const Run& run) {
  Best b(h, q.k);
  Floats logits(static_cast<size_t>(h.rows * h.vocab), NAN);
  const Tensor all = view(logits, h.rows, h.vocab), bias = h.bias.empty() ? Tensor{} : view(h.bias, 1, h.vocab);
  run(Linear{view(h.x, h.rows, h.width), h.w, bias, {}, all});
  run(TopK{all, q.k, q.used, q.map, q.keys, b.token.data(), b.logp.data()});
  return b;
}
template <class Run>
Best fused_ops(Head& h, const Wanted& q, const Run& run) {
  Best b(h, q.k);
  const int64_t cols = topk_partial_cols(h.vocab, q.k);
  Floats partial(static_cast<size_t>(h.rows * cols) + 1, 12345.0f);
  const Tensor bias = h.bias.empty() ? Tensor{} : view(h.bias, 1, h.vocab);
  const LinearTopK op{view(h.x, h.rows, h.width), h.w,        bias, q.k, q.used, q.map, q.keys,
                      view(partial, h.rows, cols), b.token.data(), b.logp.data()};
  run(op);
  run(MergeTopK{op});
  EXPECT_EQ(partial.back(), 12345.0f) << "wrote past its working memory";
  return b;
}
const auto kOnCpu = [](const auto& op) { run_cpu(op); };
const auto kOnReference = [](const auto& op) { run_reference(op); };

std::vector<DrawKey> keys_for(int64_t rows) {
  std::vector<DrawKey> keys;
  for (int64_t r = 0; r < rows; ++r) keys.push_back({7, 1, 100 + r, r % 3 == 2 ? 0.0f : 0.4f + 0.3f * static_cast<float>(r), 0});
  return keys;
}

// Ids of the target out of order, some of which cannot be drawn.
Ints map_for(int64_t vocab) {
  Ints map(static_cast<size_t>(vocab));
  std::iota(map.begin(), map.end(), 0);
  for (int32_t& id : map) id = id * 3 + 1;
  std::shuffle(map.begin(), map.end(), std::mt19937(1));
  return map;
}

void check(Head& h, const Wanted& q) {
  const Best reference = fused_ops(h, q, kOnReference);
  expect_same(reference, two_ops(h, q, kOnReference));
  each_isa([&] { expect_same(fused_ops(h, q, kOnCpu), two_ops(h, q, kOnCpu)); });
  // On devices, where a thread remembers what other ranges had.
  const Best want = two_ops(h, q, kOnCpu);
  for (const int threads : {1, 2, 3}) {
    auto device = make_cpu_device({.threads = threads});
    ASSERT_TRUE(device.ok());
    Best got(h, q.k);
    const int64_t cols = topk_partial_cols(h.vocab, q.k);
    Floats partial(static_cast<size_t>(h.rows * cols));
    const LinearTopK op{view(h.x, h.rows, h.width), h.w,        h.bias.empty() ? Tensor{} : view(h.bias, 1, h.vocab),
                        q.k,                        q.used,     q.map,
                        q.keys,                     view(partial, h.rows, cols), got.token.data(), got.logp.data()};
    const Op plan[] = {op, MergeTopK{op}, op, MergeTopK{op}};  // twice: nothing is left of the first time
    run_plan(**device, plan);
    expect_same(got, want);
  }
}

TEST(LinearTopK, GivesTheBitsOfLinearAndTopK) {
  for (const auto& [rows, vocab, width] : {std::tuple<int64_t, int64_t, int64_t>{1, 5, 7}, {2, 300, 40}, {1, 1500, 700}, {7, 2100, 96}, {20, 1030, 64}})
    for (const DType type : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
      SCOPED_TRACE(testing::Message() << rows << " rows " << vocab << "x" << width << " type " << static_cast<int>(type));
      Head h(rows, vocab, width, type);
      const auto keys = keys_for(rows);
      const Ints map = map_for(vocab);
      const auto all = static_cast<int32_t>(vocab), some = static_cast<int32_t>(vocab - vocab / 5);
      for (const int32_t k : {1, 10, 32, 128}) {
        SCOPED_TRACE(k);
        check(h, {k, all, nullptr, nullptr});
        check(h, {k, some, nullptr, keys.data()});
        check(h, {k, some * 3, map.data(), nullptr});
        check(h, {k, some * 3, map.data(), keys.data()});
        if (testing::Test::HasFatalFailure()) return;
      }
      h.bias = random_floats(static_cast<size_t>(vocab), 5);
      check(h, {10, some, nullptr, nullptr});
    }
}

TEST(LinearTopK, WritesEverySecondRow) {
  Head h(3, 700, 40, DType::bf16);
  auto keys = keys_for(5);
  const auto plain = [&] {  // the same keys one after the other
    const std::vector<DrawKey> own = {keys[0], keys[2], keys[4]};
    return two_ops(h, {10, 700, nullptr, own.data()}, kOnCpu);
  };
  Floats partial(static_cast<size_t>(3 * topk_partial_cols(700, 10)));
  Ints token(50);
  Floats logp(50);
  const LinearTopK op{view(h.x, 3, 40), h.w, {}, 10, 700, nullptr, keys.data(),
                      view(partial, 3, topk_partial_cols(700, 10)), token.data(), logp.data(), 2};
  const auto apart = [&](const auto& run) {
    token.assign(50, -7);
    logp.assign(50, 7.0f);
    run(op);
    run(MergeTopK{op});
  };
  const Best want = plain();
  const auto check_rows = [&](const auto& run) {
    apart(run);
    for (size_t i = 0; i < 50; ++i) {
      const size_t row = i / 10, from = row / 2 * 10 + i % 10;
      ASSERT_EQ(token[i], row % 2 ? -7 : want.token[from]) << i;
      ASSERT_NEAR(logp[i], row % 2 ? 7.0f : want.logp[from], 1e-4) << i;
    }
  };
  check_rows(kOnCpu);
  check_rows(kOnReference);
  keys[2].temperature = 1e-40f;  // done again without noise
  const Best again = plain();
  apart(kOnCpu);
  EXPECT_TRUE(std::equal(token.begin() + 20, token.begin() + 30, again.token.begin() + 10));
  EXPECT_TRUE(same_bits(logp.data() + 20, again.logp.data() + 10, 40));
}

// Equal logits everywhere: the lower token wins, not the earlier place; and rising ones, the worst case of a list.
TEST(LinearTopK, OfEqualOrRisingLogitsStaysRight) {
  for (const bool rising : {false, true}) {
    Head h(1, 3000, 8, DType::f32);
    std::fill(h.x.begin(), h.x.end(), 0.0f);
    h.bias.assign(3000, 0.5f);
    if (rising) std::iota(h.bias.begin(), h.bias.end(), 0.0f);
    Ints falling(3000);
    std::iota(falling.rbegin(), falling.rend(), 0);
    for (const int32_t k : {1, 7, 128}) {
      check(h, {k, 3000, nullptr, nullptr});
      check(h, {k, 3000, falling.data(), nullptr});
    }
  }
}

TEST(LinearTopK, ARowThatIsNotFiniteIsNothing) {
  const auto keys = keys_for(4);
  const Ints map = map_for(1000);
  for (const DType type : {DType::f32, DType::int8})
    for (const float bad : {NAN, kInfinity, -kInfinity}) {
      Head h(4, 1000, 33, type);
      h.x[33 + 5] = bad;  // of row 1
      check(h, {10, 900, nullptr, nullptr});
      check(h, {10, 900, nullptr, keys.data()});
      const Best b = fused_ops(h, {10, 2500, map.data(), keys.data()}, kOnCpu);
      EXPECT_EQ(b.token[10], -1);
      EXPECT_EQ(b.logp[10], -kInfinity);
      EXPECT_GE(b.token[0], 0);
      EXPECT_GE(b.token[20], 0);
    }
  for (const float bad : {NAN, kInfinity, -kInfinity})  // one logit
    for (const size_t where : {0u, 255u, 700u, 899u, 900u}) {
      Head h(2, 1000, 8, DType::f32);
      h.bias.assign(1000, 0.0f);
      h.bias[where] = bad;
      check(h, {5, 900, nullptr, keys.data()});
      const Best b = fused_ops(h, {5, 900, nullptr, nullptr}, kOnCpu);
      EXPECT_EQ(b.token[0] == -1, where < 900) << where;  // an unused id may hold anything
    }
}

// What no token can be drawn from, and temperatures at which the best logit overflows.
TEST(LinearTopK, OddCasesAreTopKs) {
  Head h(3, 1000, 16, DType::bf16);
  const Ints none(1000, -1);
  check(h, {10, 1000, none.data(), nullptr});
  check(h, {10, 0, nullptr, nullptr});
  check(h, {10, 3, nullptr, nullptr});
  check(h, {10, 5000, nullptr, nullptr});  // more ids than the head has
  std::vector<DrawKey> keys = {{1, 2, 3, 1e-40f, 0}, {1, 2, 4, 1.0f, 0}, {1, 2, 5, 1e-38f, 0}};
  check(h, {10, 950, nullptr, keys.data()});
  check(h, {10, 1000, none.data(), keys.data()});
  Head low(2, 700, 4, DType::f32);  // the best of some blocks overflows downwards, the row's best does not
  low.bias.assign(700, -3e38f);
  low.bias[600] = 1.0f;
  for (float& x : low.x) x = 0.0f;
  keys = {{1, 2, 3, 0.1f, 0}, {1, 2, 4, 0.5f, 0}};
  check(low, {10, 700, nullptr, keys.data()});
  low.bias[600] = -3e38f;
  check(low, {10, 700, nullptr, keys.data()});
  low.bias[600] = 3e38f;
  check(low, {10, 700, nullptr, keys.data()});
}

}  // namespace aerie::kernels::linear_topk_test
