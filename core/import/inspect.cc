#include "core/import/inspect.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

#include "core/import/description.h"
#include "core/package/manifest.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

const char* dtype_name(kernels::DType t) {
  static const char* const names[] = {"f32", "bf16", "int8", "int4", "i32", "fp8", "q4_1", "mxfp4"};
  return names[static_cast<int>(t)];
}

// 1e-05, not the double nearest to the float nearest to it.
double shortest(float v) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

Description describe(const Departures& from) {
  static const char* const norms[] = {"before", "after", "both"};
  Description d = Description::group();
  d.add("norms", norms[static_cast<int>(from.norms)]).add("activation", from.gelu ? "gelu_tanh" : "silu");
  d.add("whole_qk_norm", from.whole_qk_norm).add("embed_scale", shortest(from.embed_scale));
  d.add("residual_scale", shortest(from.residual_scale)).add("attention_scale", shortest(from.attention_scale));
  if (from.experts > 0) {
    d.add("experts", from.experts).add("experts_used", from.experts_used).add("norm_experts", from.norm_experts);
    d.add("dense_layers", from.dense_layers).add("dense_ffn", from.dense_ffn).add("shared_ffn", from.shared_ffn).add("shared_gate", from.shared_gate);
    d.add("expert_choice", from.expert_choice).add("sigmoid_experts", from.sigmoid_experts).add("expert_scale", shortest(from.expert_scale));
  }
  d.add("o_bias", from.o_bias).add("sinks", from.sinks).add("expert_bias", from.expert_bias).add("glu_limit", shortest(from.glu_limit));
  d.add("windows", from.windows).add("layer_rope", from.layer_rope).add("output_gate", from.output_gate);
  if (!from.wide_layers.empty()) d.add("wide_layers", from.wide_layers).add("wide_kv_heads", from.wide_kv_heads).add("wide_head_dim", from.wide_head_dim);
  if (!from.kv_layers.empty()) d.add("kv_layers", from.kv_layers).add("reader_ffn", from.reader_ffn);
  if (from.v_norm || from.logit_cap != 0) d.add("v_norm", from.v_norm).add("logit_cap", shortest(from.logit_cap));
  if (from.score_cap != 0) d.add("score_cap", shortest(from.score_cap));
  if (from.layer_inputs > 0 || from.layer_scales) d.add("layer_inputs", from.layer_inputs).add("layer_scales", from.layer_scales);
  if (from.normed_experts) d.add("normed_experts", true);
  if (from.reads_target) d.add("reads_target", true);
  if (from.recurrent()) {
    d.add("delta_layers", from.delta_layers).add("delta_key_heads", from.delta_key_heads).add("delta_heads", from.delta_heads);
    d.add("delta_key_dim", from.delta_key_dim).add("delta_value_dim", from.delta_value_dim).add("delta_taps", from.delta_taps);
  }
  return d;
}

Description describe_config(const LlamaConfig& c) {
  static const char* const kinds[] = {"none", "linear", "llama3", "yarn", "listed"};
  Description d = Description::group();
  d.add("vocab_size", c.vocab_size).add("vocab_used", c.vocab_used).add("hidden", c.hidden).add("layers", c.layers);
  d.add("heads", c.heads).add("kv_heads", c.kv_heads).add("head_dim", c.head_dim).add("ffn", c.ffn);
  d.add("max_context", c.max_context).add("rms_eps", shortest(c.rms_eps)).add("rope_theta", shortest(c.rope_theta));
  d.add("rope_scaling", kinds[static_cast<int>(c.rope_scaling.kind)]);
  const RopeScaling& r = c.rope_scaling;
  if (r.kind != RopeScaling::Kind::none && r.kind != RopeScaling::Kind::listed) d.add("rope_factor", shortest(r.factor));
  if (r.kind == RopeScaling::Kind::llama3 || r.kind == RopeScaling::Kind::yarn) {
    d.add("rope_low_freq_factor", shortest(r.low_freq_factor)).add("rope_high_freq_factor", shortest(r.high_freq_factor));
    d.add("rope_original_context", r.original_context);
  }
  if (r.kind == RopeScaling::Kind::yarn) d.add("rope_attention_factor", shortest(r.attention_factor));
  d.add("tied", c.tied).add("qkv_bias", c.qkv_bias).add("qk_norm", c.qk_norm).add("bos_id", c.bos_id).add("eos_ids", c.eos_ids);
  d.add("tap_layers", c.tap_layers);
  if (c.departs()) d.add("departures", describe(c.departures));
  return d;
}

Description describe_tensor(const package::TensorRow& t) {
  Description d = Description::group();
  d.add("name", t.name).add("dtype", dtype_name(t.dtype));
  d.add("layout", t.layout == kernels::Layout::panel16 ? "panel16" : "row_major");
  d.add("shape", Description::list().add(t.rows).add(t.cols));
  d.add("codec", t.stored.codec == package::Codec::zstd ? "zstd" : "raw");
  d.add("stored_bytes", t.stored.stored_bytes).add("raw_bytes", t.stored.raw_bytes);
  return d;
}

// All but the tensors.
Description describe_package(const std::string& path, const package::Described& d) {
  const package::Manifest& m = d.manifest;
  Description all = Description::group();
  all.add("file", path).add("format", std::to_string(d.major) + "." + std::to_string(d.minor));
  all.add("file_bytes", d.file_bytes).add("kind", m.target ? "target" : "drafter");
  all.add("name", m.name).add("fingerprint", m.fingerprint);
  if (m.target) {
    all.add("config", describe_config(*m.target));
    for (const auto& t : m.tensors)
      if (t.name == "candidate.down") all.add("candidate_rank", t.rows);
  } else {
    Description params = Description::group();
    for (const auto& p : m.drafter->params) params.add(p.name, p.value);
    all.add("plugin", m.drafter->plugin_id).add("target_fingerprint", m.drafter->target_fingerprint);
    all.add("params", std::move(params));
    if (m.drafter->decoder) all.add("decoder", describe_config(*m.drafter->decoder));
  }
  int64_t parameters = 0;
  uint64_t stored = 0, raw = 0;
  for (const auto& t : m.tensors) {
    parameters += t.rows * t.cols;
    stored += t.stored.stored_bytes;
    raw += t.stored.raw_bytes;
  }
  Description blobs = Description::group();
  for (const auto& b : m.blobs) blobs.add(b.name, b.stored.raw_bytes);
  all.add("parameters", parameters).add("stored_bytes", stored).add("raw_bytes", raw).add("blobs", std::move(blobs));
  return all;
}

// Tensors that differ in their layer alone: one line.
struct Line {
  std::string before, after, shape;  // of its name, around the number; all of it before, where there is none
  const package::TensorRow* of;
  int64_t first = -1, last = -1;  // layers
  uint64_t bytes = 0;             // stored, of all
  bool goes_on_with(const Line& l) const {
    return first >= 0 && l.first == last + 1 && before == l.before && after == l.after && shape == l.shape && of->dtype == l.of->dtype &&
           of->layout == l.of->layout && of->stored.codec == l.of->stored.codec;
  }
  std::string name() const {
    if (first < 0) return before;
    return before + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "") + after;
  }
};

Line line_of(const package::TensorRow& t) {
  Line l{t.name, {}, "(" + std::to_string(t.rows) + ", " + std::to_string(t.cols) + ")", &t, -1, -1, t.stored.stored_bytes};
  const size_t dot = t.name.find('.');
  int32_t number = 0;
  const char* const end = t.name.data() + t.name.size();
  if (dot == std::string::npos) return l;
  const auto read = std::from_chars(t.name.data() + dot + 1, end, number);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '.') return l;
  l.before = t.name.substr(0, dot + 1);
  l.after = std::string(read.ptr, end);
  l.first = l.last = number;
  return l;
}

std::vector<Line> lines_of(const std::vector<package::TensorRow>& tensors) {
  std::vector<Line> lines;
  for (const package::TensorRow& t : tensors) {
    Line l = line_of(t);
    constexpr ptrdiff_t kBack = 64;  // a layer has fewer
    const auto from = lines.end() - std::min<ptrdiff_t>(kBack, std::ssize(lines));
    const auto same = std::find_if(from, lines.end(), [&](const Line& other) { return other.goes_on_with(l); });
    if (same == lines.end()) {
      lines.push_back(std::move(l));
    } else {
      same->last = l.first;
      same->bytes += l.bytes;
    }
  }
  return lines;
}

std::string as_text(const Description& package, const package::Manifest& m) {
  std::string out;
  for (const auto& [key, value] : package.items()) {
    if (!value.is_group()) {
      out += key + ": " + value.plain() + "\n";
    } else if (!value.items().empty()) {
      out += key + ":\n";
      for (const auto& [k, v] : value.items()) out += "  " + k + ": " + v.plain() + "\n";
    }
  }
  out += "tensors:\n";
  const std::vector<Line> lines = lines_of(m.tensors);
  size_t width = 28;
  for (const Line& l : lines) width = std::max(width, std::min<size_t>(l.name().size(), 40));
  for (const Line& l : lines) {
    const Description d = describe_tensor(*l.of);
    char line[384];
    std::snprintf(line, sizeof line, "  %-*s %-5s %-9s %-16s %-4s %llu\n", static_cast<int>(width), l.name().c_str(), d[1].plain().c_str(), d[2].plain().c_str(),
                  l.shape.c_str(), d[4].plain().c_str(), static_cast<unsigned long long>(l.bytes));
    out += line;
  }
  return out;
}

std::string as_json(Description package, const package::Manifest& m) {
  Description tensors = Description::list();
  for (const auto& t : m.tensors) tensors.add(describe_tensor(t));
  return package.add("tensors", std::move(tensors)).text() + "\n";
}

}  // namespace

Result<std::string> inspect(const std::string& path, bool json) {
  try {
    AERIE_ASSIGN(const auto file, platform::MappedFile::open(path));
    const Result<package::Described> d = package::describe(file->bytes());
    if (!d.ok()) return d.status().at(path);
    Description package = describe_package(path, *d);
    return json ? as_json(std::move(package), d->manifest) : as_text(package, d->manifest);
  } catch (const std::bad_alloc&) {
    return error(Code::out_of_memory, path + ": out of memory");
  }
}

}  // namespace aerie
