// Gemma 4's assistants (transformers' Gemma4Assistant): layers as the target's, all of which read its keys and values.
#include <algorithm>

#include "core/import/head.h"
#include "core/import/source_model.h"
#include "core/package/validate.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

// Scores are of few tokens there, chosen by what they are near to; here of all, which finds no worse ones.
bool is_index(const std::string& name) { return name.starts_with("masked_embedding."); }

// [embedding; feature], of which the model scales the former and a package's table does not.
Status import_pre(const HeadSource& head, LayerImport& import, Sink& sink, int64_t width) {
  const LlamaConfig& t = head.target_config();
  AERIE_ASSIGN(SourceMatrix pre, import.take("pre_projection.weight", width, 2 * int64_t{t.hidden}));
  for (int64_t r = 0; r < width; ++r)
    for (int64_t c = 0; c < t.hidden; ++c) pre.values[static_cast<size_t>(r * pre.cols + c)] *= t.departures.embed_scale;
  return sink.weight("pre", pre);
}

}  // namespace

Status import_gemma_assistant(const ConvertOptions& o, Sink& sink) {
  HeadSource head;
  head.config_path = platform::join_path(checkpoint_directory(o.source), "config.json");
  AERIE_ASSIGN(head.config, read_json(head.config_path));
  AERIE_ASSIGN(head.source, open_safetensors(o.source));
  AERIE_ASSIGN(head.target, open_target(o));
  const LlamaConfig& t = head.target_config();
  const ConfigReader root(head.config.root());
  if (!root.has("text_config") || !root.at("text_config").is_object()) return head.bad("text_config", "is missing");
  int32_t reads = 0;
  AERIE_TRY(root.integer("backbone_hidden_size", &reads).at(head.config_path));
  if (reads != t.hidden) return head.differs(o.drafter_for, "backbone_hidden_size", reads, t.hidden);
  SourceModel m;
  m.reads_target = true;
  AERIE_TRY(read_model_config(ConfigReader(root.at("text_config")), &m).at(head.config_path + ": text_config"));
  if (!m.config.departures.reads_target) return error(Code::unsupported, head.config_path + ": text_config: model_type: only assistants of Gemma 4 are read");
  LlamaConfig c = m.config;
  if (c.vocab_size != t.vocab_size) return head.differs(o.drafter_for, "vocab_size", c.vocab_size, t.vocab_size);
  c.bos_id = -1;
  c.eos_ids.clear(), c.tap_layers.clear();
  c.departures.embed_scale = 1, c.departures.logit_cap = 0;
  for (int32_t& window : c.departures.windows)  // transformers masks what is farther away than the window, and the row itself is not there
    if (window > 0) ++window;
  c.tied = false;
  TensorTaker take(*head.source);
  bool index = false;
  take.ignore_if([&](const std::string& n) { return is_index(n) && (index = true); });
  if (index) sink.warn(o.source + ": its index of tokens (masked_embedding) is left out: the LM head scores all of them");
  const DecoderNames& names = *m.names;
  LayerImport import(o, sink, take, 8 * c.layers + 5, names);
  c.departures.layer_scales = take.has(names.layers + std::string("0.") + names.scale);
  AERIE_TRY(in_its_words(package::check_config(c)).at(head.config_path));
  AERIE_TRY(import_layers(sink, import, take, names, &c));
  AERIE_TRY(sink.vector("rope.frequencies", m.frequencies, c.departures.rope_rows()));
  AERIE_TRY(import_pre(head, import, sink, c.hidden));
  AERIE_TRY(import.weight("post", "post_projection.weight", t.hidden, c.hidden));
  AERIE_TRY(import.vector("norm", names.norm + std::string(".weight"), c.hidden));
  const bool own = take.has("lm_head.weight");
  AERIE_TRY(import.weight("lm_head", own ? "lm_head.weight" : names.embed + std::string(".weight"), t.vocab_size, c.hidden));
  take.ignore_if([&](const std::string& n) { return own && n == names.embed + std::string(".weight"); });
  AERIE_TRY(take.nothing_left());
  DrafterConfig d;
  d.plugin_id = "assistant";
  d.target_fingerprint = head.target->fingerprint();
  d.decoder = c;
  sink.finish_drafter(shown(head.target->name(), 240) + "-assistant", d);
  return {};
}

}  // namespace aerie
