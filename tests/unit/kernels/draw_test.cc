#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "kernels/noise.h"
#include "kernels/scalar_math.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::draw_test {
using namespace aerie::kernels::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Draw, OwnExpAndLogAreAccurate) {
  for (float x = -86.8f; x < 88.7f; x += 0.00137f)
    ASSERT_NEAR(exp_own(x), std::exp(static_cast<double>(x)), 2e-7 * std::exp(static_cast<double>(x))) << x;
  for (float x = 1.2e-38f; x < 1e38f; x *= 1.0017f)
    ASSERT_NEAR(log_positive(x), std::log(static_cast<double>(x)),
                2e-7 * (1 + std::fabs(std::log(static_cast<double>(x)))))
        << x;
  EXPECT_EQ(exp_own(0.0f), 1.0f);
  EXPECT_EQ(exp_own(-kInfinity), 0.0f);
  EXPECT_EQ(exp_own(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp_own(kNan)));
}

// ---- TopK -------------------------------------------------------------------------------------

struct Best {
  Ints token;
  Floats logp;
};

Best top_k(Floats& logits, int64_t rows, int32_t k, int32_t used, const Ints* map, const std::vector<DrawKey>* keys,
           const std::function<void(const TopK&)>& go) {
  Best b;
  b.token.assign(static_cast<size_t>(rows * k), -7);
  b.logp.assign(static_cast<size_t>(rows * k), 7.0f);
  go(TopK{view(logits, rows, static_cast<int64_t>(logits.size()) / rows), k, used, map ? map->data() : nullptr,
          keys ? keys->data() : nullptr, b.token.data(), b.logp.data()});
  return b;
}
const auto kOnCpu = [](const TopK& op) { run_cpu(op); };
const auto kOnReference = [](const TopK& op) { run_reference(op); };

// By sorting, straight from the definition.
Best sorted(const Floats& logits, int64_t rows, int32_t k, int32_t used, const Ints* map,
            const std::vector<DrawKey>* keys) {
  const size_t v = logits.size() / static_cast<size_t>(rows);
  Best b;
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    std::vector<std::pair<float, int32_t>> all;
    double total = 0;
    for (size_t t = 0; t < v; ++t) {
      const int32_t id = map ? (*map)[t] : static_cast<int32_t>(t);
      if (id >= used) continue;
      float score = logits[r * v + t];
      if (keys && (*keys)[r].temperature > 0) {
        const DrawKey& key = (*keys)[r];
        score = score / key.temperature + gumbel(key.seed, key.stream, key.position, id);
      }
      all.push_back({-score, id});
      total += std::exp(static_cast<double>(score));
    }
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
      b.token.push_back(i < all.size() ? all[i].second : -1);
      b.logp.push_back(i < all.size() ? static_cast<float>(-all[i].first - std::log(total)) : -kInfinity);
    }
  }
  return b;
}

void check_top_k(Floats& logits, int64_t rows, int32_t k, int32_t used, const Ints* map,
                 const std::vector<DrawKey>* keys) {
  const Best want = sorted(logits, rows, k, used, map, keys);
  const auto check = [&](const Best& got) {
    ASSERT_EQ(got.token, want.token);
    for (size_t i = 0; i < got.logp.size(); ++i) {
      if (got.token[i] < 0)
        ASSERT_EQ(got.logp[i], -kInfinity);
      else
        ASSERT_NEAR(got.logp[i], want.logp[i], 3e-5) << i;
    }
  };
  check(top_k(logits, rows, k, used, map, keys, kOnReference));
  Floats first;
  each_isa([&] {
    const Best got = top_k(logits, rows, k, used, map, keys, kOnCpu);
    check(got);
    if (first.empty()) first = got.logp;
    EXPECT_TRUE(same_bits(got.logp, first));  // the same on every ISA
  });
}

TEST(Draw, TopKIsASortWithAndWithoutNoiseAndMap) {
  const std::vector<DrawKey> keys = {{1, 2, 3, 1.0f, 0}, {4, 5, 6, 0.3f, 0}, {7, 8, -9, 0.0f, 0}};
  for (const int64_t v : {1, 3, 17, 100, 1000, 5003}) {
    SCOPED_TRACE(v);
    Floats logits = random_floats(static_cast<size_t>(3 * v), static_cast<uint32_t>(v), 2.0f);
    if (v >= 100)
      for (size_t i = 0; i < logits.size(); i += 3) logits[i] = std::round(logits[i]);  // many ties
    Ints map(static_cast<size_t>(v));
    std::iota(map.begin(), map.end(), 0);
    for (int32_t& id : map) id = id * 3 + 1;
    std::shuffle(map.begin(), map.end(), std::mt19937(1));  // ties go to the lower id, not the earlier place
    for (const int32_t k : {1, 4, 10, 128}) {
      const auto used = static_cast<int32_t>(v - v / 10);
      check_top_k(logits, 3, k, used, nullptr, nullptr);
      check_top_k(logits, 3, k, used, nullptr, &keys);
      check_top_k(logits, 3, k, used * 3, &map, nullptr);
      check_top_k(logits, 3, k, used * 3, &map, &keys);
    }
  }
}

TEST(Draw, TopKOfEqualOrRisingLogitsStaysRight) {  // the selection's worst cases
  Floats equal(3000, 0.5f), rising(3000);
  std::iota(rising.begin(), rising.end(), 0.0f);
  for (float& x : rising) x *= 0.01f;
  for (const int32_t k : {1, 7, 128}) {
    check_top_k(equal, 1, k, 3000, nullptr, nullptr);
    check_top_k(rising, 1, k, 3000, nullptr, nullptr);
    Ints falling(3000);  // ids of equal scores get better and better
    for (int32_t i = 0; i < 3000; ++i) falling[static_cast<size_t>(i)] = 2999 - i;
    check_top_k(equal, 1, k, 3000, &falling, nullptr);
  }
}

TEST(Draw, TopKOfARowThatIsNotFiniteIsNothing) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const size_t where : {0u, 63u, 99u, 100u}) {
      Floats logits = random_floats(2 * 101, 3);
      logits[where] = bad;  // of row 0
      each_isa([&] {
        const Best got = top_k(logits, 2, 5, 100, nullptr, nullptr, kOnCpu);
        const Best want = top_k(logits, 2, 5, 100, nullptr, nullptr, kOnReference);
        EXPECT_EQ(got.token, want.token);
        EXPECT_EQ(got.token[0] == -1, where < 100) << where;  // an unused id may hold anything
        EXPECT_GE(got.token[5], 0);
      });
    }
  }
}

// ---- Walk -------------------------------------------------------------------------------------

struct Tree {
  int64_t vocab;
  Floats logits;
  Ints token, first_child, next_sibling;
  Tree(int64_t rows, int64_t v, uint32_t seed, float scale = 3.0f)
      : vocab(v),
        logits(random_floats(static_cast<size_t>(rows * v), seed, scale)),
        token(static_cast<size_t>(rows), -1),
        first_child(static_cast<size_t>(rows), -1),
        next_sibling(static_cast<size_t>(rows), -1) {}
  float* row(int64_t r) { return logits.data() + r * vocab; }
  int64_t rows() const { return static_cast<int64_t>(token.size()); }
  void child(int32_t parent, int32_t r, int32_t t) {
    token[static_cast<size_t>(r)] = t;
    next_sibling[static_cast<size_t>(r)] = first_child[static_cast<size_t>(parent)];
    first_child[static_cast<size_t>(parent)] = r;
  }
};

struct Walked {
  WalkOut head;
  std::vector<WalkStep> steps;
};

template <class Go>
std::vector<Walked> walk(Tree& t, int32_t used, const std::vector<WalkSeq>& seqs, int32_t max_steps, Go&& go) {
  std::vector<char> out(seqs.size() * static_cast<size_t>(walk_out_bytes(max_steps)), 0x55);
  go(Walk{view(t.logits, t.rows(), t.vocab), used, t.token.data(), t.first_child.data(), t.next_sibling.data(),
          seqs.data(), static_cast<int32_t>(seqs.size()), max_steps, out.data()});
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
const auto kWalkCpu = [](const Walk& op) { run_cpu(op); };
const auto kWalkReference = [](const Walk& op) { run_reference(op); };

// The draw by brute force, written another way round: a token is in if few enough beat it (top-k), the
// ones that beat it hold too little mass (top-p), and it is not too far below the best (min-p).
int32_t brute_draw(const float* logits, int32_t n, const Sampling& s, int64_t position) {
  const auto beats = [](float a, int32_t i, float b, int32_t j) { return a > b || (a == b && i < j); };
  int32_t best = 0;
  for (int32_t t = 1; t < n; ++t)
    if (beats(logits[t], t, logits[best], best)) best = t;
  if (s.temperature <= 0) return best;
  Floats score(static_cast<size_t>(n));
  for (int32_t t = 0; t < n; ++t) score[static_cast<size_t>(t)] = logits[t] / s.temperature;
  std::vector<bool> in(static_cast<size_t>(n), true);
  const auto of = [&](int32_t t) { return score[static_cast<size_t>(t)]; };
  const auto weight = [&](int32_t t) { return std::exp(static_cast<double>(of(t)) - of(best)); };
  const auto above = [&](int32_t t, const std::function<double(int32_t)>& f) {
    double sum = 0;
    for (int32_t u = 0; u < n; ++u)
      if (in[static_cast<size_t>(u)] && beats(of(u), u, of(t), t)) sum += f(u);
    return sum;
  };
  const auto keep = [&](const std::function<bool(int32_t)>& f) {
    std::vector<bool> next = in;
    for (int32_t t = 0; t < n; ++t) next[static_cast<size_t>(t)] = in[static_cast<size_t>(t)] && (t == best || f(t));
    in = next;
  };
  if (s.top_k > 0) keep([&](int32_t t) { return above(t, [](int32_t) { return 1.0; }) < s.top_k; });
  if (s.top_p < 1) {
    double total = 0;
    for (int32_t t = 0; t < n; ++t) total += in[static_cast<size_t>(t)] ? weight(t) : 0;
    keep([&](int32_t t) { return above(t, weight) < s.top_p * total; });
  }
  if (s.min_p > 0) keep([&](int32_t t) { return weight(t) >= s.min_p; });
  int32_t x = -1;
  float top = 0;
  for (int32_t t = 0; t < n; ++t) {
    if (!in[static_cast<size_t>(t)]) continue;
    const float v = of(t) + gumbel(s.seed, s.stream, position, t);
    if (x < 0 || v > top) top = v, x = t;
  }
  return x;
}

double brute_logp(const float* logits, int32_t n, int32_t x) {
  double total = 0;
  for (int32_t t = 0; t < n; ++t) total += std::exp(static_cast<double>(logits[t]) - logits[x]);
  return -std::log(total);
}

TEST(Draw, WalkDrawsWhatBruteForceDrawsWithEveryFilter) {
  const Sampling settings[] = {
      {.temperature = 0},
      {.temperature = 1},
      {.temperature = 0.3f},
      {.temperature = 5},
      {.temperature = 1, .top_k = 1},
      {.temperature = 1, .top_k = 5},
      {.temperature = 1, .top_k = 100000},
      {.temperature = 1, .top_p = 0.5f},
      {.temperature = 1, .top_p = 0.9f},
      {.temperature = 8, .top_p = 0.9999f},
      {.temperature = 1, .top_p = 0},
      {.temperature = 1, .min_p = 0.05f},
      {.temperature = 1, .min_p = 1},
      {.temperature = 1.5f, .top_p = 0.8f, .top_k = 20},
      {.temperature = 2, .top_p = 0.9f, .min_p = 0.1f, .top_k = 40},
      {.temperature = 2, .min_p = 0.1f, .top_k = 40},
      {.temperature = 2, .top_p = 0.9f, .min_p = 0.2f},
  };
  for (const int64_t v : {1, 7, 64, 300, 1111}) {
    Tree tree(6, v, static_cast<uint32_t>(v));
    if (v > 10)
      for (int64_t t = 0; t < v; t += 2) tree.row(1)[t] = std::round(tree.row(1)[t]);  // ties in the sorted order
    if (v > 10)
      for (int64_t t = 0; t < v; t += 3) tree.row(2)[t] = -kInfinity;  // masked ids
    const auto used = static_cast<int32_t>(v - v / 8);
    std::vector<WalkSeq> seqs;
    uint64_t seed = 0;
    for (Sampling s : settings)
      for (int32_t row = 0; row < 6; ++row) {
        s.seed = ++seed * 0x9e3779b97f4a7c15ull;
        s.stream = seed;
        seqs.push_back({s, 1000 + row, row, 0});
      }
    const auto check = [&](const std::vector<Walked>& got) {
      for (size_t i = 0; i < seqs.size(); ++i) {
        SCOPED_TRACE("setting " + std::to_string(i / 6) + ", row " + std::to_string(i % 6) + ", vocabulary " +
                     std::to_string(v));
        const float* logits = tree.row(seqs[i].root_row);
        ASSERT_EQ(got[i].head.status, 0);
        ASSERT_EQ(got[i].head.count, 1);
        const WalkStep& step = got[i].steps[0];
        ASSERT_EQ(step.token, brute_draw(logits, used, seqs[i].sampling, seqs[i].root_position + 1));
        ASSERT_EQ(step.row, seqs[i].root_row);
        ASSERT_NEAR(step.logprob, brute_logp(logits, used, step.token), 2e-5);
      }
    };
    check(walk(tree, used, seqs, 3, kWalkReference));
    each_isa([&] { check(walk(tree, used, seqs, 3, kWalkCpu)); });
  }
}

TEST(Draw, TopPOfAFlatRowKeepsExactlyItsShare) {
  constexpr int32_t v = 1024;
  Tree tree(1, v, 1, 0.0f);
  for (const float top_p : {0.25f, 0.5f, 0.75f, 0.125f, 511.0f / 1024, 513.0f / 1024}) {
    const auto share = static_cast<int32_t>(top_p * v);
    std::vector<WalkSeq> seqs;
    for (int32_t i = 0; i < 4000; ++i)
      seqs.push_back({{.seed = 17, .stream = 1, .temperature = 1, .top_p = top_p}, i, 0, 0});
    const auto got = walk(tree, v, seqs, 1, kWalkCpu);
    for (int32_t i = 0; i < 4000; ++i) {
      int32_t best = 0;
      for (int32_t t = 1; t < share; ++t)
        if (gumbel(17, 1, i + 1, t) > gumbel(17, 1, i + 1, best)) best = t;
      ASSERT_EQ(got[static_cast<size_t>(i)].steps[0].token, best) << top_p;
      if (i == 400) i = 3900;  // brute force is slow
    }
    // Each kept token is worth 1 in `share`: the last one must turn up, the one behind it must not.
    int last = 0;
    for (const Walked& w : got) {
      ASSERT_LT(w.steps[0].token, share);
      last += w.steps[0].token == share - 1;
    }
    EXPECT_GT(last, 0) << top_p;
  }
}

TEST(Draw, EqualScoresGoToTheLowestId) {
  // Make two tokens' logit + noise the same float, whichever of them has the larger logit.
  int equal = 0;
  for (int64_t position = 0; position < 200; ++position) {
    const float low = gumbel(1, 1, position + 1, 3), high = gumbel(1, 1, position + 1, 60);
    Tree t(1, 100, 1, 0.0f);
    for (float& x : t.logits) x = -100;
    t.logits[60] = 5;
    float x = 5 + high - low;
    for (int i = 0; i < 4 && x + low > 5 + high; ++i) x = std::nextafter(x, -kInfinity);
    for (int i = 0; i < 4 && x + low < 5 + high; ++i) x = std::nextafter(x, kInfinity);
    t.logits[3] = x;
    if (x + low != 5 + high) continue;
    ++equal;
    each_isa([&] {
      for (const Sampling& s : {Sampling{.seed = 1, .stream = 1, .temperature = 1},
                                Sampling{.seed = 1, .stream = 1, .temperature = 1, .top_k = 7}})
        EXPECT_EQ(walk(t, 100, {{s, position, 0, 0}}, 1, kWalkCpu)[0].steps[0].token, 3);
    });
  }
  EXPECT_GT(equal, 100);
  Tree t(1, 100, 1, 0.0f);  // and greedily
  t.logits[41] = t.logits[7] = t.logits[93] = 1;
  each_isa([&] { EXPECT_EQ(walk(t, 100, {{{}, 0, 0, 0}}, 1, kWalkCpu)[0].steps[0].token, 7); });
}

TEST(Draw, WalkFollowsChildrenThatCarryTheDraw) {
  constexpr int64_t v = 50;
  Sampling s{.seed = 11, .stream = 5, .temperature = 1};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    // Build the tree along the draws themselves, three levels of them, among other children.
    Tree t(40, v, seed);
    int32_t row = 0, next = 1;
    Ints want_rows = {0}, want_tokens;
    for (int level = 0; level < 4; ++level) {
      const int32_t x = brute_draw(t.row(row), v, s, 101 + level);
      want_tokens.push_back(x);
      if (level == 3) break;
      int32_t on_path = -1;
      for (int32_t c = 0; c < 4; ++c) {
        const int32_t r = next++;
        const bool right = c == (level + static_cast<int32_t>(seed)) % 4;
        t.child(row, r, right ? x : (x + c + 1) % static_cast<int32_t>(v));
        if (right) on_path = r;
      }
      row = on_path;
      want_rows.push_back(row);
    }
    const std::vector<WalkSeq> seqs = {{s, 100, 0, 0}};
    each_isa([&] {
      const Walked got = walk(t, v, seqs, 8, kWalkCpu)[0];
      ASSERT_EQ(got.head.count, 4);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(got.steps[i].token, want_tokens[i]);
        EXPECT_EQ(got.steps[i].row, want_rows[i]);
      }
      const Walked cut = walk(t, v, seqs, 2, kWalkCpu)[0];  // never more than asked for
      ASSERT_EQ(cut.head.count, 2);
      EXPECT_EQ(cut.steps[1].token, want_tokens[1]);
      // A sequence's walk does not depend on the others.
      const auto pair = walk(t, v, {{s, 500, want_rows[1], 0}, seqs[0]}, 8, kWalkCpu);
      EXPECT_TRUE(same_bits(pair[1].steps.data(), got.steps.data(), 4 * sizeof(WalkStep)));
    });
  }
}

TEST(Draw, WalkLooksOnlyAtTheRowsOfItsPath) {
  Tree t(5, 33, 1);
  const std::vector<WalkSeq> seqs = {{{.temperature = 0}, 9, 0, 0}};
  const int32_t x = brute_draw(t.row(0), 33, {}, 10);
  t.child(0, 1, (x + 1) % 33);
  t.child(0, 2, x);
  std::fill(t.row(1), t.row(1) + 33, kNan);
  std::fill(t.row(3), t.row(5 - 1) + 33, kNan);
  each_isa([&] {
    const Walked got = walk(t, 33, seqs, 4, kWalkCpu)[0];
    EXPECT_EQ(got.head.status, 0);
    EXPECT_EQ(got.head.count, 2);
  });
}

TEST(Draw, WalkReportsLogitsThatAreNotFinite) {
  for (const float bad : {kNan, kInfinity}) {
    for (const int64_t where : {0, 16, 70, 99}) {
      Tree t(3, 100, 2);
      const int32_t x = brute_draw(t.row(0), 100, {}, 1);
      t.child(0, 1, x);
      t.row(1)[where] = bad;
      for (const float temperature : {0.0f, 1.0f}) {
        const std::vector<WalkSeq> seqs = {
            {{.temperature = temperature}, 0, 1, 0}, {{.temperature = 0}, 0, 0, 0}, {{}, 0, 2, 0}};
        each_isa([&] {
          const auto got = walk(t, 100, seqs, 4, kWalkCpu);
          EXPECT_EQ(got[0].head.status, 1);
          EXPECT_EQ(got[0].head.count, 0);
          EXPECT_EQ(got[1].head.status, 1);  // met on the second row of its path
          EXPECT_EQ(got[1].head.count, 0);
          EXPECT_EQ(got[2].head.status, 0);
          if (where == 99) {
            EXPECT_EQ(walk(t, 99, seqs, 4, kWalkCpu)[0].head.status, 0);
          }  // an unused id
        });
      }
    }
  }
  Tree masked(1, 40, 3);
  std::fill(masked.logits.begin(), masked.logits.end(), -kInfinity);
  each_isa([&] { EXPECT_EQ(walk(masked, 40, {{{.temperature = 1}, 0, 0, 0}}, 2, kWalkCpu)[0].head.status, 1); });
}

TEST(Draw, ExtremeTemperaturesAndLogits) {
  Tree t(2, 200, 4, 100.0f);
  t.row(1)[5] = 3e38f;
  t.row(1)[6] = 3e38f;
  for (const float temperature : {1e-42f, 1e-30f, 1e-6f, 1e6f, 1e30f}) {
    const std::vector<WalkSeq> seqs = {{{.seed = 3, .temperature = temperature}, 0, 0, 0},
                                       {{.seed = 3, .temperature = temperature}, 0, 1, 0}};
    const auto want = walk(t, 200, seqs, 2, kWalkReference);
    each_isa([&] {
      const auto got = walk(t, 200, seqs, 2, kWalkCpu);
      for (size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(got[i].head.count, 1);
        EXPECT_EQ(got[i].steps[0].token, want[i].steps[0].token) << temperature;
        EXPECT_FALSE(std::isnan(got[i].steps[0].logprob));
      }
    });
  }
}

TEST(Draw, WalkFollowsTheTargetsDistribution) {
  constexpr int32_t v = 40, n = 40'000;
  Tree t(1, v, 6, 1.5f);
  double total = 0;
  for (int32_t i = 0; i < v; ++i) total += std::exp(t.row(0)[i] / 0.8);
  std::vector<WalkSeq> seqs;
  for (int i = 0; i < n; ++i) seqs.push_back({{.seed = 99, .stream = 1, .temperature = 0.8f}, i, 0, 0});
  Ints count(v);
  for (const Walked& w : walk(t, v, seqs, 1, kWalkCpu)) ++count[static_cast<size_t>(w.steps[0].token)];
  double chi = 0;
  for (int32_t i = 0; i < v; ++i) {
    const double expected = n * std::exp(t.row(0)[i] / 0.8) / total;
    chi += (count[static_cast<size_t>(i)] - expected) * (count[static_cast<size_t>(i)] - expected) / expected;
  }
  EXPECT_LT(chi, 73.4);  // 39 degrees of freedom, p = 0.0007
}

// Large vocabularies: what the bound lets the walk pass over must never have won.
TEST(Draw, WalkOverALargeVocabularyEqualsTheReference) {
  constexpr int32_t v = 20'011;
  for (const float scale : {0.0f, 0.5f, 3.0f, 12.0f}) {
    Tree t(2, v, 7, scale);
    std::vector<WalkSeq> seqs;
    for (int i = 0; i < 60; ++i) {
      Sampling s{.seed = static_cast<uint64_t>(i), .stream = 3, .temperature = i % 2 ? 1.0f : 0.7f};
      if (i % 10 == 8) s.top_p = 0.95f;
      if (i % 10 == 9) s.top_k = 50;
      seqs.push_back({s, i * 7, i % 2, 0});
    }
    const auto want = walk(t, v, seqs, 1, kWalkReference);
    Floats first;
    each_isa([&] {
      const auto got = walk(t, v, seqs, 1, kWalkCpu);
      Floats logp;
      for (size_t i = 0; i < seqs.size(); ++i) {
        EXPECT_EQ(got[i].steps[0].token, want[i].steps[0].token) << i;
        EXPECT_NEAR(got[i].steps[0].logprob, want[i].steps[0].logprob, 2e-5) << i;
        logp.push_back(got[i].steps[0].logprob);
      }
      if (first.empty()) first = logp;
      EXPECT_TRUE(same_bits(first, logp));
    });
  }
}

}  // namespace aerie::kernels::draw_test
