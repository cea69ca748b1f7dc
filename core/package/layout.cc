#include "core/package/layout.h"

#include <cmath>

namespace aerie::package {

using kernels::DType;
using kernels::Layout;

Status tensor_bytes(DType dtype, Layout layout, uint64_t rows, uint64_t cols, uint64_t* data, uint64_t* scales_offset,
                    uint64_t* raw) {
  const auto bad = [&](const char* what) {
    return error(Code::bad_format, std::string(what) + " (" + std::to_string(rows) + ", " + std::to_string(cols) + ")");
  };
  if (rows == 0 || cols == 0 || rows > static_cast<uint64_t>(kMaxSide) || cols > static_cast<uint64_t>(kMaxSide) ||
      rows > (uint64_t{1} << 40) / cols)
    return bad("absurd shape");
  const bool quantised = dtype == DType::int8 || dtype == DType::int4;
  if (quantised && layout != Layout::panel16) return bad("quantised tensor that is not packed");
  const auto r = static_cast<int64_t>(rows), c = static_cast<int64_t>(cols);
  *data = static_cast<uint64_t>(kernels::data_bytes(dtype, layout, r, c));
  const auto scales = static_cast<uint64_t>(kernels::scale_bytes(dtype, r, c));
  *scales_offset = scales ? (*data + kAlign - 1) / kAlign * kAlign : 0;
  *raw = scales ? *scales_offset + scales : *data;
  return {};
}

Status check(const LlamaConfig& c) {
  const auto bad = [](const char* field, double v) {
    return error(Code::bad_format, std::string("config: ") + field + " is " + std::to_string(v));
  };
  const auto in = [](int64_t v, int64_t low, int64_t high) { return v >= low && v <= high; };
  if (!in(c.vocab_size, 1, 1 << 24)) return bad("vocab_size", c.vocab_size);
  if (!in(c.vocab_used, 1, c.vocab_size)) return bad("vocab_used", c.vocab_used);
  if (!in(c.hidden, 1, 1 << 20)) return bad("hidden", c.hidden);
  if (!in(c.layers, 1, 1024)) return bad("layers", c.layers);
  if (!in(c.heads, 1, 4096)) return bad("heads", c.heads);
  if (!in(c.kv_heads, 1, c.heads) || c.heads % c.kv_heads != 0) return bad("kv_heads", c.kv_heads);
  if (!in(c.head_dim, 2, 1024) || c.head_dim % 2 != 0) return bad("head_dim", c.head_dim);
  if (!in(c.ffn, 1, 1 << 22)) return bad("ffn", c.ffn);
  if (!in(c.max_context, 1, 1 << 24)) return bad("max_context", c.max_context);
  if (!(std::isfinite(c.rms_eps) && c.rms_eps > 0 && c.rms_eps < 1)) return bad("rms_eps", c.rms_eps);
  if (!(std::isfinite(c.rope_theta) && c.rope_theta > 0)) return bad("rope_theta", c.rope_theta);
  const RopeScaling& s = c.rope_scaling;
  if (s.kind != RopeScaling::Kind::none && !(std::isfinite(s.factor) && s.factor > 0))
    return bad("rope factor", s.factor);
  if (s.kind == RopeScaling::Kind::llama3) {
    if (!(std::isfinite(s.low_freq_factor) && s.low_freq_factor > 0)) return bad("rope low_freq_factor", s.low_freq_factor);
    if (!(std::isfinite(s.high_freq_factor) && s.high_freq_factor > s.low_freq_factor))
      return bad("rope high_freq_factor", s.high_freq_factor);
    if (!in(s.original_context, 1, 1 << 24)) return bad("rope original_context", s.original_context);
  }
  if (!in(c.bos_id, -1, c.vocab_size - 1)) return bad("bos_id", c.bos_id);
  if (c.eos_ids.size() > 64) return bad("eos_ids: count", static_cast<double>(c.eos_ids.size()));
  for (const int32_t id : c.eos_ids)
    if (!in(id, 0, c.vocab_size - 1)) return bad("eos_ids", id);
  if (c.tap_layers.size() > 64) return bad("tap_layers: count", static_cast<double>(c.tap_layers.size()));
  for (const int32_t l : c.tap_layers)
    if (!in(l, 0, c.layers - 1)) return bad("tap_layers", l);
  return {};
}

Status check(const DrafterConfig& c) {
  if (c.plugin_id.empty() || c.plugin_id.size() > 63) return error(Code::bad_format, "drafter: plugin_id is empty or too long");
  for (const char ch : c.plugin_id)
    if (!((ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '-'))
      return error(Code::bad_format, "drafter: plugin_id has characters outside [a-z0-9_.-]");
  if (c.target_fingerprint.empty()) return error(Code::bad_format, "drafter: target_fingerprint is empty");
  for (const auto& p : c.params)
    if (!std::isfinite(p.value)) return error(Code::bad_format, "drafter: parameter " + p.name + " is not finite");
  return {};
}

}  // namespace aerie::package
