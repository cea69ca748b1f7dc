#include "unit/package/fixtures.h"

#include <xxhash.h>

#include <bit>
#include <nlohmann/json.hpp>

namespace aerie::test {

Bytes put_together(const Parts& parts, Bytes manifest) {
  Bytes file;
  file.reserve(package::kDataAlignment + parts.data.size() + package::kBlobAlignment + manifest.size());
  file.resize(package::kDataAlignment);
  file.insert(file.end(), parts.data.begin(), parts.data.end());
  file.resize(package::align_up(file.size(), package::kBlobAlignment));
  package::Header h;
  h.major = parts.header.major;
  h.minor = parts.header.minor;
  h.manifest_offset = file.size();
  h.manifest_bytes = manifest.size();
  h.manifest_xxh64 = XXH64(manifest.data(), manifest.size(), 0);
  h.data_offset = package::kDataAlignment;
  h.data_bytes = parts.data.size();
  file.insert(file.end(), manifest.begin(), manifest.end());
  h.file_bytes = file.size();
  const auto header = package::encode_header(h);
  std::copy(header.begin(), header.end(), file.begin());
  return file;
}

namespace {
uint16_t test_half(float v) {  // the fixtures' values: multiples of 1/64 below 2, exact
  if (v == 0) return 0;
  const auto u = std::bit_cast<uint32_t>(v);
  const int exponent = static_cast<int>(u >> 23 & 255) - 127 + 15;
  return static_cast<uint16_t>((u >> 16 & 0x8000) | static_cast<uint32_t>(exponent << 10) | (u >> 13 & 1023));
}
}  // namespace

Bytes safetensors(const Sources& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  Bytes data;
  for (const auto& [name, t] : tensors) {
    const size_t begin = data.size(), bytes = t.dtype == "U8" ? 1 : t.dtype == "F32" ? 4 : 2;
    const bool halves = t.dtype != "BF16" && bytes == 2;
    data.resize(begin + t.values.size() * bytes);
    uint8_t* to = data.data() + begin;
    for (const float v : t.values) {
      const auto u = std::bit_cast<uint32_t>(v);
      const uint32_t bits = bytes == 1 ? static_cast<uint8_t>(v) : bytes == 4 ? u : halves ? test_half(v) : u >> 16;
      std::memcpy(to, &bits, bytes);  // the lower ones
      to += bytes;
    }
    header[name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const uint64_t n = text.size();
  Bytes file;
  file.reserve(sizeof n + text.size() + data.size());
  file.resize(sizeof n);
  std::memcpy(file.data(), &n, sizeof n);
  file.insert(file.end(), text.begin(), text.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

void add_layer(Sources* s, const std::string& at, const LlamaConfig& c, const std::string& dtype) {
  const int64_t h = c.hidden, f = c.ffn, q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    (*s)[at + name] = source(at + name, std::move(shape), dtype);
  };
  add("self_attn.q_proj.weight", {q, h});
  add("self_attn.k_proj.weight", {kv, h});
  add("self_attn.v_proj.weight", {kv, h});
  add("self_attn.o_proj.weight", {h, q});
  add("post_attention_layernorm.weight", {h});
  add("mlp.gate_proj.weight", {f, h});
  add("mlp.up_proj.weight", {f, h});
  add("mlp.down_proj.weight", {h, f});
}

Sources llama_sources(const LlamaConfig& c, const std::string& dtype) {
  Sources s;
  s["model.embed_tokens.weight"] = source("embed", {c.vocab_size, c.hidden}, dtype);
  s["model.norm.weight"] = source("norm", {c.hidden}, dtype);
  if (!c.tied) s["lm_head.weight"] = source("head", {c.vocab_size, c.hidden}, dtype);
  for (int32_t i = 0; i < c.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    s[at + "input_layernorm.weight"] = source(at, {c.hidden}, dtype);
    add_layer(&s, at, c, dtype);
    if (c.qk_norm)
      for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) s[at + name] = source(name, {c.head_dim}, dtype);
    if (c.qkv_bias) {
      s[at + "self_attn.q_proj.bias"] = source("qb", {c.heads * c.head_dim}, dtype);
      s[at + "self_attn.k_proj.bias"] = source("kb", {c.kv_heads * c.head_dim}, dtype);
      s[at + "self_attn.v_proj.bias"] = source("vb", {c.kv_heads * c.head_dim}, dtype);
    }
  }
  return s;
}

namespace {
std::string with_more(nlohmann::json j, const std::string& more) {
  j.update(nlohmann::json::parse("{" + more + "}"));
  return j.dump();
}
}  // namespace

std::string llama_json(const LlamaConfig& c, const std::string& more) {
  return with_more({{"model_type", c.qk_norm ? "qwen3" : "llama"},
                    {"head_dim", c.head_dim},
                    {"hidden_act", "silu"},
                    {"vocab_size", c.vocab_size},
                    {"hidden_size", c.hidden},
                    {"intermediate_size", c.ffn},
                    {"num_hidden_layers", c.layers},
                    {"num_attention_heads", c.heads},
                    {"num_key_value_heads", c.kv_heads},
                    {"max_position_embeddings", c.max_context},
                    {"rms_norm_eps", 1e-5},
                    {"rope_theta", 10000.0},
                    {"rope_scaling", nullptr},
                    {"bos_token_id", 1},
                    {"eos_token_id", {2, 3}},
                    {"tie_word_embeddings", c.tied}},
                   more);
}

Sources eagle_sources(const LlamaConfig& c) {
  Sources s;
  s["fc.weight"] = source("fc", {c.hidden, 2 * c.hidden});
  add_layer(&s, "layers.0.", c, "F32");
  return s;
}

std::string eagle_json(const LlamaConfig& c, const std::string& more) {
  return with_more({{"architectures", {"LlamaForCausalLM"}},
                    {"hidden_act", "silu"},
                    {"vocab_size", c.vocab_size},
                    {"hidden_size", c.hidden},
                    {"intermediate_size", c.ffn},
                    {"num_attention_heads", c.heads},
                    {"num_key_value_heads", c.kv_heads},
                    {"rms_norm_eps", 1e-5}},
                   more);
}

}  // namespace aerie::test
