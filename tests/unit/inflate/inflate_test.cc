// The demo model and every trained drafter of the repository, inflated: the same text, the same drafts.
#include "core/import/convert.h"
#include "tests/bench/inflate/inflater.h"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

using inflate::Job;
using inflate::Shape;

std::string demo(const std::string& name) { return source_dir() + "/samples/models/" + name + ".aerie"; }
// Four times as wide, and more of everything else: 16 x 192, 3/1 heads, 512, 4096 before.
const Shape kShape{768, 18, 8, 2, 640, 4160};

struct Pair {
  std::string small, big;
  Job job;
};
Pair inflated(kernels::DType dtype, const Shape& shape = kShape) {
  Pair p;
  const std::string name = "inflate-" + std::to_string(static_cast<int>(dtype)) + "-" + std::to_string(shape.hidden);
  p.small = converted(demo("demo"), name + "-small", dtype);
  p.big = scratch_dir() + "/" + name + ".aerie";
  p.job = {must(Package::open(p.small)), shape, 3, p.big};
  if (!exists(p.big)) must(inflate::inflate_target(p.job));
  return p;
}

struct Spoken {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  SessionStatistics stats;
};
Spoken run(const std::string& target, float temperature, size_t n, const std::string& plugin = {}, const std::string& drafter = {},
        const std::string& tree = "eagle2") {
  ModelOptions m;
  m.kv_positions = 1024;
  const auto model = open_model(target, cpu(2), m);
  SessionOptions o;
  o.sampling.temperature = temperature;
  o.sampling.seed = 4;
  o.ignore_eos = true;
  o.max_context = 96;
  o.tree.name = tree;
  o.tree.total = 12;
  if (!plugin.empty()) o.drafter = open_drafter(model, plugin, drafter);
  auto session = must(Session::create(model, o));
  must(session->append(std::vector<int32_t>{260, 513, 1021, 88, 300, 47}));
  Spoken out;
  while (out.tokens.size() < n) {
    StepResult r;
    must(session->step(static_cast<int32_t>(n - out.tokens.size()), std::chrono::microseconds(0), &r));
    for (const EmittedToken& t : r.tokens) {
      out.tokens.push_back(t.id);
      out.logprobs.push_back(t.logprob);
    }
  }
  out.stats = session->statistics();
  return out;
}

class Inflate : public testing::TestWithParam<kernels::DType> {};

// A log-probability depends on every logit: equal bits mean equal logits.
TEST_P(Inflate, APowerOfFourChangesNoBit) {
  const Pair p = inflated(GetParam());
  for (const float temperature : {0.0f, 0.8f}) {
    const Spoken small = run(p.small, temperature, 12), big = run(p.big, temperature, 12);
    EXPECT_EQ(small.tokens, big.tokens);
    EXPECT_EQ(small.logprobs, big.logprobs);
  }
}
INSTANTIATE_TEST_SUITE_P(DTypes, Inflate,
                         testing::Values(kernels::DType::f32, kernels::DType::bf16, kernels::DType::fp8, kernels::DType::int8, kernels::DType::int4,
                                         kernels::DType::q4_1, kernels::DType::mxfp4));

// Every trained drafter of the repository drafts the same nodes for the inflated target.
TEST(InflateDrafters, TheyDraftTheSame) {
  const Pair p = inflated(kernels::DType::bf16);
  size_t seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/samples/models")) {
    const std::string name = file.path().stem().string();
    if (!name.starts_with("demo-")) continue;
    const auto package = must(Package::open(file.path().string()));
    const std::string plugin = package->target() ? "small_model" : package->drafter()->plugin_id == "eagle3" ? "eagle" : package->drafter()->plugin_id;
    const std::string big = scratch_dir() + "/big-" + name + ".aerie";
    must(inflate::inflate_drafter({package, kShape, 3, big}, p.job));
    // A draft model must know the same vocabulary: it is compared with the inflated target only where it was grown too.
    const Spoken small = run(p.small, 0.8f, 24, plugin, file.path().string()), large = run(p.big, 0.8f, 24, plugin, big);
    EXPECT_EQ(small.tokens, large.tokens) << name;
    EXPECT_EQ(small.stats.accepted, large.stats.accepted) << name;
    EXPECT_EQ(small.stats.verified, large.stats.verified) << name;
    EXPECT_EQ(small.stats.cycles, large.stats.cycles) << name;
    EXPECT_EQ(large.stats.drafter_failures, 0u) << name;
    ++seen;
  }
  EXPECT_GE(seen, 7u);
}

// A mixture of experts each of which is the model's MLP says what the model says, but for rounding.
TEST(InflateExperts, SayTheSame) {
  const std::string small_path = converted(demo("demo"), "inflate-experts-small", kernels::DType::f32);
  const Shape shape{192, 16, 3, 1, 512, 4096, 0, 5, 2};  // no larger
  const Job job{must(Package::open(small_path)), shape, 3, scratch_dir() + "/inflated-experts.aerie"};
  must(inflate::inflate_target(job));
  const auto package = must(Package::open(job.output));
  EXPECT_EQ(package->target()->departures.experts, 5);
  EXPECT_NE(package->fingerprint(), job.small->fingerprint());
  const Spoken small = run(small_path, 0.8f, 24), big = run(job.output, 0.8f, 24);
  EXPECT_EQ(big.tokens, small.tokens);
  for (size_t i = 0; i < small.logprobs.size(); ++i) EXPECT_NEAR(big.logprobs[i], small.logprobs[i], 1e-3f) << i;
  const std::string head = scratch_dir() + "/inflated-experts-head.aerie";
  must(inflate::inflate_drafter({must(Package::open(demo("demo-eagle"))), shape, 3, head}, job));
  const Spoken drafted = run(job.output, 0.8f, 24, "eagle", head);
  EXPECT_EQ(drafted.tokens, big.tokens);
  EXPECT_GT(drafted.stats.accepted, 3u);
}

// What looks through the candidate head finds the same tokens.
TEST(InflateDrafters, ThroughTheCandidateHead) {
  ConvertOptions c;
  c.source = demo("demo");
  c.output = scratch_dir() + "/inflate-candidates-small.aerie";
  c.dtype = kernels::DType::bf16;
  c.candidate_rank = 32;
  must(convert(c));
  const std::string big = scratch_dir() + "/inflate-candidates.aerie", head = scratch_dir() + "/inflate-candidates-head.aerie";
  const Job target{must(Package::open(c.output)), kShape, 3, big};
  must(inflate::inflate_target(target));
  must(inflate::inflate_drafter({must(Package::open(demo("demo-eagle"))), kShape, 3, head}, target));
  EXPECT_EQ(must(must(Package::open(big))->tensor("candidate.down")).rows, 64) << "768 / 16, as a multiple of 32";
  const Spoken small = run(c.output, 0.8f, 24, "eagle", demo("demo-eagle")), large = run(big, 0.8f, 24, "eagle", head);
  EXPECT_EQ(small.tokens, large.tokens);
  EXPECT_EQ(small.stats.accepted, large.stats.accepted);
  EXPECT_EQ(small.stats.cycles, large.stats.cycles);
}

}  // namespace
}  // namespace aerie::test
