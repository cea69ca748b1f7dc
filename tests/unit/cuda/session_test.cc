// Whole sessions on the emulated device: the real kernel sources under the real runtime. Same seed, same text, with any
// drafter, any cutting and any neighbours.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/model/cost_key.h"
#include "core/session/batch.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

std::vector<int32_t> some_ids(int32_t n) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(i * 37 % 90);
  return ids;
}

TEST(CudaSession, LogitsAreTheCpusAndDoNotDependOnChunks) {
  const auto ids = some_ids(40);
  for (const DType weights : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const char* name : {"mha", "gqa_tied", "odd_sizes"}) {
      if (weights != DType::int8 && std::string(name) == "odd_sizes") continue;
      SCOPED_TRACE(std::string(name) + " type " + std::to_string(static_cast<int>(weights)));
      const std::string path = converted(golden(name), std::string("cuda-") + name, weights);
      // A CPU rounds activations to integers.
      const auto other = kernels::is_integer(weights) ? std::shared_ptr<kernels::Device>(kernels::make_reference_device()) : cpu(1);
      const Forward want(*open_model(path, other, with_kv(DType::f32)), ids, 40, {});
      const Forward one(*open_model(path, checked_cuda(), with_kv(DType::f32)), ids, 1, {});
      EXPECT_LT(apart(one.logits, want.logits), weights == DType::f32 || weights == DType::bf16 ? 1e-3 : 3e-3);
      for (const int64_t chunk : {7, 40})
        EXPECT_EQ(one.logits, Forward(*open_model(path, checked_cuda(), with_kv(DType::f32)), ids, chunk, {}).logits) << chunk;
    }
}

TEST(CudaSession, DraftsAndRewindsChangeNoToken) {
  struct Case {
    std::string plugin, package;
    const char* tree;
    DType kv;
    float temperature;
  };
  std::map<std::pair<DType, float>, std::vector<int32_t>> plain;
  for (const Case& c : {Case{"eagle", eagle(), "eagle2", DType::bf16, 0.8f}, {"eagle", eagle(), "static", DType::bf16, 0.0f},
                        {"eagle", eagle(), "eagle2", DType::int8, 0.8f}, {"fasteagle", fasteagle(), "backbone", DType::bf16, 0.8f},
                        {"dflash", dflash(), "eagle2", DType::int8, 0.8f}, {"small_model", target(), "chain", DType::bf16, 0.8f},
                        {"ngram", "", "chain", DType::bf16, 0.0f}}) {
    SCOPED_TRACE(c.plugin + " " + c.tree + " at " + std::to_string(c.temperature));
    const auto model = open_model(target(), checked_cuda(), with_kv(c.kv));
    SessionOptions o = sampled(c.temperature);
    o.max_context = 64;
    auto& want = plain[{c.kv, c.temperature}];
    if (want.empty()) {
      auto alone = must(Session::create(model, o));
      must(alone->append(kPrompt));
      want = generate(*alone, 10);
    }
    o.drafter = open_drafter(model, c.plugin, c.package);
    o.tree.name = c.tree;
    auto session = must(Session::create(model, o));
    for (const int32_t t : kPrompt) must(session->append({&t, 1}));
    std::vector<int32_t> got;
    std::mt19937 random(2);
    while (got.size() < want.size()) {
      StepResult r;
      must(session->step(static_cast<int32_t>(want.size() - got.size()), std::chrono::microseconds(random() % 3), &r));
      for (const EmittedToken& t : r.tokens) got.push_back(t.id);
      if (random() % 12 == 0 && got.size() > 3) {
        got.resize(got.size() - 1 - random() % 3);
        must(session->rewind(kPrompt.size() + got.size()));
      }
    }
    EXPECT_EQ(got, want);
    EXPECT_EQ(session->statistics().drafter_failures, 0u);
  }
}

// Their walk is the host's, over logits that are read back; the noise is the same.
TEST(CudaSession, BiasesAndPenaltiesAreADraftersTooAndChangeNothingWhereTheySayNothing) {
  const auto model = open_model(target(), checked_cuda(), with_kv(DType::bf16));
  const auto drafter = open_drafter(model, "eagle", eagle());
  LogitOptions nothing, all;
  nothing.biases = {{3, 0.0f}};
  all.penalties.repetition = 1.3f;
  for (const float temperature : {0.0f, 0.8f}) {
    const auto text = [&](const LogitOptions& logits, const std::shared_ptr<Drafter>& with) {
      SessionOptions o = sampled(temperature);
      o.max_context = 64;
      o.logits = logits;
      o.drafter = with;
      auto session = must(Session::create(model, o));
      must(session->append(kPrompt));
      return generate(*session, 6);
    };
    const auto plain = text({}, nullptr);
    EXPECT_EQ(text(nothing, nullptr), plain);
    all.biases = {{plain[0], -INFINITY}, {37, 2.0f}};
    const auto ruled = text(all, nullptr);
    EXPECT_NE(ruled, plain);
    EXPECT_EQ(text(all, drafter), ruled);
  }
}

TEST(CudaSession, NeighboursInABatchChangeNoToken) {
  const auto model = open_model(target(), checked_cuda());
  const auto drafter = open_drafter(model, "eagle", eagle());
  constexpr size_t kTokens = 8;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::vector<int32_t>> want, got(3);
  for (uint64_t i = 0; i < 3; ++i)
    for (const bool alone : {true, false}) {
      SessionOptions o = sampled(0.5f * static_cast<float>(i), i);
      if (!alone && i > 0) {
        o.drafter = drafter;
        o.tree.name = i == 1 ? "chain" : "eagle2";
      }
      auto s = must(Session::create(model, o));
      must(s->append(std::span<const int32_t>(kPrompt).first(4 + 3 * i)));
      if (alone) want.push_back(generate(*s, kTokens));
      else sessions.push_back(std::move(s));
    }
  auto batch = must(Batch::create(model));
  for (auto& s : sessions) must(batch->add(*s));
  while (std::any_of(got.begin(), got.end(), [](const auto& g) { return g.size() < kTokens; })) {
    must(batch->step(2, std::chrono::microseconds(0)));
    for (size_t i = 0; i < 3; ++i) {
      must(sessions[i]->status());
      for (const EmittedToken& t : sessions[i]->result().tokens) got[i].push_back(t.id);
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    got[i].resize(kTokens);
    EXPECT_EQ(got[i], want[i]) << i;
  }
}

#ifndef AERIE_REAL_GPU
TEST(CudaSession, CostsAreThoseOfAModelOfGpu) {
  const auto key = cost_key(*open_model(target(), cuda()));
  EXPECT_EQ(key.device, "cuda emulated");
  EXPECT_EQ(key.isa, "sm_80");
}

// Draft passes, the tree between them, the target's pass, the walk and the KV commit: the host looks once.
TEST(CudaSession, ACycleIsReadBackOnce) {
  const auto model = open_model(target(), checked_cuda());
  const auto waits = [](Session& s) {
    const int64_t before = kernels::cuda::emulation::counts().host_waits;
    StepResult r;
    must(s.step(0, std::chrono::microseconds(0), &r));
    return kernels::cuda::emulation::counts().host_waits - before;
  };
  for (const std::string tree : {"eagle2", "auto"}) {
    for (const std::string kind : {"eagle", "eagle3", "fasteagle", "dflash", "hydra_prefix", "eagle3_norms", "eagle3_narrow", "eagle3_deep"}) {
      if (tree == "auto" && kind.starts_with("eagle3")) continue;  // in its plans as eagle
      SCOPED_TRACE(tree);
      const std::string head = kind == "eagle" ? eagle() : converted(source_dir() + "/tests/golden/heads/" + kind, "cuda-once-" + kind,
                                                                     DType::bf16, target());
      std::vector<int32_t> texts[2];
      std::vector<uint64_t> counts[2];
      for (const bool on_device : {true, false}) {
        SessionOptions o = sampled(3);  // the noise that they share lets heads agree with the target that know nothing
        o.drafter = open_drafter(model, library_of(kind), head);  // of which nothing is known yet
        o.tree.name = tree;
        o.tree.total = 24;
        o.tree.top_k = 4;
        o.tree.depth = 3;
        o.pass_ms = [](const Drafter* d, int32_t rows) { return d ? 0.01 : 1 + 0.03 * rows; };
        if (!on_device) o.drafts_on_device = false;  // otherwise as it is with this device
        auto s = must(Session::create(model, o));
        must(s->append(kPrompt));
        waits(*s);  // reads the prompt
        for (int cycle = 0; cycle < (tree == "auto" ? 2 : 4); ++cycle) {
          const int64_t n = waits(*s);
          if (on_device) EXPECT_EQ(n, 1) << kind;
          else EXPECT_GE(n, kind == "fasteagle" || kind == "dflash" ? 2 : 3) << kind;  // each draft pass, and the target's
        }
        const SessionStatistics& stats = s->statistics();
        EXPECT_EQ(stats.drafter_failures, 0u);
        EXPECT_GT(stats.accepted, 0u);
        EXPECT_GT(stats.draft_ns, 0u);  // told apart by the device's clock where one plan has both
        EXPECT_GT(stats.verify_ns, 0u);
        texts[on_device] = s->tokens();
        counts[on_device] = {stats.cycles, stats.verified, stats.accepted};
        counts[on_device].insert(counts[on_device].end(), std::begin(stats.tried), std::end(stats.tried));
        counts[on_device].insert(counts[on_device].end(), std::begin(stats.taken), std::end(stats.taken));
      }
      if (tree == "auto")  // it fills what rows its pass has, and may get further in as many cycles
        for (auto& text : texts) text.resize(std::min(texts[0].size(), texts[1].size()));
      EXPECT_EQ(texts[0], texts[1]) << kind;
      if (tree == "auto") continue;
      EXPECT_EQ(counts[0], counts[1]) << kind;
    }
  }
}

// CAST's trees are weighed on the device. Those of a batch that share rows are drawn ahead: one read-back for all levels
// that are surely asked for, one for the target's pass.
enum class Where { device, ahead, host };
TEST(CudaSession, WhatIsWeighedIsReadBackOnceAndWhatIsDrawnAheadTwice) {
  const auto model = open_model(target(), checked_cuda());
  const auto drafter = open_drafter(model, "eagle", eagle());
  std::vector<int32_t> texts[3];
  std::vector<uint64_t> counts[3];
  for (const Where where : {Where::device, Where::ahead, Where::host}) {
    SessionOptions o = sampled(3);
    o.drafter = drafter;
    o.tree.name = "cast";
    o.tree.cast.depth = 4;
    o.tree.cast.top_k = 4;
    o.tree.cast.prune_depth = false;
    o.pass_ms = [](const Drafter* d, int32_t rows) { return d ? 0.01 : 1 + 0.01 * rows; };
    if (where == Where::host) o.drafts_on_device = false;
    auto s = must(Session::create(model, o));
    must(s->append(kPrompt));
    auto batch = must(Batch::create(model, {where == Where::ahead ? 64 : 0}));
    must(batch->add(*s));
    for (int cycle = 0; cycle < 8; ++cycle) {
      const int64_t before = kernels::cuda::emulation::counts().host_waits;
      must(batch->step(0, std::chrono::microseconds(0)));
      const int64_t n = kernels::cuda::emulation::counts().host_waits - before;
      // The first cycles read the prompt and learn how deep it goes.
      if (cycle >= 2) {
        EXPECT_EQ(n, where == Where::device ? 1 : where == Where::ahead ? 2 : 5) << cycle;
      }
    }
    const SessionStatistics& stats = s->statistics();
    EXPECT_GT(stats.draft_ns, 0u);
    EXPECT_GT(stats.accepted, 0u);
    const auto at = static_cast<size_t>(where);
    texts[at] = s->tokens();
    counts[at] = {stats.cycles, stats.verified, stats.accepted, stats.proposed, stats.draft_passes};
  }
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(texts[1], texts[2]);
  EXPECT_EQ(counts[1], counts[2]);
  EXPECT_GE(counts[0][1], counts[2][1]) << "what is verified fills the rows of its pass";
}

TEST(CudaSession, NoMemoryLeftBehind) {
  const std::string path = converted(golden("mha"), "cuda-memory", DType::int4);
  const int64_t before = kernels::cuda::emulation::allocated_bytes();
  int failed = 0, opened = 0;
  for (int64_t room = 1 << 12; opened == 0 && room < int64_t{1} << 40; room *= 2) {
    kernels::cuda::emulation::set_faults({.memory = before + room});
    Result<std::unique_ptr<Session>> session = error(Code::internal, "");
    {
      auto model = Model::open(checked_cuda(), must(Package::open(path)), {});
      if (model.ok()) session = Session::create(*model, {});
      else session = model.status();
    }
    if (session.ok()) {
      const int32_t t = 5;
      must((*session)->append({&t, 1}));
      StepResult r;
      Status s;
      for (int i = 0; s.ok() && i < 100 && r.tokens.empty(); ++i) s = (*session)->step(2, std::chrono::microseconds(0), &r);
      if (s.ok()) ++opened;
      else session = s;
    }
    if (!session.ok()) {
      EXPECT_EQ(session.status().code(), Code::out_of_memory) << session.status().message();
      ++failed;
    }
  }
  kernels::cuda::emulation::set_faults({});
  EXPECT_GT(failed, 3);
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(kernels::cuda::emulation::allocated_bytes(), before);
}

#endif

}  // namespace
}  // namespace aerie::test
