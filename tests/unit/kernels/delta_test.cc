// Recurrent layers: against the reference, and that a row's bits do not hang by the pass or the tree it is in.
#include "unit/kernels/delta_support.h"

namespace aerie::kernels::delta_test {
namespace {

constexpr auto kOnCpu = [](const auto& op) { run_cpu(op, 3); };
constexpr auto kOnReference = [](const auto& op) { run_reference(op); };

TEST(Delta, MatchesTheReferenceOnEveryIsa) {
  for (const DeltaShape& s : kShapes)
    for (const int32_t from : {-1, 0}) {
      SCOPED_TRACE(testing::Message() << s.key_heads << " x " << s.key_dim << ", " << s.heads << " x " << s.value_dim << " from " << from);
      const Inputs in(s, 11);
      States wanted(s);
      Pass reference(s, wanted, in.x, in.gates, numbers(0, 11), kTree, from, 1, 2);
      const Floats want = reference.run(kOnReference);
      each_isa([&] {
        States states(s);
        Pass pass(s, states, in.x, in.gates, numbers(0, 11), kTree, from, 1, 2);
        expect_near(pass.run(kOnCpu), want, 1e-4f);
        for (int32_t i = 0; i < 4; ++i) {
          if (i == 1) expect_near(states.of(i), wanted.of(i), 1e-4f);
          else EXPECT_TRUE(same_bits(states.of(i), wanted.of(i))) << i;  // nothing else was written
        }
      });
    }
}

// One row a pass, some rows a pass, and as a branch of a tree whose path is then taken: the same outputs and states.
TEST(Delta, BitsDoNotHangByThePassOrTheTree) {
  for (const DeltaShape& s : kShapes) {
    SCOPED_TRACE(testing::Message() << s.key_heads << " x " << s.key_dim << ", " << s.heads << " x " << s.value_dim);
    const Inputs in(s, 11);
    const Ints path = {0, 1, 2, 3, 6, 8, 9};  // of kTree, to its deepest row
    each_isa([&] {
      States one(s), some(s), tree(s);
      Floats want, got;
      for (size_t i = 0; i < path.size(); ++i) {
        Pass pass(s, one, in.x, in.gates, {path[i]}, {-1}, i == 0 ? -1 : static_cast<int32_t>(i % 2), static_cast<int32_t>((i + 1) % 2), 0);
        const Floats& out = pass.run(kOnCpu);
        want.insert(want.end(), out.begin(), out.end());
      }
      const Floats state = one.of(static_cast<int32_t>(path.size() % 2));
      int32_t from = -1;
      for (const auto& [first, n] : {std::pair<size_t, size_t>{0, 4}, {4, 2}, {6, 1}}) {
        Pass pass(s, some, in.x, in.gates, Ints(path.begin() + static_cast<long>(first), path.begin() + static_cast<long>(first + n)), chain(static_cast<int32_t>(n)),
                  from, from == 2 ? 3 : 2, static_cast<int32_t>(n) - 1);
        from = pass.of.to;
        const Floats& out = pass.run(kOnCpu);
        got.insert(got.end(), out.begin(), out.end());
      }
      EXPECT_TRUE(same_bits(got, want));
      const auto second = [&](const Floats& f) { return Floats(f.begin() + s.floats(), f.end()); };  // the layer that passes write
      EXPECT_TRUE(same_bits(second(some.of(from)), second(state)));
      Pass pass(s, tree, in.x, in.gates, numbers(0, 11), kTree, -1, -1, -1);
      const Floats& out = pass.run(kOnCpu);
      for (size_t i = 0; i < path.size(); ++i)
        EXPECT_TRUE(same_bits(&out[static_cast<size_t>(path[i] * s.values())], &want[i * static_cast<size_t>(s.values())], static_cast<size_t>(s.values()) * 4)) << i;
      // The states are made afterwards, without outputs.
      std::vector<DeltaStep> steps;
      for (size_t i = 0; i < path.size(); ++i) steps.push_back({path[i], i == 0 ? -1 : 0, 0});
      const DeltaSeq of{-1, 3, path.back(), 0, static_cast<int32_t>(steps.size())};
      run_cpu(DeltaRule{view(pass.x, 11, s.channels()), view(pass.qkv, 11, s.channels()), view(pass.rates, 11, 2 * s.heads), tree.cache, s.floats(), s,
                        {&of, steps.data(), nullptr, kTree.data(), 1, of.steps, 1}, {}});
      EXPECT_TRUE(same_bits(second(tree.of(3)), second(state)));
    });
  }
}

TEST(Delta, SequencesOfAPassDoNotMeet) {
  const DeltaShape s{2, 4, 32, 32, 4};
  const Inputs in(s, 6);
  States apart(s), together(s);
  Pass first(s, apart, in.x, in.gates, numbers(0, 4), chain(4), 0, 2, 3), second(s, apart, in.x, in.gates, numbers(4, 2), {-1, 0}, 1, 3, 1);
  Floats want = first.run(kOnCpu);
  const Floats& more = second.run(kOnCpu);
  want.insert(want.end(), more.begin(), more.end());
  Pass both(s, together, in.x, in.gates, numbers(0, 6), {-1, 0, 1, 2, -1, 4}, 0, 2, 3);
  both.seq = {0, 0, 0, 0, 1, 1};
  const DeltaSeq seqs[] = {{0, 2, 3, 0, 4}, {1, 3, 5, 4, 2}};
  Floats weight = random_floats(static_cast<size_t>(s.taps * s.channels()), 7);
  const auto rows = [&] {
    DeltaRows r = both.rows();
    r.seqs = seqs;
    r.n_seqs = 2;
    return r;
  };
  const Tensor x = view(both.x, 6, s.channels()), qkv = view(both.qkv, 6, s.channels());
  run_cpu(ShortConv{x, view(weight, s.taps, s.channels()), together.cache, s.floats(), s, rows(), qkv});
  for (float& v : both.qkv) v *= 0.2f;
  both.rates = first.rates;
  both.rates.insert(both.rates.end(), second.rates.begin(), second.rates.end());
  run_cpu(DeltaRule{x, qkv, view(both.rates, 6, 2 * s.heads), together.cache, s.floats(), s, rows(), view(both.out, 6, s.values())});
  EXPECT_TRUE(same_bits(both.out, want));
  EXPECT_TRUE(same_bits(together.floats, apart.floats));
}

// A text in two passes, the second a tree of which a path is kept, is the text in one.
TEST(KeepLast, GoesOnWhereAPassEnded) {
  const DeltaShape& s = kConvolution;
  const auto on_reference = [](const auto& op) { run_reference(op); };
  for (const auto& both : {true, false}) {
    const auto run = [&](Pass& p) { return both ? convolve(p, kOnCpu) : convolve(p, on_reference); };
    const Inputs in(s, 7);
    States whole(s), parts(s);
    Pass all(s, whole, in.x, in.gates, numbers(0, 7), chain(7), -1, 1, 6);
    const Floats want = run(all);
    const auto width = static_cast<size_t>(s.channels());
    // Two rows, fewer than it looks back; then rows 2, 3, 4 beside others on a tree.
    Pass first(s, parts, in.x, in.gates, numbers(0, 2), chain(2), -1, 2, 1);
    EXPECT_TRUE(same_bits(run(first).data(), want.data(), 2 * width * 4));
    Pass tree(s, parts, in.x, in.gates, {2, 6, 3, 5, 4}, {-1, 0, 0, 1, 2}, 2, 3, 4);
    const Floats& out = run(tree);
    for (const auto& [row, at] : {std::pair<size_t, size_t>{0, 2}, {2, 3}, {4, 4}})
      EXPECT_TRUE(same_bits(&out[row * width], &want[at * width], width * 4)) << at;
    Pass last(s, parts, in.x, in.gates, numbers(5, 2), chain(2), 3, 1, 1);
    EXPECT_TRUE(same_bits(run(last).data(), &want[5 * width], 2 * width * 4));
    const Floats kept = parts.of(1), meant = whole.of(1);
    EXPECT_TRUE(same_bits(&kept[static_cast<size_t>(s.floats())], &in.x[4 * width], 3 * width * 4)) << "the last three rows, oldest first";
    EXPECT_TRUE(same_bits(kept, meant));
  }
}

TEST(DeltaGates, StayInRangeForAnyLogit) {
  Floats gates = {0, 200, -200, std::nanf(""), -30, 3, 50, 0}, decay = {-1, -40, -1e-4f, -2, 0, 0.5f, 0, 0}, out(8);
  run_cpu(DeltaGates{view(gates, 1, 8), view(decay, 2, 4), view(out, 1, 8)});
  EXPECT_NEAR(out[0], 1.0f, 1e-6f);  // softplus(-30) is as good as nothing
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_NEAR(out[2], std::exp(-1e-4f * 50), 1e-6f);
  EXPECT_NEAR(out[3], 0.25f, 1e-6f);  // exp(-2 log 2)
  EXPECT_EQ(out[4], 0.5f);
  EXPECT_EQ(out[5], 1.0f);
  EXPECT_EQ(out[6], 0.0f);
  EXPECT_TRUE(std::isnan(out[7]));
  for (float x = -80; x < 80; x += 0.37f) EXPECT_NEAR(softplus(x), std::log1p(std::exp(static_cast<double>(x))), 2e-7 * (1 + std::fabs(x))) << x;
}

TEST(StateCache, FindsStatesInChunksThatDouble) {
  StateCache cache;
  cache.floats = 3;
  Floats memory(3 * 31);
  for (int c = 0, at = 0; c < 5; at += 3 << c, ++c) cache.chunk[c] = memory.data() + at;
  for (int32_t i = 0; i < 31; ++i) EXPECT_EQ(cache.at(i), memory.data() + 3 * i) << i;
}

}  // namespace
}  // namespace aerie::kernels::delta_test
