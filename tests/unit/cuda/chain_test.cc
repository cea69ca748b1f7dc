// What a plan's kernels do for one another (kernels/cuda/chain.h) changes no bit: a layer and a head in one plan, and op by op.
#include "unit/cuda/cuda_support.h"
#include "unit/kernels/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {

struct LayerCase {
  DType weights, kv;
  int32_t heads, kv_heads, dim;
  int64_t ffn, rows;
  int32_t window = 0;
  float limit = 0;  // of gates; with one there are sinks, too
};

int64_t kernels_run() {  // 0 where nobody counts
#ifdef AERIE_REAL_GPU
  return 0;
#else
  return cuda::emulation::counts().kernels;
#endif
}

// One layer's memory, the same every time.
struct WholeLayer {
  static constexpr int64_t kVocab = 300;
  static constexpr int32_t kBest = 5;
  LayerCase c;
  int64_t hidden, width;
  Weights qkv_w, o_w, gate_up_w, down_w, head_w;
  Floats x, normed, qkv, bias, angles, norm, sinks, attn, gate_up, act, partial, logp;
  Ints slots, token;
  attention_test::Cache cache;
  attention_test::Rows look;

  explicit WholeLayer(const LayerCase& of)
      : c(of),
        hidden(int64_t{of.heads} * of.dim),
        width(int64_t{of.heads + 2 * of.kv_heads} * of.dim),
        qkv_w(width, hidden, of.weights, 1),
        o_w(hidden, hidden, of.weights, 2),
        gate_up_w(2 * of.ffn, hidden, of.weights, 3),
        down_w(hidden, of.ffn, of.weights, 4),
        head_w(kVocab, hidden, of.weights, 5),
        x(random_floats(static_cast<size_t>(of.rows * hidden), 6)),
        normed(x.size()),
        qkv(static_cast<size_t>(of.rows * width)),
        bias(random_floats(static_cast<size_t>(width), 7)),
        angles(random_floats(static_cast<size_t>(of.rows * of.dim), 8)),
        norm(random_floats(static_cast<size_t>(hidden), 9)),
        sinks(random_floats(static_cast<size_t>(of.heads), 10)),
        attn(x.size()),
        gate_up(static_cast<size_t>(2 * of.rows * of.ffn)),
        act(static_cast<size_t>(of.rows * of.ffn)),
        partial(static_cast<size_t>(of.rows * topk_partial_cols(kVocab, kBest))),
        logp(static_cast<size_t>(of.rows * kBest)),
        token(static_cast<size_t>(of.rows * kBest)),
        cache({of.heads, of.kv_heads, of.dim, of.kv}, 4, 1) {
    look.pages = {2, 0, 3};
    look.stride = 3;
    for (int32_t r = 0; r < static_cast<int32_t>(of.rows); ++r) {
      slots.push_back(look.pages[static_cast<size_t>(r / 32)] * 32 + r % 32);
      look.add(0, r + 1, {});
    }
  }
  std::vector<Op> plan() {
    const int64_t n = c.rows;
    const Tensor in = view(x, n, hidden), y = view(normed, n, hidden), of = view(qkv, n, width), a = view(attn, n, hidden),
                 g = view(gate_up, n, 2 * c.ffn), h = view(act, n, c.ffn), w = view(norm, 1, hidden);
    AttentionRows seen = look.view();
    seen.window = c.window;
    const Tensor sunk = c.limit > 0 ? view(sinks, 1, c.heads) : Tensor{};
    const LinearTopK head{y, head_w.tensor(), {}, kBest, static_cast<int32_t>(kVocab), nullptr, nullptr,
                          view(partial, n, topk_partial_cols(kVocab, kBest)), token.data(), logp.data()};
    return {RmsNorm{in, w, 1e-5f, y},
            Linear{y, qkv_w.tensor(), view(bias, 1, width), {}, of},
            RopeAndStore{of, view(angles, n, c.dim), c.heads, cache.kv, 0, slots.data()},
            Attention{columns(of, 0, hidden), c.heads, cache.kv, 0, seen, 0.2f, a, {}, sunk},
            Linear{a, o_w.tensor(), {}, in, in},
            RmsNorm{in, w, 1e-5f, y},
            Linear{y, gate_up_w.tensor(), {}, {}, g},
            GatedActivate{g, Activation::silu, h, c.limit},
            Linear{h, down_w.tensor(), {}, in, in},
            RmsNorm{in, w, 1e-5f, y},
            head,
            MergeTopK{head}};
  }
};

TEST(CudaChain, WhatRunsTogetherHasTheBitsOfWhatRunsAlone) {
  const auto device = cuda_device();
  for (const LayerCase& c : {LayerCase{DType::bf16, DType::bf16, 4, 2, 32, 192, 1}, {DType::bf16, DType::bf16, 4, 2, 32, 192, 9},
                        {DType::bf16, DType::bf16, 2, 2, 64, 64, 70}, {DType::bf16, DType::f32, 4, 4, 16, 100, 3},
                        {DType::bf16, DType::int8, 3, 1, 10, 33, 5}, {DType::int8, DType::bf16, 4, 2, 32, 192, 9},
                        {DType::int4, DType::bf16, 2, 1, 64, 128, 2}, {DType::fp8, DType::f32, 4, 2, 32, 192, 9},
                        {DType::q4_1, DType::bf16, 2, 1, 64, 128, 2}, {DType::f32, DType::f32, 4, 2, 32, 64, 3}, {DType::bf16, DType::bf16, 5, 1, 64, 320, 4},
                        {DType::bf16, DType::bf16, 4, 2, 32, 192, 40, 20}, {DType::int8, DType::bf16, 7, 1, 64, 700, 19},
                        {DType::bf16, DType::bf16, 2, 1, 256, 64, 2, 1}, {DType::mxfp4, DType::bf16, 2, 1, 64, 128, 2},
                        {DType::bf16, DType::bf16, 4, 2, 32, 192, 9, 0, 0.5f}, {DType::bf16, DType::f32, 4, 4, 16, 100, 3, 0, 0.7f},
                        {DType::mxfp4, DType::bf16, 4, 2, 32, 192, 19, 7, 0.5f}}) {  // of three K is in pieces
    SCOPED_TRACE("weights " + std::to_string(static_cast<int>(c.weights)) + ", " + std::to_string(c.rows) + " rows, heads of " +
                 std::to_string(c.dim));
    WholeLayer together(c), alone(c);
    const int64_t begin = kernels_run();
    run_plan(*device, together.plan());
    const int64_t middle = kernels_run();
    for (const Op& op : alone.plan()) run_plan(*device, std::span(&op, 1));
    if (middle > begin) {
      const int64_t saved = kernels_run() - middle - (middle - begin);
      const bool norms = has_scales(c.weights) && together.hidden % 128 == 0;
      if (norms) EXPECT_GE(saved, 5) << "the ends of two Linears, the rows of three";
      else if (c.dim % 4 == 0) EXPECT_GE(saved, 2) << "the ends of two Linears";
      else EXPECT_EQ(saved, 0) << "nothing fits";
    }
    using L = WholeLayer;
    for (Floats L::*v : {&L::x, &L::normed, &L::qkv, &L::attn, &L::gate_up, &L::act, &L::logp})
      EXPECT_TRUE(same_bits(together.*v, alone.*v));
    EXPECT_EQ(together.token, alone.token);
    EXPECT_EQ(together.cache.bytes, alone.cache.bytes);
  }
}

// What is left for the Linear behind attention has the sinks, and what ends a Linear the limit: of either the outputs are others.
TEST(CudaChain, SinksAndLimitsAreInWhatIsLeftForTheNext) {
  const auto device = cuda_device();
  LayerCase c{DType::bf16, DType::bf16, 4, 2, 32, 192, 9};
  WholeLayer without(c);
  c.limit = 0.5f;
  WholeLayer with(c);
  ASSERT_TRUE(same_bits(with.x, without.x));
  for (WholeLayer* l : {&with, &without}) {
    const std::vector<Op> all = l->plan();
    run_plan(*device, std::span(all).first(5));  // to the Linear behind attention
  }
  EXPECT_FALSE(same_bits(with.attn, without.attn));
  EXPECT_FALSE(same_bits(with.x, without.x));
  without.x = with.x;
  for (WholeLayer* l : {&with, &without}) {
    const std::vector<Op> all = l->plan();
    run_plan(*device, std::span(all).subspan(5, 4));
  }
  EXPECT_TRUE(same_bits(with.gate_up, without.gate_up));
  EXPECT_FALSE(same_bits(with.act, without.act));
  EXPECT_FALSE(same_bits(with.x, without.x));
}

// The page table may say anything of pages that no window reaches.
TEST(CudaChain, PagesBeforeAWindowAreNotAskedFor) {
  const auto device = cuda_device();
  const LayerCase c{DType::bf16, DType::bf16, 4, 2, 32, 192, 2, 20};
  WholeLayer got(c), want(c);
  for (WholeLayer* l : {&got, &want}) {
    std::fill(l->cache.bytes.begin(), l->cache.bytes.end(), char{});
    l->look.ctx = {71, 72};
    l->slots = {3 * 32 + 6, 3 * 32 + 7};
  }
  got.look.pages[0] = 1 << 24;
  run_plan(*device, got.plan());
  run_plan(*device, want.plan());
  EXPECT_TRUE(same_bits(got.attn, want.attn));
  EXPECT_TRUE(std::isfinite(got.x[0]));
}

// What is left for an op of no rows is not the next one's.
TEST(CudaChain, AnOpWithoutRowsLeavesNothing) {
  const auto device = cuda_device();
  WholeLayer l({DType::bf16, DType::bf16, 4, 2, 32, 192, 4}), other(l.c);
  const std::vector<Op> all = l.plan(), same = other.plan();
  auto none = std::get<Linear>(all[1]);
  none.out.rows = 0;
  auto no_norm = std::get<RmsNorm>(all[0]);
  no_norm.out.rows = 0;
  auto no_best = std::get<LinearTopK>(all[10]);
  no_best.k = 0;
  const Op plan[] = {no_norm, none, all[8], all[0], no_best, all[8]};  // two more products of other rows
  run_plan(*device, plan);
  for (const size_t i : {8, 0, 8}) run_plan(*device, std::span(&same[i], 1));
  EXPECT_TRUE(same_bits(l.x, other.x));
}

// An op may be left out: then its kernels, too, are none of the ones beside it.
TEST(CudaChain, WhatIsNotWantedTakesNothingAlong) {
  const auto device = cuda_device();
  for (const int32_t wanted : {0, 1}) {
    WholeLayer got({DType::bf16, DType::bf16, 4, 2, 32, 192, 4}), want(got.c);
    const std::vector<Op> all = got.plan();
    const auto flag = std::make_unique<int32_t>(wanted);
    std::vector<Op> plan(all.begin(), all.begin() + 1);  // the norm, and then perhaps qkv
    plan.push_back(RunIf{flag.get(), 1});
    plan.insert(plan.end(), all.begin() + 1, all.begin() + 3);  // its rotation all the same, of what was there
    run_plan(*device, plan);
    const std::vector<Op> same = want.plan();
    for (const size_t i : {0, 1, 2})
      if (i != 1 || wanted) run_plan(*device, std::span(&same[i], 1));
    EXPECT_TRUE(same_bits(got.normed, want.normed));
    EXPECT_TRUE(same_bits(got.qkv, want.qkv)) << wanted;
    EXPECT_EQ(got.cache.bytes, want.cache.bytes);
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
