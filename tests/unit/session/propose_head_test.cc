// An LM head of a drafter's own, asked for its best tokens without its logits: what linear and propose_logits give.
#include <numeric>

#include "core/drafter/services.h"
#include "tests/support/models.h"

namespace aerie::test::propose_head {

const std::string kDemo = source_dir() + "/samples/models/demo.aerie";
constexpr int64_t kRows = 3;

std::vector<float> random_values(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float& v : x) v = std::normal_distribution<float>()(random);
  return x;
}

struct Case {
  int32_t width = 10;
  float temperature = 0;
  bool want_logits = false;
  int64_t first_panel = 0, n_panels = 256;  // of the demo's LM head: the head
  bool map = false, bias = false;
};

// One propose call of a drafter with that head; fused: propose_head, else linear and propose_logits.
Candidates propose(const std::shared_ptr<Model>& model, const Case& q, bool fused) {
  DrafterResources own(model, nullptr);
  own.id = "test";
  auto plan = must(Plan::create(model->device(), 1 << 16));
  auto queue = must(model->device()->make_queue());
  const int64_t h = model->config().hidden;
  const kernels::Tensor w = kernels::panels(model->lm_head(), q.first_panel, q.n_panels);
  const auto hidden = random_values(static_cast<size_t>(kRows * h), 1), offsets = random_values(static_cast<size_t>(w.rows), 2);
  const kernels::Tensor x = plan->scratch(kRows, h), bias = plan->scratch(1, w.rows), logits = plan->scratch(kRows, w.rows);
  plan->add(kernels::Upload{x.data, hidden.data(), kRows * h * 4});
  plan->add(kernels::Upload{bias.data, offsets.data(), w.rows * 4});
  std::vector<int32_t> ids(static_cast<size_t>(w.rows));
  std::iota(ids.rbegin(), ids.rend(), static_cast<int32_t>(4096 - w.rows + 100));  // a hundred cannot be drawn
  Candidates c;
  c.rows = kRows;
  c.levels = 1;
  c.width = q.width;
  c.want_logits = q.want_logits;
  c.token.assign(static_cast<size_t>(kRows * q.width), -1);
  c.logp.assign(c.token.size(), 0.0f);
  std::vector<kernels::DrawKey> keys;
  for (int64_t r = 0; r < kRows; ++r) keys.push_back({7, 1, 100 + r, q.temperature, 0});
  aerie_candidates out{&c, q.temperature > 0 ? plan->stage(std::span<const kernels::DrawKey>(keys)) : nullptr};
  const auto* staged = plan->stage(std::span<const int32_t>(ids));
  const aerie_tensor map = to_abi(kernels::matrix(const_cast<int32_t*>(staged), 1, w.rows, kernels::DType::i32));
  const aerie_tensor in = to_abi(x), weights = to_abi(w), added = to_abi(bias), all = to_abi(logits);
  aerie_plan handle{plan.get(), &own};
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  const aerie_tensor *with_bias = q.bias ? &added : nullptr, *with_map = q.map ? &map : nullptr;
  if (fused) {
    compute->propose_head(&handle, &in, &weights, with_bias, with_map, &out);
  } else {
    compute->linear(&handle, &in, &weights, with_bias, nullptr, &all);
    compute->propose_logits(&handle, &all, with_map, &out);
  }
  must(plan->submit(*queue));
  EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
  return c;
}

TEST(ProposeHead, IsLinearAndProposeLogitsToTheBit) {
  const auto mock = std::shared_ptr<kernels::Device>(kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 2}))));
  for (const auto& model : {open_model(kDemo, cpu(2)), open_model(kDemo, mock)})
    for (const float temperature : {0.0f, 0.8f})
      for (const bool want_logits : {false, true})
        for (Case q : {Case{}, Case{.width = 1}, Case{.width = 128, .bias = true},
                       Case{.n_panels = 40, .map = true}, Case{.first_panel = 100, .n_panels = 3, .map = true, .bias = true}}) {
          q.temperature = temperature;
          q.want_logits = want_logits;
          if (q.n_panels == 3) q.width = 4;
          const Candidates want = propose(model, q, false), got = propose(model, q, true);
          EXPECT_EQ(got.token, want.token);
          EXPECT_EQ(got.logp, want.logp);
          EXPECT_EQ(got.logits, want.logits);
          EXPECT_EQ(got.map, want.map);
          EXPECT_EQ(got.logits.empty(), !want_logits);
          EXPECT_GE(got.token[0], q.n_panels == 3 ? -1 : 0);
        }
}

TEST(ProposeHead, WhatDoesNotFitIsRefused) {
  const auto model = open_model(kDemo, cpu(1));
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  DrafterResources own(model, nullptr);
  auto plan = must(Plan::create(model->device(), 1 << 16));
  const auto refused = [&](int64_t width, int64_t rows, int64_t bias_cols, int64_t map_cols, int64_t n_panels) {
    plan = must(Plan::create(model->device(), 1 << 16));
    aerie_plan handle{plan.get(), &own};
    Candidates c;
    c.rows = kRows;
    c.levels = 1;
    c.width = 2;
    aerie_candidates out{&c, nullptr};
    const aerie_tensor x = to_abi(plan->scratch(rows, width)), bias = to_abi(plan->scratch(1, bias_cols)),
                       w = to_abi(kernels::panels(model->lm_head(), 0, n_panels));
    aerie_tensor map = to_abi(plan->scratch(1, map_cols));
    map.dtype = AERIE_DTYPE_I32;
    const int32_t code = compute->propose_head(&handle, &x, &w, &bias, map_cols > 1 ? &map : nullptr, &out);
    EXPECT_EQ(code == AERIE_D_OK, plan->status().ok());
    return code != AERIE_D_OK;
  };
  EXPECT_FALSE(refused(192, kRows, 4096, 1, 256));
  EXPECT_FALSE(refused(192, kRows, 320, 320, 20));
  EXPECT_TRUE(refused(191, kRows, 4096, 1, 256)) << "width";
  EXPECT_TRUE(refused(192, kRows + 1, 4096, 1, 256)) << "rows";
  EXPECT_TRUE(refused(192, kRows, 4095, 1, 256)) << "bias";
  EXPECT_TRUE(refused(192, kRows, 320, 319, 20)) << "map";
  EXPECT_TRUE(refused(192, kRows, 320, 1, 20)) << "a reduced vocabulary wants a map";
}

// Two sequences, three levels, each with a bias of its own in place of a head of its own.
Candidates propose_levels(const std::shared_ptr<Model>& model, bool fused, float temperature, bool want_logits,
                          std::vector<int32_t> order = {0, 1, 2}, Status* status = nullptr) {
  constexpr int32_t kLevels = 3, kWidth = 7, kSeqs = 2;
  DrafterResources own(model, nullptr);
  own.id = "test";
  auto plan = must(Plan::create(model->device(), 1 << 16));
  auto queue = must(model->device()->make_queue());
  const int64_t h = model->config().hidden;
  const auto hidden = random_values(static_cast<size_t>(kSeqs * h), 1), offsets = random_values(kLevels * 4096, 2);
  const kernels::Tensor x = plan->scratch(kSeqs, h), bias = plan->scratch(kLevels, 4096),
                        logits = plan->scratch(kSeqs * kLevels, 4096);
  plan->add(kernels::Upload{x.data, hidden.data(), kSeqs * h * 4});
  plan->add(kernels::Upload{bias.data, offsets.data(), kLevels * 4096 * 4});
  Candidates c;
  c.rows = kSeqs;
  c.levels = kLevels;
  c.width = kWidth;
  c.want_logits = want_logits;
  c.token.assign(kSeqs * kLevels * kWidth, -1);
  c.logp.assign(c.token.size(), 0.0f);
  std::vector<kernels::DrawKey> keys;
  for (int64_t r = 0; r < kSeqs * kLevels; ++r) keys.push_back({7, 1, 100 + r, temperature, 0});
  aerie_candidates out{&c, temperature > 0 ? plan->stage(std::span<const kernels::DrawKey>(keys)) : nullptr};
  aerie_plan handle{plan.get(), &own};
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  const aerie_tensor in = to_abi(x), w = to_abi(model->lm_head()), all = to_abi(logits);
  for (const int32_t level : order) {
    const aerie_tensor b = to_abi(kernels::rows(bias, level, 1));
    kernels::Tensor to = kernels::rows(logits, level, kSeqs);
    to.stride = kLevels * to.cols;
    const aerie_tensor own_logits = to_abi(to);
    if (fused) compute->propose_level(&handle, level, &in, &w, &b, &out);
    else compute->linear(&handle, &in, &w, &b, nullptr, &own_logits);
  }
  if (!fused) compute->propose_logits(&handle, &all, nullptr, &out);
  if (status) {
    *status = plan->status();
  } else {
    must(plan->submit(*queue));
    EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
  }
  return c;
}

TEST(ProposeLevel, IsLinearAndProposeLogitsToTheBit) {
  const auto mock = std::shared_ptr<kernels::Device>(kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 2}))));
  for (const auto& model : {open_model(kDemo, cpu(2)), open_model(kDemo, mock)})
    for (const float temperature : {0.0f, 0.8f})
      for (const bool want_logits : {false, true}) {
        const Candidates want = propose_levels(model, false, temperature, want_logits);
        const Candidates got = propose_levels(model, true, temperature, want_logits);
        EXPECT_EQ(got.token, want.token);
        EXPECT_EQ(got.logp, want.logp);
        EXPECT_EQ(got.logits, want.logits);
        EXPECT_GE(got.token[0], 0);
        EXPECT_TRUE(got.filled);
      }
}

TEST(ProposeLevel, LevelsComeInOrderAndOnce) {
  const auto model = open_model(kDemo, cpu(1));
  for (const auto& order : {std::vector<int32_t>{1}, {0, 0}, {0, 2}, {0, 1, 2, 0}}) {
    Status status;
    propose_levels(model, true, 0, false, order, &status);
    EXPECT_FALSE(status.ok());
  }
  Status status;
  EXPECT_FALSE(propose_levels(model, true, 0, false, {0, 1}, &status).filled) << "one is missing";
  EXPECT_TRUE(status.ok());
}

}  // namespace aerie::test::propose_head
