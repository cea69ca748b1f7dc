// What plugins compute with: an out may have more rows than are written, and those stay as they were.
#include <functional>

#include "core/drafter/services.h"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

constexpr int64_t kRows = 3, kMore = 5;

TEST(ComputeService, ATallerOutIsWrittenAsFarAsThereAreRows) {
  const std::string demo = source_dir() + "/samples/models/demo.aerie";
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  for (const auto& device : {cpu(2), std::shared_ptr<kernels::Device>(kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 2}))))}) {
    const auto model = open_model(demo, device);
    const int64_t h = model->config().hidden;
    const kernels::Tensor w = kernels::panels(model->lm_head(), 0, h / kernels::kPanel);
    std::vector<float> values(static_cast<size_t>(kMore * h));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8;
    const int32_t tokens[] = {300, 7, 41};
    struct Inputs {
      aerie_tensor x, y, weight, ids, matrix;
    };
    using Op = std::function<int32_t(aerie_plan*, const Inputs&, const aerie_tensor*)>;
    const Op ops[] = {[&](auto* p, const auto& in, auto* out) { return compute->rms_norm(p, &in.x, &in.weight, 1e-5f, out); },
                      [&](auto* p, const auto& in, auto* out) { return compute->activate(p, AERIE_ACT_SILU, &in.x, out); },
                      [&](auto* p, const auto& in, auto* out) { return compute->add(p, &in.x, &in.y, out); },
                      [&](auto* p, const auto& in, auto* out) { return compute->linear(p, &in.x, &in.matrix, nullptr, nullptr, out); },
                      [&](auto* p, const auto& in, auto* out) { return compute->embed_target(p, &in.ids, out); }};
    for (size_t i = 0; i < std::size(ops); ++i) {
      const auto made = [&](int64_t rows) {  // by an out of so many
        DrafterResources own(model, nullptr);
        own.id = "test";
        auto plan = must(Plan::create(device, 1 << 16));
        auto queue = must(device->make_queue());
        const kernels::Tensor x = plan->scratch(kRows, h), y = plan->scratch(kRows, h), weight = plan->scratch(1, h), out = plan->scratch(rows, h);
        plan->add(kernels::Upload{x.data, values.data(), kRows * h * 4});
        plan->add(kernels::Upload{y.data, values.data() + 5, kRows * h * 4});
        plan->add(kernels::Upload{weight.data, values.data() + 3, h * 4});
        const std::vector<float> before(static_cast<size_t>(rows * h), 99.0f);
        plan->add(kernels::Upload{out.data, before.data(), rows * h * 4});
        const auto* staged = plan->stage(std::span<const int32_t>(tokens));
        const Inputs in{to_abi(x), to_abi(y), to_abi(weight), to_abi(kernels::matrix(const_cast<int32_t*>(staged), 1, kRows, kernels::DType::i32)),
                        to_abi(w)};
        const aerie_tensor to = to_abi(out);
        aerie_plan handle{plan.get(), &own};
        EXPECT_EQ(ops[i](&handle, in, &to), AERIE_D_OK) << i;
        std::vector<float> got(static_cast<size_t>(rows * h));
        plan->add(kernels::Download{got.data(), out.data, rows * h * 4});
        must(plan->submit(*queue));
        EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
        return got;
      };
      auto want = made(kRows);
      EXPECT_NE(want[0], 99.0f);
      want.resize(static_cast<size_t>(kMore * h), 99.0f);
      EXPECT_EQ(made(kMore), want) << i;
    }
  }
}

// Whoever writes a drafter reads what it passed, and what would have been right.
TEST(ComputeService, WhatDoesNotFitIsSaidWithItsSizes) {
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  const auto model = open_model(source_dir() + "/samples/models/demo.aerie", cpu(1));
  const std::string h = std::to_string(model->config().hidden);
  const auto said = [&](const auto& call) {
    DrafterResources own(model, nullptr);
    own.id = "test";
    auto plan = must(Plan::create(model->device(), 1 << 16));
    aerie_plan handle{plan.get(), &own};
    aerie_tensor x = to_abi(plan->scratch(3, 8)), w = x;
    w.rows = 16;
    w.cols = 9;
    w.dtype = AERIE_DTYPE_INT8;
    w.layout = 1;
    EXPECT_EQ(call(&handle, &x, &w), AERIE_D_INVALID);
    return plan->status().message();
  };
  EXPECT_EQ(said([&](auto* p, auto* x, auto* w) { return compute->linear(p, x, w, nullptr, nullptr, x); }),
            "drafter test: linear: shapes do not fit: x (3, 8), w (16, 9) int8 packed without scales, bias absent, residual absent, out (3, 8)");
  EXPECT_EQ(said([&](auto* p, auto* x, auto*) { return compute->propose_hidden(p, x, nullptr); }),
            "drafter test: propose_hidden: hidden has the wrong shape: hidden (3, 8), the target is " + h + " wide");
  EXPECT_EQ(said([&](auto* p, auto* x, auto*) { return compute->activate(p, 9, x, x); }), "drafter test: activate: kind 9");
}

}  // namespace
}  // namespace aerie::test
