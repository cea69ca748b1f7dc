// Drafter heads of every kind on the emulated device, against PyTorch (tests/golden/heads).
#include "tests/support/golden_head.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

struct CudaHeads : GoldenHead {
  void SetUp() override { open(checked_cuda(), with_kv(DType::f32), 1e-3); }
};

TEST_P(CudaHeads, CandidatesEqualTheReference) { expect_rows(5); }

INSTANTIATE_TEST_SUITE_P(Kinds, CudaHeads,
                         testing::Values("eagle", "eagle3", "fasteagle", "dflash", "medusa", "hydra_prefix", "eagle3_norms", "mtp_qwen3_5", "mtp_glm4_moe",
                                         "assistant_gemma4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test
