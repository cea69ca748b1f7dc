// package_weights PACKAGE.aerie: a target package, or an EAGLE-3 head's, on stdout, for gguf_package.py. First a line of JSON:
// its settings, and the bytes of a target's tokens (hexadecimal) or the target's ids of a head's; then its tensors as row-major
// f32, in the order of docs/package-format.md's table, a tied LM head written out.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/package/package.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "protocol.h"

namespace {

using namespace aerie;

template <class T>
T take(Result<T> r) {
  if (!r.ok()) bench::fail(r.status().message());
  return std::move(r).value();
}

nlohmann::json settings(const Package& package) {
  const LlamaConfig& c = *package.target();
  if (c.rope_scaling.kind != RopeScaling::Kind::none || c.qkv_bias || c.qk_norm)
    bench::fail(package.path() + ": RoPE scaling, biases or norms of q and k");
  nlohmann::json j = {{"hidden", c.hidden}, {"layers", c.layers}, {"heads", c.heads}, {"kv_heads", c.kv_heads}, {"ffn", c.ffn},
                      {"head_size", c.head_dim}, {"vocab", c.vocab_size}, {"context", c.max_context}, {"rms_eps", c.rms_eps},
                      {"rope_theta", c.rope_theta}, {"vocab_used", c.vocab_used}, {"eos", c.eos_ids}};
  const auto tokenizer = take(text::Tokenizer::deserialize(package.blob("tokenizer")));
  for (int32_t id = 0; id < c.vocab_used; ++id) {
    std::string hex;
    for (const char byte : id < tokenizer->vocab_size() ? tokenizer->token_bytes(id, -1) : std::string_view{}) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
      hex += two;
    }
    j["tokens"].push_back(hex);
  }
  return j;
}

nlohmann::json head_settings(const Package& package) {
  const DrafterConfig& d = *package.drafter();
  if (d.plugin_id != "eagle3" || package.has("embed")) bench::fail(package.path() + ": not an EAGLE-3 head that has its target's embedding");
  nlohmann::json j = nlohmann::json::object();
  for (const auto& [name, value] : d.params) j[name] = value;
  if (package.has("vocab_map")) {
    const kernels::Tensor map = take(package.tensor("vocab_map"));
    const auto* ids = static_cast<const int32_t*>(map.data);
    j["vocab_map"] = std::vector<int32_t>(ids, ids + map.cols);
  }
  return j;
}

void write(const Package& package, const std::string& name) {
  const kernels::Tensor t = take(package.tensor(name));
  std::vector<float> row(static_cast<size_t>(t.cols));
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c)
      row[static_cast<size_t>(c)] = t.layout == kernels::Layout::panel16
                                        ? kernels::panel16_at(t, r, c)
                                        : static_cast<const float*>(t.data)[r * t.stride + c];
    if (std::fwrite(row.data(), sizeof(float), row.size(), stdout) != row.size()) bench::fail("stdout: cannot be written");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) bench::fail("usage: package_weights PACKAGE.aerie");
  const auto package = take(Package::open(argv[1]));
  const LlamaConfig* target = package->target();
  std::printf("%s\n", (target ? settings(*package) : head_settings(*package)).dump().c_str());
  for (const char* name : target ? std::vector{"embed"} : std::vector{"fc", "input_norm", "hidden_norm"}) write(*package, name);
  for (int32_t i = 0; i < (target ? target->layers : 1); ++i)
    for (const char* part : {"attn_norm", "attn.qkv", "attn.o", "mlp_norm", "mlp.gate_up", "mlp.down"})
      if (target || std::string_view(part) != "attn_norm") write(*package, "layers." + std::to_string(i) + "." + part);
  write(*package, "norm");
  write(*package, target && target->tied ? "embed" : "lm_head");
  return std::fflush(stdout) == 0 ? 0 : 1;
}
