// Hydra heads as published (zankner/Hydra), "mlp" architecture, grounded: hydra_mlp.{head}.{block}.linear and, in block
// 0, res_connection, both over (head + 2) H columns; hydra_lm_head.{head}, without which heads share the target's.
#include "core/import/head.h"

namespace aerie {

Status import_hydra(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  const LlamaConfig& t = head.target_config();
  const ConfigReader config = head.reader();
  const auto unsupported = [&](const std::string& what) { return error(Code::unsupported, head.config_path + ": " + what); };
  if (config.has("hydra_head_arch") && !is_text(config.at("hydra_head_arch"), "mlp"))
    return unsupported("hydra_head_arch: only mlp heads are read");
  bool grounded = true;
  int32_t offset = 0;
  AERIE_TRY(config.boolean("grounded_heads", &grounded, true).at(head.config_path));
  if (!grounded) return unsupported("grounded_heads: false is not supported");
  AERIE_TRY(config.integer("hidden_state_offset", &offset, 0).at(head.config_path));
  if (offset != 0) return unsupported("hidden_state_offset: only 0 is supported");

  TensorTaker take(*head.source);
  const auto name = [](int32_t i, int32_t b, const char* what) {
    return "hydra_mlp." + std::to_string(i) + "." + std::to_string(b) + "." + what;
  };
  int32_t heads = 0, blocks = 0;
  while (take.has(name(heads, 0, "linear.weight"))) ++heads;
  while (take.has(name(0, blocks, "linear.weight"))) ++blocks;
  if (heads < 1 || heads > 16 || blocks > 4)
    return error(Code::unsupported, head.source->name() + ": " + std::to_string(heads) + " heads of " + std::to_string(blocks) +
                                        " blocks; 1 to 16 heads of 1 to 4 blocks are read");
  const bool own = take.has("hydra_lm_head.0.weight");
  LayerImport import(o, sink, take, int64_t{heads} * (2 * blocks + 2 + 2 * own));
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
    const std::string lm = "hydra_lm_head." + std::to_string(i);
    AERIE_TRY(import.weight(to + "lm_head", lm + ".weight", t.vocab_size, t.hidden));
    AERIE_TRY(import.vector(to + "lm_head.bias", lm + ".bias", t.vocab_size));
  }
  AERIE_TRY(take.nothing_left());
  finish_head(head, sink, "hydra",
              {{"hidden", t.hidden}, {"vocab_size", t.vocab_size}, {"heads", heads}, {"blocks", blocks}, {"own_lm_heads", own}});
  return {};
}

}  // namespace aerie
