#include "core/import/hf_config.h"

#include <algorithm>

#include "core/import/hf_family.h"
#include "core/import/taps.h"

namespace aerie {

namespace {

// Models with Llama's tensor names that compute something else with them.
Status refuse_other_models(const ConfigReader& j, const std::string& family) {
  static const struct {
    const char *key, *of;
    double neutral;
  } factors[] = {{"partial_rotary_factor", "phi3 glm4_moe minimax_m2 qwen3_5 qwen3_next", 1}, {"embedding_multiplier", "granite", 1}, {"residual_multiplier", "granite", 1},
                 {"logits_scaling", "granite", 1},     {"logit_scale", "", 1},                 {"scale_emb", "", 1}};
  // Of families that begin so.
  const auto of = [&](std::string_view families) {
    for (size_t at = 0, end; at < families.size(); at = end + 1) {
      end = std::min(families.find(' ', at), families.size());
      if (family.starts_with(families.substr(at, end - at))) return true;
    }
    return false;
  };
  for (const auto& f : factors)
    if (!of(f.of) && j.has(f.key) && j.at(f.key) != f.neutral) return unsupported_key(f.key, j.at(f.key).dump());
  static const struct {
    const char *key, *of;
  } set[] = {{"attention_multiplier", "granite"}, {"attn_logit_softcapping", "gemma2"}, {"final_logit_softcapping", "gemma2 gemma4"},
             {"query_pre_attn_scalar", "gemma2 gemma3"}, {"clip_qkv", ""}, {"quantization_config", "gpt_oss"}};
  for (const auto& s : set)
    if (j.has(s.key) && !of(s.of)) return unsupported_key(s.key, "is set");
  return {};
}

Status read_sizes(const ConfigReader& j, const FamilyDefaults& defaults, LlamaConfig* c) {
  AERIE_TRY(j.integer("hidden_size", &c->hidden));
  if (defaults.no_ffn) AERIE_TRY(j.integer("intermediate_size", &c->ffn, 1));
  else AERIE_TRY(j.integer("intermediate_size", &c->ffn));
  if (defaults.heads) AERIE_TRY(j.integer("num_attention_heads", &c->heads, defaults.heads));
  else AERIE_TRY(j.integer("num_attention_heads", &c->heads));
  AERIE_TRY(j.integer("num_key_value_heads", &c->kv_heads, defaults.kv_heads ? defaults.kv_heads : c->heads));
  if (c->heads < 1) return error(Code::bad_format, "num_attention_heads: " + std::to_string(c->heads));
  AERIE_TRY(j.integer("head_dim", &c->head_dim, defaults.head_dim ? defaults.head_dim : c->hidden / c->heads));
  AERIE_TRY(j.integer("max_position_embeddings", &c->max_context, defaults.context));
  return j.number("rms_norm_eps", &c->rms_eps, defaults.eps);
}

Status check_activation(const ConfigReader& j, const char* wanted) {
  for (const char* key : {"hidden_act", "hidden_activation"})
    if (j.has(key) && !is_text(j.at(key), wanted)) return unsupported_key(key, j.at(key).dump() + " (" + wanted + " is supported)");
  return {};
}

}  // namespace

Status read_layer_config(const ConfigReader& j, LlamaConfig* c) {
  AERIE_TRY(read_sizes(j, {}, c));
  SourceRope rope;
  AERIE_TRY(read_rope(j, nullptr, c->max_context, 0, &rope));
  if (!rope.plain()) return unsupported_key("rope_scaling", "partial_rotary_factor, or longrope");
  if (!rope.whole_waves) return unsupported_key("rope_scaling", "truncate: false");
  c->rope_theta = rope.theta;
  c->rope_scaling = rope.scaling;
  if (rope.context > 0) c->max_context = rope.context;
  return check_activation(j, "silu");
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
               {"embed_scale", "embedding_multiplier"},
               {"residual_scale", "residual_multiplier"},
               {"attention_scale", "attention_multiplier"},
               {"windows", "sliding_window"},
               {"glu_limit", "swiglu_limit"},
               {"expert_scale", "routed_scaling_factor"},
               {"tap_layers", "aerie_tap_layers"},
               {"wide_head_dim", "global_head_dim"},
               {"wide_kv_heads", "num_global_key_value_heads"},
               {"logit_cap", "final_logit_softcapping"},
               {"score_cap", "attn_logit_softcapping"},
               {"layer_inputs", "hidden_size_per_layer_input"},
               {"delta_layers", "layer_types"},
               {"delta_key_heads", "linear_num_key_heads"},
               {"delta_heads", "linear_num_value_heads"},
               {"delta_key_dim", "linear_key_head_dim"},
               {"delta_value_dim", "linear_value_head_dim"},
               {"delta_taps", "linear_conv_kernel_dim"}};
  const std::string& message = s.message();
  for (const auto& n : names)
    if (message.starts_with(n.ours) && message.compare(n.ours.size(), 2, ": ") == 0)
      return error(s.code(), std::string(n.theirs) + message.substr(n.ours.size()));
  return s;
}

Status read_model_config(const ConfigReader& j, SourceModel* m) {
  LlamaConfig* c = &m->config;
  AERIE_ASSIGN(const Family* const family, family_of(j));
  AERIE_TRY(refuse_other_models(j, family->model_type));
  AERIE_TRY(read_sizes(j, family->defaults, c));
  AERIE_TRY(j.integer("num_hidden_layers", &c->layers));
  if (c->layers < 1 || c->layers > 1024) return error(Code::bad_format, "num_hidden_layers: " + std::to_string(c->layers) + " is not in [1, 1024]");
  if (c->head_dim < 2 || c->head_dim > 1024 || c->head_dim % 2) return error(Code::bad_format, "head_dim: " + std::to_string(c->head_dim));
  m->names = &kHuggingFaceNames;
  AERIE_TRY(family->read(j, m));
  if (c->departures.experts == 0 && j.has("num_local_experts")) return unsupported_key("num_local_experts", "is set");
  AERIE_TRY(check_activation(j, c->departures.gelu ? "gelu_pytorch_tanh" : "silu"));
  AERIE_TRY(settle("max_position_embeddings", m));
  if (family->defaults.vocab) AERIE_TRY(j.integer("vocab_size", &c->vocab_size, family->defaults.vocab));
  else AERIE_TRY(j.integer("vocab_size", &c->vocab_size));
  AERIE_TRY(j.integer("vocab_used", &c->vocab_used, c->vocab_size));
  AERIE_TRY(j.integer("bos_token_id", &c->bos_id, family->defaults.bos));
  m->usual_end = family->defaults.eos;
  AERIE_TRY(j.integers("eos_token_id", &c->eos_ids));
  AERIE_TRY(j.integers("aerie_tap_layers", &c->tap_layers));
  if (!j.has("aerie_tap_layers")) c->tap_layers = default_taps(c->layers);
  return {};
}

}  // namespace aerie
