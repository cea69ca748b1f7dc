// Gemma 4's model of language: heads of two widths, layers that read the keys and values of others, inputs of each layer's own.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/import/hf_family.h"
#include "core/package/validate.h"

namespace aerie {

using nlohmann::json;

namespace {

constexpr DecoderNames kGemmaNames = with_experts(with_inputs(kHuggingFacePostNormNames, &kHuggingFaceInputs, "layer_scalar"), &kGemmaExperts);
constexpr DecoderNames kGemmaKeysNames = with_values(kGemmaNames, DecoderNames::Values::keys);

// Heads of layers that see everything. transformers names them for each such layer, files before that for all.
Status read_wide(const ConfigReader& j, const std::vector<bool>& sliding, bool keys_are_values, SourceModel* m) {
  LlamaConfig& c = m->config;
  int32_t dim = 512, heads = c.kv_heads;
  AERIE_TRY(j.integer("global_head_dim", &dim, dim));
  if (keys_are_values) AERIE_TRY(j.integer("num_global_key_value_heads", &heads, heads));
  if (j.has("per_layer_config")) {
    const json& said = j.at("per_layer_config");
    if (!said.is_object()) return error(Code::bad_format, "per_layer_config: is not an object");
    std::set<std::pair<int32_t, int32_t>> kinds;
    for (size_t i = 0; i < sliding.size(); ++i) {
      const auto own = said.find(std::to_string(i));
      if ((own != said.end()) == sliding[i]) return unsupported_key("per_layer_config", "of other layers than those with full attention");
      if (sliding[i]) continue;
      if (!own->is_object()) return error(Code::bad_format, "per_layer_config: " + std::to_string(i) + ": is not an object");
      for (const auto& [key, value] : own->items())
        if (key != "head_dim" && key != "num_key_value_heads") return unsupported_key("per_layer_config", std::to_string(i) + ": " + key);
      const ConfigReader reader(*own);
      AERIE_TRY(reader.integer("head_dim", &dim, c.head_dim).at("per_layer_config"));
      AERIE_TRY(reader.integer("num_key_value_heads", &heads, c.kv_heads).at("per_layer_config"));
      kinds.insert({dim, heads});
    }
    if (kinds.size() > 1) return unsupported_key("per_layer_config", "heads of more than two kinds");
  }
  Departures& d = c.departures;
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) {  // all are wide: that is what heads are
    c.head_dim = dim;
    c.kv_heads = heads;
    return dim >= 2 && dim <= 1024 && dim % 2 == 0 ? Status() : error(Code::bad_format, "global_head_dim: " + std::to_string(dim));
  }
  for (const bool s : sliding) d.wide_layers.push_back(!s);
  d.wide_head_dim = dim;
  d.wide_kv_heads = heads;
  return in_its_words(package::check_wide_heads(c));
}

// The last layers read what the last one of their kind before them has.
Status read_shared(const ConfigReader& j, const std::vector<bool>& sliding, SourceModel* m) {
  LlamaConfig& c = m->config;
  int32_t shared = 0;
  bool wider = false;
  AERIE_TRY(j.integer("num_kv_shared_layers", &shared, 0));
  AERIE_TRY(j.boolean("use_double_wide_mlp", &wider, false));
  if (c.ffn < 1 || c.ffn > 1 << 20) return error(Code::bad_format, "intermediate_size: " + std::to_string(c.ffn));
  if (m->reads_target) {
    c.departures.reads_target = true;
    if (wider) c.ffn *= 2;
    return shared == 0 || shared == c.layers ? Status() : unsupported_key("num_kv_shared_layers", std::to_string(shared) + " of an assistant's " + std::to_string(c.layers));
  }
  if (shared < 0 || shared >= c.layers) return error(Code::bad_format, "num_kv_shared_layers: " + std::to_string(shared) + " of " + std::to_string(c.layers));
  if (!share_last_layers(shared, sliding, &c))
    return error(Code::bad_format, "num_kv_shared_layers: " + std::to_string(shared) + ", with no layer of their kind before them");
  if (shared == 0) return {};
  if (wider) c.departures.reader_ffn = 2 * c.ffn;
  return {};
}

Status refuse_others(const ConfigReader& j) {
  if (j.has("use_bidirectional_attention") && is_text(j.at("use_bidirectional_attention"), "all"))
    return unsupported_key("use_bidirectional_attention", "\"all\": no language model");
  bool biased = false;
  AERIE_TRY(j.boolean("attention_bias", &biased, false));
  return biased ? unsupported_key("attention_bias", "true") : Status();
}

// A mixture beside the MLP of each layer, which is then the expert that every row takes.
Status read_mixture(const ConfigReader& j, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  bool on = false;
  AERIE_TRY(j.boolean("enable_moe_block", &on, false));
  if (!on) return {};
  AERIE_TRY(j.integer("num_experts", &d.experts));
  AERIE_TRY(j.integer("top_k_experts", &d.experts_used));
  AERIE_TRY(check_experts("num_experts", "top_k_experts", d));
  d.norm_experts = d.normed_experts = true;
  d.shared_ffn = c.ffn;
  return j.integer("moe_intermediate_size", &c.ffn);
}

}  // namespace

Status read_gemma4(const ConfigReader& j, SourceModel* m) {
  AERIE_TRY(refuse_others(j));
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  m->names = &kGemmaNames;
  m->tied = true;
  c.qk_norm = d.v_norm = d.gelu = true;
  d.norms = Departures::Norms::both;
  d.attention_scale = 1;
  d.embed_scale = embed_scale_of(j, c.hidden);
  AERIE_ASSIGN(auto sliding, sliding_layers(j, *m, [](int32_t i) { return (i + 1) % 6 != 0; }));
  sliding.back() = false;  // whatever the file says, as in transformers
  bool keys_are_values = false;
  AERIE_TRY(j.boolean("attention_k_eq_v", &keys_are_values, false));
  if (keys_are_values) m->names = &kGemmaKeysNames;
  AERIE_TRY(read_wide(j, sliding, keys_are_values, m));
  SourceRope full, local;
  full.theta = 1000000;
  if (!j.has("rope_parameters")) full.partial = 0.25f, full.whole_head = true;
  AERIE_TRY(read_rope(j, "full_attention", c.max_context, m->wanted, &full));
  AERIE_TRY(read_rope(j, "sliding_attention", c.max_context, m->wanted, &local));
  if ((full.partial != 1 && !full.whole_head) || !full.divisors.empty() || !local.plain())
    return unsupported_key("rope_parameters", "other than proportional for full attention and default for windows");
  use_rope(full, m);
  if (d.wide_layers.empty()) list_ropes({&full}, {}, m);
  else list_ropes({&full, &local}, {sliding.begin(), sliding.end()}, m);
  AERIE_TRY(read_shared(j, sliding, m));
  AERIE_TRY(read_mixture(j, m));
  AERIE_TRY(j.number("final_logit_softcapping", &d.logit_cap, 0));
  AERIE_TRY(j.integer("hidden_size_per_layer_input", &d.layer_inputs, j.contains("hidden_size_per_layer_input") ? 0 : 256));
  int32_t vocabulary = 0, of_inputs = 0;
  AERIE_TRY(j.integer("vocab_size", &vocabulary, 262144));
  AERIE_TRY(j.integer("vocab_size_per_layer_input", &of_inputs, 262144));
  if (d.layer_inputs > 0 && of_inputs != vocabulary)
    return unsupported_key("vocab_size_per_layer_input", std::to_string(of_inputs) + ", the vocabulary has " + std::to_string(vocabulary));
  return read_windows(j, sliding, 512, m);
}

}  // namespace aerie
