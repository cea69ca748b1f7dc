// Families with a mixture of experts that has an expert for every row, layers without experts before the others, or other scores than a
// softmax.
#include "core/import/hf_family.h"

namespace aerie {

namespace {

constexpr ExpertNames sharing(ExpertNames e, const char* choice, const char* gate, const char* up, const char* down, const char* count = "") {
  e.choice = choice;
  e.shared_gate = gate, e.shared_up = up, e.shared_down = down, e.shared_count = count;
  return e;
}

constexpr ExpertNames kQwen2Experts = sharing(kHuggingFaceExperts, "", "mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj",
                                              "mlp.shared_expert.down_proj", "mlp.shared_expert_gate");
constexpr ExpertNames kDeepSeekExperts = sharing(kHuggingFaceExperts, "mlp.gate.e_score_correction_bias", "mlp.shared_experts.gate_proj",
                                                 "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj");
constexpr ExpertNames kErnieExperts = sharing(kHuggingFaceExperts, "mlp.moe_statics.e_score_correction_bias", "mlp.shared_experts.gate_proj",
                                              "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj");
constexpr ExpertNames minimax_experts() {
  ExpertNames e = kMixtralExperts;
  e.other = nullptr;
  e.choice = "block_sparse_moe.e_score_correction_bias";
  return e;
}
constexpr ExpertNames kMiniMaxExperts = minimax_experts();

constexpr DecoderNames kQwen2MoeNames = with_experts(kHuggingFaceNames, &kQwen2Experts);
constexpr DecoderNames kDeepSeekMoeNames = with_experts(kHuggingFaceNames, &kDeepSeekExperts);
constexpr DecoderNames kErnieMoeNames = with_experts(kHuggingFaceNames, &kErnieExperts);
constexpr DecoderNames kMiniMaxNames = with_experts(kHuggingFaceNames, &kMiniMaxExperts);

struct Keys {
  const char *count, *used, *ffn;
};
struct Usual {  // where a file says nothing
  int32_t count, used, ffn;
};

// How many experts there are, how many of them a row takes and how wide one is. What the file calls intermediate_size is the width of
// layers without experts, of which there are `dense`.
Status read_counts(const ConfigReader& j, const Keys& keys, const Usual& usual, int32_t dense, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  AERIE_TRY(j.integer(keys.count, &d.experts, usual.count));
  AERIE_TRY(j.integer(keys.used, &d.experts_used, usual.used));
  if (dense < 0 || dense >= c.layers) return error(Code::bad_format, "layers without experts: " + std::to_string(dense) + " of " + std::to_string(c.layers));
  d.dense_layers = dense;
  d.dense_ffn = dense > 0 ? c.ffn : 0;
  AERIE_TRY(j.integer(keys.ffn, &c.ffn, usual.ffn));
  if (c.ffn < 1) return error(Code::bad_format, std::string(keys.ffn) + ": " + std::to_string(c.ffn));
  return check_experts(keys.count, keys.used, d);
}

// The widths of so many of them together; of none there is none.
Status read_shared(const ConfigReader& j, const char* key, int32_t usual, SourceModel* m) {
  int32_t shared = 0;
  AERIE_TRY(j.integer(key, &shared, usual));
  if (shared < 0 || int64_t{shared} * m->config.ffn > 1 << 20) return error(Code::bad_format, std::string(key) + ": " + std::to_string(shared));
  m->config.departures.shared_ffn = shared * m->config.ffn;
  return {};
}

// `other`: another name that published files have for it.
Status only_sigmoids(const ConfigReader& j, const char* other = "sigmoid") {
  constexpr const char* key = "scoring_func";
  if (!j.has(key) || is_text(j.at(key), "sigmoid") || is_text(j.at(key), other)) return {};
  return unsupported_key(key, j.at(key).dump() + " (sigmoid is supported)");
}

Status read_more_layers(const ConfigReader& j, std::initializer_list<const char*> keys, int32_t usual, SourceModel* m) {
  m->more_layers = usual;
  for (const char* key : keys) {
    AERIE_TRY(j.integer(key, &m->more_layers, m->more_layers));
    if (m->more_layers < 0) return error(Code::bad_format, std::string(key) + ": " + std::to_string(m->more_layers));
  }
  return {};
}

// DeepSeek-V3's experts: sigmoids, chosen with a bias.
Status read_deepseek_experts(const ConfigReader& j, const Usual& usual, int32_t shared, int32_t dense, bool normed, int32_t more, SourceModel* m) {
  int32_t first = dense;
  AERIE_TRY(j.integer("first_k_dense_replace", &first, dense));
  AERIE_TRY(read_counts(j, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"}, usual, first, m));
  AERIE_TRY(read_shared(j, "n_shared_experts", shared, m));
  AERIE_TRY(only(j, "n_group", 1));
  AERIE_TRY(only(j, "topk_group", 1));
  AERIE_TRY(only(j, "moe_layer_freq", 1));
  AERIE_TRY(only_sigmoids(j, "noaux_tc"));
  Departures& d = m->config.departures;
  d.expert_choice = d.sigmoid_experts = true;
  AERIE_TRY(j.boolean("norm_topk_prob", &d.norm_experts, normed));
  AERIE_TRY(j.number("routed_scaling_factor", &d.expert_scale, 1));
  if (!(d.expert_scale > 0)) return error(Code::bad_format, "routed_scaling_factor: is not above 0");
  AERIE_TRY(read_more_layers(j, {"num_nextn_predict_layers", "num_mtp_layers"}, more, m));
  m->names = &kDeepSeekMoeNames;
  return {};
}

}  // namespace

const ExpertNames& qwen2_expert_names() { return kQwen2Experts; }

Status read_qwen2_experts(const ConfigReader& j, int32_t count, int32_t used, int32_t ffn, int32_t shared, SourceModel* m) {
  AERIE_TRY(refuse_dense_layers(j));
  AERIE_TRY(read_counts(j, {"num_experts", "num_experts_per_tok", "moe_intermediate_size"}, {count, used, ffn}, 0, m));
  Departures& d = m->config.departures;
  AERIE_TRY(j.integer("shared_expert_intermediate_size", &d.shared_ffn, shared));
  if (d.shared_ffn < 1) return error(Code::bad_format, "shared_expert_intermediate_size: " + std::to_string(d.shared_ffn));
  d.shared_gate = true;
  return {};
}

Status read_qwen2_moe(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  bool windows = false;
  AERIE_TRY(j.boolean("use_sliding_window", &windows, false));
  if (windows) return unsupported_key("use_sliding_window", "true");
  m->names = &kQwen2MoeNames;
  AERIE_TRY(j.boolean("norm_topk_prob", &m->config.departures.norm_experts, false));
  return read_qwen2_experts(j, 60, 4, 1408, 5632, m);
}

Status read_glm4_moe(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  rope.partial = 0.5f;
  AERIE_TRY(partial_rope(j, m, &rope));
  AERIE_TRY(j.boolean("use_qk_norm", &m->config.qk_norm, false));
  return read_deepseek_experts(j, {128, 8, 1408}, 1, 1, true, 1, m);
}

Status read_dots1(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  m->config.qk_norm = true;
  AERIE_TRY(read_deepseek_experts(j, {0, 0, 1408}, 0, 0, false, 0, m));
  int32_t from = 62;
  AERIE_TRY(j.integer("max_window_layers", &from, from));
  const bool windows = j.has("sliding_window") || !j.contains("sliding_window");
  AERIE_ASSIGN(const auto sliding, sliding_layers(j, *m, [&](int32_t i) { return windows && i >= from; }));
  return read_windows(j, sliding, 4096, m);
}

Status read_ernie4_5_moe(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope, 500000));
  m->neighbours = true;
  m->tied = true;
  int32_t first = 1, last = -1;
  AERIE_TRY(j.integer("moe_layer_start_index", &first, first));
  AERIE_TRY(j.integer("moe_layer_end_index", &last, last));
  if (last >= 0 && last < m->config.layers - 1) return unsupported_key("moe_layer_end_index", std::to_string(last) + ": layers without experts behind it");
  AERIE_TRY(only(j, "moe_layer_interval", 1));
  AERIE_TRY(read_counts(j, {"moe_num_experts", "moe_k", "moe_intermediate_size"}, {64, 6, 1536}, first, m));
  AERIE_TRY(read_shared(j, "moe_num_shared_experts", 2, m));
  m->config.departures.expert_choice = m->config.departures.norm_experts = true;
  AERIE_TRY(read_more_layers(j, {"num_nextn_predict_layers"}, 1, m));
  m->names = &kErnieMoeNames;
  return {};
}

Status read_minimax_m2(const ConfigReader& j, SourceModel* m) {
  LlamaConfig& c = m->config;
  SourceRope rope;
  rope.theta = 5000000;
  int32_t rotated = c.head_dim;
  AERIE_TRY(j.integer("rotary_dim", &rotated, rotated));
  rope.partial = static_cast<float>(rotated) / static_cast<float>(c.head_dim);
  AERIE_TRY(partial_rope(j, m, &rope));
  c.qk_norm = c.departures.whole_qk_norm = true;
  AERIE_TRY(read_counts(j, {"num_local_experts", "num_experts_per_tok", "intermediate_size"}, {256, 8, c.ffn}, 0, m));
  Departures& d = c.departures;
  d.expert_choice = d.sigmoid_experts = d.norm_experts = true;
  AERIE_TRY(only(j, "shared_intermediate_size", 0));
  AERIE_TRY(only_sigmoids(j));
  AERIE_TRY(read_more_layers(j, {"num_mtp_modules"}, 0, m));
  m->names = &kMiniMaxNames;
  return {};
}

}  // namespace aerie
