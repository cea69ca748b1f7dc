// Families with recurrent layers (gated delta rule), whose other layers have a gate of what attention gives.
#include <algorithm>

#include "core/import/hf_family.h"

namespace aerie {

namespace {

using nlohmann::json;

constexpr DecoderNames kDenseNames = with_delta(kHuggingFaceNames, &kHuggingFaceDelta);

Status read_layer_types(const ConfigReader& j, SourceModel* m) {
  std::vector<int32_t>& recurrent = m->config.departures.delta_layers;
  int32_t interval = 4;
  AERIE_TRY(j.integer("full_attention_interval", &interval, interval));
  if (interval < 1) return error(Code::bad_format, "full_attention_interval: " + std::to_string(interval));
  for (int32_t i = 1; i <= m->config.layers; ++i) recurrent.push_back(i % interval != 0);
  if (j.has("layer_types")) {
    const json& types = j.at("layer_types");
    if (!types.is_array() || types.size() != recurrent.size())
      return error(Code::bad_format, "layer_types: not a list of " + std::to_string(recurrent.size()));
    for (size_t i = 0; i < recurrent.size(); ++i) {
      recurrent[i] = is_text(types[i], "linear_attention");
      if (!recurrent[i] && !is_text(types[i], "full_attention")) return unsupported_key("layer_types", types[i].dump());
    }
  }
  if (std::find(recurrent.begin(), recurrent.end(), 1) == recurrent.end()) recurrent.clear();  // so that there is one form of it
  return {};
}

Status read_delta(const ConfigReader& j, SourceModel* m) {
  SourceRope rope;
  rope.partial = 0.25f;
  AERIE_TRY(partial_rope(j, m, &rope));
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  c.qk_norm = true;
  m->norm_offset = 1;
  d.output_gate = true;
  bool gate = true;
  AERIE_TRY(j.boolean("attn_output_gate", &gate, true));
  if (!gate) return unsupported_key("attn_output_gate", "false");
  // Of recurrent layers' norm.
  if (const char* key = "output_gate_type"; j.has(key) && !is_text(j.at(key), "swish") && !is_text(j.at(key), "silu")) return unsupported_key(key, j.at(key).dump());
  AERIE_TRY(read_layer_types(j, m));
  if (!d.recurrent()) return {};
  const struct {
    const char* key;
    int32_t* out;
    int32_t usual;
  } sizes[] = {{"linear_num_key_heads", &d.delta_key_heads, 16},  {"linear_num_value_heads", &d.delta_heads, 32},
               {"linear_key_head_dim", &d.delta_key_dim, 128},    {"linear_value_head_dim", &d.delta_value_dim, 128},
               {"linear_conv_kernel_dim", &d.delta_taps, 4}};
  for (const auto& s : sizes) AERIE_TRY(j.integer(s.key, s.out, s.usual));
  return {};
}

// Where it is said nowhere there are some all the same, in published files.
Status read_mtp(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(j.integer("mtp_num_hidden_layers", &m->more_layers, 1));
  return m->more_layers >= 0 ? Status() : error(Code::bad_format, "mtp_num_hidden_layers: " + std::to_string(m->more_layers));
}

const DecoderNames* mixture_names() {
  static const DecoderNames names = with_experts(kDenseNames, &qwen2_expert_names());
  return &names;
}

}  // namespace

Status read_qwen3_5(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_delta(j, m));
  m->names = &kDenseNames;
  return read_mtp(j, m);
}

Status read_qwen3_5_moe(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_delta(j, m));
  bool& normed = m->config.departures.norm_experts;
  AERIE_TRY(j.boolean("norm_topk_prob", &normed, true));
  if (!normed) return unsupported_key("norm_topk_prob", "false (that family's are always normed)");
  AERIE_TRY(read_qwen2_experts(j, 256, 8, 512, 512, m));
  m->names = mixture_names();
  return read_mtp(j, m);
}

Status read_qwen3_next(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(read_delta(j, m));
  AERIE_TRY(j.boolean("norm_topk_prob", &m->config.departures.norm_experts, true));
  AERIE_TRY(read_qwen2_experts(j, 512, 10, 512, 512, m));
  m->names = mixture_names();
  return read_mtp(j, m);
}

}  // namespace aerie
