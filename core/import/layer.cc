#include "core/import/layer.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace aerie {

Status LayerImport::step() {
  done_ = std::min(done_ + 1, steps_);
  if (options_.progress && !options_.progress(done_, steps_))
    return error(Code::cancelled, options_.source + ": conversion cancelled");
  return {};
}

Result<SourceMatrix> LayerImport::take(const std::string& name, int64_t rows, int64_t cols) {
  AERIE_TRY(step());
  return taker_.take_matrix(name, rows, cols);
}

Result<SourceMatrix> LayerImport::stack(const std::string& from, std::initializer_list<Part> parts, int64_t cols) {
  AERIE_TRY(step());
  SourceMatrix all = no_rows(cols);
  for (const Part& p : parts) {
    AERIE_ASSIGN(const SourceMatrix part, taker_.take_matrix(from + p.name + ".weight", p.rows, cols));
    append(&all, part);
  }
  return all;
}

Result<std::vector<float>> LayerImport::join_biases(const std::string& from, std::initializer_list<Part> parts) {
  AERIE_TRY(step());
  std::vector<float> all;
  for (const Part& p : parts) {
    AERIE_ASSIGN(const auto part, taker_.take(from + p.name + ".bias", {p.rows}));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Status LayerImport::weight(const std::string& to, const std::string& from, int64_t rows, int64_t cols) {
  AERIE_ASSIGN(const SourceMatrix m, take(from, rows, cols));
  return sink_.weight(to, m);
}

Status LayerImport::vector(const std::string& to, const std::string& from, int64_t n) {
  AERIE_TRY(step());
  AERIE_ASSIGN(const auto values, taker_.take(from, {n}));
  return sink_.vector(to, values);
}

// One that is zero changes nothing: the model is the one without. A drafter's head has none.
Status LayerImport::output_bias(const std::string& from, const std::string& to, const LlamaConfig& c) {
  if (c.departures.o_bias) return vector(to + "attn.o.bias", from, c.hidden);
  if (!taker_.has(from)) return {};
  AERIE_ASSIGN(const auto values, taker_.take(from, {c.hidden}));
  if (std::all_of(values.begin(), values.end(), [](float v) { return v == 0; })) return {};
  return error(Code::unsupported, options_.source + ": tensor " + from + ": an output bias that is not zero");
}

// q and its gate lie together, head by head.
Status LayerImport::gated_queries(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const DecoderNames& n = names_;
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim, size = c.head_dim * int64_t{c.hidden};
  AERIE_ASSIGN(const SourceMatrix both, stack(from, {{n.q, 2 * q}}, c.hidden));
  SourceMatrix qkv = no_rows(c.hidden), gate = no_rows(c.hidden);
  for (int64_t h = 0; h < c.heads; ++h) {
    const auto at = both.values.begin() + 2 * h * size;
    append(&qkv, {c.head_dim, c.hidden, {at, at + size}, both.stored});
    append(&gate, {c.head_dim, c.hidden, {at + size, at + 2 * size}, both.stored});
  }
  AERIE_ASSIGN(const SourceMatrix keys, stack(from, {{n.k, kv}, {n.v, kv}}, c.hidden));
  append(&qkv, keys);
  AERIE_TRY(sink_.weight(to + "attn.qkv", qkv));
  return sink_.weight(to + "attn.gate", gate);
}

Status LayerImport::attention(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols) {
  const int64_t h = c.hidden, in = qkv_cols ? qkv_cols : h, q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  const DecoderNames& n = names_;
  if (c.departures.output_gate) {
    AERIE_TRY(gated_queries(from, to, c));
  } else if (taker_.has(from + n.qkv + ".weight")) {
    AERIE_TRY(weight(to + "attn.qkv", from + n.qkv + ".weight", q + 2 * kv, in));
  } else {
    AERIE_ASSIGN(const SourceMatrix qkv, stack(from, {{n.q, q}, {n.k, kv}, {n.v, kv}}, in));
    AERIE_TRY(sink_.weight(to + "attn.qkv", qkv));
  }
  if (c.qkv_bias) {
    AERIE_ASSIGN(const auto bias, join_biases(from, {{n.q, q}, {n.k, kv}, {n.v, kv}}));
    AERIE_TRY(sink_.vector(to + "attn.qkv.bias", bias));
  }
  if (c.qk_norm) {
    const bool whole = c.departures.whole_qk_norm;
    AERIE_TRY(vector(to + "attn.q_norm", from + n.q_norm + ".weight", whole ? q : c.head_dim));
    AERIE_TRY(vector(to + "attn.k_norm", from + n.k_norm + ".weight", whole ? kv : c.head_dim));
  }
  if (c.departures.sinks) AERIE_TRY(vector(to + "attn.sinks", from + n.sinks, c.heads));
  AERIE_TRY(weight(to + "attn.o", from + n.o + ".weight", h, q));
  return output_bias(from + n.o + ".bias", to, c);
}

Status LayerImport::layer(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols, bool recurrent) {
  const int64_t h = c.hidden, f = c.ffn;
  const DecoderNames& n = names_;
  AERIE_TRY(recurrent ? delta(from, to, c) : attention(from, to, c, qkv_cols));
  using Norms = Departures::Norms;
  if (c.departures.norms != Norms::after) AERIE_TRY(vector(to + "mlp_norm", from + n.mlp_norm + ".weight", h));
  if (c.departures.norms != Norms::before) {
    AERIE_TRY(vector(to + "attn_post_norm", from + n.attn_post_norm + ".weight", h));
    AERIE_TRY(vector(to + "mlp_post_norm", from + n.mlp_post_norm + ".weight", h));
  }
  if (c.departures.experts > 0) return experts(from, to, c);
  if (!taker_.has(from + n.gate + ".weight") && taker_.has(from + n.gate_up + ".weight")) {
    AERIE_TRY(weight(to + "mlp.gate_up", from + n.gate_up + ".weight", 2 * f, h));
  } else {
    AERIE_ASSIGN(const SourceMatrix gate_up, stack(from, {{n.gate, f}, {n.up, f}}, h));
    AERIE_TRY(sink_.weight(to + "mlp.gate_up", gate_up));
  }
  return weight(to + "mlp.down", from + n.down + ".weight", h, f);
}

int64_t layer_of(const std::string& tensor, const DecoderNames& names) {
  const std::string_view layers = names.layers;
  int64_t layer = -1;
  if (tensor.starts_with(layers)) std::from_chars(tensor.data() + layers.size(), tensor.data() + tensor.size(), layer);
  return layer;
}

Result<bool> has_output_bias(const TensorSource& source, const DecoderNames& names) {
  for (const auto& [name, tensor] : source.tensors()) {
    if (!name.starts_with(names.layers) || !name.ends_with('.' + std::string(names.o) + ".bias")) continue;
    AERIE_ASSIGN(const auto values, source.read(name));
    if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; })) return true;
  }
  return false;
}

Status import_decoder(const ConvertOptions& o, Sink& sink, TensorTaker& take, const DecoderNames& names, bool tied, LlamaConfig* c) {
  const std::string embed_name = names.embed + std::string(".weight"), head_name = names.lm_head + std::string(".weight");
  c->tied = !take.has(head_name);
  if (c->tied && !tied)
    return error(Code::bad_format, o.source + ": tensor " + head_name + ": missing (tie_word_embeddings is not true)");
  const Departures& d = c->departures;
  int32_t attends = 0;  // the first layer that has attention
  while (d.recurrent(attends)) ++attends;
  c->qkv_bias = take.has(names.layers + std::to_string(attends) + "." + names.q + ".bias");
  if (c->qkv_bias && d.output_gate) return error(Code::unsupported, o.source + ": biases of q, k and v beside a gate of what attention gives");
  const int64_t of_experts = d.experts > 0 ? expert_steps(*c) - 2 : 0;  // in place of gate_up and down
  const int64_t of_layer = (c->qk_norm ? 9 : 7) + (d.norms == Departures::Norms::both ? 2 : 0) + (d.sinks ? 1 : 0) + (d.o_bias ? 1 : 0);
  const int64_t of_recurrent = c->layers - c->attention_layers();  // each a step more than one that attends
  LayerImport import(o, sink, take, c->layers * (of_layer + of_experts) + of_recurrent + 3, names);
  AERIE_ASSIGN(SourceMatrix embed, import.take(embed_name, c->vocab_size, c->hidden));
  AERIE_TRY(sink.weight("embed", embed));
  if (c->tied || !tied) embed = {};  // nothing to compare it with later
  LlamaConfig dense = *c;  // of layers without experts
  dense.ffn = d.dense_ffn, dense.departures.experts = 0;
  for (int32_t i = 0; i < c->layers; ++i) {
    const std::string to = "layers." + std::to_string(i) + ".", from = names.layers + std::to_string(i) + ".";
    if (c->departures.norms != Departures::Norms::after)
      AERIE_TRY(import.vector(to + "attn_norm", from + names.attn_norm + ".weight", c->hidden));
    AERIE_TRY(import.layer(from, to, i < d.dense_layers ? dense : *c, 0, d.recurrent(i)));
  }
  AERIE_TRY(import.vector("norm", names.norm + std::string(".weight"), c->hidden));
  if (!c->tied) {
    AERIE_ASSIGN(const SourceMatrix head, import.take(head_name, c->vocab_size, c->hidden));
    // transformers would use the embedding; a head that differs from it says that the config lies.
    if (tied && head.values != embed.values)
      return error(Code::mismatch,
                   o.source + ": tensor " + head_name + ": is not the embedding, but tie_word_embeddings is true");
    c->tied = tied;
    if (!c->tied) AERIE_TRY(sink.weight("lm_head", head));
  }
  return take.nothing_left();
}

}  // namespace aerie
