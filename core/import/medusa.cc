// Medusa heads as published (FasterDecoding/Medusa, medusa_lm_head.safetensors): {head}.{block}.linear.{weight,bias} and
// the head's LM head {head}.{blocks}.weight; without the latter a head shares the target's. Heads and blocks are
// counted in the file: published configs are wrong about them.
#include "core/import/head.h"

namespace aerie {

Status import_medusa(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  const LlamaConfig& t = head.target_config();
  TensorTaker take(*head.source);
  const auto name = [](int32_t i, int32_t b, const char* what) {
    return std::to_string(i) + "." + std::to_string(b) + what;
  };
  int32_t heads = 0, blocks = 0;
  while (take.has(name(heads, 0, ".linear.weight"))) ++heads;
  while (take.has(name(0, blocks, ".linear.weight"))) ++blocks;
  if (heads < 1 || heads > 16 || blocks > 4)
    return error(Code::unsupported, head.source->name() + ": " + std::to_string(heads) + " heads of " + std::to_string(blocks) +
                                        " blocks; 1 to 16 heads of 1 to 4 blocks are read");
  const bool own = take.has(name(0, blocks, ".weight"));
  LayerImport import(o, sink, take, int64_t{heads} * (2 * blocks + own));
  for (int32_t i = 0; i < heads; ++i) {
    const std::string to = "heads." + std::to_string(i) + ".";
    for (int32_t b = 0; b < blocks; ++b) {
      const std::string block = to + std::to_string(b) + ".linear";
      AERIE_TRY(import.weight(block, name(i, b, ".linear.weight"), t.hidden, t.hidden));
      AERIE_TRY(import.vector(block + ".bias", name(i, b, ".linear.bias"), t.hidden));
    }
    if (own) AERIE_TRY(import.weight(to + "lm_head", name(i, blocks, ".weight"), t.vocab_size, t.hidden));
  }
  AERIE_TRY(take.nothing_left());
  finish_head(head, sink, "medusa",
              {{"hidden", t.hidden}, {"vocab_size", t.vocab_size}, {"heads", heads}, {"blocks", blocks}, {"own_lm_heads", own}});
  return {};
}

}  // namespace aerie
