// EAGLE-1/2 heads as published (SafeAILab/EAGLE): fc, one decoder layer without input norm; nothing after
// it. Embedding and LM head are the target's.
#include "core/import/head.h"

namespace aerie {

Status import_eagle(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  AERIE_ASSIGN(LlamaConfig c, read_head_layers(o, head));
  TensorTaker take(*head.source);
  LayerImport import(o, sink, take, 8);
  const int64_t h = c.hidden;
  bool bias = true;  // the tensor decides; absent, the config must say so
  AERIE_TRY(head.reader().boolean("bias", &bias, true).at(head.config_path));
  if (bias && !take.has("fc.bias"))
    return error(Code::bad_format, head.source->name() + ": tensor fc.bias: missing (" + head.config_path + ": bias is not false)");
  bias = take.has("fc.bias");
  AERIE_TRY(import.weight("fc", "fc.weight", h, 2 * h));
  if (bias) AERIE_TRY(import.vector("fc.bias", "fc.bias", h));
  c.qkv_bias = take.has("layers.0.self_attn.q_proj.bias");
  AERIE_TRY(import.layer("layers.0.", "layers.0.", c));
  AERIE_TRY(import_own_embedding(head, import, take, sink));
  take.ignore_if([](const std::string& n) { return n.ends_with(".rotary_emb.inv_freq"); });
  AERIE_TRY(take.nothing_left());
  finish_head(head, sink, "eagle", layer_params(c));
  return {};
}

}  // namespace aerie
