// The forward pass against Hugging Face transformers (tests/golden/logits/make_golden.py) and llama2.c.
#include <nlohmann/json.hpp>

#include "core/drafter/draft_sequence.h"
#include "core/text/tokenizer.h"
#include "tests/support/forward.h"

namespace aerie::test {
namespace {

using nlohmann::json;

json read_golden(const std::string& name) {
  std::ifstream in(golden(name) + "/golden.json");
  return json::parse(in);
}

double relative_error(const float* got, const json& want) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double w = want[i].get<double>();
    diff = std::max(diff, std::fabs(got[i] - w));
    norm = std::max(norm, std::fabs(w));
  }
  return diff / norm;
}

class GoldenLogits : public testing::TestWithParam<const char*> {};

TEST_P(GoldenLogits, EqualTransformersInF32) {
  const json g = read_golden(GetParam());
  const std::vector<int32_t> ids = g["ids"];
  const auto model = open_model(converted(golden(GetParam()), GetParam(), kernels::DType::f32), cpu(2));
  std::vector<int32_t> taps;
  for (const auto& t : g["taps"]) taps.push_back(t["layer"]);
  taps.push_back(kFinalFeature);
  const Forward f(*model, ids, 7, taps);
  const auto v = static_cast<size_t>(model->config().vocab_size), h = static_cast<size_t>(model->config().hidden);
  for (size_t i = 0; i < ids.size(); ++i)
    EXPECT_LE(relative_error(f.logits.data() + i * v, g["logits"][i]), 1e-5) << "position " << i;
  const std::vector<int32_t> positions = g["positions"];
  for (size_t p = 0; p < positions.size(); ++p) {
    const float* row = f.features.data() + static_cast<size_t>(positions[p]) * taps.size() * h;
    for (size_t t = 0; t + 1 < taps.size(); ++t)
      EXPECT_LE(relative_error(row + t * h, g["taps"][t]["rows"][p]), 1e-5) << "tap of layer " << taps[t];
    EXPECT_LE(relative_error(row + (taps.size() - 1) * h, g["features"][p]), 1e-5) << "final feature";
  }
}

TEST_P(GoldenLogits, BitsDoNotDependOnChunksOrThreads) {
  const std::vector<int32_t> ids = read_golden(GetParam())["ids"];
  for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16, kernels::DType::fp8, kernels::DType::int8, kernels::DType::int4,
                           kernels::DType::q4_1, kernels::DType::mxfp4}) {
    const std::string path = converted(golden(GetParam()), std::string(GetParam()) + "-bits", dtype);
    const Forward one(*open_model(path, cpu(1)), ids, 1, {});
    for (const int threads : {1, 2, 3})
      for (const int64_t chunk : {2, 5, 48}) {
        const Forward other(*open_model(path, cpu(threads)), ids, chunk, {});
        ASSERT_EQ(one.logits, other.logits) << "dtype " << static_cast<int>(dtype) << ", " << threads << " threads, chunks of " << chunk;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenLogits,
                         testing::Values("mha", "gqa_tied", "llama3_rope", "yarn_rope", "linear_rope_bias", "odd_sizes", "qwen3",
                                         "mistral_window", "gemma3", "phi3", "granite", "smollm3", "olmo2", "olmo3", "exaone4", "mixtral",
                                         "qwen3_moe", "olmoe", "granitemoe", "gpt_oss", "gpt_oss_mxfp4", "qwen2_moe", "glm4_moe", "dots1",
                                         "ernie4_5_moe", "minimax_m2", "granitemoeshared", "qwen3_5", "qwen3_5_moe", "qwen3_next", "lfm2", "lfm2_moe", "gemma4", "gemma4_keys", "gemma4_moe",
                                         "gemma2"),
                         [](const auto& info) { return std::string(info.param); });

// llama2.c's own greedy text, 230 positions of it (tests/golden/logits/stories260k.json).
TEST(Stories260K, GreedyTextIsLlama2cs) {
  if (!exists(shared("models/stories260K.bin"))) GTEST_SKIP() << "no ../shared/models/stories260K.bin";
  const std::string path = converted(shared("models/stories260K.bin"), "stories", kernels::DType::f32, {},
                                     shared("models/tok512.bin"));
  const auto model = open_model(path, cpu(2));
  const auto tokenizer = must(text::Tokenizer::deserialize(model->package().blob("tokenizer")));
  std::ifstream in(golden("stories260k.json"));
  const json g = json::parse(in);
  ASSERT_EQ(g["texts"].size(), 4u);
  for (const json& story : g["texts"]) {
    const std::string prompt = story["prompt"], want = story["text"];
    auto session = must(Session::create(model, {}));
    const auto ids = must(tokenizer->encode(prompt));
    must(session->append(ids));
    text::StreamDecoder decoder(tokenizer);
    decoder.reset(ids.back());
    std::string text = prompt;
    const auto tokens = generate(*session, 230);
    for (const int32_t t : tokens) decoder.push(t, &text);
    EXPECT_EQ(text.substr(0, want.size()), want);
    if (tokens.size() < 200) EXPECT_EQ(text, want) << "both end the story";
    else EXPECT_GT(want.size(), 500u);
  }
}

// The EAGLE head through the runtime, from the tiny target's own features: candidates after several prefixes and
// down a chain against a PyTorch head in double precision.
TEST(GoldenEagle, CandidatesEqualTheReference) {
  const json g = read_golden("eagle_mha");
  const std::vector<int32_t> ids = g["ids"];
  const std::string target = converted(golden("mha"), "eagle-golden-target", kernels::DType::f32);
  const auto model = open_model(target, cpu(2));
  const auto drafter = open_drafter(model, "eagle", converted(golden("eagle_mha"), "eagle-golden", kernels::DType::f32, target));
  std::vector<float> features;
  for (const json& row : g["features"])
    for (const json& v : row) features.push_back(v.get<float>());
  const auto h = static_cast<int64_t>(features.size() / g["features"].size());
  auto queue = must(model->device()->make_queue());
  auto plan = must(Plan::create(model->device(), 1 << 20));
  const auto run = [&] {
    must(plan->submit(*queue));
    EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
  };
  auto draft = must(DraftSequence::create(drafter, 128));
  DraftTree tree;
  const auto check = [&](int32_t node, const json& want) {
    plan->clear();
    const std::vector<int32_t> tokens = want["ids"];
    const auto width = static_cast<int32_t>(tokens.size());
    must(draft->propose(*plan, tree, {&node, 1}, width, {}));
    run();
    const Candidates& c = draft->candidates();
    EXPECT_EQ(c.token, tokens);
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_NEAR(c.logp[i], want["log_p"][i].get<double>(), 1e-4);
  };
  const std::vector<int32_t> positions = g["positions"];
  for (size_t p = 0; p < positions.size(); ++p) {
    const int64_t first = draft->observed(), end = positions[p] + 2;  // row j pairs feature j with token j + 1
    plan->clear();
    const kernels::Tensor f = plan->scratch(end - first, h);
    plan->add(kernels::Upload{f.data, features.data() + (first - 1) * h, (end - first) * h * 4});
    must(draft->observe(*plan, ids, end, f));
    run();
    draft->observed_to(end);
    tree.reset(ids[static_cast<size_t>(end) - 1]);
    draft->begin_cycle(end);
    check(0, g["top"][p]);
  }
  int32_t node = 0;
  for (const json& step : g["chain"]) {
    const int32_t token = step["token"];
    const float confidence = 0.5f;
    ASSERT_EQ(tree.add_children(node, {&token, 1}, {&confidence, 1}), 1);
    node = tree.size() - 1;
    check(node, step);
  }
}

}  // namespace
}  // namespace aerie::test
