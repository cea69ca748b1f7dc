// Families that depart from Llama's architecture, on the emulated device: their layers' ops follow one another otherwise, and what
// looks at a window takes other kernels than what sees everything.
#include "core/session/batch.h"
#include "tests/support/remade.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

std::vector<int32_t> family_ids(int32_t n) { return random_tokens(n, 70, 5); }

TEST(CudaFamilies, LogitsAreTheCpusAndDoNotDependOnChunks) {
  const auto ids = family_ids(24);  // more than any window
  for (const char* name : {"mistral_window", "gemma3", "phi3", "granite", "smollm3", "olmo2", "olmo3", "exaone4", "mixtral", "qwen3_moe", "olmoe", "granitemoe",
                           "gpt_oss", "gpt_oss_mxfp4", "granitemoeshared", "qwen2_moe", "glm4_moe", "dots1",
                           "ernie4_5_moe", "minimax_m2", "qwen3_5", "qwen3_5_moe", "qwen3_next", "lfm2", "lfm2_moe",
                           "gemma4", "gemma4_keys", "gemma4_moe", "gemma2"}) {
    SCOPED_TRACE(name);
    const std::string path = converted(golden(name), std::string("cuda-") + name, DType::bf16);
    const Forward want(*open_model(path, cpu(1), with_kv(DType::bf16)), ids, 24, {});
    const Forward got(*open_model(path, checked_cuda(), with_kv(DType::bf16)), ids, 5, {});
    EXPECT_LT(apart(got.logits, want.logits), 1e-2);
    EXPECT_EQ(got.logits, Forward(*open_model(path, checked_cuda(), with_kv(DType::bf16)), ids, 24, {}).logits);
  }
}

TEST(CudaFamilies, DraftsChangeNoToken) {
  const auto prompt = family_ids(15);
  for (const char* name : {"gemma3", "granite", "exaone4", "qwen3_moe", "gemma4", "gemma2"}) {
    const std::string path = converted(golden(name), std::string("cuda-drafted-") + name, DType::int8);
    const auto model = open_model(path, checked_cuda(), with_kv(DType::bf16));
    SessionOptions o = sampled(0.8f);
    o.max_context = 64;
    auto plain = must(Session::create(model, o));
    must(plain->append(prompt));
    const auto want = generate(*plain, 12);
    o.drafter = open_drafter(model, "small_model", path);
    o.tree.name = "static";
    auto session = must(Session::create(model, o));
    must(session->append(prompt));
    EXPECT_EQ(generate(*session, 12), want) << name;
    EXPECT_GT(session->statistics().accepted, 0u);
  }
}

// A drafter that reads the target's keys and values, its trees drawn on the device and on the host.
TEST(CudaFamilies, AssistantReadsTheTargetsKeysAndValues) {
  const std::string path = converted(golden("gemma4"), "cuda-assisted", DType::int8);
  const auto model = open_model(path, checked_cuda(), with_kv(DType::bf16));
  const auto prompt = family_ids(25);
  SessionOptions o = sampled(0.8f);
  o.max_context = 64;
  auto plain = must(Session::create(model, o));
  must(plain->append(prompt));
  const auto want = generate(*plain, 16);
  o.drafter = open_drafter(model, "assistant", converted(source_dir() + "/tests/golden/heads/assistant_gemma4", "cuda-assistant", DType::int8, path));
  for (const char* tree : {"static", "eagle2", "chain"}) {
    o.tree.name = tree;
    auto session = must(Session::create(model, o));
    must(session->append(prompt));
    EXPECT_EQ(generate(*session, 16), want) << tree;
    EXPECT_EQ(session->statistics().drafter_failures, 0u) << tree;
    EXPECT_GT(session->statistics().proposed, 0u) << tree;
  }
}

// States behind what was accepted, forked, and of two sessions in a pass.
TEST(CudaFamilies, RecurrentLayersDraftedFor) {
  const std::string path = recurrent_model(DType::int8);
  const auto model = open_model(path, checked_cuda(), with_kv(DType::bf16));
  const auto prompt = random_tokens(15, 160, 5);
  SessionOptions o = sampled(0.8f);
  o.max_context = 64;
  o.sampling.stream = 5;
  auto plain = must(Session::create(model, o));
  must(plain->append(prompt));
  const auto want = generate(*plain, 16);
  o.drafter = open_drafter(model, "small_model", converted(golden("mha"), "cuda-recurrent-small", DType::int8));
  o.tree.name = "static";
  auto session = must(Session::create(model, o));
  must(session->append(prompt));
  EXPECT_EQ(generate(*session, 6), std::vector<int32_t>(want.begin(), want.begin() + 6));
  const auto fork = must(session->fork(static_cast<uint32_t>(o.sampling.stream)));
  const std::vector<int32_t> rest(want.begin() + 6, want.end());
  EXPECT_EQ(generate(*session, 10), rest);
  EXPECT_EQ(generate(*fork, 10), rest);
  EXPECT_GT(session->statistics().accepted, 0u);
  auto batch = must(Batch::create(model));
  std::vector<std::unique_ptr<Session>> both;
  std::vector<std::vector<int32_t>> got(2);
  for (int i = 0; i < 2; ++i) {
    both.push_back(must(Session::create(model, o)));
    must(both.back()->append(prompt));
    must(batch->add(*both.back()));
  }
  while (got[0].size() < 8 || got[1].size() < 8) {
    must(batch->step(0, std::chrono::microseconds(0)));
    for (size_t i = 0; i < 2; ++i)
      for (const EmittedToken& t : both[i]->result().tokens) got[i].push_back(t.id);
  }
  for (auto& text : got) {
    text.resize(8);
    EXPECT_EQ(text, std::vector<int32_t>(want.begin(), want.begin() + 8));
  }
}

}  // namespace
}  // namespace aerie::test
