// Drafter heads of every kind on the emulated device, against PyTorch (tests/golden/heads).
#include "tests/support/golden_head.h"
#include "tests/support/random_drafter.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

struct CudaHeads : GoldenHead {
  void SetUp() override { open(checked_cuda(), with_kv(DType::f32), 1e-3); }
};

TEST_P(CudaHeads, CandidatesEqualTheReference) { expect_rows(5); }

INSTANTIATE_TEST_SUITE_P(Kinds, CudaHeads,
                         testing::Values("eagle", "eagle3", "fasteagle", "dflash", "dflash_window", "medusa", "hydra_prefix", "eagle3_norms", "mtp_qwen3_5", "mtp_glm4_moe",
                                         "assistant_gemma4"),
                         [](const auto& info) { return std::string(info.param); });

// Blocks through tensor cores, which caches of bf16 and heads of 32 go: as on the CPU, to what bf16 leaves.
struct CudaBlocks : GoldenHead {
  Candidates drafted(const std::shared_ptr<kernels::Device>& device) {
    open(device, with_kv(DType::bf16), 0);
    const auto of = must(Package::open(model_->package().path()));
    DrafterConfig d;
    d.plugin_id = "dflash";
    d.target_fingerprint = of->fingerprint();
    d.params = {{"taps", 1}, {"tap.0", 2}, {"block", 17}, {"mask", 3}};
    d.decoder = random_layers(*of->target(), 2);
    d.decoder->head_dim = 32;
    d.decoder->departures.windows = {0, 9};
    drafter_ = open_drafter(model_, "dflash", must(random_drafter(d, *d.decoder, {{"fc", 32, 32, true}, {"hidden_norm", 1, 32, false}, {"norm", 1, 32, false}})));
    auto fresh = must(DraftSequence::create(drafter_, 128, target_.get()));
    show(*fresh, 20, 5);
    DraftTree tree;
    tree.reset(ids_[19]);
    fresh->begin_cycle(20);
    const int32_t root = 0;
    plan_->clear();
    must(fresh->propose(*plan_, tree, {&root, 1}, 160, {}));
    run();
    return fresh->candidates();
  }
};

TEST_P(CudaBlocks, AreTheCpus) {
  const Candidates want = drafted(cpu(1)), got = drafted(checked_cuda());
  ASSERT_EQ(want.levels, 16);
  ASSERT_EQ(got.token.size(), want.token.size());
  const auto width = static_cast<size_t>(want.width);
  for (size_t level = 0; level < 16; ++level) {
    std::vector<float> wanted(160), made(160);
    for (size_t i = level * width; i < (level + 1) * width; ++i) {
      wanted[static_cast<size_t>(want.token[i])] = want.logp[i];
      made[static_cast<size_t>(got.token[i])] = got.logp[i];
    }
    int apart = 0;  // of the least likely, near the end of the list, some may be others
    for (size_t t = 0; t < 160; ++t) apart += std::fabs(wanted[t] - made[t]) > 0.03f;
    EXPECT_LE(apart, 4) << level;
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, CudaBlocks, testing::Values("dflash"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test
