// Families with a mixture of experts in place of each layer's MLP.
#include "core/import/hf_family.h"

namespace aerie {

namespace {

constexpr DecoderNames kExpertNames = with_experts(kHuggingFaceNames, &kHuggingFaceExperts);
constexpr DecoderNames kMixtralNames = with_experts(kHuggingFaceNames, &kMixtralExperts);
constexpr DecoderNames kGraniteMoeNames = with_experts(kHuggingFaceNames, &kGraniteExperts);

// How many experts there are goes by two names: a family's own, and the one that transformers 5 writes.
Result<const char*> count_key(const ConfigReader& j) {
  constexpr const char *own = "num_experts", *common = "num_local_experts";
  if (!j.has(own)) return common;
  if (j.has(common) && j.at(common) != j.at(own)) return unsupported_key(common, j.at(common).dump() + ", but num_experts is " + j.at(own).dump());
  return own;
}

}  // namespace

Status read_experts(const ConfigReader& j, int32_t experts, int32_t used, bool normed, const DecoderNames& names, SourceModel* m,
                    const char* used_key) {
  Departures& d = m->config.departures;
  AERIE_ASSIGN(const char* const key, count_key(j));
  AERIE_TRY(j.integer(key, &d.experts, experts));
  AERIE_TRY(j.integer(used_key, &d.experts_used, used));
  d.norm_experts = normed;
  m->names = &names;
  return check_experts(key, used_key, d);
}

Status only(const ConfigReader& j, const char* key, int32_t value) {
  int32_t said = value;
  AERIE_TRY(j.integer(key, &said, value));
  return said == value ? Status() : unsupported_key(key, std::to_string(said) + " (" + std::to_string(value) + " is supported)");
}

Status refuse_dense_layers(const ConfigReader& j) {
  std::vector<int32_t> without;
  AERIE_TRY(only(j, "decoder_sparse_step", 1));
  AERIE_TRY(j.integers("mlp_only_layers", &without));
  return without.empty() ? Status() : unsupported_key("mlp_only_layers", "layers without experts");
}

Status read_mixtral(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope, 1000000));
  AERIE_TRY(read_experts(j, 8, 2, true, kMixtralNames, m));
  if (!j.has("sliding_window")) return {};
  return read_windows(j, std::vector<bool>(static_cast<size_t>(m->config.layers), true), 0, m);
}

// A layer without experts has a width of its own.
Status read_qwen3_moe(const ConfigReader& j, SourceModel* m) {
  LlamaConfig& c = m->config;
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  c.qk_norm = true;
  bool normed = false, windows = false;
  AERIE_TRY(refuse_dense_layers(j));
  AERIE_TRY(j.integer("moe_intermediate_size", &c.ffn, 768));
  if (c.ffn < 1) return error(Code::bad_format, "moe_intermediate_size: " + std::to_string(c.ffn));
  AERIE_TRY(j.boolean("norm_topk_prob", &normed, false));
  AERIE_TRY(read_experts(j, 128, 8, normed, kExpertNames, m));
  AERIE_TRY(j.boolean("use_sliding_window", &windows, false));
  if (!windows || (j.contains("sliding_window") && !j.has("sliding_window"))) return {};
  return read_windows(j, std::vector<bool>(static_cast<size_t>(c.layers), true), 4096, m);
}

Status read_olmoe(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_rope(j, m, &rope));
  m->config.qk_norm = m->config.departures.whole_qk_norm = true;
  bool normed = false;
  AERIE_TRY(j.boolean("norm_topk_prob", &normed, false));
  return read_experts(j, 64, 8, normed, kExpertNames, m);
}

// A softmax over the experts that are taken: what is called normed here.
Status read_granitemoe(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_granite(j, m));
  return read_experts(j, 8, 2, true, kGraniteMoeNames, m);
}

Status read_granitemoeshared(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_granitemoe(j, m));
  int32_t& shared = m->config.departures.shared_ffn;
  AERIE_TRY(j.integer("shared_intermediate_size", &shared, 0));
  return shared >= 0 ? Status() : error(Code::bad_format, "shared_intermediate_size: " + std::to_string(shared));
}

}  // namespace aerie
