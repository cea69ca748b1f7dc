// Medusa heads as published (FasterDecoding/Medusa): {head}.{block}.linear.{weight,bias} and the head's LM head
// {head}.{blocks}.weight; without the latter a head shares the target's. Alone (medusa_lm_head.safetensors), under
// "medusa_head." beside the model they are for (Medusa-1.0), under "medusa_heads." (ModelOpt), or by vLLM's names. Heads and
// blocks are counted in the file: published configs are wrong about them.
#include "core/import/head.h"

namespace aerie {

namespace {

struct Names {
  std::string prefix;
  bool vllm = false;

  std::string block(int32_t i, int32_t b) const {
    return vllm ? "blocks." + std::to_string(i) + ".layers." + std::to_string(b)
                : prefix + std::to_string(i) + "." + std::to_string(b) + ".linear";
  }
  std::string lm_head(int32_t i, int32_t blocks) const {
    return vllm ? "lm_heads." + std::to_string(i) : prefix + std::to_string(i) + "." + std::to_string(blocks);
  }
};

Names find_names(const TensorTaker& take) {
  for (const char* prefix : {"", "medusa_head.", "medusa_heads."})
    if (Names n{prefix}; take.has(n.block(0, 0) + ".weight")) return n;
  return {"", take.has(Names{"", true}.block(0, 0) + ".weight")};
}

}  // namespace

Status import_medusa(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  const LlamaConfig& t = head.target_config();
  TensorTaker take(*head.source);
  const Names name = find_names(take);
  if (!name.prefix.empty())
    take.ignore_if([](const std::string& n) { return n.starts_with("model.") || n == "lm_head.weight"; });
  int32_t heads = 0, blocks = 0;
  while (take.has(name.block(heads, 0) + ".weight")) ++heads;
  while (take.has(name.block(0, blocks) + ".weight")) ++blocks;
  if (heads < 1 || heads > 16 || blocks > 4)
    return error(Code::unsupported, head.source->name() + ": " + std::to_string(heads) + " heads of " + std::to_string(blocks) +
                                        " blocks; 1 to 16 heads of 1 to 4 blocks are read");
  const bool own = take.has(name.lm_head(0, blocks) + ".weight");
  const bool bias = take.has(name.block(0, 0) + ".bias");  // vLLM's medusa_fc_bias
  LayerImport import(o, sink, take, int64_t{heads} * (2 * blocks + own));
  for (int32_t i = 0; i < heads; ++i) {
    const std::string to = "heads." + std::to_string(i) + ".";
    for (int32_t b = 0; b < blocks; ++b) {
      const std::string block = to + std::to_string(b) + ".linear";
      AERIE_TRY(import.weight(block, name.block(i, b) + ".weight", t.hidden, t.hidden));
      if (bias) AERIE_TRY(import.vector(block + ".bias", name.block(i, b) + ".bias", t.hidden));
      else AERIE_TRY(sink.vector(block + ".bias", std::vector<float>(static_cast<size_t>(t.hidden))));
    }
    if (own) AERIE_TRY(import.weight(to + "lm_head", name.lm_head(i, blocks) + ".weight", t.vocab_size, t.hidden));
  }
  AERIE_TRY(take.nothing_left());
  finish_head(head, sink, "medusa",
              {{"hidden", t.hidden}, {"vocab_size", t.vocab_size}, {"heads", heads}, {"blocks", blocks}, {"own_lm_heads", own}});
  return {};
}

}  // namespace aerie
