// Recurrent layers on the emulated device: against the reference, and that a row's bits do not hang by the pass or the tree it is in.
#include "unit/cuda/cuda_support.h"
#include "unit/kernels/delta_support.h"

namespace aerie::kernels::delta_test {
namespace {

// What ops name must not lie on the stack: a GPU could not read it.
struct Held {
  std::unique_ptr<States> states;
  std::unique_ptr<Pass> pass;
};
Held held(const DeltaShape& s, const Inputs& in, const Ints& rows, const Ints& parents, int32_t from, int32_t to, int32_t last) {
  Held h;
  h.states = std::make_unique<States>(s);
  h.pass = std::make_unique<Pass>(s, *h.states, in.x, in.gates, rows, parents, from, to, last);
  return h;
}
constexpr auto kOnCuda = [](const auto& op) { cuda_test::run_cuda(op); };

TEST(CudaDelta, MatchesTheReference) {
  for (const DeltaShape& s : kShapes)
    for (const int32_t from : {-1, 0}) {
      SCOPED_TRACE(testing::Message() << s.key_heads << " x " << s.key_dim << ", " << s.heads << " x " << s.value_dim << " from " << from);
      const Inputs in(s, 11);
      const Held reference = held(s, in, numbers(0, 11), kTree, from, 1, 2);
      const Floats want = reference.pass->run([](const auto& op) { run_reference(op); });
      Floats first;
      cuda_test::each_order([&] {
        const Held h = held(s, in, numbers(0, 11), kTree, from, 1, 2);
        const Floats& out = h.pass->run(kOnCuda);
        expect_near(out, want, 1e-4f);
        expect_near(h.states->of(1), reference.states->of(1), 1e-4f);
        EXPECT_TRUE(same_bits(h.states->of(0), reference.states->of(0)));
        if (first.empty()) first = out;
        EXPECT_TRUE(same_bits(out, first));
      });
    }
}

TEST(CudaDelta, ConvolutionsAreTheReferences) {
  const DeltaShape& s = kConvolution;
  const Inputs in(s, 11);
  for (const int32_t from : {-1, 0}) {
    const Held reference = held(s, in, numbers(0, 11), kTree, from, 1, 2);
    const Floats want = convolve(*reference.pass, [](const auto& op) { run_reference(op); });
    cuda_test::each_order([&] {
      const Held h = held(s, in, numbers(0, 11), kTree, from, 1, 2);
      expect_near(convolve(*h.pass, kOnCuda), want, 1e-5f);
      EXPECT_TRUE(same_bits(h.states->floats, reference.states->floats)) << from;
    });
  }
}

TEST(CudaDelta, BitsDoNotHangByThePassOrTheTree) {
  const DeltaShape& s = kShapes[1];
  const Inputs in(s, 11);
  const Ints path = {0, 1, 2, 3, 6, 8, 9};  // of kTree, to its deepest row
  const auto n = static_cast<int32_t>(path.size());
  Held one = held(s, in, path, chain(n), -1, 1, n - 1), tree = held(s, in, numbers(0, 11), kTree, -1, -1, -1);
  const Floats want = one.pass->run(kOnCuda);
  const Floats& out = tree.pass->run(kOnCuda);
  const auto width = static_cast<size_t>(s.values());
  for (size_t i = 0; i < path.size(); ++i)
    EXPECT_TRUE(same_bits(&out[static_cast<size_t>(path[i]) * width], &want[i * width], width * 4)) << i;
  Pass& made = *tree.pass;
  made.steps.clear();
  for (size_t i = 0; i < path.size(); ++i) made.steps.push_back({path[i], i == 0 ? -1 : 0, 0});
  made.of = {-1, 1, path.back(), 0, n};
  DeltaRows rows = made.rows();
  rows.buffers = 1;
  cuda_test::run_cuda(DeltaRule{view(made.x, 11, s.channels()), view(made.qkv, 11, s.channels()), view(made.rates, 11, 2 * s.heads), tree.states->cache,
                                s.floats(), s, rows, {}});
  EXPECT_TRUE(same_bits(tree.states->of(1), one.states->of(1)));
  // Row by row.
  Held slow = held(s, in, {0}, {-1}, -1, 1, 0);
  for (size_t i = 0; i < path.size(); ++i) {
    const auto from = static_cast<int32_t>(i == 0 ? -1 : 1 + (i - 1) % 2), to = static_cast<int32_t>(1 + i % 2);
    auto pass = std::make_unique<Pass>(s, *slow.states, in.x, in.gates, Ints{path[i]}, Ints{-1}, from, to, 0);
    EXPECT_TRUE(same_bits(pass->run(kOnCuda).data(), &want[i * width], width * 4)) << i;
  }
  EXPECT_TRUE(same_bits(slow.states->of(1), one.states->of(1)));
}

}  // namespace
}  // namespace aerie::kernels::delta_test
