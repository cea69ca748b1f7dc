#include "core/package/validate.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "core/package/bounds.h"
#include "core/package/format.h"
#include "core/package/rope_params.h"
#include "core/platform/utf8.h"
#include "kernels/ops.h"

namespace aerie::package {

using kernels::DType;
using kernels::Layout;

namespace {

Status check_stored(const StoredRow& s, const std::string& name) {
  if (s.raw_bytes == 0 || s.stored_bytes == 0) return bad_field(name, "is empty");
  if (s.codec == Codec::raw) {
    if (s.stored_bytes != s.raw_bytes) return bad_field(name, "raw, but stored and raw lengths differ");
    if (!s.chunks.empty()) return bad_field(name, "raw, but has chunks");
    return {};
  }
  if (s.raw_bytes / kMaxExpansion > s.stored_bytes)
    return bad_field(name,
               std::to_string(s.stored_bytes) + " stored bytes claim to unpack to " + std::to_string(s.raw_bytes));
  uint64_t stored = 0, raw = 0;  // at most 2^32 * 1e6 each: no overflow
  for (const ChunkRow& c : s.chunks) {
    if (c.raw_bytes == 0 || c.raw_bytes > kMaxChunkBytes || c.stored_bytes == 0)
      return bad_field(name, "a chunk has no bytes or more than 16 MiB");
    stored += c.stored_bytes;
    raw += c.raw_bytes;
  }
  if (stored != s.stored_bytes || raw != s.raw_bytes) return bad_field(name, "its chunks do not add up to its length");
  return {};
}

Status check_tensor(const TensorRow& t) {
  if (t.rows < 1 || t.rows > kMaxRows || t.cols < 1 || t.cols > kMaxCols)
    return bad_field(t.name, "shape " + shape(t.rows, t.cols) + " is out of range");
  uint64_t raw = 0, scales = 0;
  if (!tensor_extent(t.dtype, t.layout, t.rows, t.cols, &raw, &scales))
    return bad_field(t.name, "this dtype and layout do not go together");
  if (raw != t.stored.raw_bytes)
    return bad_field(t.name, "shape " + shape(t.rows, t.cols) + " needs " + std::to_string(raw) +
                           " bytes, the manifest says " + std::to_string(t.stored.raw_bytes));
  if (scales != t.scales_offset) return bad_field(t.name, "scales offset is wrong");
  return check_stored(t.stored, t.name);
}

using TensorsByName = std::unordered_map<std::string, const TensorRow*>;

// The one optional pair of tensors: both or none, of a rank that fits.
Status take_candidate_head(const LlamaConfig& c, TensorsByName* found) {
  const std::string down = "candidate.down", up = "candidate.up";
  const auto d = found->find(down), u = found->find(up);
  if (d == found->end() && u == found->end()) return {};
  if (c.departures.logit_cap > 0) return bad_field(down, "beside logit_cap");
  if (d == found->end()) return bad_field(down, "the tensor is missing, " + up + " is there");
  if (u == found->end()) return bad_field(up, "the tensor is missing, " + down + " is there");
  const TensorRow &a = *d->second, &b = *u->second;
  if (a.cols != c.hidden || a.rows > c.hidden)
    return bad_field(down, "shape " + shape(a.rows, a.cols) + ", the config needs (rank, " + std::to_string(c.hidden) +
                         ") with a rank of at most " + std::to_string(c.hidden));
  if (b.rows != c.vocab_size || b.cols != a.rows)
    return bad_field(up, "shape " + shape(b.rows, b.cols) + ", " + down + " and the config need " + shape(c.vocab_size, a.rows));
  for (const TensorRow* t : {&a, &b})
    if (t->layout != Layout::panel16) return bad_field(t->name, "must be in the panel16 layout");
  found->erase(d);
  found->erase(u);
  return {};
}

// Those that are there are as they are to be; what is left is nobody's.
Status take_expected(const std::vector<ExpectedTensor>& expected, TensorsByName* found) {
  for (const ExpectedTensor& e : expected) {
    const auto it = found->find(e.name);
    if (it == found->end()) return bad_field(e.name, "the tensor is missing");
    const TensorRow& t = *it->second;
    if (t.rows != e.rows || t.cols != e.cols)
      return bad_field(e.name, "shape " + shape(t.rows, t.cols) + ", the config needs " + shape(e.rows, e.cols));
    if (e.weight ? t.layout != Layout::panel16 : t.layout != Layout::row_major || t.dtype != DType::f32)
      return bad_field(e.name, e.weight ? "must be in the panel16 layout" : "must be f32, row_major");
    if (e.precise && t.dtype != DType::bf16 && t.dtype != DType::f32) return bad_field(e.name, "must be bf16 or f32");
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
    return bad_field(first->first, "unexpected tensor");
  }
  return {};
}

}  // namespace

Status check_name(const std::string& name) {
  if (!name.empty() && name.size() <= 255 &&
      std::all_of(name.begin(), name.end(), [](char c) { return c > 32 && c < 127; }))
    return {};
  return bad_field("names", "a name is empty, too long or not printable ASCII");
}

Status check_fingerprint(const std::string& hex) {
  if (hex.size() >= 16 && hex.size() <= 64 &&
      std::all_of(hex.begin(), hex.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }))
    return {};
  return bad_field("fingerprint", "not 16 to 64 lower-case hex digits");
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

Status check_config(const LlamaConfig& c) {
  AERIE_TRY(range("vocab_size", c.vocab_size, 1, 1 << 22));
  AERIE_TRY(range("vocab_used", c.vocab_used, 1, c.vocab_size));
  AERIE_TRY(range("hidden", c.hidden, 1, 1 << 17));
  AERIE_TRY(range("layers", c.layers, 1, 1024));
  AERIE_TRY(range("heads", c.heads, 1, 4096));
  AERIE_TRY(range("kv_heads", c.kv_heads, 1, c.heads));
  if (c.heads % c.kv_heads)
    return bad_field("kv_heads", std::to_string(c.kv_heads) + " does not divide heads " + std::to_string(c.heads));
  AERIE_TRY(range("head_dim", c.head_dim, 2, 1024));
  if (c.head_dim % 2) return bad_field("head_dim", std::to_string(c.head_dim) + " is odd");
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
    return bad_field("plugin_id", "not 1 to 63 of a-z 0-9 _ - .");
  if (const Status s = check_fingerprint(c.target_fingerprint); !s.ok()) return s.at("target");
  AERIE_TRY(range("params count", static_cast<int64_t>(c.params.size()), 0, 256));
  std::unordered_set<std::string> names;
  for (const auto& p : c.params) {
    AERIE_TRY(check_name(p.name));
    if (!names.insert(p.name).second) return bad_field(p.name, "parameter given twice");
    if (!std::isfinite(p.value)) return bad_field(p.name, "parameter is not finite");
  }
  AERIE_TRY(read_rope_scaling(c).status());
  if (!c.decoder) return {};
  if (const Status s = check_config(*c.decoder); !s.ok()) return s.at("decoder");
  const Departures& d = c.decoder->departures;
  if (d.recurrent()) return bad_field("decoder", "has recurrent layers, which do not draft");
  if ((!d.wide_layers.empty() && !d.reads_target) || !d.kv_layers.empty() || d.layer_inputs > 0 || d.logit_cap != 0)
    return bad_field("decoder", "kv_layers, layer_inputs and logit_cap are of targets, and wide_layers, too, but with reads_target");
  return c.decoder->layers <= 64 ? Status() : bad_field("decoder", "layers: " + std::to_string(c.decoder->layers) + ", the most is 64");
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
  if (m.name.size() > 255 || one_line(m.name) != m.name) return bad_field("name", "too long, not UTF-8, or has control characters");
  AERIE_TRY(check_fingerprint(m.fingerprint));
  if (m.kind == PackageKind::target) {
    if (!m.target || m.drafter) return bad_field("kind", "a target package has a target config and no drafter config");
    if (m.target->departures.reads_target) return bad_field("config: reads_target", "is of drafters");
    if (const Status s = check_config(*m.target); !s.ok()) return s.at("config");
  } else {
    if (!m.drafter || m.target) return bad_field("kind", "a drafter package has a drafter config and no target config");
    if (const Status s = check_config(*m.drafter); !s.ok()) return s.at("config");
  }
  std::unordered_set<std::string> names;
  std::vector<std::pair<const StoredRow*, const std::string*>> stored;
  for (const TensorRow& t : m.tensors) {
    AERIE_TRY(check_name(t.name));
    if (!names.insert(t.name).second) return bad_field(t.name, "tensor given twice");
    AERIE_TRY(check_tensor(t));
    stored.emplace_back(&t.stored, &t.name);
  }
  names.clear();
  for (const BlobRow& b : m.blobs) {
    AERIE_TRY(check_name(b.name));
    if (!names.insert(b.name).second) return bad_field(b.name, "blob given twice");
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
    if (s->offset != align_up(end, kBlobAlignment)) return bad_field(*name, "offset: overlaps, misaligned or leaves a hole");
    if (s->offset > data_bytes || s->stored_bytes > data_bytes - s->offset)
      return bad_field(*name, "offset: outside the data region");
    end = s->offset + s->stored_bytes;
  }
  if (end != data_bytes) return bad_field("data length", "bytes after the last blob");
  return {};
}

}  // namespace aerie::package
