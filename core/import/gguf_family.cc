#include "core/import/gguf_family.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace aerie {

Status plain_gguf_rope(const GgufSource& g, SourceModel* m, SourceRope* rope) {
  AERIE_TRY(read_gguf_rope(g, *m, rope));
  const int32_t head_dim = m->config.head_dim;
  if (!rope->divisors.empty()) return g.unsupported("tensor rope_factors_long.weight: is read of phi3 alone");
  const int32_t rotated = rope->rotated(head_dim);
  if (rotated != head_dim)
    return g.unsupported(g.arch + "rope.dimension_count: " + std::to_string(rotated) + " of a head's " + std::to_string(head_dim));
  use_rope(*rope, m);
  return {};
}

Status partial_gguf_rope(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(read_gguf_rope(g, *m, &rope));
  use_rope(rope, m);
  m->rotated = rope.rotated(m->config.head_dim);
  if (!rope.plain()) list_ropes({&rope}, {}, m);
  return {};
}

Result<std::vector<bool>> read_gguf_pattern(const GgufSource& g, int32_t fallback, const SourceModel& m) {
  const std::string key = g.arch + "attention.sliding_window_pattern";
  const int32_t layers = m.config.layers;
  if (g.file.is_list(key)) {
    AERIE_ASSIGN(auto sliding, g.file.booleans(key));
    if (sliding.size() != static_cast<size_t>(layers)) return g.bad(key + ": not a list of " + std::to_string(layers));
    return sliding;
  }
  int32_t period = 0;
  AERIE_TRY(g.file.integer(key, &period, fallback));
  if (period < 0) return g.bad(key + ": " + std::to_string(period));
  std::vector<bool> sliding;
  for (int32_t i = 0; i < layers; ++i) sliding.push_back(period == 0 || (i + 1) % period != 0);
  return sliding;
}

namespace {

// How many positions layers with a window look at; 0: there are none.
Status read_window(const GgufSource& g, int32_t fallback, int32_t* window) {
  AERIE_TRY(g.file.integer(g.arch + "attention.sliding_window", window, fallback));
  return *window >= 0 ? Status() : g.bad(g.arch + "attention.sliding_window: " + std::to_string(*window));
}

Status llama(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  int32_t window = 0;
  AERIE_TRY(read_window(g, 0, &window));
  if (window > 0 && window < m->config.max_context)
    return g.unsupported(g.arch + "attention.sliding_window: " + std::to_string(window) + " is shorter than the context");
  return {};
}

Status qwen3(const GgufSource& g, SourceModel* m) {
  m->config.qk_norm = true;
  return llama(g, m);
}

// The window is that of transformers; llama.cpp has switched it off, "results might be suboptimal for some models".
Status phi3(const GgufSource& g, SourceModel* m) {
  AERIE_TRY(partial_gguf_rope(g, m));
  int32_t window = 0;
  AERIE_TRY(read_window(g, 0, &window));
  if (window > 0) set_windows(std::vector<bool>(static_cast<size_t>(m->config.layers), true), window, m);
  return {};
}

Status granite(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  bool positions = true;  // what it is called is another thing
  AERIE_TRY(g.file.boolean(g.arch + "rope.scaling.finetuned", &positions, true));
  if (!positions) return g.unsupported(g.arch + "rope.scaling.finetuned: false, no rotary positions");
  Departures& d = m->config.departures;
  AERIE_TRY(g.file.number(g.arch + "logit_scale", &m->logits_scale));
  AERIE_TRY(g.file.number(g.arch + "embedding_scale", &d.embed_scale, 1));
  AERIE_TRY(g.file.number(g.arch + "residual_scale", &d.residual_scale, 1));
  AERIE_TRY(g.file.number(g.arch + "attention.scale", &d.attention_scale, 0));
  for (float* scale : {&d.embed_scale, &d.residual_scale})
    if (*scale == 0) *scale = 1;
  return m->logits_scale > 0 ? Status() : g.bad(g.arch + "logit_scale: is not above 0");
}

Status olmoe(const GgufSource& g, SourceModel* m) {
  m->config.qk_norm = m->config.departures.whole_qk_norm = true;
  return llama(g, m);
}

// Every fourth layer has no positions at all (NoPE), which no key says.
Status smollm3(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  std::vector<bool> turns;
  for (int32_t i = 1; i <= m->config.layers; ++i) turns.push_back(i % 4 != 0);
  list_turning(rope, turns, m);
  return {};
}

// OLMo 3 is one that has windows: without the scaling of the other layers.
Status olmo2(const GgufSource& g, SourceModel* m) {
  SourceRope rope, local;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  m->config.qk_norm = m->config.departures.whole_qk_norm = true;
  m->config.departures.norms = Departures::Norms::after;
  int32_t window = 0;
  AERIE_TRY(read_window(g, 0, &window));
  if (window == 0) return {};
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 4, *m));
  AERIE_TRY(g.file.number(g.arch + "rope.freq_base_swa", &local.theta, rope.theta));
  list_ropes({&rope, &local}, {sliding.begin(), sliding.end()}, m);
  set_windows(sliding, window, m);
  return {};
}

// Layers that see everything have no positions, where others have windows. llama.cpp knows the one size that has them by its layers.
Status exaone4(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  m->config.qk_norm = true;
  m->config.departures.norms = Departures::Norms::after;
  int32_t window = 0;
  AERIE_TRY(read_window(g, m->config.layers == 64 ? 4096 : 0, &window));
  if (window == 0) return {};
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 4, *m));
  list_turning(rope, sliding, m);
  set_windows(sliding, window, m);
  return {};
}

// What Gemma 2 and 3 have in common. Norms' weights are 1 more than in the original already. 27B, which llama.cpp knows by its layers,
// takes another size for a head's; so does its original.
void gemma(int32_t layers_of_27b, LlamaConfig* c) {
  Departures& d = c->departures;
  d.norms = Departures::Norms::both;
  d.gelu = true;
  d.embed_scale = std::sqrt(static_cast<float>(c->hidden));
  d.attention_scale = 1 / std::sqrt(static_cast<float>(c->layers == layers_of_27b ? c->hidden / c->heads : c->head_dim));
}

Status gemma2(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  gemma(46, &m->config);
  Departures& d = m->config.departures;
  for (const auto& [key, cap, usual] : {std::tuple{"attn_logit_softcapping", &d.score_cap, 50.0f}, {"final_logit_softcapping", &d.logit_cap, 30.0f}}) {
    AERIE_TRY(g.file.number(g.arch + key, cap, usual));
    if (!(*cap > 0)) return g.bad(g.arch + key + ": is not above 0");
  }
  int32_t window = 0;
  AERIE_TRY(read_window(g, 4096, &window));
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 2, *m));
  if (window > 0) set_windows(sliding, window, m);
  return {};
}

Status gemma3(const GgufSource& g, SourceModel* m) {
  SourceRope rope, local;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  gemma(62, &m->config);
  m->config.qk_norm = true;
  int32_t window = 0;
  AERIE_TRY(read_window(g, 0, &window));
  if (window == 0) return {};
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 6, *m));
  AERIE_TRY(g.file.number(g.arch + "rope.freq_base_swa", &local.theta, 10000));
  list_ropes({&rope, &local}, {sliding.begin(), sliding.end()}, m);
  set_windows(sliding, window, m);
  return {};
}

using Experts = GgufFamily::Experts;
constexpr GgufMixture kQwen2Mixture{GgufMixture::kSoftmax, GgufMixture::kSoftmax, true, true}, kSharing{GgufMixture::kSoftmax, GgufMixture::kSoftmax, true},
    kGlmMixture{0, GgufMixture::kSigmoid, false}, kScored{0, 0, false};
const GgufFamily kGgufFamilies[] = {{"llama", true, llama, Experts::normed},
                                    {"qwen2", false, llama},
                                    {"qwen3", false, qwen3},
                                    {"qwen3moe", false, qwen3, Experts::normed},
                                    {"phi3", false, phi3},
                                    {"granite", true, granite},
                                    {"granitemoe", true, granite, Experts::normed, &kSharing},
                                    {"smollm3", true, smollm3},
                                    {"olmo2", false, olmo2},
                                    {"olmoe", false, olmoe, Experts::as_they_are},
                                    {"exaone4", false, exaone4},
                                    {"gpt-oss", false, gguf_gpt_oss, Experts::normed},
                                    {"qwen2moe", false, llama, Experts::as_they_are, &kQwen2Mixture},
                                    {"glm4moe", false, gguf_glm4moe, Experts::as_said, &kGlmMixture},
                                    {"dots1", false, qwen3, Experts::as_said, &kScored},
                                    {"ernie4_5-moe", true, llama, Experts::normed, &kSharing},
                                    {"minimax-m2", false, gguf_minimax_m2, Experts::normed, &kScored},
                                    {"lfm2", false, gguf_lfm2, Experts::none, nullptr, false, true},
                                    {"lfm2moe", false, gguf_lfm2, Experts::normed, &kScored, false, true},
                                    {"qwen35", false, gguf_qwen35, Experts::none, nullptr, true},
                                    {"qwen35moe", false, gguf_qwen35, Experts::normed, &kQwen2Mixture},
                                    {"qwen3next", false, gguf_qwen3next, Experts::normed, &kQwen2Mixture},
                                    {"gemma2", false, gemma2},
                                    {"gemma3", false, gemma3},
                                    {"gemma4", false, gguf_gemma4, Experts::normed, nullptr, false, true}};

}  // namespace

Result<const GgufFamily*> gguf_family_of(const GgufFile& file) {
  std::string_view arch;
  AERIE_TRY(file.text("general.architecture", &arch));
  std::string known;
  for (const GgufFamily& f : kGgufFamilies) {
    if (arch == f.architecture) return &f;
    known += (known.empty() ? "" : ", ") + std::string(f.architecture);
  }
  return error(Code::unsupported, file.name() + ": general.architecture: \"" + std::string(arch) + "\" (" + known +
                                      " are read; Mistral and Mixtral are llama, OLMo 3 olmo2)");
}

}  // namespace aerie
