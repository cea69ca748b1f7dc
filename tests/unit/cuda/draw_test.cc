// Drawing on the emulated device: the tokens the CPU kernels give, with the very noise of kernels/noise.h.
#include <algorithm>
#include <numeric>

#include "kernels/noise.h"
#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Best {
  Ints token;
  Floats logp;
  explicit Best(int64_t n) : token(static_cast<size_t>(n), -7), logp(static_cast<size_t>(n), 7.0f) {}
};

void expect_best(const Best& got, const Best& want) {
  ASSERT_EQ(got.token, want.token);
  for (size_t i = 0; i < got.logp.size(); ++i) {
    if (std::isinf(want.logp[i])) ASSERT_EQ(got.logp[i], want.logp[i]);
    else ASSERT_NEAR(got.logp[i], want.logp[i], 3e-5) << i;
  }
}

TEST(CudaDraw, TopKIsTheReferencesWithAndWithoutNoiseAndMap) {
  const std::vector<DrawKey> keys = {{1, 2, 3, 1.0f, 0}, {4, 5, 6, 0.3f, 0}, {7, 8, -9, 0.0f, 0}, {7, 8, 9, 1e-38f, 0}};
  for (const int64_t v : {1, 17, 1000, 4097, 9003}) {
    SCOPED_TRACE(v);
    Floats logits = random_floats(static_cast<size_t>(4 * v), static_cast<uint32_t>(v), 2.0f);
    if (v >= 100)
      for (size_t i = 0; i < logits.size(); i += 3) logits[i] = std::round(logits[i]);  // many ties, -0 among them
    Ints map(static_cast<size_t>(v));
    std::iota(map.begin(), map.end(), 0);
    for (int32_t& id : map) id = id * 3 + 1;
    std::shuffle(map.begin(), map.end(), std::mt19937(1));  // ties go to the lower id, not the earlier place
    for (const int32_t k : {1, 10, 128})
      for (int with = 0; with < 4; ++with) {
        const bool mapped = with & 1, noisy = with & 2;
        const auto used = static_cast<int32_t>((v - v / 10) * (mapped ? 3 : 1));
        Best got(4 * k), want(4 * k);
        const auto op = [&](Best& b) {
          return TopK{view(logits, 4, v), k, used, mapped ? map.data() : nullptr, noisy ? keys.data() : nullptr,
                      b.token.data(), b.logp.data()};
        };
        run_cuda(op(got));
        run_reference(op(want));
        expect_best(got, want);
        Best alone(k);  // row 1, alone
        Floats one(logits.begin() + v, logits.begin() + 2 * v);
        run_cuda(TopK{view(one, 1, v), k, used, mapped ? map.data() : nullptr, noisy ? keys.data() + 1 : nullptr,
                      alone.token.data(), alone.logp.data()});
        EXPECT_TRUE(same_bits(alone.logp.data(), got.logp.data() + k, static_cast<size_t>(k) * 4));
      }
  }
}

// Logits that are all 0: what wins is the noise, and logp + its sum gives every one of its bits back.
TEST(CudaDraw, TheNoiseIsExactlyThatOfTheHost) {
  constexpr int32_t v = 128;
  for (const int64_t position : {int64_t{0}, int64_t{77}, int64_t{1} << 40}) {
    const std::vector<DrawKey> keys = {{0x9e3779b97f4a7c15ull, 0xfedcba9876543210ull, position, 1.0f, 0}};
    const DrawKey& key = keys[0];
    Floats logits(v, 0.0f);
    Best got(v);
    run_cuda(TopK{view(logits, 1, v), v, v, nullptr, &key, got.token.data(), got.logp.data()});
    const auto g = [&](int32_t t) { return gumbel(key.seed, key.stream, key.position, t); };
    Ints order(v);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return g(a) != g(b) ? g(a) > g(b) : a < b; });
    EXPECT_EQ(got.token, order);
    const float sum = 0.0f - got.logp[0];
    for (size_t i = 0; i < v; ++i) ASSERT_EQ(got.logp[i], (g(order[i]) - g(order[0])) - sum) << i;
  }
}

// The best k, wherever they are: all in one of 41 ranges, one in each, as many equals as places, none at all in most.
TEST(CudaDraw, TopKFindsTheBestWhereverTheyAre) {
  constexpr int64_t v = 40 * 4096 + 5;
  constexpr int32_t k = 12;
  Floats logits = random_floats(4 * v, 1);
  for (int32_t i = 0; i < k; ++i) {
    logits[static_cast<size_t>(7 * 4096 + 11 * i)] = 100.0f + static_cast<float>(i * 5 % k);
    logits[static_cast<size_t>(v + 3 * i * 4096 + i)] = 100.0f + static_cast<float>(i * 5 % k);
  }
  std::fill_n(logits.begin() + 2 * v, v, 0.25f);
  for (const int32_t used : {static_cast<int32_t>(v), 3 * 4096 + 7, 4096 + 3, 5}) {
    Best got(4 * k), want(4 * k);
    run_cuda(TopK{view(logits, 4, v), k, used, nullptr, nullptr, got.token.data(), got.logp.data()});
    run_reference(TopK{view(logits, 4, v), k, used, nullptr, nullptr, want.token.data(), want.logp.data()});
    expect_best(got, want);
  }
}

TEST(CudaDraw, TopKOfARowThatIsNotFiniteIsNothing) {
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity})
    for (const size_t where : {0u, 99u, 100u}) {
      Floats logits = random_floats(2 * 101, 3);
      logits[where] = bad;  // of row 0
      Best got(10), want(10);
      run_cuda(TopK{view(logits, 2, 101), 5, 100, nullptr, nullptr, got.token.data(), got.logp.data()});
      run_reference(TopK{view(logits, 2, 101), 5, 100, nullptr, nullptr, want.token.data(), want.logp.data()});
      expect_best(got, want);
    }
}

// An LM head's best, by Linear and TopK and by LinearTopK: the same bits. Small heads: K is cut into pieces.
struct HeadCase {
  DType type;
  int64_t v, h, r, every;
  int32_t k, used;
  float temperature, scale;
  bool mapped;
};
void expect_same_best(const HeadCase& c) {
  Weights w(c.v, c.h, c.type, 1);
  Floats x = random_floats(static_cast<size_t>(c.r * c.h), 2, c.scale), bias = random_floats(static_cast<size_t>(c.v), 3);
  Floats logits(static_cast<size_t>(c.r * c.v)), partial(static_cast<size_t>(c.r * topk_partial_cols(c.v, c.k)));
  const auto n = static_cast<size_t>(c.k);
  std::vector<DrawKey> keys, apart(static_cast<size_t>(c.r * c.every));
  for (int64_t r = 0; r < c.r; ++r) {
    keys.push_back({1, 2, r, r % 3 == 2 ? 0.0f : c.temperature, 0});
    apart[static_cast<size_t>(r * c.every)] = keys.back();
  }
  Ints map(static_cast<size_t>(c.v));
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<int32_t>(2 * (map.size() - i));
  const int32_t* ids = c.mapped ? map.data() : nullptr;
  run_cuda(Linear{view(x, c.r, c.h), w.tensor(), view(bias, 1, c.v), {}, view(logits, c.r, c.v)});
  Best want(static_cast<size_t>(c.r) * n), got(static_cast<size_t>((c.r - 1) * c.every + 1) * n);
  run_cuda(TopK{view(logits, c.r, c.v), c.k, c.used, ids, keys.data(), want.token.data(), want.logp.data()});
  const LinearTopK head{view(x, c.r, c.h), w.tensor(), view(bias, 1, c.v), c.k, c.used, ids, apart.data(),
                        view(partial, c.r, topk_partial_cols(c.v, c.k)), got.token.data(), got.logp.data(), c.every};
  run_cuda(head);
  run_cuda(MergeTopK{head});
  for (size_t row = 0; row < static_cast<size_t>(c.r); ++row)
    for (size_t i = 0; i < n; ++i) {
      const size_t at = row * static_cast<size_t>(c.every) * n + i;
      ASSERT_EQ(got.token[at], want.token[row * n + i]) << row << " " << i;
      ASSERT_EQ(got.logp[at], want.logp[row * n + i]) << row << " " << i;
    }
}

TEST(CudaDraw, AHeadsBestAreTheBestOfItsLogits) {
  each_order([] { expect_same_best({DType::bf16, 700, 300, 3, 2, 8, 650, 0.7f, 1.0f, false}); });
  for (const DType t : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const int64_t rows : {1, 11, 37}) {
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(t)) + ", " + std::to_string(rows) + " rows");
      expect_same_best({t, 1000, 600, rows, 1, 5, 1000, 0.7f, 1.0f, false});
    }
  expect_same_best({DType::int8, 900, 96, 9, 3, 5, 1500, 0.7f, 1.0f, true});
  expect_same_best({DType::bf16, 1300, 64, 2, 1, kMaxTopK, 1300, 0.7f, 1.0f, false});  // lists that are long
  expect_same_best({DType::bf16, 300, 64, 2, 1, 60, 40, 0.7f, 1.0f, false});          // fewer than k
  expect_same_best({DType::bf16, 20000, 64, 3, 1, 16, 20000, 0.7f, 1.0f, false});     // many lists
  expect_same_best({DType::int8, 20000, 64, 3, 1, 17, 300, 0.7f, 1.0f, false});       // most of them empty
  expect_same_best({DType::int8, 20000, 64, 3, 1, 10, 300, 0.7f, 1.0f, false});
  // Too cold for the best of a row, whatever its range, to be divided by it.
  expect_same_best({DType::int4, 600, 64, 9, 1, 5, 600, 1e-37f, 1e4f, false});
  expect_same_best({DType::q4_1, 600, 64, 9, 1, 5, 600, 1e-37f, 1e4f, false});
  expect_same_best({DType::mxfp4, 600, 64, 9, 1, 5, 600, 1e-37f, 1e4f, false});
}

TEST(CudaDraw, AHeadThatIsNotFiniteHasNoBest) {
  constexpr int64_t v = 600, h = 64, r = 3;
  Weights w(v, h, DType::bf16, 1);
  Floats x = random_floats(r * h, 2), partial(r * topk_partial_cols(v, 4));
  x[h + 5] = std::nanf("");
  Best got(r * 4);
  run_cuda(LinearTopK{view(x, r, h), w.tensor(), {}, 4, v, nullptr, nullptr, view(partial, r, topk_partial_cols(v, 4)),
                      got.token.data(), got.logp.data()});
  EXPECT_GE(got.token[0], 0);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(got.token[i], -1);
  EXPECT_GE(got.token[8], 0);
}

#ifndef AERIE_REAL_GPU
// What a drafter's head needs of memory does not grow with its vocabulary but for its best few.
TEST(CudaDraw, AHeadWritesNoLogits) {
  const auto device = cuda_device();
  auto queue = std::move(device->make_queue()).value();
  constexpr int64_t v = 32768, h = 32, r = 64;
  Weights w(v, h, DType::int4, 1);
  Floats x = random_floats(r * h, 2), partial(r * topk_partial_cols(v, 10));
  Best got(r * 10);
  const Op plan[] = {LinearTopK{view(x, r, h), w.tensor(), {}, 10, v, nullptr, nullptr,
                                view(partial, r, topk_partial_cols(v, 10)), got.token.data(), got.logp.data()}};
  const int64_t before = cuda::emulation::allocated_bytes();
  ASSERT_TRUE(queue->submit(plan).ok());
  EXPECT_LT(cuda::emulation::allocated_bytes() - before, r * v * 4 / 2);
  queue->abandon();
}
#endif

TEST(CudaDraw, RescoreIsTheReferences) {
  constexpr int64_t r = 4, v = 300, n = 20;
  constexpr int32_t k = 7;
  Floats approx = random_floats(r * v, 1, 2.0f), exact = random_floats(r * n, 2, 2.0f);
  const std::vector<DrawKey> keys(r, DrawKey{1, 2, 3, 0.8f, 0});
  for (const bool noisy : {false, true}) {
    Best seen(r * n);
    const DrawKey* key = noisy ? keys.data() : nullptr;
    run_reference(TopK{view(approx, r, v), n, v, nullptr, key, seen.token.data(), seen.logp.data()});
    std::fill(seen.token.begin() + n + 5, seen.token.begin() + 2 * n, -1);  // fewer than k
    std::fill(seen.token.begin() + 2 * n, seen.token.begin() + 3 * n, -1);  // none
    exact[3 * n + 4] = std::nanf("");
    Best got(r * k), want(r * k);
    const auto op = [&](Best& b) {
      return Rescore{view(approx, r, v), seen.token.data(), seen.logp.data(), view(exact, r, n), k, key, b.token.data(), b.logp.data()};
    };
    run_cuda(op(got));
    run_reference(op(want));
    expect_best(got, want);
  }
}

// ---- Walk -----------------------------------------------------------------------------------------

struct Tree {
  int64_t vocab;
  Floats logits;
  Ints token, first_child, next_sibling;
  Tree(int64_t rows, int64_t v, uint32_t seed)
      : vocab(v),
        logits(random_floats(static_cast<size_t>(rows * v), seed, 3.0f)),
        token(static_cast<size_t>(rows), -1),
        first_child(token),
        next_sibling(token) {}
  void child(size_t parent, size_t r, int32_t t) {
    token[r] = t;
    next_sibling[r] = first_child[parent];
    first_child[parent] = static_cast<int32_t>(r);
  }
};

struct Walked {
  WalkOut head;
  std::vector<WalkStep> steps;
};
template <class Go>
std::vector<Walked> walk(Tree& t, int32_t used, const std::vector<WalkSeq>& seqs, int32_t max_steps, Go&& go) {
  std::vector<char> out(seqs.size() * static_cast<size_t>(walk_out_bytes(max_steps)), 0x55);
  go(Walk{view(t.logits, static_cast<int64_t>(t.token.size()), t.vocab), used, t.token.data(), t.first_child.data(),
          t.next_sibling.data(), seqs.data(), static_cast<int32_t>(seqs.size()), max_steps, out.data()});
  std::vector<Walked> result(seqs.size());
  for (size_t i = 0; i < seqs.size(); ++i) {
    const char* p = out.data() + i * static_cast<size_t>(walk_out_bytes(max_steps));
    std::memcpy(&result[i].head, p, sizeof(WalkOut));
    result[i].steps.resize(static_cast<size_t>(std::max(result[i].head.count, 0)));
    if (result[i].head.count > 0)
      std::memcpy(result[i].steps.data(), p + sizeof(WalkOut), result[i].steps.size() * sizeof(WalkStep));
  }
  return result;
}

void expect_walks(const std::vector<Walked>& got, const std::vector<Walked>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("walk " + std::to_string(i));
    ASSERT_EQ(got[i].head.status, want[i].head.status);
    ASSERT_EQ(got[i].head.count, want[i].head.count);
    for (size_t s = 0; s < got[i].steps.size(); ++s) {
      ASSERT_EQ(got[i].steps[s].token, want[i].steps[s].token) << s;
      ASSERT_EQ(got[i].steps[s].row, want[i].steps[s].row) << s;
      ASSERT_NEAR(got[i].steps[s].logprob, want[i].steps[s].logprob, 2e-5) << s;
    }
  }
}
const auto kCuda = [](const Walk& op) { run_cuda(op); };
const auto kReference = [](const Walk& op) { run_reference(op); };

TEST(CudaDraw, WalkDrawsWhatTheReferenceDrawsWithEveryFilter) {
  const Sampling settings[] = {
      {.temperature = 0},
      {.temperature = 1},
      {.temperature = 0.3f},
      {.temperature = 1e-38f},
      {.temperature = 1, .top_k = 1},
      {.temperature = 1, .top_k = 5},
      {.temperature = 1, .top_k = 100000},
      {.temperature = 1, .top_p = 0.5f},
      {.temperature = 8, .top_p = 0.9999f},
      {.temperature = 1, .top_p = 0},
      {.temperature = 1, .min_p = 0.05f},
      {.temperature = 1, .min_p = 1},
      {.temperature = 1.5f, .top_p = 0.8f, .top_k = 20},
      {.temperature = 2, .top_p = 0.9f, .min_p = 0.1f, .top_k = 40},
  };
  for (const int64_t v : {1, 64, 1111, 5000}) {
    SCOPED_TRACE(v);
    Tree three(3, v, static_cast<uint32_t>(v));
    if (v > 10) {
      for (int64_t t = 0; t < v; t += 2) three.logits[static_cast<size_t>(v + t)] = std::round(three.logits[static_cast<size_t>(v + t)]);
      for (int64_t t = 0; t < v; t += 3) three.logits[static_cast<size_t>(2 * v + t)] = -kInfinity;  // masked ids
    }
    Tree tree(static_cast<int64_t>(3 * std::size(settings)), v, 0);  // these three once for each
    for (size_t i = 0; i < tree.logits.size(); ++i) tree.logits[i] = three.logits[i % three.logits.size()];
    std::vector<WalkSeq> seqs;
    uint64_t seed = 0;
    for (Sampling s : settings)
      for (int32_t row = 0; row < 3; ++row) {
        s.seed = ++seed * 0x9e3779b97f4a7c15ull;
        s.stream = seed;
        seqs.push_back({s, 1000 + row, static_cast<int32_t>(seqs.size()), 0});
      }
    const auto used = static_cast<int32_t>(v - v / 8);
    expect_walks(walk(tree, used, seqs, 3, kCuda), walk(tree, used, seqs, 3, kReference));
  }
}

TEST(CudaDraw, WalkFollowsChildrenThatCarryTheDraw) {
  constexpr int32_t v = 50;
  const Sampling s{.seed = 11, .stream = 5, .temperature = 1};
  for (uint32_t seed = 0; seed < 4; ++seed) {
    Tree t(20, v, seed);
    size_t row = 0, next = 1;
    for (int level = 0; level < 3; ++level) {  // along the draws themselves, among other children
      Tree alone(1, v, 0);
      std::copy_n(t.logits.begin() + static_cast<int64_t>(row) * v, v, alone.logits.begin());
      const int32_t x = walk(alone, v, {{s, 100 + level, 0, 0}}, 1, kReference)[0].steps[0].token;
      size_t on_path = 0;
      for (int32_t c = 0; c < 4; ++c, ++next) {
        const bool right = c == (level + static_cast<int32_t>(seed)) % 4;
        t.child(row, next, right ? x : (x + c + 1) % v);
        if (right) on_path = next;
      }
      row = on_path;
    }
    t.child(15, 17, walk(t, v, {{s, 500, 15, 0}}, 1, kReference)[0].steps[0].token);
    const std::vector<WalkSeq> seqs = {{s, 100, 0, 0}, {s, 500, 15, 0}};
    for (const int32_t most : {8, 2}) {
      const auto want = walk(t, v, seqs, most, kReference);
      EXPECT_EQ(want[0].head.count, std::min(4, most));
      EXPECT_EQ(want[1].head.count, 2);
      each_order([&] { expect_walks(walk(t, v, seqs, most, kCuda), want); });
    }
  }
}

TEST(CudaDraw, WalkReportsLogitsThatAreNotFiniteOnItsPathOnly) {
  for (const float bad : {std::nanf(""), kInfinity})
    for (const size_t where : {0u, 16u, 99u}) {
      Tree t(5, 100, 2);
      const int32_t x = walk(t, 100, {{{}, 0, 0, 0}}, 1, kReference)[0].steps[0].token;
      t.child(0, 1, x);
      t.child(0, 3, (x + 1) % 100);
      t.logits[100 + where] = t.logits[300 + where] = t.logits[400 + where] = bad;
      const std::vector<WalkSeq> seqs = {{{.temperature = 1}, 0, 4, 0}, {{}, 0, 0, 0}, {{}, 0, 2, 0}};
      for (const int32_t used : {100, 99}) expect_walks(walk(t, used, seqs, 4, kCuda), walk(t, used, seqs, 4, kReference));
    }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
