// Drafter heads of every kind against PyTorch (tests/golden/heads).
#include "tests/support/golden_head.h"

namespace aerie::test {
namespace {

struct GoldenHeads : GoldenHead {
  void SetUp() override { open(cpu(2), {}, 2e-4); }
};

TEST_P(GoldenHeads, CandidatesEqualTheReference) {
  for (const int64_t chunk : {64, 1, 5}) expect_rows(chunk);
}

// After a rewind the drafter is what a fresh one would be.
TEST_P(GoldenHeads, ARewoundDrafterEqualsAFreshOne) {
  auto draft = must(DraftSequence::create(drafter_, 128, target_.get()));
  const auto& rows = golden_["rows"];
  const int64_t last = rows[2]["row"].get<int64_t>() + 2;
  show(*draft, last, 7);
  for (const size_t r : {size_t{1}, size_t{0}, size_t{2}}) {
    const int64_t end = rows[r]["row"].get<int64_t>() + 2;
    must(draft->rollback(std::min(end, draft->observed())));
    show(*draft, end, 1);
    expect_levels(*draft, end, rows[r]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenHeads,
                         testing::Values("eagle", "eagle3", "fasteagle", "medusa", "hydra", "hydra_prefix", "eagle3_norms", "eagle3_fc_norm", "eagle3_narrow",
                                         "eagle3_deep", "mtp_qwen3_5", "mtp_qwen3_5_moe", "mtp_glm4_moe", "assistant_gemma4", "dflash", "dflash_window"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test
