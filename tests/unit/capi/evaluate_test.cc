// aerie_model_evaluate: the rows that a session's tokens come from, where the caller wants them.
#include <algorithm>
#include <cmath>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Opened : Host {
  aerie_model_info info;
  Opened() {
    const aerie_runtime_options o = with_threads(1);
    EXPECT_EQ(open(&o, false), AERIE_OK) << err.message;
    AERIE_INIT(info);
    EXPECT_EQ(aerie_model_info_get(model, &info, &err), AERIE_OK);
  }
  // Greedy text after kPrompt, prompt included, with the log-probability of each generated token.
  std::vector<int32_t> greedy(int32_t n, std::vector<float>* logprobs) {
    aerie_sampling sampling;
    AERIE_INIT(sampling);
    EXPECT_EQ(aerie_session_set_sampling(session, &sampling, &err), AERIE_OK);
    EXPECT_EQ(aerie_session_append(session, kPrompt.data(), kPrompt.size(), &err), AERIE_OK);
    std::vector<int32_t> text = kPrompt;
    while (static_cast<int32_t>(logprobs->size()) < n) {
      aerie_step_result r;
      AERIE_INIT(r);
      EXPECT_EQ(aerie_session_step(session, nullptr, &r, &err), AERIE_OK) << err.message;
      for (int32_t i = 0; i < r.n_tokens; ++i) {
        text.push_back(r.tokens[i].id);
        logprobs->push_back(r.tokens[i].logprob);
      }
    }
    return text;
  }
};

TEST(Evaluate, LogitsAreThoseThatTheTextCameFrom) {
  Opened host;
  std::vector<float> logprobs;
  const std::vector<int32_t> text = host.greedy(100, &logprobs);
  const auto vocab = static_cast<size_t>(host.info.vocab_size);
  std::vector<float> logits(text.size() * vocab);
  aerie_evaluate_options o;
  AERIE_INIT(o);
  o.logits = logits.data();
  ASSERT_EQ(aerie_model_evaluate(host.model, text.data(), text.size(), &o, &host.err), AERIE_OK) << host.err.message;
  for (size_t i = kPrompt.size(); i < text.size(); ++i) {
    const float* row = logits.data() + (i - 1) * vocab;
    ASSERT_EQ(std::max_element(row, row + vocab) - row, text[i]) << i;
    double sum = 0;
    for (size_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(row[v]) - row[text[i]]);
    ASSERT_NEAR(-std::log(sum), logprobs[i - kPrompt.size()], 1e-4) << i;
  }
}

TEST(Evaluate, FeaturesOfEveryTapAndOfNoOtherText) {
  Opened host;
  std::vector<int32_t> text;
  for (int32_t i = 0; i < 150; ++i) text.push_back(7 * i % 900 + 3);
  const auto hidden = static_cast<size_t>(host.info.hidden_size);
  const int32_t taps[] = {0, host.info.layers, -1};
  std::vector<float> all(text.size() * 3 * hidden), last(text.size() * hidden), half(all.size());
  aerie_evaluate_options o;
  AERIE_INIT(o);
  o.n_taps = 3;
  o.taps = taps;
  o.features = all.data();
  ASSERT_EQ(aerie_model_evaluate(host.model, text.data(), text.size(), &o, &host.err), AERIE_OK) << host.err.message;
  o.features = half.data();  // a prefix of the text has the same rows, and writes no more
  ASSERT_EQ(aerie_model_evaluate(host.model, text.data(), 71, &o, &host.err), AERIE_OK) << host.err.message;
  EXPECT_TRUE(std::equal(half.begin(), half.begin() + 71 * 3 * static_cast<int64_t>(hidden), all.begin()));
  EXPECT_EQ(half[71 * 3 * hidden], 0.0f);
  o.n_taps = 1;
  o.taps = taps + 2;
  o.features = last.data();
  ASSERT_EQ(aerie_model_evaluate(host.model, text.data(), text.size(), &o, &host.err), AERIE_OK) << host.err.message;
  for (size_t i = 0; i < text.size(); ++i) {
    const float* row = all.data() + i * 3 * hidden;
    ASSERT_TRUE(std::equal(row + 2 * hidden, row + 3 * hidden, last.data() + i * hidden)) << i;
    ASSERT_FALSE(std::equal(row, row + hidden, row + hidden)) << i;
  }
  // The first tap is the embedding: of the token alone, wherever it stands.
  std::vector<int32_t> one = {text[40]};
  std::vector<float> embedding(hidden);
  const int32_t first = 0;
  o.taps = &first;
  o.features = embedding.data();
  ASSERT_EQ(aerie_model_evaluate(host.model, one.data(), 1, &o, &host.err), AERIE_OK);
  EXPECT_TRUE(std::equal(embedding.begin(), embedding.end(), all.data() + 40 * 3 * hidden));
}

TEST(Evaluate, RefusesCancelsAndGivesItsMemoryBack) {
  Opened host;
  std::vector<int32_t> text(1000, 5);
  std::vector<float> features(text.size() * static_cast<size_t>(host.info.hidden_size));
  aerie_evaluate_options o;
  AERIE_INIT(o);
  const int32_t good = -1, bad = host.info.layers + 1;
  o.n_taps = 1;
  o.features = features.data();
  o.taps = &bad;
  EXPECT_EQ(aerie_model_evaluate(host.model, text.data(), 10, &o, &host.err), AERIE_E_INVALID_ARGUMENT);
  o.taps = &good;
  text[3] = host.info.vocab_size;
  EXPECT_EQ(aerie_model_evaluate(host.model, text.data(), 10, &o, &host.err), AERIE_E_INVALID_ARGUMENT);
  text[3] = 5;
  o.progress = [](void* user, uint64_t done, uint64_t total) -> int32_t {
    *static_cast<uint64_t*>(user) = done;
    return done * 2 < total;
  };
  uint64_t done = 0;
  o.progress_user = &done;
  const size_t n = std::min<size_t>(text.size(), static_cast<size_t>(host.info.max_context));
  EXPECT_EQ(aerie_model_evaluate(host.model, text.data(), n, &o, &host.err), AERIE_E_CANCELLED);
  EXPECT_GE(done * 2, n);
  EXPECT_LT(done, n);
  o.progress = nullptr;
  for (int i = 0; i < 20; ++i)  // 2048 positions in all
    ASSERT_EQ(aerie_model_evaluate(host.model, text.data(), n, &o, &host.err), AERIE_OK) << host.err.message;
  text.resize(static_cast<size_t>(host.info.max_context) + 1, 5);
  EXPECT_EQ(aerie_model_evaluate(host.model, text.data(), text.size(), &o, &host.err), AERIE_E_LIMIT);
}

}  // namespace
}  // namespace aerie_capi_test
