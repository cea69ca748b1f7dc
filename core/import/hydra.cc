// Hydra heads as published (zankner/Hydra), grounded: hydra_mlp.{head}.{block}.linear and, in block 0, res_connection, both
// over (head + 2) H columns; hydra_lm_head.{head}, without which heads share the target's. "prefix-mlp" heads (Hydra++) have a
// decoder layer of the target's shape before them, prefix_embeding_layer (sic), and a dropout before every module, which has
// no tensors but counts in the names.
#include "core/import/head.h"

namespace aerie {

namespace {

constexpr const char* kPrefix = "prefix_embeding_layer.";

// The layer that reads the target's features, in the shape of one of the target's: Hydra's config says nothing of it.
LlamaConfig prefix_config(const HeadSource& head, const TensorTaker& take) {
  LlamaConfig c = head.target_config();
  c.layers = 1;
  c.qk_norm = false;
  c.qkv_bias = take.has(kPrefix + std::string("layers.0.self_attn.q_proj.bias"));
  return c;
}

Status import_prefix(LayerImport& import, TensorTaker& take, const LlamaConfig& c) {
  const std::string from = kPrefix;
  AERIE_TRY(import.vector("prefix.attn_norm", from + "layers.0.input_layernorm.weight", c.hidden));
  AERIE_TRY(import.layer(from + "layers.0.", "prefix.", c));
  AERIE_TRY(import.vector("prefix.norm", from + "norm.weight", c.hidden));
  take.ignore_if([&](const std::string& n) {  // an embedding that the layer has and nothing reads
    return n == from + "embed_tokens.weight" || (n.starts_with(from) && n.ends_with(".rotary_emb.inv_freq"));
  });
  return {};
}

}  // namespace

Status import_hydra(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  const LlamaConfig& t = head.target_config();
  const ConfigReader config = head.reader();
  const auto unsupported = [&](const std::string& what) { return error(Code::unsupported, head.config_path + ": " + what); };
  TensorTaker take(*head.source);
  const bool prefix = take.has(kPrefix + std::string("norm.weight"));
  if (config.has("hydra_head_arch") && !is_text(config.at("hydra_head_arch"), prefix ? "prefix-mlp" : "mlp"))
    return unsupported(std::string("hydra_head_arch: mlp heads are read, and prefix-mlp ones; the tensors are of ") +
                       (prefix ? "prefix-mlp" : "mlp"));
  bool grounded = true;
  int32_t offset = 0;
  AERIE_TRY(config.boolean("grounded_heads", &grounded, true).at(head.config_path));
  if (!grounded) return unsupported("grounded_heads: false is not supported");
  AERIE_TRY(config.integer("hidden_state_offset", &offset, 0).at(head.config_path));
  if (offset != 0) return unsupported("hidden_state_offset: only 0 is supported");

  const bool dropout = take.has("hydra_mlp.0.1.res_connection.weight");
  const auto name = [&](int32_t i, int32_t b, const char* what) {
    return "hydra_mlp." + std::to_string(i) + "." + std::to_string(dropout ? 2 * b + 1 : b) + "." + what;
  };
  const auto lm_head = [&](int32_t i) { return "hydra_lm_head." + std::to_string(i) + (dropout ? ".1" : ""); };
  int32_t heads = 0, blocks = 0;
  while (take.has(name(heads, 0, "linear.weight"))) ++heads;
  while (take.has(name(0, blocks, "linear.weight"))) ++blocks;
  if (heads < 1 || heads > 16 || blocks > 4)
    return error(Code::unsupported, head.source->name() + ": " + std::to_string(heads) + " heads of " + std::to_string(blocks) +
                                        " blocks; 1 to 16 heads of 1 to 4 blocks are read");
  const bool own = take.has(lm_head(0) + ".weight");
  LayerImport import(o, sink, take, int64_t{heads} * (2 * blocks + 2 + 2 * own) + 8 * prefix + 1);
  HeadParams params{{"hidden", t.hidden}, {"vocab_size", t.vocab_size}, {"heads", heads}};
  if (prefix) {
    if (t.departs() || t.rope_scaling.kind == RopeScaling::Kind::listed)
      return error(Code::unsupported, head.source->name() + ": a prefix layer, whose shape is the target's, for a target that departs from Llama's");
    const LlamaConfig c = prefix_config(head, take);
    AERIE_TRY(import_prefix(import, take, c));
    params = layer_params(c);  // whose "heads" are the layer's
    params.emplace_back("levels", heads);
  }
  for (int32_t i = 0; i < heads; ++i) {
    const std::string to = "heads." + std::to_string(i) + ".";
    const int64_t wide = int64_t{i + 2} * t.hidden;
    AERIE_TRY(import.weight(to + "res_connection", name(i, 0, "res_connection.weight"), t.hidden, wide));
    AERIE_TRY(import.vector(to + "res_connection.bias", name(i, 0, "res_connection.bias"), t.hidden));
    for (int32_t b = 0; b < blocks; ++b) {
      const std::string block = to + std::to_string(b) + ".linear";
      AERIE_TRY(import.weight(block, name(i, b, "linear.weight"), t.hidden, b == 0 ? wide : t.hidden));
      AERIE_TRY(import.vector(block + ".bias", name(i, b, "linear.bias"), t.hidden));
    }
    if (!own) continue;
    AERIE_TRY(import.weight(to + "lm_head", lm_head(i) + ".weight", t.vocab_size, t.hidden));
    AERIE_TRY(import.vector(to + "lm_head.bias", lm_head(i) + ".bias", t.vocab_size));
  }
  AERIE_TRY(import_own_embedding(head, import, take, sink, "input_embed_fn.weight"));
  AERIE_TRY(take.nothing_left());
  params.emplace_back("blocks", blocks);
  params.emplace_back("own_lm_heads", own);
  finish_head(head, sink, "hydra", params);
  return {};
}

}  // namespace aerie
