// Families that depart from Llama's architecture, on the emulated device: their layers' ops follow one another otherwise, and what
// looks at a window takes other kernels than what sees everything.
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

std::vector<int32_t> family_ids(int32_t n) { return random_tokens(n, 70, 5); }

TEST(CudaFamilies, LogitsAreTheCpusAndDoNotDependOnChunks) {
  const auto ids = family_ids(24);  // more than any window
  for (const char* name : {"mistral_window", "gemma3", "phi3", "granite", "smollm3", "olmo2", "olmo3", "exaone4", "mixtral", "qwen3_moe", "olmoe", "granitemoe",
                           "gpt_oss", "gpt_oss_mxfp4", "granitemoeshared", "qwen2_moe", "glm4_moe", "dots1",
                           "ernie4_5_moe", "minimax_m2"}) {
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
  for (const char* name : {"gemma3", "granite", "exaone4", "qwen3_moe"}) {
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

}  // namespace
}  // namespace aerie::test
