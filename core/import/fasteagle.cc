// FastEagle heads, our format (no published checkpoint exists): fc over the taps, fc_in over [feature; embedding], N
// complete decoder layers, nothing after them.
#include "core/import/head.h"

namespace aerie {

Status import_fasteagle(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  AERIE_ASSIGN(const LlamaConfig c, read_head_layers(o, head));
  const ConfigReader config = head.reader();
  int32_t levels = 0, top_k = 0;
  AERIE_TRY(config.integer("num_hidden_layers", &levels).at(head.config_path));
  AERIE_TRY(config.integer("draft_top_k", &top_k, 10).at(head.config_path));
  if (levels < 1 || levels > 32) return head.bad("num_hidden_layers", std::to_string(levels) + " is not in 1..32");
  if (top_k < 1 || top_k > 128) return head.bad("draft_top_k", std::to_string(top_k) + " is not in 1..128");
  std::vector<int32_t> taps;
  AERIE_TRY(read_taps(head, &taps));

  TensorTaker take(*head.source);
  LayerImport import(o, sink, take, 2 + int64_t{levels} * 6);
  const int64_t h = c.hidden;
  AERIE_TRY(import.weight("fc", "fc.weight", h, static_cast<int64_t>(taps.size()) * h));
  AERIE_TRY(import.weight("fc_in", "fc_in.weight", h, 2 * h));
  for (int32_t i = 0; i < levels; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    AERIE_TRY(import.vector(at + "attn_norm", at + "input_layernorm.weight", h));
    AERIE_TRY(import.layer(at, at, c));
  }
  AERIE_TRY(take.nothing_left());

  HeadParams params = layer_params(c), more = tap_params(taps);
  params.insert(params.end(), more.begin(), more.end());
  params.emplace_back("levels", levels);
  params.emplace_back("top_k", top_k);
  finish_head(head, sink, "fasteagle", params);
  return {};
}

}  // namespace aerie
