// Rotary positions as GGUF files describe them, and as llama.cpp reads that.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/import/gguf_family.h"
#include "core/import/yarn.h"

namespace aerie {

namespace {

// Llama 3.1's scaling lies in the file as a divisor for each frequency: the parameters that give them.
Status read_rope_divisors(const GgufSource& g, int32_t head_dim, SourceRope* rope) {
  const std::string name = "rope_freqs.weight";
  if (!g.take.has(name)) return {};
  AERIE_ASSIGN(const auto divisors, g.take.take(name, {head_dim / 2}));
  RopeScaling s;
  s.kind = RopeScaling::Kind::llama3;
  s.factor = divisors.back();  // of the longest wave
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(double{rope->theta}, 2.0 * static_cast<double>(i) / head_dim);
    const double blend = std::clamp((s.original_context / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    const double divisor = 1 / ((1 - blend) / s.factor + blend);
    if (!(std::fabs(divisors[i] - divisor) <= 1e-3 * divisor))
      return g.unsupported("tensor " + name + ": not the scaling of Llama 3 (of " + std::to_string(s.original_context) + " positions)");
  }
  if (s.factor == 1) return {};
  if (rope->scaling.kind != RopeScaling::Kind::none) return g.unsupported("tensor " + name + ": beside another scaling");
  rope->scaling = s;
  return {};
}

// As llama.cpp has it: its own scale of cos and sin beside what the factor asks for.
Status read_yarn(const GgufSource& g, int32_t reads, SourceRope* rope) {
  RopeScaling& s = rope->scaling;
  const std::string at = g.arch + "rope.scaling.";
  float own = 1;
  AERIE_TRY(g.file.number(at + "factor", &s.factor));
  AERIE_TRY(g.file.integer(at + "original_context_length", &s.original_context, reads));
  AERIE_TRY(g.file.number(at + "yarn_beta_slow", &s.low_freq_factor, 1));
  AERIE_TRY(g.file.number(at + "yarn_beta_fast", &s.high_freq_factor, 32));
  AERIE_TRY(g.file.number(at + "attn_factor", &own, 1));
  // The writer puts there what the factor asks for, or what the original has in its place; the reader does not look.
  float asked = yarn_attention_factor(s.factor), said = asked;
  AERIE_TRY(g.file.number(at + "yarn_attn_factor", &said, asked));
  if (std::fabs(said - asked) <= 1e-5f * asked) asked = said;
  else if (said != 1) return g.unsupported(at + "yarn_attn_factor: " + std::to_string(said));
  for (const auto& [key, neutral] : {std::pair<const char*, float>{"yarn_ext_factor", 1}, {"yarn_log_multiplier", 0}}) {
    float value = neutral;
    AERIE_TRY(g.file.number(at + key, &value, neutral));
    if (value != neutral) return g.unsupported(at + key + ": " + std::to_string(value));
  }
  s.kind = RopeScaling::Kind::yarn;
  s.attention_factor = own * asked;
  rope->context = std::max(reads, yarn_context(s));
  return {};
}

Status read_longrope(const GgufSource& g, const SourceModel& m, SourceRope* rope) {
  const std::string at = g.arch + "rope.scaling.";
  const int32_t reads = m.config.max_context, half = rope->rotated(m.config.head_dim) / 2;
  int32_t original = 0;
  AERIE_TRY(g.file.integer(at + "original_context_length", &original, reads));
  if (original < 1) return g.bad(at + "original_context_length: " + std::to_string(original));
  AERIE_TRY(g.file.number(at + "attn_factor", &rope->scaling.attention_factor, 1));
  float factor = 1;
  AERIE_TRY(g.file.number(at + "factor", &factor, 1));
  if (factor != 1) return g.unsupported(at + "factor: " + std::to_string(factor) + ", beside LongRoPE's");
  std::vector<float> lists[2];
  for (int i = 0; i < 2; ++i) {
    const std::string name = i ? "rope_factors_long.weight" : "rope_factors_short.weight";
    AERIE_ASSIGN(lists[i], g.take.take(name, {half}));
    if (std::any_of(lists[i].begin(), lists[i].end(), [](float v) { return !(v > 0) || !(v < 1e6f); }))
      return g.bad("tensor " + name + ": holds something that is no number above 0");
  }
  choose_longrope(std::move(lists[0]), std::move(lists[1]), original, reads, m.wanted, rope);
  return {};
}

}  // namespace

Status read_gguf_rope(const GgufSource& g, const SourceModel& m, SourceRope* rope) {
  const GgufFile& file = g.file;
  const int32_t head_dim = m.config.head_dim;
  AERIE_TRY(file.number(g.arch + "rope.freq_base", &rope->theta, 10000.0f));
  int32_t rotated = head_dim;
  AERIE_TRY(file.integer(g.arch + "rope.dimension_count", &rotated, head_dim));
  if (rotated < 2 || rotated % 2 || rotated > head_dim)
    return g.unsupported(g.arch + "rope.dimension_count: " + std::to_string(rotated) + " of a head's " + std::to_string(head_dim));
  rope->partial = static_cast<float>(rotated) / static_cast<float>(head_dim);
  // As llama.cpp has it: linear unless it says otherwise, by the newer key or the older one.
  std::string_view type = "linear";
  if (file.has(g.arch + "rope.scaling.type")) AERIE_TRY(file.text(g.arch + "rope.scaling.type", &type));
  if (type == "longrope" || g.take.has("rope_factors_long.weight")) return read_longrope(g, m, rope);
  if (type == "yarn") {
    AERIE_TRY(read_yarn(g, m.config.max_context, rope));
  } else {
    if (file.has(g.arch + "rope.scaling.attn_factor")) return g.unsupported(g.arch + "rope.scaling.attn_factor: is set");
    if (type != "none" && type != "linear")
      return g.unsupported(g.arch + "rope.scaling.type: \"" + std::string(type) + "\" (none, linear, yarn and longrope are supported)");
    float factor = 0;
    AERIE_TRY(file.number(g.arch + "rope.scale_linear", &factor, 0));
    AERIE_TRY(file.number(g.arch + "rope.scaling.factor", &factor, factor));
    if (type == "linear" && factor != 0 && factor != 1) {
      rope->scaling.kind = RopeScaling::Kind::linear;
      rope->scaling.factor = factor;
    }
  }
  return read_rope_divisors(g, head_dim, rope);
}

}  // namespace aerie
