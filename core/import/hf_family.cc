#include "core/import/hf_family.h"

#include <algorithm>
#include <cmath>

#include "kernels/narrow_floats.h"

namespace aerie {

using nlohmann::json;

namespace {

Status plain(const SourceRope& rope) {
  return rope.plain() ? Status() : unsupported_key("rope_parameters", "partial_rotary_factor, or longrope");
}

}  // namespace

Status plain_rope(const ConfigReader& j, SourceModel* m, SourceRope* rope, float theta) {
  rope->theta = theta;
  AERIE_TRY(read_rope(j, nullptr, m->config.max_context, m->wanted, rope));
  use_rope(*rope, m);
  return plain(*rope);
}

Status partial_rope(const ConfigReader& j, SourceModel* m, SourceRope* rope) {
  AERIE_TRY(read_rope(j, nullptr, m->config.max_context, m->wanted, rope));
  use_rope(*rope, m);
  if (rope->whole_head && rope->partial != 1) return unsupported_key("rope_type", "proportional");
  m->rotated = rope->rotated(m->config.head_dim);
  if (m->rotated < 2 || m->rotated % 2) return unsupported_key("partial_rotary_factor", std::to_string(m->rotated) + " of a head's elements");
  if (!rope->divisors.empty() && rope->divisors.size() != static_cast<size_t>(m->rotated / 2))
    return error(Code::bad_format, "rope_scaling: " + std::to_string(rope->divisors.size()) + " factors, a head has " + std::to_string(m->rotated / 2));
  if (!rope->plain()) list_ropes({rope}, {}, m);
  return {};
}

Status read_windows(const ConfigReader& j, const std::vector<bool>& sliding, int32_t fallback, SourceModel* m) {
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return {};
  int32_t window = 0;
  AERIE_TRY(j.integer("sliding_window", &window, j.contains("sliding_window") ? 0 : fallback));
  if (window < 1) return error(Code::bad_format, "sliding_window: " + std::to_string(window) + ", but layers have one");
  set_windows(sliding, window, m);
  return {};
}

float embed_scale_of(const ConfigReader& j, int32_t hidden) {
  const float scale = std::sqrt(static_cast<float>(hidden));
  for (const char* key : {"torch_dtype", "dtype"})
    if (j.has(key) && is_text(j.at(key), "bfloat16")) return kernels::from_bf16(kernels::to_bf16(scale));
  return scale;
}

Status read_granite(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  Departures& d = m->config.departures;
  AERIE_TRY(j.number("embedding_multiplier", &d.embed_scale, 1));
  AERIE_TRY(j.number("residual_multiplier", &d.residual_scale, 1));
  AERIE_TRY(j.number("attention_multiplier", &d.attention_scale, 1));
  AERIE_TRY(j.number("logits_scaling", &m->logits_scale, 1));
  if (!(m->logits_scale > 0)) return error(Code::bad_format, "logits_scaling: is not above 0");
  return {};
}

Result<std::vector<bool>> sliding_layers(const ConfigReader& j, const SourceModel& m, const std::function<bool(int32_t)>& usual) {
  std::vector<bool> sliding;
  for (int32_t i = 0; i < m.config.layers; ++i) sliding.push_back(usual(i));
  if (!j.has("layer_types")) return sliding;
  const json& types = j.at("layer_types");
  if (!types.is_array() || types.size() != sliding.size())
    return error(Code::bad_format, "layer_types: not a list of " + std::to_string(sliding.size()));
  for (size_t i = 0; i < sliding.size(); ++i) {
    sliding[i] = is_text(types[i], "sliding_attention");
    if (!sliding[i] && !is_text(types[i], "full_attention")) return unsupported_key("layer_types", types[i].dump());
  }
  return sliding;
}

namespace {

Status read_llama(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [](int32_t) { return false; }));
  if (std::find(sliding.begin(), sliding.end(), true) != sliding.end()) return unsupported_key("layer_types", "sliding_attention");
  int32_t window = 0;
  AERIE_TRY(j.integer("sliding_window", &window, 0));
  if (window > 0 && window < m->config.max_context) return unsupported_key("sliding_window", std::to_string(window) + " is shorter than the context");
  return {};
}

// transformers' MistralConfig has a window unless it is said to be null, and no switch.
Status read_mistral(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  if (j.contains("sliding_window") && !j.has("sliding_window")) return {};
  return read_windows(j, std::vector<bool>(static_cast<size_t>(m->config.layers), true), 4096, m);
}

Status read_qwen(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  bool used = false;
  int32_t from = 0;
  AERIE_TRY(j.boolean("use_sliding_window", &used, false));
  AERIE_TRY(j.integer("max_window_layers", &from, 28));
  used = used && (j.has("sliding_window") || !j.contains("sliding_window"));
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [&](int32_t i) { return used && i >= from; }));
  if (!used && std::find(sliding.begin(), sliding.end(), true) != sliding.end())
    return unsupported_key("layer_types", "sliding_attention without use_sliding_window");
  return read_windows(j, sliding, 4096, m);
}

Status read_qwen3(const ConfigReader& j, SourceModel* m) {
  m->config.qk_norm = true;
  return read_qwen(j, m);
}

Status read_phi3(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(partial_rope(j, m, &rope));
  if (!j.has("sliding_window")) return {};
  return read_windows(j, std::vector<bool>(static_cast<size_t>(m->config.layers), true), 0, m);
}

// Every fourth layer has no positions at all (NoPE).
Status read_smollm3(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope, 2000000));
  int32_t interval = 4;
  std::vector<int32_t> turned;
  AERIE_TRY(j.integer("no_rope_layer_interval", &interval, 4));
  AERIE_TRY(j.integers("no_rope_layers", &turned));  // 1: it does have positions
  if (interval < 1) return error(Code::bad_format, "no_rope_layer_interval: " + std::to_string(interval));
  const auto layers = static_cast<size_t>(m->config.layers);
  if (!j.has("no_rope_layers"))
    for (int32_t i = 1; i <= m->config.layers; ++i) turned.push_back(i % interval != 0);
  if (turned.size() < layers) return error(Code::bad_format, "no_rope_layers: fewer than layers");
  turned.resize(layers);
  list_turning(rope, {turned.begin(), turned.end()}, m);
  bool used = false;
  AERIE_TRY(j.boolean("use_sliding_window", &used, false));
  used = used && j.has("sliding_window");
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [&](int32_t i) { return used && !turned[static_cast<size_t>(i)]; }));
  return read_windows(j, sliding, 0, m);
}

// Norms are of what a half of a layer adds, and of q and k, `whole` or by heads.
void norms_after(bool whole, SourceModel* m) {
  m->names = &kHuggingFacePostNormNames;
  m->config.qk_norm = true;
  m->config.departures.whole_qk_norm = whole;
  m->config.departures.norms = Departures::Norms::after;
}

Status read_olmo2(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  norms_after(true, m);
  return {};
}

// Windows turn as they like: by another theta (Gemma), without the scaling of the others (OLMo 3).
Status rope_by_type(const ConfigReader& j, float local_theta, const std::vector<bool>& sliding, SourceRope* full, SourceModel* m) {
  SourceRope local;
  const json* said = j.has("rope_parameters") ? &j.at("rope_parameters") : nullptr;
  const bool by_type = said && std::any_of(said->begin(), said->end(), [](const json& v) { return v.is_object(); });
  local.theta = local_theta;
  if (by_type) AERIE_TRY(read_rope(j, "sliding_attention", m->config.max_context, m->wanted, &local));
  AERIE_TRY(read_rope(j, "full_attention", m->config.max_context, m->wanted, full));
  AERIE_TRY(plain(*full));
  AERIE_TRY(plain(local));
  use_rope(*full, m);
  list_ropes({full, &local}, {sliding.begin(), sliding.end()}, m);
  return {};
}

Status read_olmo3(const ConfigReader& j, SourceModel* m) {
  SourceRope full;
  float theta = 500000;
  AERIE_TRY(j.number("rope_theta", &theta, theta));
  full.theta = theta;
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [](int32_t i) { return (i + 1) % 4 != 0; }));
  AERIE_TRY(rope_by_type(j, theta, sliding, &full, m));
  norms_after(true, m);
  return read_windows(j, sliding, 4096, m);
}

// Layers that see everything have no positions, where others have windows.
Status read_exaone4(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  norms_after(false, m);
  if (j.contains("sliding_window") && !j.has("sliding_window")) return {};
  int32_t pattern = 4;
  const bool in_words = j.has("sliding_window_pattern") && j.at("sliding_window_pattern").is_string();
  if (in_words && !j.has("layer_types")) return unsupported_key("sliding_window_pattern", "a text, without layer_types");
  if (!in_words) AERIE_TRY(j.integer("sliding_window_pattern", &pattern, 4));
  if (pattern < 1) return error(Code::bad_format, "sliding_window_pattern: " + std::to_string(pattern));
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [&](int32_t i) { return (i + 1) % pattern != 0; }));
  list_turning(rope, sliding, m);
  return read_windows(j, sliding, 4096, m);
}

// What Gemma 2 and 3 have in common.
Status read_gemma(const ConfigReader& j, SourceModel* m) {
  bool both_ways = false;
  AERIE_TRY(j.boolean("use_bidirectional_attention", &both_ways, false));
  if (both_ways) return unsupported_key("use_bidirectional_attention", "true: no language model");
  Departures& d = m->config.departures;
  m->names = &kHuggingFacePostNormNames;
  m->tied = true;
  m->norm_offset = 1;
  d.norms = Departures::Norms::both;
  d.gelu = true;
  float query = 256;
  AERIE_TRY(j.number("query_pre_attn_scalar", &query, query));
  if (!(query > 0)) return error(Code::bad_format, "query_pre_attn_scalar: is not above 0");
  d.attention_scale = 1 / std::sqrt(query);
  d.embed_scale = embed_scale_of(j, m->config.hidden);
  return {};
}

// Gemma2Config has a cap unless it is said to be null.
Status read_cap(const ConfigReader& j, const char* key, float usual, float* cap) {
  if (j.contains(key) && !j.has(key)) return {};
  AERIE_TRY(j.number(key, cap, usual));
  return *cap > 0 ? Status() : error(Code::bad_format, std::string(key) + ": is not above 0");
}

Status read_gemma2(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_gemma(j, m));
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  AERIE_TRY(read_cap(j, "attn_logit_softcapping", 50, &m->config.departures.score_cap));
  AERIE_TRY(read_cap(j, "final_logit_softcapping", 30, &m->config.departures.logit_cap));
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [](int32_t i) { return i % 2 == 0; }));
  return read_windows(j, sliding, 4096, m);
}

Status read_gemma3(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_gemma(j, m));
  int32_t pattern = 6;
  for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"}) AERIE_TRY(j.integer(key, &pattern, pattern));
  if (pattern < 1) return error(Code::bad_format, "sliding_window_pattern: " + std::to_string(pattern));
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [&](int32_t i) { return (i + 1) % pattern != 0; }));
  SourceRope full;
  full.theta = 1000000;
  float local = 10000;
  AERIE_TRY(j.number("rope_local_base_freq", &local, local));
  AERIE_TRY(rope_by_type(j, local, sliding, &full, m));
  m->config.qk_norm = true;
  return read_windows(j, sliding, 4096, m);
}

const Family kFamilies[] = {
    {"llama", {.eos = 2}, read_llama},
    {"mistral", {.context = 131072, .eos = 2}, read_mistral},
    {"qwen2", {.context = 32768}, read_qwen},
    {"qwen3", {.head_dim = 128, .context = 32768}, read_qwen3},
    {"phi3", {.context = 4096, .eps = 1e-5f}, read_phi3},
    {"granite", {.eos = 2}, read_granite},
    {"smollm3", {.kv_heads = 4, .context = 32768}, read_smollm3},
    {"olmo2", {.eps = 1e-5f}, read_olmo2},
    {"olmo3", {.eps = 1e-5f}, read_olmo3},
    {"exaone4", {.eps = 1e-5f}, read_exaone4},
    {"mixtral", {.kv_heads = 8, .context = 131072, .eps = 1e-5f, .eos = 2}, read_mixtral},
    {"qwen3_moe", {.kv_heads = 4, .context = 32768}, read_qwen3_moe},
    {"olmoe", {.context = 4096, .eps = 1e-5f}, read_olmoe},
    {"granitemoe", {.eos = 2}, read_granitemoe},
    {"granitemoeshared", {.eos = 2}, read_granitemoeshared},
    {"qwen2_moe", {.context = 32768}, read_qwen2_moe},
    {"glm4_moe", {.kv_heads = 8, .context = 131072, .eps = 1e-5f}, read_glm4_moe},
    {"dots1", {}, read_dots1},
    {"ernie4_5_moe", {.kv_heads = 4, .context = 131072, .eps = 1e-5f, .bos = 1, .eos = 2}, read_ernie4_5_moe},
    {"minimax_m2", {.kv_heads = 8, .head_dim = 128, .context = 196608, .bos = 200034, .eos = 200020}, read_minimax_m2},
    {"gpt_oss", {64, 8, 64, 201088, 131072, 1e-5f}, read_gpt_oss},
    {"qwen3_5", {.kv_heads = 4, .head_dim = 256, .context = 32768}, read_qwen3_5},
    {"qwen3_5_text", {.kv_heads = 4, .head_dim = 256, .context = 32768}, read_qwen3_5},
    {"qwen3_5_moe", {.kv_heads = 2, .head_dim = 256, .context = 32768, .no_ffn = true}, read_qwen3_5_moe},
    {"qwen3_5_moe_text", {.kv_heads = 2, .head_dim = 256, .context = 32768, .no_ffn = true}, read_qwen3_5_moe},
    {"qwen3_next", {.kv_heads = 2, .head_dim = 256, .context = 32768, .no_ffn = true}, read_qwen3_next},
    {"lfm2", {.kv_heads = 8, .vocab = 65536, .context = 128000, .eps = 1e-5f, .bos = 1, .eos = 2, .no_ffn = true}, read_lfm2},
    {"lfm2_moe", {.heads = 32, .kv_heads = 8, .vocab = 65536, .context = 128000, .eps = 1e-5f, .bos = 1, .eos = 2, .no_ffn = true}, read_lfm2_moe},
    {"gemma2", {8, 4, 256, 256000, 8192, 1e-6f, 2, 1}, read_gemma2},
    {"gemma3_text", {8, 4, 256, 262208, 131072, 1e-6f, 2}, read_gemma3},
    {"gemma3", {8, 4, 256, 262208, 131072, 1e-6f, 2}, read_gemma3},
    {"gemma4_text", {8, 4, 256, 262144, 131072, 1e-6f, 2, 1}, read_gemma4},
    {"gemma4", {8, 4, 256, 262144, 131072, 1e-6f, 2, 1}, read_gemma4},
};

}  // namespace

Result<const Family*> family_of(const ConfigReader& j) {
  if (!j.has("model_type")) return &kFamilies[0];
  const json& type = j.at("model_type");
  for (const Family& f : kFamilies)
    if (is_text(type, f.model_type)) return &f;
  std::string known;
  for (const Family& f : kFamilies) known += (known.empty() ? "" : ", ") + std::string(f.model_type);
  std::string why;
  for (const char* latent : {"deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "kimi_k2", "longcat_flash"})
    if (is_text(type, latent)) why = "multi-head latent attention is not supported; ";
  return unsupported_key("model_type", type.dump() + " (" + why + known + " are read)");
}

}  // namespace aerie
