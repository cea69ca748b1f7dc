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

// [q; k; v], v the same as k before its norm and positions.
Result<SourceMatrix> LayerImport::keys_as_values(const std::string& from, const LlamaConfig& c) {
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  AERIE_ASSIGN(SourceMatrix all, stack(from, {{names_.q, q}, {names_.k, kv}}, c.hidden));
  append(&all, {kv, all.cols, {all.values.begin() + q * all.cols, all.values.end()}, all.stored});
  return all;
}

Status LayerImport::attention(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols, Kind kind) {
  const int64_t h = c.hidden, in = qkv_cols ? qkv_cols : h, q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  const DecoderNames& n = names_;
  if (c.departures.output_gate) {
    AERIE_TRY(gated_queries(from, to, c));
  } else if (kind == Kind::reads) {
    AERIE_TRY(weight(to + "attn.qkv", from + n.q + ".weight", q, in));
  } else if (kind == Kind::keys_as_values) {
    AERIE_ASSIGN(const SourceMatrix qkv, keys_as_values(from, c));
    AERIE_TRY(sink_.weight(to + "attn.qkv", qkv));
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
    if (kind != Kind::reads) AERIE_TRY(vector(to + "attn.k_norm", from + n.k_norm + ".weight", whole ? kv : c.head_dim));
  }
  if (c.departures.sinks) AERIE_TRY(vector(to + "attn.sinks", from + n.sinks, c.heads));
  AERIE_TRY(weight(to + "attn.o", from + n.o + ".weight", h, q));
  return output_bias(from + n.o + ".bias", to, c);
}

Status LayerImport::layer(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols, Kind kind) {
  const int64_t h = c.hidden, f = c.ffn;
  const DecoderNames& n = names_;
  AERIE_TRY(kind == Kind::recurrent ? (c.departures.delta_heads == 0 ? convolution(from, to, c) : delta(from, to, c)) : attention(from, to, c, qkv_cols, kind));
  using Norms = Departures::Norms;
  if (c.departures.norms != Norms::after) AERIE_TRY(vector(to + "mlp_norm", from + n.mlp_norm + ".weight", h));
  if (c.departures.norms != Norms::before) {
    AERIE_TRY(vector(to + "attn_post_norm", from + n.attn_post_norm + ".weight", h));
    AERIE_TRY(vector(to + "mlp_post_norm", from + n.mlp_post_norm + ".weight", h));
  }
  if (const int64_t inputs = c.departures.layer_inputs; inputs > 0) {
    AERIE_TRY(weight(to + "inputs.gate", from + n.inputs->gate + ".weight", inputs, h));
    AERIE_TRY(weight(to + "inputs.out", from + n.inputs->out + ".weight", h, inputs));
    AERIE_TRY(vector(to + "inputs.post_norm", from + n.inputs->post_norm + ".weight", h));
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

namespace {

// As if all layers were as layer i is.
LlamaConfig config_of(const LlamaConfig& c, int32_t i) {
  LlamaConfig own = c;
  own.head_dim = c.head_dim_of(i);
  own.kv_heads = c.kv_heads_of(i);
  own.ffn = c.ffn_of(i);
  if (i < c.departures.dense_layers) own.departures.experts = 0;
  return own;
}

LayerImport::Kind kind_of(const LlamaConfig& c, int32_t i, TensorTaker& take, const DecoderNames& names) {
  using Kind = LayerImport::Kind;
  using Values = DecoderNames::Values;
  const Departures& d = c.departures;
  if (d.recurrent(i)) return Kind::recurrent;
  if (d.reads(i)) return Kind::reads;
  if (names.values == Values::own || (!d.wide_layers.empty() && !d.wide(i))) return Kind::attends;
  const std::string own = names.layers + std::to_string(i) + "." + names.v + ".weight";
  if (names.values == Values::keys_if_missing && take.has(own)) return Kind::attends;
  take.ignore_if([&](const std::string& n) { return n == own; });
  return Kind::keys_as_values;
}

// The table of what layers have of tokens may be several times the rest of a model, and is held in parts.
Status import_inputs(Sink& sink, LayerImport& import, TensorTaker& take, const InputNames& names, const LlamaConfig& c) {
  const int64_t inputs = c.departures.layer_inputs, cols = inputs * c.layers;
  const std::string table = names.embed + std::string(".weight");
  constexpr int64_t kRows = 16 * kernels::kPanel;
  if (c.vocab_size % kRows == 0) {
    AERIE_TRY(take.expect(table, {c.vocab_size, cols}));
    const auto rows = [&](int64_t i) -> Result<std::vector<float>> {
      std::vector<float> all;
      all.reserve(static_cast<size_t>(kRows * cols));
      for (int64_t r = i * kRows; r < (i + 1) * kRows; ++r) {
        AERIE_ASSIGN(const auto row, take.part(table, r));
        all.insert(all.end(), row.begin(), row.end());
      }
      return all;
    };
    AERIE_TRY(sink.experts("layer_inputs.embed", {c.vocab_size / kRows, kRows, cols, take.stored(table), rows}));
  } else {
    AERIE_TRY(import.weight("layer_inputs.embed", table, c.vocab_size, cols));
  }
  AERIE_TRY(import.weight("layer_inputs.project", names.project + std::string(".weight"), cols, c.hidden));
  return import.vector("layer_inputs.norm", names.norm + std::string(".weight"), inputs);
}

// What layers give is scaled where the first one's is.
Status import_scales(Sink& sink, TensorTaker& take, const DecoderNames& names, LlamaConfig* c) {
  const auto name = [&](int32_t i) { return names.layers + std::to_string(i) + "." + names.scale; };
  if (!*names.scale || !take.has(name(0))) return {};
  std::vector<float> scales;
  for (int32_t i = 0; i < c->layers; ++i) {
    AERIE_ASSIGN(const auto scale, take.take_row(name(i), 1));
    scales.push_back(scale[0]);
  }
  c->departures.layer_scales = true;
  return sink.vector("layer_scales", scales);
}

}  // namespace

Status import_layers(Sink& sink, LayerImport& import, TensorTaker& take, const DecoderNames& names, LlamaConfig* c) {
  AERIE_TRY(import_scales(sink, take, names, c));
  for (int32_t i = 0; i < c->layers; ++i) {
    const std::string to = "layers." + std::to_string(i) + ".", from = names.layers + std::to_string(i) + ".";
    if (c->departures.norms != Departures::Norms::after)
      AERIE_TRY(import.vector(to + "attn_norm", from + names.attn_norm + ".weight", c->hidden));
    AERIE_TRY(import.layer(from, to, config_of(*c, i), 0, kind_of(*c, i, take, names)));
  }
  return {};
}

Status import_decoder(const ConvertOptions& o, Sink& sink, TensorTaker& take, const DecoderNames& names, bool tied, LlamaConfig* c) {
  if (o.candidate_rank > 0 && c->departures.logit_cap > 0) return error(Code::unsupported, o.source + ": a candidate head, for a model that caps its logits");
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
  const int64_t of_inputs = d.layer_inputs > 0 ? 3 : 0;
  for (int32_t i = 0; i < c->layers; ++i) {  // files may have them all the same
    const std::string at = names.layers + std::to_string(i) + ".";
    if (d.reads(i)) take.ignore_if([&](const std::string& n) { return n == at + names.k + ".weight" || n == at + names.v + ".weight" || n == at + names.k_norm + ".weight"; });
  }
  LayerImport import(o, sink, take, c->layers * (of_layer + of_experts + of_inputs) + of_recurrent + of_inputs + 3, names);
  AERIE_ASSIGN(SourceMatrix embed, import.take(embed_name, c->vocab_size, c->hidden));
  AERIE_TRY(sink.weight("embed", embed));
  if (c->tied || !tied) embed = {};  // nothing to compare it with later
  if (d.layer_inputs > 0) AERIE_TRY(import_inputs(sink, import, take, *names.inputs, *c));
  AERIE_TRY(import_layers(sink, import, take, names, c));
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
