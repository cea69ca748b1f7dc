// EAGLE-3 heads as published (SafeAILab/EAGLE; speculators): fc over the taps, a decoder layer that reads [embedding; feature],
// in some heads plain ones after it, a norm and an LM head over the draft vocabulary. d2t holds offsets: draft id i is target id
// i + d2t[i].
// EAGLE-3.1's norms are speculators' norm_before_fc, fc_norm, norm_before_residual and norm_output.
#include <algorithm>
#include <cstdint>

#include "core/import/head.h"

namespace aerie {

namespace {

// Draft id -> target id, from d2t; t2d, where given, must name the same ids.
Status read_vocabulary(const HeadSource& head, TensorTaker& take, int64_t draft, std::vector<int32_t>* map) {
  const int64_t vocab = head.target_config().vocab_size;
  const auto bad = [&](const std::string& what) {
    return error(Code::bad_format, head.source->name() + ": tensor " + what);
  };
  AERIE_ASSIGN(const auto offsets, take.take_integers("d2t", {draft}));
  std::vector<bool> named(static_cast<size_t>(vocab), false);
  map->clear();
  for (int64_t i = 0; i < draft; ++i) {
    constexpr int64_t kFar = int64_t{1} << 40;  // beyond any vocabulary, and no sum overflows
    const int64_t id = i + std::clamp(offsets[static_cast<size_t>(i)], -kFar, kFar);
    if (id < 0 || id >= vocab)
      return bad("d2t: entry " + std::to_string(i) + " means token " + std::to_string(id) + ", the target has " + std::to_string(vocab));
    if (named[static_cast<size_t>(id)]) return bad("d2t: token " + std::to_string(id) + " is named twice");
    named[static_cast<size_t>(id)] = true;
    map->push_back(static_cast<int32_t>(id));
  }
  if (!take.has("t2d")) return {};
  AERIE_ASSIGN(const auto used, take.take_integers("t2d", {vocab}));
  for (int64_t t = 0; t < vocab; ++t)
    if ((used[static_cast<size_t>(t)] != 0) != named[static_cast<size_t>(t)])
      return bad("t2d: token " + std::to_string(t) + ": d2t says otherwise");
  return {};
}

struct Norms {
  bool before_fc = false;        // of all taps at once
  bool taps = false;             // of each by itself
  bool before_residual = false;  // the layer's residual is the normed feature
  bool output = false;           // drafted rows read the normed output
};

// Those with tensors are there if these are, too.
Result<Norms> read_norms(const HeadSource& head, const TensorTaker& take) {
  Norms n;
  for (const auto& [key, set] : {std::pair<const char*, bool*>{"norm_before_fc", &n.before_fc}, {"fc_norm", &n.taps},
                                 {"norm_before_residual", &n.before_residual}, {"norm_output", &n.output}})
    AERIE_TRY(head.reader().boolean(key, set, false).at(head.config_path));
  n.before_fc = n.before_fc || take.has("input_norm.weight");
  n.taps = n.taps || take.has("fc_norm.0.weight");
  if (n.before_fc && n.taps) return head.bad("fc_norm", "beside norm_before_fc");
  return n;
}

bool holds(const TensorSource& source, const std::string& prefix) {
  const auto at = source.tensors().lower_bound(prefix);
  return at != source.tensors().end() && at->first.starts_with(prefix);
}

std::string deeper(int32_t layer) { return "layers." + std::to_string(layer) + "."; }

}  // namespace

Status import_eagle3(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const HeadSource head, open_head(o, true));
  AERIE_ASSIGN(LlamaConfig c, read_head_layers(o, head));
  const ConfigReader config = head.reader();
  int32_t draft = c.vocab_size;
  if (const auto d2t = head.source->tensors().find("d2t"); d2t != head.source->tensors().end() && d2t->second.shape.size() == 1)
    draft = static_cast<int32_t>(std::min<int64_t>(d2t->second.shape[0], INT32_MAX));
  AERIE_TRY(config.integer("draft_vocab_size", &draft, draft).at(head.config_path));
  if (draft < 1 || draft > c.vocab_size)
    return head.bad("draft_vocab_size", std::to_string(draft) + " is not in 1.." + std::to_string(c.vocab_size));
  std::vector<int32_t> taps;
  AERIE_TRY(read_taps(head, &taps));

  TensorTaker take(*head.source);
  int32_t layers = 1;  // num_hidden_layers is the target's in some files
  while (holds(*head.source, deeper(layers))) ++layers;
  LayerImport import(o, sink, take, 12 + int64_t{layers - 1} * 6);
  AERIE_ASSIGN(const Norms norms, read_norms(head, take));
  if (norms.output)
    sink.warn(head.config_path + ": norm_output: drafted rows read the normed output, as in vLLM and SGLang; where SpecForge wrote it "
                                 "before that (2026-09) set it to false");
  const int64_t h = c.hidden, tap_width = head.target_config().hidden, n_taps = static_cast<int64_t>(taps.size());
  const std::string layer = holds(*head.source, "midlayer.") ? "midlayer." : "layers.0.";
  AERIE_TRY(import.weight("fc", "fc.weight", h, n_taps * tap_width));
  if (norms.before_fc) AERIE_TRY(import.vector("taps_norm", "input_norm.weight", n_taps * tap_width));
  for (int64_t i = 0; norms.taps && i < n_taps; ++i)
    AERIE_TRY(import.vector("tap_norm." + std::to_string(i), "fc_norm." + std::to_string(i) + ".weight", tap_width));
  AERIE_TRY(import.vector("input_norm", layer + "input_layernorm.weight", h));
  AERIE_TRY(import.vector("hidden_norm", layer + "hidden_norm.weight", h));
  c.qkv_bias = take.has(layer + "self_attn.q_proj.bias");
  AERIE_TRY(import.layer(layer, "layers.0.", c, 2 * h));
  for (int32_t i = 1; i < layers; ++i) {
    AERIE_TRY(import.vector(deeper(i) + "attn_norm", deeper(i) + "input_layernorm.weight", h));
    AERIE_TRY(import.layer(deeper(i), deeper(i), c));
  }
  AERIE_TRY(import.vector("norm", "norm.weight", h));
  AERIE_TRY(import.weight("lm_head", "lm_head.weight", draft, h));
  if (draft < c.vocab_size || take.has("d2t")) {
    std::vector<int32_t> map;
    AERIE_TRY(read_vocabulary(head, take, draft, &map));
    if (draft < c.vocab_size) AERIE_TRY(sink.indices("vocab_map", map));
    else
      for (int32_t i = 0; i < draft; ++i)
        if (map[static_cast<size_t>(i)] != i) return head.bad("draft_vocab_size", "the whole vocabulary in another order");
  }
  AERIE_TRY(import_own_embedding(head, import, take, sink));
  take.ignore_if([](const std::string& n) { return n.ends_with(".rotary_emb.inv_freq"); });
  AERIE_TRY(take.nothing_left());

  HeadParams params = layer_params(c), more = tap_params(taps);
  params.insert(params.end(), more.begin(), more.end());
  params.emplace_back("draft_vocab", draft);
  if (layers > 1) params.emplace_back("layers", layers);
  if (norms.before_fc) params.emplace_back("norm_before_fc", 1);
  if (norms.taps) params.emplace_back("fc_norm", 1);
  if (norms.before_residual) params.emplace_back("norm_before_residual", 1);
  if (norms.output) params.emplace_back("norm_output", 1);
  finish_head(head, sink, "eagle3", params);
  return {};
}

}  // namespace aerie
