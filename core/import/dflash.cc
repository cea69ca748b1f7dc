// DFlash heads as z-lab publishes them: fc and a norm over the taps, decoder layers of Qwen3's kind without embedding and LM head, a norm.
#include <cmath>

#include "core/import/head.h"
#include "core/import/source_model.h"
#include "core/package/validate.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

constexpr DecoderNames dflash_names() {
  DecoderNames names = kHuggingFaceNames;
  names.layers = "layers.";
  return names;
}
constexpr DecoderNames kNames = dflash_names();
constexpr int32_t kMostRows = 33, kUsualRows = 16;

struct Block {
  int32_t rows = 0, mask = -1;
  std::vector<int32_t> taps;
};

// Layers whose outputs are read: so many, spread from the second to the third last, unless the file says which.
std::vector<int32_t> usual_outputs(int32_t target_layers, int32_t layers) {
  if (layers == 1) return {target_layers / 2};
  std::vector<int32_t> all;
  for (int32_t i = 0; i < layers; ++i) all.push_back(static_cast<int32_t>(std::nearbyint(1 + i * (target_layers - 4.0) / (layers - 1))));
  return all;
}

// Layers look back alone within a window, and both ways without: what newer files may say, and older ones were made by.
Status check_directions(const ConfigReader& j, const LlamaConfig& c) {
  bool windows = false, full = c.departures.windows.empty();
  for (const int32_t w : c.departures.windows) (w > 0 ? windows : full) = true;
  if (!windows && j.has("layer_types") && j.at("layer_types").is_array())
    for (const auto& type : j.at("layer_types"))
      if (is_text(type, "sliding_attention")) return unsupported_key("sliding_window", "is as long as the context, in layers that look back alone");
  for (const char* key : {"causal", "is_causal"}) {
    if (!j.has(key)) continue;
    bool causal = false;
    AERIE_TRY(j.boolean(key, &causal, false));
    if (causal ? full : windows) return unsupported_key(key, causal ? "true, in layers without a window" : "false, in layers with a window");
  }
  return {};
}

// What later kinds do besides.
Status refuse_other_kinds(const std::string& source, const ConfigReader& j) {
  for (const char* key : {"conv_kernel_size", "selector_rank", "markov_rank", "input_embedding_scale", "final_logit_softcapping"})
    if (j.has(key)) return unsupported_key(key, "is set");
  bool halves = true;
  AERIE_TRY(j.boolean("rope_is_neox_style", &halves, true));
  if (!halves) return unsupported_key("rope_is_neox_style", "false");
  for (const char* key : {"output_multiplier", "attention_value_scale"})
    if (j.has(key) && j.at(key) != 1) return unsupported_key(key, j.at(key).dump());
  bool windows = false;
  AERIE_TRY(j.boolean("use_swa", &windows, false));
  if (windows) return unsupported_key("use_swa", "true");
  const std::string own = platform::join_path(checkpoint_directory(source), "mask_embedding.pt");
  if (platform::path_kind(own) == platform::PathKind::file) return error(Code::unsupported, "mask_embedding.pt: an embedding of the mask's own");
  return {};
}

Status read_block(const std::string& source, const HeadSource& head, const LlamaConfig& c, Block* b) {
  const ConfigReader j(head.config.root(), {"dflash_config"});
  const LlamaConfig& t = head.target_config();
  if (t.departures.embed_scale != 1)  // whether heads are trained with it, the code of those that made them does not agree
    return error(Code::unsupported, "the target scales its embedding, which DFlash heads of this kind read");
  AERIE_TRY(refuse_other_kinds(source, j));
  AERIE_TRY(check_directions(j, c));
  int32_t of_target = 0;
  AERIE_TRY(j.integer("num_target_layers", &of_target, t.layers));
  if (of_target != t.layers) return error(Code::mismatch, "num_target_layers: " + std::to_string(of_target) + ", the target has " + std::to_string(t.layers));
  AERIE_TRY(j.integer("block_size", &b->rows, kUsualRows));
  if (j.has("dflash_config") && j.at("dflash_config").is_object())  // which comes first
    AERIE_TRY(ConfigReader(j.at("dflash_config")).integer("block_size", &b->rows, b->rows));
  if (b->rows < 2 || b->rows > kMostRows) return error(Code::bad_format, "block_size: " + std::to_string(b->rows) + " is not in 2.." + std::to_string(kMostRows));
  AERIE_TRY(j.integer("mask_token_id", &b->mask));
  if (b->mask < 0 || b->mask >= t.vocab_size) return error(Code::bad_format, "mask_token_id: " + std::to_string(b->mask) + " is no token of the target");
  AERIE_TRY(j.integers("target_layer_ids", &b->taps));
  if (b->taps.empty()) b->taps = usual_outputs(t.layers, c.layers);
  if (b->taps.size() > 8) return error(Code::bad_format, "target_layer_ids: " + std::to_string(b->taps.size()) + " layers; at most 8");
  for (int32_t& layer : b->taps) {
    if (layer < 0 || layer >= t.layers) return error(Code::bad_format, "target_layer_ids: layer " + std::to_string(layer) + "; the target has " + std::to_string(t.layers));
    ++layer;  // its output is the next one's input
  }
  return {};
}

}  // namespace

Status import_dflash(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  SourceModel m;
  const ConfigReader config(head.config.root());
  if (!config.has("model_type") || !is_text(config.at("model_type"), "qwen3"))
    return error(Code::unsupported, head.config_path + ": model_type: DFlash heads of qwen3's layers are read");
  AERIE_TRY(read_model_config(config, &m).at(head.config_path));
  Block block;
  AERIE_TRY(read_block(o.source, head, m.config, &block).at(head.config_path));
  LlamaConfig c = m.config;
  c.bos_id = -1;
  c.eos_ids.clear(), c.tap_layers.clear();
  c.vocab_used = c.vocab_size;
  c.tied = false;
  TensorTaker take(*head.source);
  const int64_t h = c.hidden;
  LayerImport import(o, sink, take, 9 * c.layers + 3, kNames);
  c.qkv_bias = take.has(kNames.layers + std::string("0.") + kNames.q + ".bias");
  AERIE_TRY(in_its_words(package::check_config(c)).at(head.config_path));
  if (!m.frequencies.empty()) AERIE_TRY(sink.vector("rope.frequencies", m.frequencies, c.departures.rope_rows()));
  AERIE_TRY(import.weight("fc", "fc.weight", h, static_cast<int64_t>(block.taps.size()) * h));
  AERIE_TRY(import.vector("hidden_norm", "hidden_norm.weight", h));
  AERIE_TRY(import_layers(sink, import, take, kNames, &c));
  AERIE_TRY(import.vector("norm", "norm.weight", h));
  AERIE_TRY(take.nothing_left());
  DrafterConfig d;
  d.plugin_id = "dflash";
  d.target_fingerprint = head.target->fingerprint();
  for (const auto& [name, value] : tap_params(block.taps)) d.params.push_back({name, value});
  d.params.push_back({"block", static_cast<double>(block.rows)});
  d.params.push_back({"mask", static_cast<double>(block.mask)});
  d.decoder = c;
  sink.finish_drafter(shown(head.target->name(), 240) + "-dflash", d);
  return {};
}

}  // namespace aerie
