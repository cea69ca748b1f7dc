// Layers with mixtures of experts as plans on the emulated device: what the ops of one leave for another, graphs, ops that are not
// wanted, and the reference's values.
#include <set>

#include "core/model/decoder.h"
#include "unit/cuda/cuda_support.h"
#include "unit/kernels/attention_support.h"

namespace aerie::kernels::cuda_test {
namespace {

// The second half of a layer and the product behind it, over up to kMost rows.
struct ExpertHalf {
  static constexpr int64_t kMost = 12, kHidden = 128, kFfn = 48, kNext = 40;
  static constexpr int32_t kAll = 20, kUsed = 2;
  Weights router, gate_up, down, next;
  Floats x = random_floats(kMost * kHidden, 31), norm = random_floats(kHidden, 32), normed = lost(kHidden), logits = lost(kAll),
         weights = lost(kUsed), gates = lost(kUsed * 2 * kFfn), act = lost(kUsed * kFfn), each = lost(kUsed * kHidden), sum = lost(kHidden),
         out = lost(kNext), gate_up_bias = random_floats(kAll * 2 * kFfn, 37), down_bias = random_floats(kAll * kHidden, 38);
  Ints experts = Ints(kMost * kUsed, -7);
  float limit;  // of gates; with one experts have biases, too

  ExpertHalf(DType of_router, DType of_experts, float of_gates = 0)
      : router(kAll, kHidden, of_router, 33),
        gate_up(kAll * 2 * kFfn, kHidden, of_experts, 34),
        down(kAll * kHidden, kFfn, of_experts, 35),
        next(kNext, kHidden, of_router, 36),
        limit(of_gates) {}
  static Floats lost(int64_t cols) { return Floats(static_cast<size_t>(kMost * cols), std::nanf("")); }
  std::vector<Op> plan(int64_t rows, int64_t first = 0) {
    const auto v = [&](Floats& of, int64_t cols, int64_t each_row = 1) { return matrix(of.data() + first * each_row * cols, rows * each_row, cols); };
    int32_t* const chosen = experts.data() + first * kUsed;
    const Tensor in = v(x, kHidden), y = v(normed, kHidden), gain = view(norm, 1, kHidden);
    const Tensor first_bias = limit > 0 ? view(gate_up_bias, kAll, 2 * kFfn) : Tensor{};
    const Tensor second_bias = limit > 0 ? view(down_bias, kAll, kHidden) : Tensor{};
    return {RmsNorm{in, gain, 1e-5f, y},
            Linear{y, router.tensor(), {}, {}, v(logits, kAll)},
            Route{v(logits, kAll), kUsed, true, chosen, v(weights, kUsed)},
            ExpertLinear{y, gate_up.tensor(), chosen, kUsed, v(gates, 2 * kFfn, kUsed), first_bias},
            GatedActivate{v(gates, 2 * kFfn, kUsed), Activation::silu, v(act, kFfn, kUsed), limit},
            ExpertLinear{v(act, kFfn, kUsed), down.tensor(), chosen, kUsed, v(each, kHidden, kUsed), second_bias},
            CombineExperts{v(each, kHidden, kUsed), v(weights, kUsed), v(sum, kHidden)},
            Add{in, v(sum, kHidden), in, 0.5f},
            RmsNorm{in, gain, 1e-5f, y},
            Linear{y, next.tensor(), {}, {}, v(out, kNext)}};
  }
  void expect_same(const ExpertHalf& o) const {
    using E = ExpertHalf;
    for (const Floats E::*v : {&E::x, &E::normed, &E::logits, &E::weights, &E::gates, &E::act, &E::each, &E::sum, &E::out})
      EXPECT_TRUE(same_bits(this->*v, o.*v));
    EXPECT_EQ(experts, o.experts);
  }
};

// A norm leaves its rows as the router wants them; the experts behind that read what it wrote.
TEST(CudaExpertLayers, WhatRunsTogetherHasTheBitsOfWhatRunsAlone) {
  const auto device = cuda_device();
  struct Case {
    DType router, experts;
    float limit = 0;
  };
  for (const auto& [router, experts, limit] :
       {Case{DType::bf16, DType::bf16}, {DType::bf16, DType::int4}, {DType::int8, DType::int8}, {DType::f32, DType::fp8},
        {DType::int8, DType::bf16}, {DType::bf16, DType::q4_1}, {DType::f32, DType::f32}, {DType::bf16, DType::mxfp4, 0.7f}}) {
    SCOPED_TRACE(testing::Message() << "router " << static_cast<int>(router) << ", experts " << static_cast<int>(experts) << ", limit " << limit);
    ExpertHalf together(router, experts, limit), alone(router, experts, limit), row_by_row(router, experts, limit);
#ifndef AERIE_REAL_GPU
    const int64_t begin = cuda::emulation::counts().kernels;
#endif
    run_plan(*device, together.plan(ExpertHalf::kMost));
#ifndef AERIE_REAL_GPU
    const int64_t middle = cuda::emulation::counts().kernels;
#endif
    for (const Op& op : alone.plan(ExpertHalf::kMost)) run_plan(*device, std::span(&op, 1));
#ifndef AERIE_REAL_GPU
    EXPECT_EQ(cuda::emulation::counts().kernels - middle - (middle - begin), router == DType::f32 ? 0 : 2) << "the rows of two norms";
#endif
    together.expect_same(alone);
    for (int64_t r = 0; r < ExpertHalf::kMost; ++r) run_plan(*device, row_by_row.plan(1, r));
    together.expect_same(row_by_row);
    EXPECT_TRUE(std::isfinite(together.out.back()));
  }
}

TEST(CudaExpertLayers, RowsOfABucketAreOneGraphWhateverExpertsTheyTake) {
  const auto device = cuda_device(), plain = cuda_device(false);
  auto queue = std::move(device->make_queue()).value(), without = std::move(plain->make_queue()).value();
  ExpertHalf got(DType::bf16, DType::int8), want(DType::bf16, DType::int8);
#ifndef AERIE_REAL_GPU
  const auto before = cuda::emulation::counts();
#endif
  Ints chosen;
  for (const int64_t rows : {5, 8, 7, 5, 6}) {
    SCOPED_TRACE(rows);
    const Floats x = random_floats(got.x.size(), static_cast<uint32_t>(40 + rows + chosen.size()));
    got.x = want.x = x;
    for (const auto& [half, on] : {std::pair(&got, queue.get()), {&want, without.get()}}) {
      const std::vector<Op> plan = half->plan(rows);
      ASSERT_TRUE(on->submit(plan).ok());
      ASSERT_EQ(on->advance(kNoDeadline).value(), RunState::done);
    }
    got.expect_same(want);
    EXPECT_NE(got.experts, chosen);
    chosen = got.experts;
  }
#ifndef AERIE_REAL_GPU
  EXPECT_EQ(cuda::emulation::counts().captures - before.captures, 1);
  EXPECT_EQ(cuda::emulation::counts().graph_launches - before.graph_launches, 4);
#endif
}

TEST(CudaExpertLayers, WhatIsNotWantedIsNotRun) {
  const auto device = cuda_device();
  for (const int32_t wanted : {0, 1}) {
    ExpertHalf got(DType::bf16, DType::bf16), want(DType::bf16, DType::bf16);
    const auto flag = std::make_unique<int32_t>(wanted);
    const std::vector<Op> all = got.plan(3), same = want.plan(3);
    std::vector<Op> plan(all.begin(), all.begin() + 2);
    plan.push_back(RunIf{flag.get(), 5});  // from Route to CombineExperts
    plan.insert(plan.end(), all.begin() + 2, all.begin() + 7);
    run_plan(*device, plan);
    for (size_t i = 0; i < (wanted ? 7u : 2u); ++i) run_plan(*device, std::span(&same[i], 1));
    got.expect_same(want);
    EXPECT_EQ(std::isnan(got.sum[0]), wanted == 0);
  }
}

// The whole layer as the core records it.
struct ExpertLayer {
  static constexpr int32_t kHeads = 4, kKvHeads = 2, kDim = 32, kAll = 8, kUsed = 3;
  static constexpr int64_t kHidden = kHeads * kDim, kFfn = 64, kRows = 9;
  Weights qkv, o, router, gate_up, down;
  // An expert that every row takes, narrower than other layers' MLPs, and what it counts.
  static constexpr int64_t kShared = 64, kDense = 96;
  Weights shared_gate_up, shared_down, shared_gate;
  Floats choice = random_floats(kAll, 64, 0.2f);
  bool shares;
  // As gpt-oss has them, if asked for.
  Floats sinks = random_floats(kHeads, 59), o_bias = random_floats(kHidden, 60), router_bias = random_floats(kAll, 61),
         gate_up_bias = random_floats(kAll * 2 * kFfn, 62), down_bias = random_floats(kAll * kHidden, 63);
  float limit;
  Floats norm = random_floats(kHidden, 51), angles = random_floats(kRows * kDim, 52), x = random_floats(kRows * kHidden, 53),
         out = Floats(kRows * kHidden), weights = Floats(kRows * kUsed);
  Ints slots, experts = Ints(kRows * kUsed);
  attention_test::Cache cache{{kHeads, kKvHeads, kDim, DType::f32}, 2, 1};
  attention_test::Rows look;

  explicit ExpertLayer(DType t, float of_gates = 0, bool shared = false)
      : qkv((kHeads + 2 * kKvHeads) * kDim, kHidden, t, 54),
        o(kHidden, kHidden, t, 55),
        router(kAll, kHidden, t, 56),
        gate_up(kAll * 2 * kFfn, kHidden, t, 57),
        down(kAll * kHidden, kFfn, t, 58),
        shared_gate_up(2 * kShared, kHidden, t, 65),
        shared_down(kHidden, kShared, t, 66),
        shared_gate(1, kHidden, t, 67),
        shares(shared),
        limit(of_gates) {
    look.pages = {1};
    look.stride = 1;
    for (int32_t r = 0; r < kRows; ++r) {
      slots.push_back(kPageSlots + r);
      look.add(0, r + 1, {});
    }
  }
  void run(std::shared_ptr<Device> device) {
    auto queue = std::move(device->make_queue()).value();
    auto plan = std::move(Plan::create(device, 4096)).value();
    DecoderShape shape;
    shape.heads = kHeads, shape.kv_heads = kKvHeads, shape.head_dim = kDim;
    shape.experts = kAll, shape.experts_used = kUsed;
    DecoderLayer layer;
    layer.attn_norm = layer.mlp_norm = view(norm, 1, kHidden);
    layer.qkv = qkv.tensor(), layer.o = o.tensor();
    layer.router = router.tensor(), layer.gate_up = gate_up.tensor(), layer.down = down.tensor();
    if (limit > 0) {
      shape.glu_limit = limit;
      layer.sinks = view(sinks, 1, kHeads), layer.o_bias = view(o_bias, 1, kHidden), layer.router_bias = view(router_bias, 1, kAll);
      layer.gate_up_bias = view(gate_up_bias, kAll, 2 * kFfn), layer.down_bias = view(down_bias, kAll, kHidden);
    }
    if (shares) {
      shape.sigmoid_experts = shape.norm_experts = true;
      shape.expert_scale = 1.5f;
      shape.dense_ffn = kDense, shape.shared_ffn = kShared;
      layer.router_choice = view(choice, 1, kAll);
      layer.shared_gate_up = shared_gate_up.tensor(), layer.shared_down = shared_down.tensor(), layer.shared_gate = shared_gate.tensor();
    }
    aerie::Rows rows;
    rows.n = kRows, rows.slot = slots.data(), rows.attention = look.view(), rows.longest = kRows;
    const Tensor at = plan->scratch(kRows, kHidden);
    DecoderScratch scratch(*plan, kRows, kRows, kHidden, shape, kFfn);
    plan->add(CopyRows{view(x, kRows, kHidden), nullptr, at, nullptr, kRows});
    record_decoder_layer(*plan, layer, shape, cache.kv, 0, rows, view(angles, kRows, kDim), scratch, at, at);
    plan->add(CopyRows{at, nullptr, view(out, kRows, kHidden), nullptr, kRows});
    plan->add(CopyRows{scratch.counts, nullptr, view(weights, kRows, kUsed), nullptr, kRows});
    plan->add(Download{experts.data(), scratch.expert.data, kRows * kUsed * 4});
    ASSERT_TRUE(plan->submit(*queue).ok());
    ASSERT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
  }
};

// The length of the difference, of the reference's length.
double off_by(const Floats& got, const Floats& want) {
  double difference = 0, all = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - want[i], 2);
    all += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(difference / all);
}

TEST(CudaExpertLayers, AWholeLayerIsTheReferences) {
  struct Case {
    DType type;
    double bound;
    float limit = 0;
    bool shared = false;
  };
  for (const auto& [t, bound, limit, shared] : {Case{DType::f32, 3e-6}, {DType::bf16, 3e-5}, {DType::fp8, 1.5e-3}, {DType::int8, 1.5e-3}, {DType::int4, 3e-3},
                                        {DType::q4_1, 3e-3}, {DType::mxfp4, 1.5e-3}, {DType::f32, 3e-6, 0.7f}, {DType::mxfp4, 1.5e-3, 0.7f},
                                        {DType::f32, 3e-6, 0, true}, {DType::bf16, 3e-5, 0, true}, {DType::int8, 1.5e-3, 0, true}}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(t) << ", limit " << limit << (shared ? ", shared" : ""));
    ExpertLayer got(t, limit, shared), want(t, limit, shared);
    got.run(cuda_device());
    want.run(make_reference_device());
    EXPECT_EQ(got.experts, want.experts);
    EXPECT_GT(std::set<int32_t>(got.experts.begin(), got.experts.end()).size(), 3u);
    EXPECT_LE(off_by(got.weights, want.weights), bound);
    EXPECT_LE(off_by(got.out, want.out), bound);
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
