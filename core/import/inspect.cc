#include "core/import/inspect.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/package/package.h"

namespace aerie {

namespace {
using nlohmann::ordered_json;
const char* dtype_name(kernels::DType t) {
  static const char* const names[] = {"f32", "bf16", "int8", "int4", "i32"};
  return names[static_cast<int>(t)];
}
}  // namespace

Result<std::string> inspect(const std::string& path, bool as_json) {
  AERIE_ASSIGN(const auto p, Package::open(path));
  ordered_json j;
  j["file"] = path;
  j["kind"] = p->target() ? "target" : "drafter";
  j["name"] = p->name();
  j["fingerprint"] = p->fingerprint();
  if (const LlamaConfig* c = p->target()) {
    static const char* const scaling[] = {"none", "linear", "llama3"};
    j["config"] = {{"vocab_size", c->vocab_size}, {"vocab_used", c->vocab_used}, {"hidden", c->hidden},
                   {"layers", c->layers},         {"heads", c->heads},           {"kv_heads", c->kv_heads},
                   {"head_dim", c->head_dim},     {"ffn", c->ffn},               {"max_context", c->max_context},
                   {"rms_eps", c->rms_eps},       {"rope_theta", c->rope_theta}, {"rope_scaling", scaling[static_cast<int>(c->rope_scaling.kind)]},
                   {"tied", c->tied},             {"qkv_bias", c->qkv_bias},     {"bos_id", c->bos_id},
                   {"eos_ids", c->eos_ids},       {"tap_layers", c->tap_layers}};
  } else {
    j["plugin"] = p->drafter()->plugin_id;
    j["target_fingerprint"] = p->drafter()->target_fingerprint;
    for (const auto& q : p->drafter()->params) j["params"][q.name] = q.value;
  }
  int64_t parameters = 0, stored = 0;
  j["tensors"] = ordered_json::array();
  for (const TensorInfo& t : p->tensors()) {
    parameters += t.rows * t.cols;
    stored += t.stored_bytes;
    j["tensors"].push_back({{"name", t.name}, {"dtype", dtype_name(t.dtype)},
                            {"layout", t.layout == kernels::Layout::panel16 ? "panel16" : "row_major"},
                            {"shape", {t.rows, t.cols}}, {"codec", t.codec}, {"stored_bytes", t.stored_bytes}});
  }
  j["parameters"] = parameters;
  j["stored_bytes"] = stored;
  for (const char* name : {"tokenizer", "chat_template"})
    if (!p->blob(name).empty()) j["blobs"][name] = p->blob(name).size();
  if (as_json) return j.dump(2) + "\n";
  std::string out;
  for (const auto& [key, value] : j.items()) {
    if (key == "tensors") continue;
    if (value.is_object()) {
      out += key + ":\n";
      for (const auto& [k, v] : value.items()) out += "  " + k + ": " + (v.is_string() ? v.get<std::string>() : v.dump()) + "\n";
    } else {
      out += key + ": " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
  }
  out += "tensors:\n";
  for (const auto& t : j["tensors"]) {
    char line[256];
    std::snprintf(line, sizeof line, "  %-28s %-5s %-9s (%lld, %lld) %s\n", t["name"].get<std::string>().c_str(),
                  t["dtype"].get<std::string>().c_str(), t["layout"].get<std::string>().c_str(),
                  t["shape"][0].get<long long>(), t["shape"][1].get<long long>(), t["codec"].get<std::string>().c_str());
    out += line;
  }
  return out;
}

}  // namespace aerie
