// gpt-oss: attention with sinks, every second layer a window, YaRN, and experts with biases whose gates have a limit.
#include <algorithm>

#include "core/import/hf_family.h"
#include "core/import/yarn.h"
#include "kernels/ops.h"

namespace aerie {

namespace {

constexpr DecoderNames kGptOssNames = with_experts(kHuggingFaceNames, &kGptOssExperts, "self_attn.sinks");

// The form that experts are published in; what there is of it the tensors say.
Status check_quantisation(const ConfigReader& j) {
  constexpr const char* key = "quantization_config";
  if (!j.has(key)) return {};
  const nlohmann::json& q = j.at(key);
  if (q.is_object() && q.contains("quant_method") && is_text(q["quant_method"], "mxfp4")) return {};
  const bool said = q.is_object() && q.contains("quant_method");
  return unsupported_key(key, "quant_method: " + (said ? q["quant_method"].dump() : std::string("is missing")) + " (\"mxfp4\" is read)");
}

// transformers' default: the published models' own.
Status read_gpt_oss_rope(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  if (!j.has("rope_scaling") && !j.has("rope_parameters")) {
    rope.scaling = {RopeScaling::Kind::yarn, 32, 1, 32, 4096, yarn_attention_factor(32)};
    rope.whole_waves = false;
    rope.context = std::max(m->config.max_context, yarn_context(rope.scaling));
  }
  return plain_rope(j, m, &rope, 150000);
}

}  // namespace

Status read_gpt_oss(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(check_quantisation(j));
  AERIE_TRY(read_gpt_oss_rope(j, m));
  constexpr const char *usual = "num_experts_per_tok", *older = "experts_per_token";
  if (j.has(usual) && j.has(older) && j.at(usual) != j.at(older))
    return unsupported_key(older, j.at(older).dump() + ", but " + usual + " is " + j.at(usual).dump());
  AERIE_TRY(read_experts(j, 128, 4, true, kGptOssNames, m, j.has(older) && !j.has(usual) ? older : usual));
  Departures& d = m->config.departures;
  d.sinks = d.expert_bias = true;
  float slope = kernels::kLimitedGateSlope;
  AERIE_TRY(j.number("swiglu_alpha", &slope, slope));
  if (slope != kernels::kLimitedGateSlope) return unsupported_key("swiglu_alpha", j.at("swiglu_alpha").dump() + " (1.702 is supported)");
  AERIE_TRY(j.number("swiglu_limit", &d.glu_limit, 7));
  if (!(d.glu_limit > 0)) return error(Code::bad_format, "swiglu_limit: is not above 0");
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [](int32_t i) { return i % 2 == 0; }));
  return read_windows(j, sliding, 128, m);
}

}  // namespace aerie
