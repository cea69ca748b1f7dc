// A target's forward pass on its own, without a session: what it computes for every token.
#pragma once

#include "tests/support/models.h"

namespace aerie::test {

inline std::vector<int32_t> random_tokens(int32_t n, uint32_t below, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& t : ids) t = static_cast<int32_t>(random() % below);
  return ids;
}

// How far numbers are from others, of the others' size.
inline double apart(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

// Rows (n, cols) of every token of `ids`, prefilled in chunks of `chunk`.
struct Forward {
  std::vector<float> logits, features;
  Forward(const Model& model, const std::vector<int32_t>& ids, int64_t chunk, const std::vector<int32_t>& taps) {
    auto plan = must(Plan::create(model.device(), 1 << 20));
    auto queue = must(model.device()->make_queue());
    KvSequence kv(model.pool(), static_cast<int64_t>(ids.size()), 0);
    must(kv.reserve(static_cast<int64_t>(ids.size())));
    const int64_t v = model.config().vocab_size, h = model.config().hidden, t = static_cast<int64_t>(taps.size());
    logits.resize(ids.size() * static_cast<size_t>(v));
    features.resize(ids.size() * static_cast<size_t>(t * h));
    for (int64_t at = 0; at < static_cast<int64_t>(ids.size()); at += chunk) {
      const int64_t n = std::min(chunk, static_cast<int64_t>(ids.size()) - at);
      plan->clear();
      RowsBuilder rows;
      rows.sequence(kv);
      for (int64_t i = at; i < at + n; ++i) rows.plain(ids[static_cast<size_t>(i)], i);
      const kernels::Tensor f = plan->scratch(n, t * h);
      const kernels::Tensor out = model.logits(*plan, model.forward(*plan, rows.stage(*plan), taps, f));
      plan->add(kernels::Download{logits.data() + at * v, out.data, n * v * 4});
      plan->add(kernels::Download{features.data() + at * t * h, f.data, n * t * h * 4});
      must(plan->submit(*queue));
      EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
      kv.state().advance(at + n);
      must(kv.state().reserve());
    }
  }
};

}  // namespace aerie::test
