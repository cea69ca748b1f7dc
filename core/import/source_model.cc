#include "core/import/source_model.h"

#include <algorithm>

#include "core/import/rotary_order.h"
#include "core/package/rope_frequencies.h"
#include "kernels/ops.h"

namespace aerie {

// LongRoPE (arXiv:2402.13753) as transformers and llama.cpp have it turns the first positions of a longer text otherwise than those of a
// shorter one. Here rows never change, so one list is taken for good.
void choose_longrope(std::vector<float> of_short, std::vector<float> of_long, int32_t original, int32_t reads, int32_t wanted,
                     SourceRope* rope) {
  const bool longer = wanted > original;
  rope->divisors = longer ? std::move(of_long) : std::move(of_short);
  rope->context = longer ? reads : std::min(reads, original);
  if (!longer && original < reads && wanted == 0)
    rope->note = "the package reads texts of up to " + std::to_string(original) + " tokens, with LongRoPE's factors for these; --context " +
                 std::to_string(reads) + " converts with those for longer ones";
}

std::vector<float> listed_frequencies(const SourceRope& rope, int32_t head_dim) {
  const int32_t rotated = rope.rotated(head_dim);
  std::vector<float> f = rope_inverse_frequencies(rope.whole_head ? head_dim : rotated, double{rope.theta}, rope.scaling, rope.whole_waves);
  for (size_t i = 0; i < rope.divisors.size() && i < f.size(); ++i) f[i] /= rope.divisors[i];
  f.resize(static_cast<size_t>(rotated / 2));
  f.resize(static_cast<size_t>(head_dim / 2), 0.0f);
  return f;
}

void use_rope(const SourceRope& rope, SourceModel* m) {
  m->config.rope_theta = rope.theta;
  m->config.rope_scaling = rope.scaling;
  if (rope.context > 0) m->config.max_context = rope.context;
  if (!rope.note.empty()) m->notes.push_back(rope.note);
  if (!rope.whole_waves) list_ropes({&rope}, {}, m);
}

void list_ropes(std::initializer_list<const SourceRope*> of, const std::vector<int32_t>& layers, SourceModel* m) {
  LlamaConfig& c = m->config;
  m->frequencies.clear();
  int32_t number = 0;
  for (const SourceRope* rope : of) {
    const auto its = std::find(layers.begin(), layers.end(), number++);
    std::vector<float> row = listed_frequencies(*rope, its == layers.end() ? c.head_dim : c.head_dim_of(static_cast<int32_t>(its - layers.begin())));
    row.resize(static_cast<size_t>(c.widest_head() / 2), 0.0f);
    row.push_back(rope->scaling.attention_factor);
    m->frequencies.insert(m->frequencies.end(), row.begin(), row.end());
  }
  c.rope_scaling = {};
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  if (std::any_of(layers.begin(), layers.end(), [](int32_t row) { return row != 0; })) c.departures.layer_rope = layers;
  m->frequencies.resize(static_cast<size_t>(c.departures.rope_rows()) * static_cast<size_t>(c.widest_head() / 2 + 1));
}

void list_turning(const SourceRope& rope, const std::vector<bool>& turns, SourceModel* m) {
  SourceRope none = rope;
  none.partial = 0;
  std::vector<int32_t> layers;
  for (const bool turn : turns) layers.push_back(turn ? 0 : 1);
  list_ropes({&rope, &none}, layers, m);
}

bool share_last_layers(int32_t shared, const std::vector<bool>& sliding, LlamaConfig* c) {
  int32_t last[2] = {-1, -1};  // of each kind
  std::vector<int32_t> from;
  for (int32_t i = 0; i < c->layers; ++i) {
    int32_t& own = last[sliding[static_cast<size_t>(i)]];
    if (i < c->layers - shared) own = i;
    if (own < 0) return false;
    from.push_back(own);
  }
  if (shared > 0) c->departures.kv_layers = std::move(from);
  return true;
}

void set_windows(const std::vector<bool>& sliding, int32_t window, SourceModel* m) {
  const int32_t longest = m->wanted > 0 ? std::min(m->wanted, m->config.max_context) : m->config.max_context;
  if (window >= longest || std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return;  // nothing is out of sight
  for (const bool s : sliding) m->config.departures.windows.push_back(s ? window : 0);
}

Status check_experts(const std::string& count_key, const std::string& used_key, const Departures& d) {
  const auto range = [](const std::string& key, int32_t v, int32_t most) -> Status {
    if (v >= 1 && v <= most) return {};
    return error(Code::bad_format, key + ": " + std::to_string(v) + " is not in [1, " + std::to_string(most) + "]");
  };
  AERIE_TRY(range(count_key, d.experts, kernels::kMaxExperts));
  return range(used_key, d.experts_used, std::min(d.experts, int32_t{kernels::kMaxExpertsUsed}));
}

void leave_out_more_layers(const SourceModel& m, const ConvertOptions& o, Sink& sink, TensorTaker* take) {
  if (m.more_layers <= 0) return;
  bool some = false;
  take->ignore_if([&](const std::string& name) {
    const int64_t layer = layer_of(name, *m.names);
    const bool more = layer >= m.config.layers && layer - m.config.layers < m.more_layers;
    if (!more && !name.starts_with("model.mtp_") && !name.starts_with("mtp.")) return false;  // ERNIE's, and Qwen's
    return some = true;
  });
  if (some) sink.warn(o.source + ": its layers for multi-token prediction are left out; with --drafter-for a package is made of them, of some families");
}

Status settle(const std::string& context_key, SourceModel* m) {
  LlamaConfig& c = m->config;
  const bool scales = m->logits_scale != 1;  // the embedding, where it is divided as the head
  if ((c.departs() || scales) && m->frequencies.empty()) {
    SourceRope rope;
    rope.theta = c.rope_theta;
    rope.scaling = c.rope_scaling;
    list_ropes({&rope}, {}, m);
  }
  if (!std::all_of(m->frequencies.begin(), m->frequencies.end(), [](float f) { return f >= 0 && f < 1e6f; }))
    return error(Code::bad_format, "rotary frequencies: their base or scaling gives something that is no number");
  if (m->wanted > c.max_context)
    return error(Code::invalid_argument,
                 context_key + ": the model reads " + std::to_string(c.max_context) + " tokens, --context asks for more");
  if (m->wanted > 0) c.max_context = m->wanted;
  return {};
}

namespace {

// q's rows, where those of its gate follow each head's.
void order_gated_heads(const SourceModel& m, std::vector<float>* values) {
  const LlamaConfig& c = m.config;
  const int64_t cols = static_cast<int64_t>(values->size()) / (2 * int64_t{c.heads} * c.head_dim), size = c.head_dim * cols;
  for (int64_t h = 0; h < c.heads; ++h) {
    const auto at = values->begin() + 2 * h * size;
    const auto ordered = partly_rotated_order({at, at + size}, 1, c.head_dim, m.rotated, cols);
    std::copy(ordered.begin(), ordered.end(), at);
  }
}

// q's and k's rows of a tensor that has them (they come first) as ours are.
void order_heads(const std::string& name, const SourceModel& m, std::vector<float>* values) {
  const LlamaConfig& c = m.config;
  const auto is = [&](const char* what) { return name.find('.' + std::string(what) + '.') != name.npos; };
  if (const int64_t layer = layer_of(name, *m.names); layer >= 0 && layer < c.layers && c.departures.recurrent(static_cast<int32_t>(layer))) return;
  const bool all = is(m.names->qkv);
  int64_t heads = all ? int64_t{c.heads} + c.kv_heads : is(m.names->q) ? c.heads : is(m.names->k) ? c.kv_heads : 0;
  // Norms, of each head or of all, go with what they norm.
  if (is(m.names->q_norm)) heads = c.departures.whole_qk_norm ? c.heads : 1;
  if (is(m.names->k_norm)) heads = c.departures.whole_qk_norm ? c.kv_heads : 1;
  if (heads == 0) return;
  if (c.departures.output_gate && is(m.names->q)) return order_gated_heads(m, values);
  const int64_t cols = static_cast<int64_t>(values->size()) / ((heads + (all ? c.kv_heads : 0)) * c.head_dim);
  const std::vector<float> rows(values->begin(), values->begin() + heads * c.head_dim * cols);
  const auto ordered = m.neighbours ? rotate_half_order(rows, heads, c.head_dim, cols)
                                    : partly_rotated_order(rows, heads, c.head_dim, m.rotated, cols);
  std::copy(ordered.begin(), ordered.end(), values->begin());
}

}  // namespace

std::unique_ptr<TensorSource> as_ours(const TensorSource& source, const SourceModel& m) {
  return changed(source, [&m](const std::string& name, std::vector<float>* values) {
    const bool norm = name.ends_with("norm.weight") || name.starts_with("mtp.pre_fc_norm_");
    if (m.norm_offset != 0 && norm && !(m.names->delta && name.ends_with(m.names->delta->norm + std::string(".weight"))))
      for (float& v : *values) v += m.norm_offset;
    const bool head = name == m.names->lm_head + std::string(".weight");
    if (m.logits_scale != 1 && (head || (m.tied && name == m.names->embed + std::string(".weight"))))
      for (float& v : *values) v /= m.logits_scale;
    if (m.neighbours || (m.rotated > 0 && m.rotated != m.config.head_dim)) order_heads(name, m, values);
  });
}

Status import_model(const ConvertOptions& o, Sink& sink, TensorTaker& take, SourceModel* m) {
  LlamaConfig& c = m->config;
  if (m->tied) c.departures.embed_scale *= m->logits_scale;  // the embedding is divided by it
  if (!m->frequencies.empty()) AERIE_TRY(sink.vector("rope.frequencies", m->frequencies, c.departures.rope_rows()));
  return import_decoder(o, sink, take, *m->names, m->tied, &c);
}

}  // namespace aerie
