// Layers for multi-token prediction, which lie in the model's own files: a decoder layer as the model's others, behind norms of what it reads and fc.
#include <algorithm>

#include "core/import/head.h"
#include "core/import/hf_config.h"
#include "core/import/mtp.h"
#include "core/package/validate.h"

namespace aerie {

namespace {

bool is_qwen_mtp(const auto& tensor) { return tensor.first.starts_with("mtp."); }

// Qwen's names, or DeepSeek's (GLM-4.5): a layer behind the last.
MtpNames mtp_names(const TensorSource& source, const SourceModel& m) {
  if (std::any_of(source.tensors().begin(), source.tensors().end(), [](const auto& t) { return is_qwen_mtp(t); }))
    return {"mtp.", "mtp.fc.weight", "mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight", "mtp.layers.0.",
            "mtp.embed_tokens.weight", "mtp.lm_head.weight", true};
  const std::string at = m.names->layers + std::to_string(m.config.layers) + ".";
  return {at, at + "eh_proj.weight", at + "enorm.weight", at + "hnorm.weight", at + "shared_head.norm.weight", at, at + "embed_tokens.weight",
          at + "shared_head.head.weight", false};
}

// One layer of the model, which sees everything.
LlamaConfig mtp_decoder(const SourceModel& m, const LlamaConfig& target) {
  LlamaConfig c = m.config;
  c.layers = 1;
  c.vocab_size = c.vocab_used = target.vocab_size;
  c.bos_id = -1;
  c.eos_ids.clear(), c.tap_layers.clear();
  Departures& d = c.departures;
  d.windows.clear(), d.layer_rope.clear(), d.delta_layers.clear();
  d.delta_key_heads = d.delta_heads = d.delta_key_dim = d.delta_value_dim = d.delta_taps = 0;
  d.dense_layers = d.dense_ffn = 0;
  d.embed_scale = 1;
  return c;
}

}  // namespace

bool has_mtp(const TensorSource& source) {
  return std::any_of(source.tensors().begin(), source.tensors().end(), [](const auto& t) { return is_qwen_mtp(t) || t.first.ends_with(".eh_proj.weight"); });
}

Status import_mtp_layers(const ConvertOptions& o, Sink& sink, const HeadSource& head, const TensorSource& source, const MtpNames& n, SourceModel* m) {
  const LlamaConfig& t = head.target_config();
  if (m->config.hidden != t.hidden) return head.differs(o.drafter_for, "hidden_size", m->config.hidden, t.hidden);
  if (m->more_layers > 1)
    return error(Code::unsupported, head.config_path + ": " + std::to_string(m->more_layers) + " layers for multi-token prediction; one is read");
  TensorTaker take(source);
  const std::string embed = m->names->embed + std::string(".weight");
  take.ignore_if([&](const std::string& name) { return !name.starts_with(n.all) && name != embed; });
  LlamaConfig c = mtp_decoder(*m, t);
  const int64_t h = c.hidden;
  LayerImport import(o, sink, take, 12, *m->names);
  if (take.has(embed)) AERIE_TRY(expect_targets_embedding(head, import, embed));  // else nobody knows that it is this model's
  if (!m->frequencies.empty()) {
    m->frequencies.resize(static_cast<size_t>(c.head_dim / 2 + 1));
    AERIE_TRY(sink.vector("rope.frequencies", m->frequencies));
  }
  c.qkv_bias = take.has(n.layer + m->names->q + ".bias");
  AERIE_TRY(in_its_words(package::check_config(c)).at(head.config_path));
  AERIE_TRY(import.weight("fc", n.fc, h, 2 * h));
  AERIE_TRY(import.vector("input_norm", n.input_norm, h));
  AERIE_TRY(import.vector("hidden_norm", n.hidden_norm, h));
  AERIE_TRY(import.vector("layers.0.attn_norm", n.layer + m->names->attn_norm + ".weight", h));
  AERIE_TRY(import.layer(n.layer, "layers.0.", c));
  AERIE_TRY(import.vector("norm", n.norm, h));
  AERIE_TRY(import_own_embedding(head, import, take, sink, n.embed));
  AERIE_TRY(import_own_head(head, import, take, sink, n.lm_head));
  AERIE_TRY(take.nothing_left());
  DrafterConfig d;
  d.plugin_id = "mtp";
  d.target_fingerprint = head.target->fingerprint();
  if (n.norm_output) d.params.push_back({"norm_output", 1});
  d.decoder = c;
  sink.finish_drafter(shown(head.target->name(), 240) + "-mtp", d);
  return {};
}

Status import_mtp(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o));
  AERIE_ASSIGN(const auto file, open_language_model(o.source));
  SourceModel m;
  AERIE_TRY(read_model_config(ConfigReader(head.config.root(), {"text_config"}), &m).at(head.config_path));
  const std::unique_ptr<TensorSource> source = as_ours(*file, m);
  return import_mtp_layers(o, sink, head, *source, mtp_names(*file, m), &m);
}

}  // namespace aerie
