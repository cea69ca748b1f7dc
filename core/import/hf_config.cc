#include "core/import/hf_config.h"

#include <algorithm>

#include "core/import/taps.h"
#include "core/import/yarn.h"

namespace aerie {

using nlohmann::json;

namespace {

Status unsupported(const std::string& key, const std::string& what) {
  return error(Code::unsupported, key + ": " + what);
}

// A model that YaRN lengthens reads all of the longer context, whatever max_position_embeddings says.
Status read_yarn(const ConfigReader& r, LlamaConfig* c) {
  RopeScaling& s = c->rope_scaling;
  bool truncate = true;
  AERIE_TRY(r.boolean("truncate", &truncate, true));
  if (!truncate) return unsupported("truncate", "false");
  AERIE_TRY(r.number("beta_slow", &s.low_freq_factor, 1));
  AERIE_TRY(r.number("beta_fast", &s.high_freq_factor, 32));
  AERIE_TRY(r.integer("original_max_position_embeddings", &s.original_context, c->max_context));
  float of_numerator = 0, of_denominator = 0;  // DeepSeek's
  AERIE_TRY(r.number("mscale", &of_numerator, 0));
  AERIE_TRY(r.number("mscale_all_dim", &of_denominator, 0));
  const bool both = of_numerator != 0 && of_denominator != 0;
  const float whole = both ? yarn_attention_factor(s.factor, of_numerator) / yarn_attention_factor(s.factor, of_denominator)
                           : yarn_attention_factor(s.factor);
  AERIE_TRY(r.number("attention_factor", &s.attention_factor, whole));
  c->max_context = std::max(c->max_context, yarn_context(s));
  return {};
}

Status read_scaling(const ConfigReader& r, const std::string& type, LlamaConfig* c) {
  RopeScaling* const s = &c->rope_scaling;
  static const struct {
    const char* name;
    RopeScaling::Kind kind;
  } kinds[] = {{"default", RopeScaling::Kind::none}, {"linear", RopeScaling::Kind::linear}, {"llama3", RopeScaling::Kind::llama3},
               {"yarn", RopeScaling::Kind::yarn}};
  const auto known = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return type == k.name; });
  if (known == std::end(kinds)) return unsupported("type " + type, "not supported (default, linear, llama3 and yarn are)");
  if (known->kind == RopeScaling::Kind::none) return {};  // beside an older key that says more
  s->kind = known->kind;
  if (!r.has("factor")) return error(Code::bad_format, "factor: is missing");
  AERIE_TRY(r.number("factor", &s->factor, 1));
  if (s->kind == RopeScaling::Kind::linear) return {};
  if (s->kind == RopeScaling::Kind::yarn) return read_yarn(r, c);
  for (const char* key : {"low_freq_factor", "high_freq_factor"})
    if (!r.has(key)) return error(Code::bad_format, std::string(key) + ": is missing");
  AERIE_TRY(r.number("low_freq_factor", &s->low_freq_factor, 1));
  AERIE_TRY(r.number("high_freq_factor", &s->high_freq_factor, 4));
  return r.integer("original_max_position_embeddings", &s->original_context);
}

// Before transformers 5 "rope_scaling" beside "rope_theta"; since then "rope_parameters" holding both.
Status read_rope(const ConfigReader& j, LlamaConfig* c) {
  AERIE_TRY(j.number("rope_theta", &c->rope_theta, 10000.0f));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!j.has(key)) continue;
    const json& value = j.at(key);
    if (!value.is_object()) return error(Code::bad_format, std::string(key) + ": is not an object");
    if (std::any_of(value.begin(), value.end(), [](const json& v) { return v.is_object(); }))
      return unsupported(key, "differs from layer to layer");
    const ConfigReader r(value);
    AERIE_TRY(r.number("rope_theta", &c->rope_theta, c->rope_theta).at(key));
    float partial = 1;
    AERIE_TRY(r.number("partial_rotary_factor", &partial, 1).at(key));
    if (partial != 1) return unsupported(key, "partial_rotary_factor");
    std::string type = "default";
    for (const char* name : {"type", "rope_type"}) {  // the newer name wins
      if (!r.has(name)) continue;
      if (!r.at(name).is_string()) return error(Code::bad_format, std::string(key) + ": " + name + ": is not a string");
      type = r.at(name).get<std::string>();
    }
    if (type == "default" && r.has("factor") && !r.has("type") && !r.has("rope_type"))
      return error(Code::bad_format, std::string(key) + ": a factor without a rope_type");
    if (const Status s = read_scaling(r, type, c); !s.ok()) return s.at(key);
  }
  return {};
}

// Models with Llama's tensor names that compute something else with them.
Status refuse_other_models(const ConfigReader& j) {
  if (j.has("model_type")) {
    static const char* const known[] = {"llama", "mistral", "qwen2", "qwen3"};
    const json& type = j.at("model_type");
    if (std::none_of(std::begin(known), std::end(known), [&](const char* k) { return is_text(type, k); }))
      return unsupported("model_type", type.dump() + " (llama, mistral, qwen2 and qwen3 are read)");
  }
  static const struct {
    const char* key;
    double neutral;
  } factors[] = {{"partial_rotary_factor", 1}, {"embedding_multiplier", 1}, {"residual_multiplier", 1},
                 {"logits_scaling", 1},        {"logit_scale", 1},          {"scale_emb", 1}};
  for (const auto& f : factors)
    if (j.has(f.key) && j.at(f.key) != f.neutral) return unsupported(f.key, j.at(f.key).dump());
  for (const char* key : {"attention_multiplier", "attn_logit_softcapping", "final_logit_softcapping",
                          "query_pre_attn_scalar", "clip_qkv", "num_local_experts", "quantization_config"})
    if (j.has(key)) return unsupported(key, "is set");
  return {};
}

Status refuse_sliding_window(const ConfigReader& j, const LlamaConfig& c) {
  if (j.has("layer_types")) {
    const json& types = j.at("layer_types");
    if (std::any_of(types.begin(), types.end(), [](const json& t) { return !is_text(t, "full_attention"); }))
      return unsupported("layer_types", "only full_attention is supported");
  }
  // transformers' MistralConfig has one unless it is said to be null, and no switch; Qwen's have one where it is switched on.
  const bool mistral = j.has("model_type") && is_text(j.at("model_type"), "mistral");
  bool used = true;
  AERIE_TRY(j.boolean("use_sliding_window", &used, true));
  const bool unsaid = !j.contains("sliding_window") && (mistral || (used && j.has("use_sliding_window")));
  int32_t window = 0;
  AERIE_TRY(j.integer("sliding_window", &window, unsaid ? 4096 : 0));
  if ((used || mistral) && window > 0 && window < c.max_context)
    return unsupported("sliding_window", std::to_string(window) + " is shorter than the context");
  return {};
}

}  // namespace

Status read_layer_config(const ConfigReader& j, LlamaConfig* c) {
  AERIE_TRY(j.integer("hidden_size", &c->hidden));
  AERIE_TRY(j.integer("intermediate_size", &c->ffn));
  AERIE_TRY(j.integer("num_attention_heads", &c->heads));
  AERIE_TRY(j.integer("num_key_value_heads", &c->kv_heads, c->heads));
  if (c->heads < 1) return error(Code::bad_format, "num_attention_heads: " + std::to_string(c->heads));
  AERIE_TRY(j.integer("head_dim", &c->head_dim, c->hidden / c->heads));
  AERIE_TRY(j.integer("max_position_embeddings", &c->max_context, 2048));
  AERIE_TRY(j.number("rms_norm_eps", &c->rms_eps, 1e-6f));
  AERIE_TRY(read_rope(j, c));
  if (j.has("hidden_act") && !is_text(j.at("hidden_act"), "silu"))
    return unsupported("hidden_act", j.at("hidden_act").dump() + " (silu is supported)");
  return {};
}

// Our field's name at the beginning of a message -> the file's.
Status in_its_words(const Status& s) {
  static const struct {
    std::string_view ours, theirs;
  } names[] = {{"hidden", "hidden_size"},
               {"layers", "num_hidden_layers"},
               {"heads", "num_attention_heads"},
               {"kv_heads", "num_key_value_heads"},
               {"ffn", "intermediate_size"},
               {"max_context", "max_position_embeddings"},
               {"rms_eps", "rms_norm_eps"},
               {"bos_id", "bos_token_id"},
               {"eos_ids", "eos_token_id"},
               {"tap_layers", "aerie_tap_layers"}};
  const std::string& message = s.message();
  for (const auto& n : names)
    if (message.starts_with(n.ours) && message.compare(n.ours.size(), 2, ": ") == 0)
      return error(s.code(), std::string(n.theirs) + message.substr(n.ours.size()));
  return s;
}

Status read_llama_config(const ConfigReader& j, LlamaConfig* c) {
  AERIE_TRY(refuse_other_models(j));
  AERIE_TRY(read_layer_config(j, c));
  AERIE_TRY(refuse_sliding_window(j, *c));
  AERIE_TRY(j.integer("num_hidden_layers", &c->layers));
  c->qk_norm = j.has("model_type") && is_text(j.at("model_type"), "qwen3");
  if (c->qk_norm && !j.has("head_dim")) c->head_dim = 128;  // Qwen3Config's
  AERIE_TRY(j.integer("vocab_size", &c->vocab_size));
  AERIE_TRY(j.integer("vocab_used", &c->vocab_used, c->vocab_size));
  AERIE_TRY(j.integer("bos_token_id", &c->bos_id, -1));
  AERIE_TRY(j.integers("eos_token_id", &c->eos_ids));
  AERIE_TRY(j.integers("aerie_tap_layers", &c->tap_layers));
  if (!j.has("aerie_tap_layers") && c->layers > 0) c->tap_layers = default_taps(c->layers);
  return {};
}

}  // namespace aerie
