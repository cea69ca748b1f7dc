// Prompts read by a library's products, where the host asked for that: which rows go that way, and that no other does.
#include <algorithm>

#include "core/session/batch.h"
#include "unit/cuda/cuda_support.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

using kernels::cuda::emulation::counts;

ModelOptions reading(bool fast, bool keep_prefixes = false) {
  ModelOptions m;
  m.kv_positions = 2048;
  m.fast_prefill = fast;
  m.keep_prefixes = keep_prefixes;
  return m;
}

std::string long_target() { return converted(with_long_context("mha"), "fast-target", DType::fp8); }

std::vector<int32_t> prompt_of(int32_t n) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back((i * 37 + i / 7) % 90);
  return ids;
}

struct Said {
  std::vector<int32_t> tokens;
  int64_t reading, decoding;  // products
};
Said say(const std::shared_ptr<Model>& model, const std::vector<int32_t>& prompt, const SessionOptions& o) {
  auto session = must(Session::create(model, o));
  const int64_t before = counts().products;
  must(session->append(prompt));
  Said said{generate(*session, 1), counts().products - before, 0};
  const int64_t read = counts().products;
  const auto more = generate(*session, 8);
  said.tokens.insert(said.tokens.end(), more.begin(), more.end());
  said.decoding = counts().products - read;
  EXPECT_EQ(session->statistics().drafter_failures, 0u);
  return said;
}

TEST(CudaFastPrefill, OnlyLongPromptsGoThatWayAndOnlyWhenAsked) {
  const auto model = open_model(long_target(), cuda(), reading(true)), other = open_model(long_target(), cuda(), reading(false));
  const int64_t products = int64_t{4} * model->config().layers;
  const SessionOptions o = sampled(0.8f);
  EXPECT_TRUE(model->fast_prefill());
  EXPECT_FALSE(other->fast_prefill());
  EXPECT_FALSE(open_model(long_target(), cuda())->fast_prefill());
  for (const auto& [length, passes] : {std::pair{129, 0}, {130, 1}, {642, 2}}) {  // the newest token is no prompt's; 128 are too few
    const Said said = say(model, prompt_of(length), o);
    EXPECT_EQ(said.reading, passes * products) << length;
    EXPECT_EQ(said.decoding, 0) << length;
    if (length > 130) continue;
    const Said plain = say(other, prompt_of(length), o);
    EXPECT_EQ(plain.reading + plain.decoding, 0) << length;
    if (passes == 0) {
      EXPECT_EQ(said.tokens, plain.tokens) << "nothing was fast";
    }
  }
}

TEST(CudaFastPrefill, DraftersAreShownAllAndChangeNoToken) {
  const std::string path = long_target();
  SessionOptions o = sampled(0.8f);
  const auto prompt = prompt_of(300);  // more than a plugin is shown at once
  const std::string head = converted(golden("eagle_mha"), "fast-eagle", DType::bf16, path);
  const Said want = say(open_model(path, cuda(), reading(true)), prompt, o);
  for (const auto& [plugin, package] : {std::pair<std::string, std::string>{"eagle", head}, {"small_model", path}, {"ngram", ""}}) {
    SCOPED_TRACE(plugin);
    const auto model = open_model(path, cuda(), reading(true));
    o.drafter = open_drafter(model, plugin, package);
    o.tree.name = "chain";
    const Said said = say(model, prompt, o);
    EXPECT_EQ(said.tokens, want.tokens);
    EXPECT_EQ(said.decoding, 0);
    EXPECT_GT(said.reading, 0);
  }
}

TEST(CudaFastPrefill, APassWithOtherRowsIsExact) {
  const auto model = open_model(long_target(), cuda(), reading(true));
  const auto a = must(Session::create(model, sampled(0.5f, 1))), b = must(Session::create(model, sampled(0.5f, 2)));
  must(a->append(kPrompt));
  (void)generate(*a, 1);
  const int64_t before = counts().products;
  must(b->append(prompt_of(300)));
  auto batch = must(Batch::create(model));
  must(batch->add(*a));
  must(batch->add(*b));
  must(batch->step(1, std::chrono::microseconds(0)));
  must(a->status());
  EXPECT_EQ(a->result().tokens.size(), 1u);
  EXPECT_EQ(counts().products, before) << "rows that decode were in the pass";
}

// Rows that were read fast stay with models that were opened so.
TEST(CudaFastPrefill, RowsAreSharedAndSavedAmongFastOnesOnly) {
  const auto device = cuda();
  const auto model = open_model(long_target(), device, reading(true, true)), other = open_model(long_target(), device, reading(false, true));
  const auto prompt = prompt_of(400);
  const auto session = must(Session::create(model, sampled(0.8f)));
  must(session->append(prompt));
  (void)generate(*session, 2);
  const auto again = must(Session::create(model, sampled(0.8f))), apart = must(Session::create(other, sampled(0.8f)));
  must(again->append(prompt));
  must(apart->append(prompt));
  (void)generate(*again, 2);
  (void)generate(*apart, 2);
  EXPECT_GT(again->statistics().reused_tokens, 300u);
  EXPECT_EQ(apart->statistics().reused_tokens, 0u);

  size_t size = 0;
  must(session->save({}, &size));
  std::vector<uint8_t> bytes(size);
  must(session->save(bytes, &size));
  const auto refused = Session::restore(other, sampled(0.8f), bytes);
  EXPECT_EQ(refused.status().code(), Code::mismatch);
  EXPECT_NE(refused.status().message().find("prompts read fast"), std::string::npos) << refused.status().message();
  const auto restored = must(Session::restore(model, sampled(0.8f), bytes));
  EXPECT_EQ(generate(*restored, 8), generate(*session, 8));
}

TEST(CudaFastPrefill, WhatIsMissingIsSaid) {
  const auto package = must(Package::open(long_target()));
  const auto on_cpu = Model::open(cpu(1), package, reading(true));
  EXPECT_EQ(on_cpu.status().code(), Code::unsupported);
  EXPECT_EQ(on_cpu.status().message(), "prefill fast: device cpu has one way to multiply, which is exact");
  kernels::cuda::emulation::set_faults({.no_products = true});
  EXPECT_EQ(Model::open(cuda(), package, reading(true)).status().code(), Code::unsupported);
  EXPECT_TRUE(Model::open(cuda(), package, reading(false)).ok());
  kernels::cuda::emulation::set_faults({});
}

}  // namespace
}  // namespace aerie::test

namespace aerie::kernels::cuda_test {
namespace {

// As good as bf16 lets it be, with bias and residual in strided rows, among other ops of a plan.
TEST(CudaFastLinear, IsNearTheReference) {
  constexpr int64_t n = 150, k = 77, m = 140, wide = 160;
  for (const DType t : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    SCOPED_TRACE(static_cast<int>(t));
    const Weights w(n, k, t, 1);
    Floats x = random_floats(m * k, 2), bias = random_floats(n, 3), want = random_floats(m * wide, 4), got = want;
    x[5 * k] = std::nanf("");
    const auto op = [&](Floats& out) {
      const Tensor o = columns(view(out, m, wide), 5, n);
      return Linear{view(x, m, k), w.tensor(), view(bias, 1, n), o, o, true};
    };
    run_reference(op(want));
    const int64_t before = cuda::emulation::counts().products;
    each_order([&] {
      Floats out = got;
      run_cuda(op(out), true);
      double error = 0, size = 0;
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c < wide; ++c) {
          const auto at = static_cast<size_t>(r * wide + c);
          if (c < 5 || c >= 5 + n) {
            ASSERT_EQ(out[at], want[at]);
          } else if (r == 5) {
            ASSERT_TRUE(std::isnan(out[at]));
          } else {
            error += (out[at] - want[at]) * (out[at] - want[at]);
            size += want[at] * want[at];
          }
        }
      EXPECT_LT(std::sqrt(error / size), 4e-3);
    });
    EXPECT_EQ(cuda::emulation::counts().products - before, t == DType::f32 ? 0 : 3) << "f32 weights are for comparisons";
  }
}

}  // namespace
}  // namespace aerie::kernels::cuda_test
