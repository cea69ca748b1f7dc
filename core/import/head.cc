#include "core/import/head.h"

#include <algorithm>
#include <cmath>

#include "core/import/taps.h"
#include "core/package/rope_params.h"
#include "core/package/validate.h"
#include "core/platform/file.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie {

Status HeadSource::bad(const char* key, const std::string& what) const {
  return error(Code::bad_format, config_path + ": " + key + ": " + what);
}
Status HeadSource::differs(const std::string& drafter_for, const char* key, int64_t ours, int64_t theirs) const {
  return error(Code::mismatch, config_path + ": " + key + ": " + std::to_string(ours) + ", the target " + drafter_for +
                                   " has " + std::to_string(theirs));
}

Result<std::shared_ptr<const Package>> open_target(const ConvertOptions& o) {
  AERIE_ASSIGN(auto target, Package::open(o.drafter_for));
  if (!target->target()) return error(Code::mismatch, o.drafter_for + ": not a target package");
  return target;
}

Result<HeadSource> open_head(const ConvertOptions& o, bool own_width) {
  HeadSource head;
  head.config_path = platform::join_path(checkpoint_directory(o.source), "config.json");
  AERIE_ASSIGN(head.config, read_json(head.config_path));
  if (head.reader().has("speculators_model_type") && !is_text(head.reader().at("speculators_model_type"), "eagle3"))
    return error(Code::unsupported, head.config_path + ": speculators_model_type: only eagle3 is read");
  AERIE_ASSIGN(head.source, open_safetensors(o.source));
  if (head.source->tensors().count("model.fc.weight")) head.source = without_prefix(std::move(head.source), "model.");
  AERIE_ASSIGN(head.target, open_target(o));
  const LlamaConfig& t = head.target_config();
  int32_t reads = 0, vocab = 0;
  AERIE_TRY(head.reader().integer("hidden_size", &head.hidden, t.hidden).at(head.config_path));
  AERIE_TRY(head.reader().integer("target_hidden_size", &reads, head.hidden).at(head.config_path));
  AERIE_TRY(head.reader().integer("vocab_size", &vocab, t.vocab_size).at(head.config_path));
  if (!own_width && reads != head.hidden)
    return error(Code::unsupported, head.config_path + ": target_hidden_size: a head of another width than its target");
  if (reads != t.hidden)
    return head.differs(o.drafter_for, reads == head.hidden ? "hidden_size" : "target_hidden_size", reads, t.hidden);
  if (vocab != t.vocab_size) return head.differs(o.drafter_for, "vocab_size", vocab, t.vocab_size);
  return head;
}

Result<LlamaConfig> read_head_layers(const ConvertOptions&, const HeadSource& head) {
  LlamaConfig c;  // the head, as a model of one layer
  AERIE_TRY(read_layer_config(head.reader(), &c).at(head.config_path));
  c.vocab_size = head.target_config().vocab_size;
  c.vocab_used = c.vocab_size;
  c.layers = 1;
  AERIE_TRY(in_its_words(package::check_config(c)).at(head.config_path));
  return c;
}

Status read_taps(const HeadSource& head, std::vector<int32_t>* taps) {
  constexpr const char* kKey = "eagle_aux_hidden_state_layer_ids";
  const int32_t layers = head.target_config().layers;
  AERIE_TRY(head.reader().integers(kKey, taps).at(head.config_path));
  const bool after = !taps->empty() && taps->front() == 1;  // named by the layers whose outputs they are
  if (taps->empty()) *taps = default_taps(layers);
  if (taps->size() > 8) return head.bad(kKey, std::to_string(taps->size()) + " taps; at most 8");
  for (int32_t& t : *taps) {
    if (t < 0 || t > layers - (after ? 1 : 0))
      return head.bad(kKey, std::string(after ? "the output" : "the input") + " of layer " + std::to_string(t) + "; the target has " +
                                std::to_string(layers) + " layers");
    if (after) ++t;
  }
  return {};
}

namespace {

// How far apart the same weight may be in the head's file and in the target's package: a step of the package's dtype, whose
// scale is taken from `most`, the largest magnitude of 32 weights; and what f16 cannot hold.
float step(kernels::DType dtype, float value, float most) {
  constexpr float kSmallestHalf = 0x1p-23f;
  switch (dtype) {
    case kernels::DType::int8: return most / 60 + kSmallestHalf;  // a scale for a row, whose largest may be in other weights
    case kernels::DType::int4:
    case kernels::DType::q4_1: return most / 7 + kSmallestHalf;  // whose range, of 14 steps at least, is at most twice that
    case kernels::DType::mxfp4: return std::abs(value) / 4 + most / 12 + kSmallestHalf;
    case kernels::DType::fp8: return std::abs(value) / 8 + most / 256 + kSmallestHalf;
    default: return std::abs(value) / 128 + kSmallestHalf;
  }
}

// Published heads carry a copy of the target's embedding, often in another dtype. A second one in memory would be waste.
Result<bool> is_targets_own(const Package& target, const SourceMatrix& embed, const char* as = "embed") {
  AERIE_ASSIGN(const kernels::Tensor t, target.tensor(as));
  const int64_t cols = embed.cols;
  for (int64_t r = 0; r < embed.rows; ++r) {
    const float* const row = embed.values.data() + r * cols;
    float row_most = 0;
    for (int64_t k = 0; k < cols; ++k) row_most = std::max(row_most, std::abs(row[k]));
    for (int64_t first = 0; first < cols; first += 32) {
      const int64_t end = std::min(first + 32, cols);
      float most = 0;
      for (int64_t k = first; k < end; ++k) most = std::max(most, std::abs(row[k]));
      if (!kernels::is_nibbles(t.dtype)) most = row_most;
      for (int64_t k = first; k < end; ++k)
        if (std::abs(kernels::panel16_at(t, r, k) - row[k]) > step(t.dtype, row[k], most)) return false;
    }
  }
  return true;
}

}  // namespace

Status import_own_embedding(const HeadSource& head, LayerImport& import, TensorTaker& take, Sink& sink, const std::string& name) {
  const LlamaConfig& t = head.target_config();
  const bool own_width = head.hidden != t.hidden;
  if (!own_width && !take.has(name)) return {};
  AERIE_ASSIGN(const SourceMatrix embed, import.take(name, t.vocab_size, head.hidden));
  if (own_width) return sink.weight("embed", embed);
  AERIE_ASSIGN(const bool same, is_targets_own(*head.target, embed));
  if (same) return {};
  sink.warn(head.source->name() + ": tensor " + name + ": differs from the target's embedding and is kept: " +
            std::to_string(embed.values.size()) + " weights more");
  return sink.weight("embed", embed);
}

Status import_own_head(const HeadSource& head, LayerImport& import, TensorTaker& take, Sink& sink, const std::string& name) {
  const LlamaConfig& t = head.target_config();
  if (!take.has(name)) return {};
  AERIE_ASSIGN(const SourceMatrix own, import.take(name, t.vocab_size, t.hidden));
  AERIE_ASSIGN(const bool same, is_targets_own(*head.target, own, t.tied ? "embed" : "lm_head"));
  if (same) return {};
  sink.warn(head.source->name() + ": tensor " + name + ": differs from the target's LM head and is kept: " + std::to_string(own.values.size()) +
            " weights more");
  return sink.weight("lm_head", own);
}

Status expect_targets_embedding(const HeadSource& head, LayerImport& import, const std::string& name) {
  const LlamaConfig& t = head.target_config();
  AERIE_ASSIGN(const SourceMatrix embed, import.take(name, t.vocab_size, t.hidden));
  AERIE_ASSIGN(const bool same, is_targets_own(*head.target, embed));
  return same ? Status() : error(Code::mismatch, head.source->name() + ": tensor " + name + ": is not the embedding of the target, which was made of another model");
}

HeadParams layer_params(const LlamaConfig& c) {
  HeadParams p{{"hidden", c.hidden},
               {"heads", c.heads},
               {"kv_heads", c.kv_heads},
               {"head_dim", c.head_dim},
               {"ffn", c.ffn},
               {"rms_eps", static_cast<double>(c.rms_eps)},
               {"rope_theta", static_cast<double>(c.rope_theta)},
               {"vocab_size", c.vocab_size},
               {"positions", c.max_context}};
  for (const auto& [name, value] : rope_scaling_params(c.rope_scaling)) p.emplace_back(name, value);
  return p;
}

HeadParams tap_params(const std::vector<int32_t>& taps) {
  HeadParams p{{"taps", static_cast<double>(taps.size())}};
  for (size_t i = 0; i < taps.size(); ++i) p.emplace_back("tap." + std::to_string(i), taps[i]);
  return p;
}

void finish_head(const HeadSource& head, Sink& sink, const std::string& plugin, const HeadParams& params) {
  DrafterConfig d;
  d.plugin_id = plugin;
  d.target_fingerprint = head.target->fingerprint();
  for (const auto& [name, value] : params) d.params.push_back({name, value});
  sink.finish_drafter(shown(head.target->name(), 240) + "-" + plugin, d);
}

}  // namespace aerie
