// package_weights PACKAGE.aerie: a target package on stdout, for gguf_package.py. First a line of JSON, its settings and
// the bytes of its tokens (hexadecimal); then its tensors as row-major f32, in the order of docs/package-format.md's table,
// a tied LM head written out.
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
  if (!package->target()) bench::fail(package->path() + ": not a target package");
  std::printf("%s\n", settings(*package).dump().c_str());
  write(*package, "embed");
  for (int32_t i = 0; i < package->target()->layers; ++i)
    for (const char* part : {"attn_norm", "attn.qkv", "attn.o", "mlp_norm", "mlp.gate_up", "mlp.down"})
      write(*package, "layers." + std::to_string(i) + "." + part);
  write(*package, "norm");
  write(*package, package->target()->tied ? "embed" : "lm_head");
  return std::fflush(stdout) == 0 ? 0 : 1;
}
