// Mixtures of experts as GGUF files describe them. Whether what they count adds up to 1 llama.cpp knows by the architecture.
#include "core/import/gguf_family.h"

namespace aerie {

namespace {

// What would make the same tensors mean another model.
Status refuse_other_mixtures(const GgufSource& g, const GgufFamily& family, bool normed) {
  static const struct {
    const char* key;
    int32_t neutral;    // as is 0: not said
    bool more = false;  // of GgufFamily::more
  } keys[] = {{"expert_shared_count", 0, true}, {"expert_shared_feed_forward_length", 0, true}, {"leading_dense_block_count", 0, true},
              {"expert_group_count", 1},        {"expert_gating_func", 1 /* softmax */, true},  {"interleave_moe_layer_step", 1},
              {"moe_every_n_layers", 1},        {"expert_chunk_feed_forward_length", 0}};
  for (const auto& k : keys) {
    if (k.more && family.more) continue;
    int32_t value = 0;
    AERIE_TRY(g.file.integer(g.arch + k.key, &value, 0));
    if (value != 0 && value != k.neutral) return g.unsupported(g.arch + k.key + ": " + std::to_string(value));
  }
  if (family.more) return {};
  float scale = 1;
  AERIE_TRY(g.file.number(g.arch + "expert_weights_scale", &scale, 1));
  if (scale != 1 && scale != 0) return g.unsupported(g.arch + "expert_weights_scale: " + std::to_string(scale));
  bool said = normed;
  AERIE_TRY(g.file.boolean(g.arch + "expert_weights_norm", &said, normed));
  return said == normed ? Status() : g.unsupported(g.arch + "expert_weights_norm: is not what the architecture has");
}

}  // namespace

Status read_gguf_experts(const GgufSource& g, const GgufFamily& family, SourceModel* m) {
  Departures& d = m->config.departures;
  const std::string count = g.arch + "expert_count", used = g.arch + "expert_used_count";
  AERIE_TRY(g.file.integer(count, &d.experts, 0));
  if (d.experts == 0) return {};
  if (family.experts == GgufFamily::Experts::none) return g.unsupported(count + ": " + std::to_string(d.experts));
  if (g.file.tensors().count("blk.0.ffn_gate.0.weight"))
    return g.unsupported("tensor blk.0.ffn_gate.0.weight: experts in tensors of their own, as converters wrote them until 2024");
  AERIE_TRY(g.file.integer(used, &d.experts_used));
  AERIE_TRY(check_experts(count, used, d).at(g.file.name()));
  d.norm_experts = family.experts == GgufFamily::Experts::normed;
  AERIE_TRY(refuse_other_mixtures(g, family, d.norm_experts));
  if (family.more) return read_more_of_gguf_experts(g, family, m);
  int32_t ffn = 0;
  AERIE_TRY(g.file.integer(g.arch + "expert_feed_forward_length", &ffn, 0));
  if (ffn == 0 && family.architecture == std::string_view("qwen3moe")) ffn = m->config.ffn / d.experts_used;  // as llama.cpp has it
  if (ffn != 0) m->config.ffn = ffn;
  return {};
}

}  // namespace aerie
