#include "core/package/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "core/package/format.h"
#include "core/package/rope_params.h"
#include "core/platform/utf8.h"
#include "kernels/ops.h"

namespace aerie::package {

using kernels::DType;
using kernels::Layout;

namespace {

Status bad(const std::string& field, const std::string& what) { return error(Code::bad_format, field + ": " + what); }

std::string shape(int64_t rows, int64_t cols) {
  return std::string("(") + std::to_string(rows) + ", " + std::to_string(cols) + ")";
}

Status range(const char* field, int64_t v, int64_t low, int64_t high) {
  if (v >= low && v <= high) return {};
  return bad(field, std::to_string(v) + " is not in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
}

Status real(const char* field, double v, double above, double max) {
  if (std::isfinite(v) && v > above && v <= max) return {};
  char text[96];
  std::snprintf(text, sizeof text, "%g is not in (%g, %g]", v, above, max);
  return bad(field, text);
}

Status check_stored(const StoredRow& s, const std::string& name) {
  if (s.raw_bytes == 0 || s.stored_bytes == 0) return bad(name, "is empty");
  if (s.codec == Codec::raw) {
    if (s.stored_bytes != s.raw_bytes) return bad(name, "raw, but stored and raw lengths differ");
    if (!s.chunks.empty()) return bad(name, "raw, but has chunks");
    return {};
  }
  if (s.raw_bytes / kMaxExpansion > s.stored_bytes)
    return bad(name,
               std::to_string(s.stored_bytes) + " stored bytes claim to unpack to " + std::to_string(s.raw_bytes));
  uint64_t stored = 0, raw = 0;  // at most 2^32 * 1e6 each: no overflow
  for (const ChunkRow& c : s.chunks) {
    if (c.raw_bytes == 0 || c.raw_bytes > kMaxChunkBytes || c.stored_bytes == 0)
      return bad(name, "a chunk has no bytes or more than 16 MiB");
    stored += c.stored_bytes;
    raw += c.raw_bytes;
  }
  if (stored != s.stored_bytes || raw != s.raw_bytes) return bad(name, "its chunks do not add up to its length");
  return {};
}

Status check_tensor(const TensorRow& t) {
  if (t.rows < 1 || t.rows > kMaxRows || t.cols < 1 || t.cols > kMaxCols)
    return bad(t.name, "shape " + shape(t.rows, t.cols) + " is out of range");
  uint64_t raw = 0, scales = 0;
  if (!tensor_extent(t.dtype, t.layout, t.rows, t.cols, &raw, &scales))
    return bad(t.name, "this dtype and layout do not go together");
  if (raw != t.stored.raw_bytes)
    return bad(t.name, "shape " + shape(t.rows, t.cols) + " needs " + std::to_string(raw) +
                           " bytes, the manifest says " + std::to_string(t.stored.raw_bytes));
  if (scales != t.scales_offset) return bad(t.name, "scales offset is wrong");
  return check_stored(t.stored, t.name);
}

using TensorsByName = std::unordered_map<std::string, const TensorRow*>;

// The one optional pair of tensors: both or none, of a rank that fits.
Status take_candidate_head(const LlamaConfig& c, TensorsByName* found) {
  const std::string down = "candidate.down", up = "candidate.up";
  const auto d = found->find(down), u = found->find(up);
  if (d == found->end() && u == found->end()) return {};
  if (c.departures.logit_cap > 0) return bad(down, "beside logit_cap");
  if (d == found->end()) return bad(down, "the tensor is missing, " + up + " is there");
  if (u == found->end()) return bad(up, "the tensor is missing, " + down + " is there");
  const TensorRow &a = *d->second, &b = *u->second;
  if (a.cols != c.hidden || a.rows > c.hidden)
    return bad(down, "shape " + shape(a.rows, a.cols) + ", the config needs (rank, " + std::to_string(c.hidden) +
                         ") with a rank of at most " + std::to_string(c.hidden));
  if (b.rows != c.vocab_size || b.cols != a.rows)
    return bad(up, "shape " + shape(b.rows, b.cols) + ", " + down + " and the config need " + shape(c.vocab_size, a.rows));
  for (const TensorRow* t : {&a, &b})
    if (t->layout != Layout::panel16) return bad(t->name, "must be in the panel16 layout");
  found->erase(d);
  found->erase(u);
  return {};
}

// Those that are there are as they are to be; what is left is nobody's.
Status take_expected(const std::vector<ExpectedTensor>& expected, TensorsByName* found) {
  for (const ExpectedTensor& e : expected) {
    const auto it = found->find(e.name);
    if (it == found->end()) return bad(e.name, "the tensor is missing");
    const TensorRow& t = *it->second;
    if (t.rows != e.rows || t.cols != e.cols)
      return bad(e.name, "shape " + shape(t.rows, t.cols) + ", the config needs " + shape(e.rows, e.cols));
    if (e.weight ? t.layout != Layout::panel16 : t.layout != Layout::row_major || t.dtype != DType::f32)
      return bad(e.name, e.weight ? "must be in the panel16 layout" : "must be f32, row_major");
    if (e.precise && t.dtype != DType::bf16 && t.dtype != DType::f32) return bad(e.name, "must be bf16 or f32");
    found->erase(it);
  }
  return {};
}

Status check_target_tensors(const Manifest& m) {
  TensorsByName found;
  for (const TensorRow& t : m.tensors) found.emplace(t.name, &t);
  AERIE_TRY(take_expected(expected_tensors(*m.target), &found));
  AERIE_TRY(take_candidate_head(*m.target, &found));
  if (!found.empty()) {
    const auto first =
        std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return bad(first->first, "unexpected tensor");
  }
  return {};
}

}  // namespace

Status check_name(const std::string& name) {
  if (!name.empty() && name.size() <= 255 &&
      std::all_of(name.begin(), name.end(), [](char c) { return c > 32 && c < 127; }))
    return {};
  return bad("names", "a name is empty, too long or not printable ASCII");
}

Status check_fingerprint(const std::string& hex) {
  if (hex.size() >= 16 && hex.size() <= 64 &&
      std::all_of(hex.begin(), hex.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }))
    return {};
  return bad("fingerprint", "not 16 to 64 lower-case hex digits");
}

Status check_rope_scaling(const RopeScaling& r) {
  if (r.kind == RopeScaling::Kind::none || r.kind == RopeScaling::Kind::listed) return {};
  AERIE_TRY(real("rope_scaling.factor", r.factor, 0, 1e6));
  if (r.kind == RopeScaling::Kind::llama3 || r.kind == RopeScaling::Kind::yarn) {
    AERIE_TRY(real("rope_scaling.low_freq_factor", r.low_freq_factor, 0, 1e6));
    AERIE_TRY(real("rope_scaling.high_freq_factor", r.high_freq_factor, r.low_freq_factor, 1e6));
    AERIE_TRY(range("rope_scaling.original_context", r.original_context, 1, 1 << 24));
  }
  if (r.kind == RopeScaling::Kind::yarn) AERIE_TRY(real("rope_scaling.attention_factor", r.attention_factor, 0, 1e6));
  return {};
}

namespace {

Status check_delta(const LlamaConfig& c) {
  const Departures& d = c.departures;
  AERIE_TRY(range("delta_heads", d.delta_heads, 1, 1024));
  AERIE_TRY(range("delta_key_heads", d.delta_key_heads, 1, d.delta_heads));
  if (d.delta_heads % d.delta_key_heads)
    return bad("delta_key_heads", std::to_string(d.delta_key_heads) + " does not divide delta_heads " + std::to_string(d.delta_heads));
  for (const auto& [field, dim] : {std::pair<const char*, int32_t>{"delta_key_dim", d.delta_key_dim}, {"delta_value_dim", d.delta_value_dim}}) {
    AERIE_TRY(range(field, dim, kernels::kPanel, kernels::kMaxDeltaDim));
    if (dim % kernels::kPanel) return bad(field, std::to_string(dim) + " is no multiple of 16");
  }
  AERIE_TRY(range("delta_taps", d.delta_taps, 2, kernels::kMaxTaps));
  if (d.delta_layers.size() == static_cast<size_t>(c.layers) && c.attention_layers() == 0) return bad("delta_layers", "no layer has attention");
  if (d.norms != Departures::Norms::before || d.residual_scale != 1) return bad("delta_layers", "with a norm or a scale of what they add");
  return {};
}

// Heads of two kinds, layers that read another's keys and values, what a layer adds of the token, and what it is scaled by.
Status check_layer_kinds(const LlamaConfig& c) {
  const Departures& d = c.departures;
  const auto count = [&](const char* field, size_t n) { return n == 0 ? Status() : range((std::string(field) + " count").c_str(), static_cast<int64_t>(n), c.layers, c.layers); };
  AERIE_TRY(count("wide_layers", d.wide_layers.size()));
  AERIE_TRY(count("kv_layers", d.kv_layers.size()));
  for (const int32_t v : d.wide_layers) AERIE_TRY(range("wide_layers", v, 0, 1));
  if (d.wide_layers.empty() && (d.wide_head_dim != 0 || d.wide_kv_heads != 0)) return bad("wide_kv_heads, wide_head_dim", "without wide_layers");
  if (!d.wide_layers.empty()) {
    AERIE_TRY(check_wide_heads(c));
    if (d.attention_scale == 0) return bad("attention_scale", "must be said where heads differ");
    if (d.whole_qk_norm || d.output_gate || d.recurrent()) return bad("wide_layers", "with whole_qk_norm, output_gate or delta_layers");
    for (int32_t a = 0; a < c.layers; ++a)  // a row of frequencies is as long as the heads that it turns
      for (int32_t b = 0; b < a && !d.layer_rope.empty() && a < static_cast<int32_t>(d.layer_rope.size()); ++b)
        if (d.wide(a) != d.wide(b) && d.layer_rope[static_cast<size_t>(a)] == d.layer_rope[static_cast<size_t>(b)])
          return bad("layer_rope", "layers " + std::to_string(b) + " and " + std::to_string(a) + " share a row and have other heads");
    if (d.layer_rope.empty() && std::find(d.wide_layers.begin(), d.wide_layers.end(), 0) != d.wide_layers.end())
      return bad("layer_rope", "must be said where heads differ");
  }
  for (int32_t i = 0; i < c.layers && !d.kv_layers.empty(); ++i) {
    const int32_t of = d.kv_layer(i);
    AERIE_TRY(range("kv_layers", of, 0, i));
    if (d.kv_layer(of) != of) return bad("kv_layers", "layer " + std::to_string(i) + " reads layer " + std::to_string(of) + "'s, which has none of its own");
    if (d.wide(of) != d.wide(i)) return bad("kv_layers", "layer " + std::to_string(i) + " and layer " + std::to_string(of) + " have other heads");
  }
  if ((!d.kv_layers.empty() || d.reads_target) && (c.qkv_bias || d.whole_qk_norm || d.output_gate || d.recurrent()))
    return bad("kv_layers, reads_target", "with qkv_bias, whole_qk_norm, output_gate or delta_layers");
  if (d.reads_target && !d.kv_layers.empty()) return bad("reads_target", "with kv_layers");
  AERIE_TRY(range("reader_ffn", d.reader_ffn, 0, d.kv_layers.empty() ? 0 : 1 << 20));
  if (d.reader_ffn > 0 && d.experts > 0) return bad("reader_ffn", "with experts");
  if (d.v_norm && !c.qk_norm) return bad("v_norm", "without qk_norm");
  AERIE_TRY(range("layer_inputs", d.layer_inputs, 0, 1 << 16));
  AERIE_TRY(range("layer_inputs of all layers", int64_t{d.layer_inputs} * c.layers, 0, kMaxCols));
  if ((d.layer_inputs > 0 || d.layer_scales) && (d.norms != Departures::Norms::both || d.residual_scale != 1))
    return bad("layer_inputs, layer_scales", "without norms of what a layer's halves add, or with a scale of them");
  if (d.logit_cap != 0) AERIE_TRY(real("logit_cap", d.logit_cap, 0, 1e6));
  return {};
}

Status check_departures(const LlamaConfig& c) {
  if (!c.departs()) return {};
  const Departures& d = c.departures;
  if (c.rope_scaling.kind != RopeScaling::Kind::listed) return bad("rope_scaling", "must be listed where a model departs from Llama's");
  if (d.whole_qk_norm && !c.qk_norm) return bad("whole_qk_norm", "without qk_norm");
  AERIE_TRY(real("embed_scale", d.embed_scale, 0, 1e6));
  AERIE_TRY(real("residual_scale", d.residual_scale, 0, 1e6));
  if (d.attention_scale != 0) AERIE_TRY(real("attention_scale", d.attention_scale, 0, 1e6));
  if (d.experts != 0 || d.experts_used != 0 || d.norm_experts) {
    AERIE_TRY(range("experts", d.experts, 1, kernels::kMaxExperts));
    AERIE_TRY(range("experts_used", d.experts_used, 1, std::min(d.experts, int32_t{kernels::kMaxExpertsUsed})));
    if (c.hidden % kernels::kPanel) return bad("experts", "hidden " + std::to_string(c.hidden) + " is no multiple of 16");
    if (c.ffn % (kernels::kPanel / 2)) return bad("experts", "ffn " + std::to_string(c.ffn) + " is no multiple of 8");
    AERIE_TRY(range("experts times their rows", int64_t{d.experts} * std::max(2 * c.ffn, c.hidden), 1, kMaxRows));
  }
  if (d.expert_bias && d.experts == 0) return bad("expert_bias", "without experts");
  if (d.experts == 0 && (d.dense_layers != 0 || d.dense_ffn != 0 || d.shared_ffn != 0 || d.expert_choice))
    return bad("dense_layers, dense_ffn, shared_ffn, expert_choice", "without experts");
  AERIE_TRY(range("dense_layers", d.dense_layers, 0, c.layers - 1));  // so that tensors say what a row takes
  AERIE_TRY(range("dense_ffn", d.dense_ffn, d.dense_layers > 0, d.dense_layers > 0 ? 1 << 20 : 0));
  AERIE_TRY(range("shared_ffn", d.shared_ffn, 0, 1 << 20));
  if (d.shared_gate && d.shared_ffn == 0) return bad("shared_gate", "without a shared expert");
  if (d.normed_experts && (d.shared_ffn == 0 || d.shared_gate || d.dense_layers > 0 || d.norms != Departures::Norms::both || d.residual_scale != 1))
    return bad("normed_experts", "without a shared expert and norms before and after, or with a gate, dense_layers or residual_scale");
  if (d.shared_ffn > 0 && !d.normed_experts && d.norms != Departures::Norms::before) return bad("shared_ffn", "with a norm behind the experts");
  // So that who does not know of these meets a tensor that it does not expect.
  if ((d.sigmoid_experts || d.expert_scale != 1) && !d.expert_choice) return bad("sigmoid_experts, expert_scale", "without expert_choice");
  AERIE_TRY(real("expert_scale", d.expert_scale, 0, 1e6));
  if (d.glu_limit != 0) AERIE_TRY(real("glu_limit", d.glu_limit, 0, 1e6));
  if (d.glu_limit != 0 && !d.sinks && !d.o_bias && !d.expert_bias) return bad("glu_limit", "without sinks and biases");
  const auto for_each_layer = [&](const char* field, const std::vector<int32_t>& list, int64_t most) -> Status {
    if (!list.empty()) AERIE_TRY(range((std::string(field) + " count").c_str(), static_cast<int64_t>(list.size()), c.layers, c.layers));
    for (const int32_t v : list) AERIE_TRY(range(field, v, 0, most));
    return {};
  };
  if (d.recurrent()) AERIE_TRY(check_delta(c));
  else if (d.delta_key_heads != 0 || d.delta_heads != 0 || d.delta_key_dim != 0 || d.delta_value_dim != 0 || d.delta_taps != 0)
    return bad("delta_key_heads, delta_heads, delta_key_dim, delta_value_dim, delta_taps", "without delta_layers");
  AERIE_TRY(for_each_layer("delta_layers", d.delta_layers, 1));
  AERIE_TRY(for_each_layer("windows", d.windows, 1 << 24));
  AERIE_TRY(for_each_layer("layer_rope", d.layer_rope, kMostRopeRows - 1));
  return check_layer_kinds(c);
}

}  // namespace

Status check_wide_heads(const LlamaConfig& c) {
  const Departures& d = c.departures;
  AERIE_TRY(range("wide_head_dim", d.wide_head_dim, c.head_dim, 1024));
  if (d.wide_head_dim % 2) return bad("wide_head_dim", std::to_string(d.wide_head_dim) + " is odd");
  AERIE_TRY(range("wide_kv_heads", d.wide_kv_heads, 1, c.heads));
  return c.heads % d.wide_kv_heads == 0 ? Status() : bad("wide_kv_heads", std::to_string(d.wide_kv_heads) + " does not divide heads " + std::to_string(c.heads));
}

Status check_config(const LlamaConfig& c) {
  AERIE_TRY(range("vocab_size", c.vocab_size, 1, 1 << 22));
  AERIE_TRY(range("vocab_used", c.vocab_used, 1, c.vocab_size));
  AERIE_TRY(range("hidden", c.hidden, 1, 1 << 17));
  AERIE_TRY(range("layers", c.layers, 1, 1024));
  AERIE_TRY(range("heads", c.heads, 1, 4096));
  AERIE_TRY(range("kv_heads", c.kv_heads, 1, c.heads));
  if (c.heads % c.kv_heads)
    return bad("kv_heads", std::to_string(c.kv_heads) + " does not divide heads " + std::to_string(c.heads));
  AERIE_TRY(range("head_dim", c.head_dim, 2, 1024));
  if (c.head_dim % 2) return bad("head_dim", std::to_string(c.head_dim) + " is odd");
  AERIE_TRY(range("ffn", c.ffn, 1, 1 << 20));
  AERIE_TRY(range("max_context", c.max_context, 1, 1 << 24));
  AERIE_TRY(real("rms_eps", c.rms_eps, 0, 1));
  AERIE_TRY(real("rope_theta", c.rope_theta, 0, 1e12));
  AERIE_TRY(check_rope_scaling(c.rope_scaling));
  AERIE_TRY(check_departures(c));
  AERIE_TRY(range("bos_id", c.bos_id, -1, c.vocab_used - 1));
  AERIE_TRY(range("eos_ids count", static_cast<int64_t>(c.eos_ids.size()), 0, 64));
  for (const int32_t id : c.eos_ids) AERIE_TRY(range("eos_ids", id, 0, c.vocab_used - 1));
  AERIE_TRY(range("tap_layers count", static_cast<int64_t>(c.tap_layers.size()), 0, 8));
  for (const int32_t layer : c.tap_layers) AERIE_TRY(range("tap_layers", layer, 0, c.layers - 1));
  return {};
}

Status check_config(const DrafterConfig& c) {
  if (c.plugin_id.empty() || c.plugin_id.size() > 63 ||
      !std::all_of(c.plugin_id.begin(), c.plugin_id.end(), [](char ch) {
        return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-' || ch == '.';
      }))
    return bad("plugin_id", "not 1 to 63 of a-z 0-9 _ - .");
  if (const Status s = check_fingerprint(c.target_fingerprint); !s.ok()) return s.at("target");
  AERIE_TRY(range("params count", static_cast<int64_t>(c.params.size()), 0, 256));
  std::unordered_set<std::string> names;
  for (const auto& p : c.params) {
    AERIE_TRY(check_name(p.name));
    if (!names.insert(p.name).second) return bad(p.name, "parameter given twice");
    if (!std::isfinite(p.value)) return bad(p.name, "parameter is not finite");
  }
  AERIE_TRY(read_rope_scaling(c).status());
  if (!c.decoder) return {};
  if (const Status s = check_config(*c.decoder); !s.ok()) return s.at("decoder");
  const Departures& d = c.decoder->departures;
  if (d.recurrent()) return bad("decoder", "has recurrent layers, which do not draft");
  if ((!d.wide_layers.empty() && !d.reads_target) || !d.kv_layers.empty() || d.layer_inputs > 0 || d.logit_cap != 0)
    return bad("decoder", "kv_layers, layer_inputs and logit_cap are of targets, and wide_layers, too, but with reads_target");
  return c.decoder->layers <= 64 ? Status() : bad("decoder", "layers: " + std::to_string(c.decoder->layers) + ", the most is 64");
}

std::vector<ExpectedTensor> expected_layer_tensors(const LlamaConfig& c) {
  const int64_t h = c.hidden;
  std::vector<ExpectedTensor> all;
  all.reserve(static_cast<size_t>(c.layers) * 29 + 7);
  const Departures& d = c.departures;
  if (c.rope_scaling.kind == RopeScaling::Kind::listed) all.push_back({"rope.frequencies", d.rope_rows(), c.widest_head() / 2 + 1, false});
  if (d.layer_scales) all.push_back({"layer_scales", 1, c.layers, false});
  for (int32_t i = 0; i < c.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const int64_t head_dim = c.head_dim_of(i), heads = c.heads * head_dim, keys = c.kv_heads_of(i) * head_dim;
    const int64_t qkv = heads + (d.reads(i) ? 0 : 2 * keys);
    if (d.norms != Departures::Norms::after)
      for (const char* name : {"attn_norm", "mlp_norm"}) all.push_back({at + name, 1, h, false});
    if (d.norms != Departures::Norms::before)
      for (const char* name : {"attn_post_norm", "mlp_post_norm"}) all.push_back({at + name, 1, h, false});
    if (d.recurrent(i)) {
      const int64_t delta_keys = int64_t{d.delta_key_heads} * d.delta_key_dim, values = int64_t{d.delta_heads} * d.delta_value_dim;
      all.push_back({at + "delta.in", 2 * delta_keys + 2 * values, h, true});
      all.push_back({at + "delta.gates", 2 * int64_t{d.delta_heads}, h, true, true});
      all.push_back({at + "delta.conv", d.delta_taps, 2 * delta_keys + values, false});
      all.push_back({at + "delta.decay", 2, d.delta_heads, false});
      all.push_back({at + "delta.norm", 1, d.delta_value_dim, false});
      all.push_back({at + "delta.out", h, values, true});
    } else {
      all.push_back({at + "attn.qkv", qkv, h, true});
      if (c.qkv_bias) all.push_back({at + "attn.qkv.bias", 1, qkv, false});
      if (c.qk_norm) {
        all.push_back({at + "attn.q_norm", 1, d.whole_qk_norm ? heads : head_dim, false});
        if (!d.reads(i)) all.push_back({at + "attn.k_norm", 1, d.whole_qk_norm ? keys : head_dim, false});
      }
      if (d.sinks) all.push_back({at + "attn.sinks", 1, c.heads, false});
      if (d.output_gate) all.push_back({at + "attn.gate", heads, h, true});
      all.push_back({at + "attn.o", h, heads, true});
      if (d.o_bias) all.push_back({at + "attn.o.bias", 1, h, false});
    }
    if (d.layer_inputs > 0) {
      all.push_back({at + "inputs.gate", d.layer_inputs, h, true});
      all.push_back({at + "inputs.out", h, d.layer_inputs, true});
      all.push_back({at + "inputs.post_norm", 1, h, false});
    }
    const bool dense = d.experts == 0 || i < d.dense_layers;
    const int64_t mlps = dense ? 1 : d.experts, ffn = c.ffn_of(i);
    const std::string mlp = at + (dense ? "mlp." : "mlp.experts.");
    if (!dense) all.push_back({at + "mlp.router", d.experts, h, true, true});
    all.push_back({mlp + "gate_up", mlps * 2 * ffn, h, true});
    all.push_back({mlp + "down", mlps * h, ffn, true});
    if (dense) continue;
    if (d.expert_choice) all.push_back({at + "mlp.router.choice", 1, d.experts, false});
    if (d.shared_ffn > 0) {
      all.push_back({at + "mlp.shared.gate_up", 2 * int64_t{d.shared_ffn}, h, true});
      all.push_back({at + "mlp.shared.down", h, d.shared_ffn, true});
    }
    if (d.shared_gate) all.push_back({at + "mlp.shared.gate", 1, h, true, true});
    if (d.normed_experts) {
      for (const char* name : {"router.norm", "shared.post_norm", "experts.norm", "experts.post_norm"}) all.push_back({at + "mlp." + name, 1, h, false});
      all.push_back({at + "mlp.router.gain", 1, d.experts, false});
    }
    if (!d.expert_bias) continue;
    all.push_back({at + "mlp.router.bias", 1, d.experts, false});
    all.push_back({mlp + "gate_up.bias", d.experts, 2 * c.ffn, false});
    all.push_back({mlp + "down.bias", d.experts, h, false});
  }
  return all;
}

std::vector<ExpectedTensor> expected_tensors(const LlamaConfig& c) {
  std::vector<ExpectedTensor> all = expected_layer_tensors(c);
  all.insert(all.begin(), {"embed", c.vocab_size, c.hidden, true});
  all.push_back({"norm", 1, c.hidden, false});
  if (const int64_t inputs = c.departures.layer_inputs; inputs > 0) {
    all.push_back({"layer_inputs.embed", c.vocab_size, c.layers * inputs, true});
    all.push_back({"layer_inputs.project", c.layers * inputs, c.hidden, true});
    all.push_back({"layer_inputs.norm", 1, inputs, false});
  }
  if (!c.tied) all.push_back({"lm_head", c.vocab_size, c.hidden, true});
  return all;
}

bool tensor_extent(DType dtype, Layout layout, int64_t rows, int64_t cols, uint64_t* raw_bytes,
                   uint64_t* scales_offset) {
  const bool quantised = kernels::has_scales(dtype);
  if (rows < 1 || rows > kMaxRows || cols < 1 || cols > kMaxCols) return false;
  if (layout == Layout::row_major ? quantised : dtype == DType::i32) return false;
  if (dtype == DType::int8 && cols > kernels::kMaxInt8Cols) return false;
  const auto data = static_cast<uint64_t>(kernels::data_bytes(dtype, layout, rows, cols));
  *scales_offset = quantised ? align_up(data, kBlobAlignment) : 0;
  *raw_bytes = quantised ? *scales_offset + static_cast<uint64_t>(kernels::scale_bytes(dtype, rows, cols)) : data;
  return true;
}

Status check_manifest(const Manifest& m, uint64_t data_bytes) {
  if (m.name.size() > 255 || one_line(m.name) != m.name) return bad("name", "too long, not UTF-8, or has control characters");
  AERIE_TRY(check_fingerprint(m.fingerprint));
  if (m.kind == PackageKind::target) {
    if (!m.target || m.drafter) return bad("kind", "a target package has a target config and no drafter config");
    if (m.target->departures.reads_target) return bad("config: reads_target", "is of drafters");
    if (const Status s = check_config(*m.target); !s.ok()) return s.at("config");
  } else {
    if (!m.drafter || m.target) return bad("kind", "a drafter package has a drafter config and no target config");
    if (const Status s = check_config(*m.drafter); !s.ok()) return s.at("config");
  }
  std::unordered_set<std::string> names;
  std::vector<std::pair<const StoredRow*, const std::string*>> stored;
  for (const TensorRow& t : m.tensors) {
    AERIE_TRY(check_name(t.name));
    if (!names.insert(t.name).second) return bad(t.name, "tensor given twice");
    AERIE_TRY(check_tensor(t));
    stored.emplace_back(&t.stored, &t.name);
  }
  names.clear();
  for (const BlobRow& b : m.blobs) {
    AERIE_TRY(check_name(b.name));
    if (!names.insert(b.name).second) return bad(b.name, "blob given twice");
    AERIE_TRY(check_stored(b.stored, b.name));
    stored.emplace_back(&b.stored, &b.name);
  }
  if (m.kind == PackageKind::target) AERIE_TRY(check_target_tensors(m));
  else if (m.drafter->decoder) {  // a plugin has more of its own
    TensorsByName found;
    for (const TensorRow& t : m.tensors) found.emplace(t.name, &t);
    AERIE_TRY(take_expected(expected_layer_tensors(*m.drafter->decoder), &found));
  }

  // Every blob begins at the first aligned byte after the one before: no overlap, no hiding place.
  std::sort(stored.begin(), stored.end(),
            [](const auto& a, const auto& b) { return a.first->offset < b.first->offset; });
  uint64_t end = 0;
  for (const auto& [s, name] : stored) {
    if (s->offset != align_up(end, kBlobAlignment)) return bad(*name, "offset: overlaps, misaligned or leaves a hole");
    if (s->offset > data_bytes || s->stored_bytes > data_bytes - s->offset)
      return bad(*name, "offset: outside the data region");
    end = s->offset + s->stored_bytes;
  }
  if (end != data_bytes) return bad("data length", "bytes after the last blob");
  return {};
}

}  // namespace aerie::package
