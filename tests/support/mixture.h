// Mixtures of experts for tests: a dense model whose layers have, in place of their MLP, a router and experts made up here from a seed.
#pragma once

#include "tests/support/remade.h"

namespace aerie::test {

struct Mixture {
  int32_t experts = 8, used = 2;
  bool normed = true;
  kernels::DType dtype = kernels::DType::f32;  // of all matrices but the router
  bool gpt_oss = false;  // with all that its layers have besides: sinks, biases, a limit, windows in every second one
};

// The package of `dense`, a source in f32, with experts: whatever its dtype, the same model with the same fingerprint.
inline std::string with_experts(const std::string& dense, const Mixture& m) {
  return remade(dense, "00000000000000" + std::to_string(10 + m.experts) + std::to_string(10 + m.used) + (m.gpt_oss ? "0" : ""), m.dtype, [&](LlamaConfig* c) {
    c->departures.experts = m.experts;
    c->departures.experts_used = m.used;
    c->departures.norm_experts = m.normed;
    if (!m.gpt_oss) return;
    c->qkv_bias = c->departures.o_bias = c->departures.sinks = c->departures.expert_bias = true;
    c->departures.glu_limit = 0.75f;  // of gates here about a third is larger
    for (int32_t l = 0; l < c->layers; ++l) c->departures.windows.push_back(l % 2 ? 0 : 6);
  });
}

}  // namespace aerie::test
