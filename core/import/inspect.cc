#include "core/import/inspect.h"

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/package/manifest.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

using nlohmann::ordered_json;

const char* dtype_name(kernels::DType t) {
  static const char* const names[] = {"f32", "bf16", "int8", "int4", "i32", "fp8"};
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

ordered_json config_json(const LlamaConfig& c) {
  static const char* const kinds[] = {"none", "linear", "llama3"};
  ordered_json j = {{"vocab_size", c.vocab_size},
                    {"vocab_used", c.vocab_used},
                    {"hidden", c.hidden},
                    {"layers", c.layers},
                    {"heads", c.heads},
                    {"kv_heads", c.kv_heads},
                    {"head_dim", c.head_dim},
                    {"ffn", c.ffn},
                    {"max_context", c.max_context},
                    {"rms_eps", shortest(c.rms_eps)},
                    {"rope_theta", shortest(c.rope_theta)},
                    {"rope_scaling", kinds[static_cast<int>(c.rope_scaling.kind)]}};
  const RopeScaling& r = c.rope_scaling;
  if (r.kind != RopeScaling::Kind::none) j["rope_factor"] = shortest(r.factor);
  if (r.kind == RopeScaling::Kind::llama3) {
    j["rope_low_freq_factor"] = shortest(r.low_freq_factor);
    j["rope_high_freq_factor"] = shortest(r.high_freq_factor);
    j["rope_original_context"] = r.original_context;
  }
  j["tied"] = c.tied;
  j["qkv_bias"] = c.qkv_bias;
  j["bos_id"] = c.bos_id;
  j["eos_ids"] = c.eos_ids;
  j["tap_layers"] = c.tap_layers;
  return j;
}

ordered_json describe_json(const std::string& path, const package::Described& d) {
  const package::Manifest& m = d.manifest;
  ordered_json j;
  j["file"] = path;
  j["format"] = std::to_string(d.major) + "." + std::to_string(d.minor);
  j["file_bytes"] = d.file_bytes;
  j["kind"] = m.target ? "target" : "drafter";
  j["name"] = m.name;
  j["fingerprint"] = m.fingerprint;
  if (m.target) {
    j["config"] = config_json(*m.target);
    for (const auto& t : m.tensors)
      if (t.name == "candidate.down") j["candidate_rank"] = t.rows;
  } else {
    j["plugin"] = m.drafter->plugin_id;
    j["target_fingerprint"] = m.drafter->target_fingerprint;
    j["params"] = ordered_json::object();
    for (const auto& p : m.drafter->params) j["params"][p.name] = p.value;
  }
  int64_t parameters = 0;
  uint64_t stored = 0, raw = 0;
  for (const auto& t : m.tensors) {
    parameters += t.rows * t.cols;
    stored += t.stored.stored_bytes;
    raw += t.stored.raw_bytes;
  }
  j["parameters"] = parameters;
  j["stored_bytes"] = stored;
  j["raw_bytes"] = raw;
  j["blobs"] = ordered_json::object();
  for (const auto& b : m.blobs) j["blobs"][b.name] = b.stored.raw_bytes;
  j["tensors"] = ordered_json::array();
  for (const auto& t : m.tensors)
    j["tensors"].push_back({{"name", t.name},
                            {"dtype", dtype_name(t.dtype)},
                            {"layout", t.layout == kernels::Layout::panel16 ? "panel16" : "row_major"},
                            {"shape", {t.rows, t.cols}},
                            {"codec", t.stored.codec == package::Codec::zstd ? "zstd" : "raw"},
                            {"stored_bytes", t.stored.stored_bytes},
                            {"raw_bytes", t.stored.raw_bytes}});
  return j;
}

std::string plain(const ordered_json& v) {
  return v.is_string() ? v.get<std::string>() : v.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string describe_text(const ordered_json& j) {
  std::string out;
  for (const auto& [key, value] : j.items()) {
    if (key == "tensors") continue;
    if (!value.is_object()) {
      out += key + ": " + plain(value) + "\n";
    } else if (!value.empty()) {
      out += key + ":\n";
      for (const auto& [k, v] : value.items()) out += "  " + k + ": " + plain(v) + "\n";
    }
  }
  out += "tensors:\n";
  for (const auto& t : j["tensors"]) {
    const std::string shape = std::string("(") + plain(t["shape"][0]) + ", " + plain(t["shape"][1]) + ")";
    char line[384];
    std::snprintf(line, sizeof line, "  %-28s %-5s %-9s %-16s %-4s %llu\n",
                  t["name"].get_ref<const std::string&>().c_str(), plain(t["dtype"]).c_str(),
                  plain(t["layout"]).c_str(), shape.c_str(), plain(t["codec"]).c_str(),
                  t["stored_bytes"].get<unsigned long long>());
    out += line;
  }
  return out;
}

}  // namespace

Result<std::string> inspect(const std::string& path, bool as_json) {
  try {
    AERIE_ASSIGN(const auto file, platform::MappedFile::open(path));
    const Result<package::Described> d = package::describe(file->bytes());
    if (!d.ok()) return d.status().at(path);
    const ordered_json j = describe_json(path, *d);
    return as_json ? j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n" : describe_text(j);
  } catch (const std::bad_alloc&) {
    return error(Code::out_of_memory, path + ": out of memory");
  }
}

}  // namespace aerie
