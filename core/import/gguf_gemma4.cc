// Gemma 4's GGUF files. Sizes that differ from layer to layer are lists there, and what they have of wide heads the usual keys say.
#include <algorithm>
#include <cmath>

#include "core/import/gguf_family.h"
#include "core/package/validate.h"

namespace aerie {

namespace {

constexpr DecoderNames kGgufGemmaNames =
    with_values(with_inputs(kGgufNames, &kGgufInputs, "layer_output_scale.weight"), DecoderNames::Values::keys_if_missing);
constexpr DecoderNames kTogether = with_experts(kGgufGemmaNames, &kGgufGemmaExperts), kApart = with_experts(kGgufGemmaNames, &kGgufGemmaExpertsApart);

// Of each layer; a file says one number where all have it.
Result<std::vector<int32_t>> by_layer(const GgufSource& g, const std::string& key, int32_t layers) {
  if (g.file.is_list(g.arch + key)) {
    AERIE_ASSIGN(auto list, g.file.integers(g.arch + key));
    if (list.size() != static_cast<size_t>(layers)) return g.bad(g.arch + key + ": not a list of " + std::to_string(layers));
    return list;
  }
  int32_t all = 0;
  AERIE_TRY(g.file.integer(g.arch + key, &all));
  return std::vector<int32_t>(static_cast<size_t>(layers), all);
}

// The one number that layers of a kind have.
Status only_of(const GgufSource& g, const std::string& key, const std::vector<int32_t>& list, const std::vector<bool>& kinds, bool kind, int32_t* out) {
  bool first = true;
  for (size_t i = 0; i < list.size(); ++i) {
    if (kinds[i] != kind) continue;
    if (!first && list[i] != *out) return g.unsupported(g.arch + key + ": layers of a kind differ");
    *out = list[i];
    first = false;
  }
  return {};
}

Status read_heads(const GgufSource& g, const std::vector<bool>& sliding, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  const int32_t wide = c.head_dim;  // that of attention.key_length
  int32_t dim = wide;
  for (const char* key : {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"}) {
    int32_t said = dim;
    AERIE_TRY(g.file.integer(g.arch + key, &said, dim));
    if (key == std::string_view("attention.key_length_swa")) dim = said;
    else if (said != dim) return g.unsupported(g.arch + key + ": " + std::to_string(said) + " of a head's " + std::to_string(dim));
  }
  if (dim < 2 || dim > 1024 || dim % 2) return g.bad(g.arch + "attention.key_length_swa: " + std::to_string(dim));
  AERIE_ASSIGN(const auto heads, by_layer(g, "attention.head_count_kv", c.layers));
  int32_t wide_heads = 0;
  AERIE_TRY(only_of(g, "attention.head_count_kv", heads, sliding, false, &wide_heads));
  c.kv_heads = wide_heads;
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return {};
  AERIE_TRY(only_of(g, "attention.head_count_kv", heads, sliding, true, &c.kv_heads));
  c.head_dim = dim;
  for (const bool s : sliding) d.wide_layers.push_back(!s);
  d.wide_head_dim = wide;
  d.wide_kv_heads = wide_heads;
  return package::check_wide_heads(c).at(g.file.name());
}

// Pairs that are not rotated have a divisor beyond all waves.
Status read_full_rope(const GgufSource& g, int32_t head_dim, SourceRope* rope) {
  AERIE_TRY(g.file.number(g.arch + "rope.freq_base", &rope->theta, 1000000.0f));
  int32_t rotated = head_dim;
  AERIE_TRY(g.file.integer(g.arch + "rope.dimension_count", &rotated, head_dim));
  if (rotated != head_dim) return g.unsupported(g.arch + "rope.dimension_count: " + std::to_string(rotated) + " of a head's " + std::to_string(head_dim));
  const std::string name = "rope_freqs.weight", type = g.arch + "rope.scaling.type";
  if (g.file.has(type)) return g.unsupported(type + ": is set");
  if (!g.take.has(name)) return {};
  AERIE_ASSIGN(const auto divisors, g.take.take(name, {head_dim / 2}));
  const auto end = std::find_if(divisors.begin(), divisors.end(), [](float v) { return v != 1; });
  if (end == divisors.begin() || std::any_of(end, divisors.end(), [](float v) { return !(v >= 1e20f); }))
    return g.unsupported("tensor " + name + ": other than proportional RoPE's");
  rope->whole_head = true;
  rope->partial = static_cast<float>(end - divisors.begin()) / static_cast<float>(divisors.size());
  return {};
}

Status read_shared(const GgufSource& g, const std::vector<bool>& sliding, SourceModel* m) {
  int32_t shared = 0;
  const std::string key = g.arch + "attention.shared_kv_layers";
  AERIE_TRY(g.file.integer(key, &shared, 0));
  const LlamaConfig& c = m->config;
  if (shared < 0 || shared >= c.layers) return g.bad(key + ": " + std::to_string(shared) + " of " + std::to_string(c.layers));
  if (!share_last_layers(shared, sliding, &m->config)) return g.bad(key + ": " + std::to_string(shared) + ", with no layer of their kind before them");
  AERIE_ASSIGN(const auto ffn, by_layer(g, "feed_forward_length", c.layers));
  std::vector<bool> reads;
  for (int32_t i = 0; i < c.layers; ++i) reads.push_back(c.departures.reads(i));
  int32_t of_readers = 0;
  AERIE_TRY(only_of(g, "feed_forward_length", ffn, reads, false, &m->config.ffn));
  AERIE_TRY(only_of(g, "feed_forward_length", ffn, reads, true, &of_readers));
  if (of_readers != m->config.ffn) m->config.departures.reader_ffn = of_readers;
  return {};
}

}  // namespace

Status gguf_gemma4(const GgufSource& g, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  m->names = &kGgufGemmaNames;
  c.qk_norm = d.v_norm = d.gelu = true;
  d.norms = Departures::Norms::both;
  d.attention_scale = 1;
  d.embed_scale = std::sqrt(static_cast<float>(c.hidden));
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 6, *m));
  SourceRope full, local;
  AERIE_TRY(read_full_rope(g, c.head_dim, &full));
  AERIE_TRY(read_heads(g, sliding, m));
  AERIE_TRY(g.file.number(g.arch + "rope.freq_base_swa", &local.theta, 10000));
  use_rope(full, m);
  if (d.wide_layers.empty()) list_ropes({&full}, {}, m);
  else list_ropes({&full, &local}, {sliding.begin(), sliding.end()}, m);
  AERIE_TRY(read_shared(g, sliding, m));
  AERIE_TRY(g.file.number(g.arch + "final_logit_softcapping", &d.logit_cap, 0));
  AERIE_TRY(g.file.integer(g.arch + "embedding_length_per_layer_input", &d.layer_inputs, 0));
  int32_t window = 0;
  AERIE_TRY(g.file.integer(g.arch + "attention.sliding_window", &window, 0));
  if (window < 0) return g.bad(g.arch + "attention.sliding_window: " + std::to_string(window));
  if (window > 0) set_windows(sliding, window, m);
  if (!g.file.has(g.arch + "expert_count")) return {};
  m->names = g.take.has("blk.0.ffn_gate_up_exps.weight") ? &kTogether : &kApart;
  d.normed_experts = true;
  d.shared_ffn = c.ffn;
  return {};
}

}  // namespace aerie
