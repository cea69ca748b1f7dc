// What measured passes are of: rows that differ, since equal ones would all take the same experts.
#include <map>
#include <set>

#include "core/drafter/measure_drafter.h"
#include "core/model/measure.h"
#include "tests/support/mixture.h"
#include "tests/unit/session/seeing_device.h"

namespace aerie::test {
namespace {

// As many tokens as there are rows; always the same for as many rows.
void expect_differing(const std::vector<SeenPass>& passes) {
  std::map<size_t, std::vector<int32_t>> of_rows;
  for (const SeenPass& p : passes) {
    EXPECT_EQ(std::set<int32_t>(p.tokens.begin(), p.tokens.end()).size(), p.tokens.size());
    const auto& first = of_rows.try_emplace(p.tokens.size(), p.tokens).first->second;
    EXPECT_EQ(p.tokens, first);
  }
}

TEST(MeasuredRows, Differ) {
  for (const int32_t vocab : {1, 2, 3, 160, 211, 32000, 151936, 1 << 22}) {
    const int32_t n = std::min(vocab, 1000);
    std::set<int32_t> all;
    for (int32_t i = 0; i < n; ++i) all.insert(measured_token(i, vocab));
    EXPECT_EQ(all.size(), static_cast<size_t>(n)) << vocab;
    EXPECT_GE(*all.begin(), 0) << vocab;
    EXPECT_LT(*all.rbegin(), vocab) << vocab;
    if (vocab < 1000) continue;
    for (auto at = all.begin(), next = std::next(at); next != all.end(); at = next++)
      ASSERT_LT(*next - *at, 3 * vocab / n) << vocab << ": no part of it is left out";
  }
}

TEST(MeasuredRows, OfATargetTakeExpertsOfTheirOwn) {
  const auto device = std::make_shared<SeeingDevice>(cpu(1));
  const auto model = open_model(with_experts(golden("mha"), {16, 2}), device);
  MeasureOptions o;
  o.contexts = {20};
  o.rows = {1, 4, 16};
  o.batches = {1, 3};
  o.least_samples = o.most_samples = 2;
  must(measure_target(*model, o).status());
  std::set<size_t> rows;
  for (const SeenPass& p : device->passes) {
    rows.insert(p.tokens.size());
    const std::set<int32_t> taken(p.experts.begin(), p.experts.end());
    EXPECT_EQ(p.experts.size(), 2 * p.tokens.size());
    EXPECT_GE(taken.size(), p.tokens.size() >= 16 ? 8u : p.tokens.size() >= 4 ? 4u : 2u) << p.tokens.size() << " rows";
  }
  EXPECT_EQ(rows, (std::set<size_t>{1, 3, 4, 12, 16, 48}));
  expect_differing(device->passes);
}

TEST(MeasuredRows, OfADraftersLevelDiffer) {
  const auto device = std::make_shared<SeeingDevice>(cpu(1));
  const auto model = open_model(with_experts(golden("mha"), {8, 2}), device);
  const auto drafter = open_drafter(model, "small_model", with_experts(golden("mha"), {16, 2, true, kernels::DType::int8}));
  MeasureOptions o;
  o.contexts = {40};
  o.rows = {1, 4, 16, 128};
  o.least_samples = o.most_samples = 2;
  device->passes.clear();
  must(measure_drafter(drafter, o).status());
  std::vector<SeenPass> levels;  // a root pass also observes, and no more than 16 tokens
  std::set<int32_t> taken;
  for (const SeenPass& p : device->passes) {
    if (p.tokens.size() != 128) continue;
    taken.insert(p.experts.begin(), p.experts.end());
    levels.push_back(p);
  }
  EXPECT_EQ(levels.size(), 3u);  // one warms up
  EXPECT_GE(taken.size(), 12u);
  expect_differing(levels);
}

}  // namespace
}  // namespace aerie::test
