// Numbers at the ends of their types: a host that got a length or a limit wrong is told so, or gets what it asked for.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct AbsurdSizes : testing::Test {
  Host host;
  void SetUp() override {
    const aerie_runtime_options o = with_threads(2);
    ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  }
  bool said(const char* words) const { return std::strstr(host.err.message, words) != nullptr; }
};

TEST_F(AbsurdSizes, TheLongestBudgetIsNoneAtAll) {
  std::vector<int32_t> text;
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t budget : {kMost, kMost / 1000, kMost / 1000 + 1, kMost / 2}) {
    aerie_step_options o;
    aerie_step_result r;
    AERIE_INIT(o);
    AERIE_INIT(r);
    o.budget_us = budget;
    ASSERT_EQ(aerie_session_step(host.session, &o, &r, &host.err), AERIE_OK) << host.err.message;
    EXPECT_EQ(r.state, AERIE_STEP_TOKENS) << budget;
    for (int32_t i = 0; i < r.n_tokens; ++i) text.push_back(r.tokens[i].id);
  }
  EXPECT_TRUE(std::equal(text.begin(), text.end(), plain_text().begin()));
}

TEST_F(AbsurdSizes, LengthsThatWrapAroundAreTooLong) {
  const size_t most = std::numeric_limits<size_t>::max();
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), 1, &host.err), AERIE_OK);
  EXPECT_EQ(aerie_session_append(host.session, kPrompt.data(), most, &host.err), AERIE_E_LIMIT);
  EXPECT_TRUE(said("18446744073709551615 tokens after 1, the context is 512")) << host.err.message;
  aerie_evaluate_options e;
  AERIE_INIT(e);
  EXPECT_EQ(aerie_model_evaluate(host.model, kPrompt.data(), most, &e, &host.err), AERIE_E_LIMIT);
  EXPECT_EQ(aerie_session_rewind(host.session, most, &host.err), AERIE_E_INVALID_ARGUMENT);
}

TEST_F(AbsurdSizes, SamplingOutOfRangeIsNamedWithItsRange) {
  aerie_sampling s;
  const auto refused = [&] { return aerie_session_set_sampling(host.session, &s, &host.err) == AERIE_E_INVALID_ARGUMENT; };
  AERIE_INIT(s);
  s.temperature = NAN;
  EXPECT_TRUE(refused() && said("temperature nan is not in 0..1000")) << host.err.message;
  AERIE_INIT(s);
  s.top_p = NAN;
  EXPECT_TRUE(refused() && said("top_p nan is not in 0..1")) << host.err.message;
  s.top_p = -0.5f;
  EXPECT_TRUE(refused() && said("top_p -0.5 is not in 0..1")) << host.err.message;
  s.top_p = 1.5f;  // off, as from 1 on
  EXPECT_FALSE(refused()) << host.err.message;
  s.min_p = 2;
  EXPECT_TRUE(refused() && said("min_p 2 is not in 0..1")) << host.err.message;
  AERIE_INIT(s);
  s.top_k = -1;
  EXPECT_TRUE(refused() && said("top_k -1 is not in 0..2147483647")) << host.err.message;
}

TEST_F(AbsurdSizes, ATreesFieldsAreOfItsPolicyAndNumbers) {
  aerie_tree_options t;
  const auto refused = [&](const char* words) {
    return aerie_session_set_tree(host.session, &t, &host.err) == AERIE_E_INVALID_ARGUMENT && said(words);
  };
  const auto with = [&](int32_t policy) -> aerie_tree_options& {
    AERIE_INIT(t);
    t.policy = policy;
    return t;
  };
  for (const int32_t policy : {AERIE_TREE_DEFAULT, AERIE_TREE_STATIC, AERIE_TREE_BACKBONE, AERIE_TREE_AUTO}) {
    with(policy).nodes = 5;
    EXPECT_TRUE(refused("nodes is set, and this policy has none")) << policy << host.err.message;
  }
  with(AERIE_TREE_CHAIN).depth = -1;
  EXPECT_TRUE(refused("depth is set")) << host.err.message;
  with(AERIE_TREE_AUTO).top_k = 3;
  EXPECT_TRUE(refused("top_k is set")) << host.err.message;
  with(AERIE_TREE_EAGLE2).n_paths = 1;
  EXPECT_TRUE(refused("n_paths is set")) << host.err.message;
  with(AERIE_TREE_BACKBONE).threshold = NAN;
  EXPECT_TRUE(refused("threshold is set")) << host.err.message;
  with(AERIE_TREE_CAST).threshold = NAN;
  EXPECT_TRUE(refused("threshold nan is not in")) << host.err.message;
  for (const int32_t n : {INT32_MAX, INT32_MIN}) {
    with(AERIE_TREE_CHAIN).nodes = n;
    EXPECT_TRUE(refused("length")) << host.err.message;
    with(AERIE_TREE_CAST).depth = n;
    EXPECT_TRUE(refused("depth")) << host.err.message;
    with(AERIE_TREE_BACKBONE).top_k = n;
    EXPECT_TRUE(refused("top_k")) << host.err.message;
    with(AERIE_TREE_STATIC).n_paths = n;
    EXPECT_TRUE(refused("n_paths")) << host.err.message;
    with(n);
    EXPECT_TRUE(refused("policy")) << host.err.message;
  }
}

TEST_F(AbsurdSizes, AnEmptyPathIsCalledThat) {
  aerie_model* model = nullptr;
  EXPECT_EQ(aerie_model_open(host.runtime, "", nullptr, &model, &host.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_TRUE(said("path: is empty")) << host.err.message;
}

}  // namespace
}  // namespace aerie_capi_test
