// GGUF files made on the spot.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "unit/package/fixtures.h"

namespace aerie::test {

class Gguf {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  void text(const std::string& key, const std::string& value) { add(key, 8) += string(value); }
  void u32(const std::string& key, uint32_t value) { add(key, 4) += raw(value); }
  void f32(const std::string& key, float value) { add(key, 6) += raw(value); }
  void boolean(const std::string& key, bool value) { add(key, 7) += raw(value); }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    std::string& out = list(key, 8, values.size());
    for (const std::string& v : values) out += string(v);
  }
  void i32s(const std::string& key, const std::vector<int32_t>& values) {
    std::string& out = list(key, 5, values.size());
    for (const int32_t v : values) out += raw(v);
  }
  void f32s(const std::string& key, const std::vector<float>& values) {
    std::string& out = list(key, 6, values.size());
    for (const float v : values) out += raw(v);
  }
  void forget(const std::string& key) { values_.erase(key); }

  // shape: rows first.
  void tensor(const std::string& name, std::vector<int64_t> shape, uint32_t type, const std::string& data) {
    tensors_[name] = {std::move(shape), type, data};
  }
  void tensor(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    tensor(name, std::move(shape), 0, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  }
  void forget_tensor(const std::string& name) { tensors_.erase(name); }

  std::string bytes() const {
    std::string head = "GGUF" + raw(version) + raw(uint64_t{tensors_.size()}) + raw(uint64_t{values_.size()}), data;
    for (const auto& [key, value] : values_) head += string(key) + value;
    for (const auto& [name, t] : tensors_) {
      head += string(name) + raw(static_cast<uint32_t>(t.shape.size()));
      for (size_t i = t.shape.size(); i-- > 0;) head += raw(static_cast<uint64_t>(t.shape[i]));
      head += raw(t.type) + raw(uint64_t{data.size()});
      data += t.data;
      data.resize((data.size() + alignment - 1) / alignment * alignment);
    }
    head.resize((head.size() + alignment - 1) / alignment * alignment);
    return head + data;
  }

 private:
  struct Tensor {
    std::vector<int64_t> shape;
    uint32_t type;
    std::string data;
  };
  template <class T>
  static std::string raw(const T& v) {
    std::string out(sizeof v, '\0');
    std::memcpy(out.data(), &v, sizeof v);
    return out;
  }
  static std::string string(const std::string& s) { return raw(uint64_t{s.size()}) + s; }
  std::string& add(const std::string& key, uint32_t type) { return values_[key] = raw(type); }
  std::string& list(const std::string& key, uint32_t type, size_t n) { return add(key, 9) += raw(type) + raw(uint64_t{n}); }

  std::map<std::string, std::string> values_;
  std::map<std::string, Tensor> tensors_;
};

// The model of llama_sources(c), as llama.cpp's converter writes it: q and k of "llama" with the pairs of a head side by side.
inline Gguf gguf_of(const Sources& sources, const LlamaConfig& c, const std::string& arch = "llama") {
  Gguf g;
  g.text("general.architecture", arch);
  g.u32(arch + ".embedding_length", static_cast<uint32_t>(c.hidden));
  g.u32(arch + ".block_count", static_cast<uint32_t>(c.layers));
  g.u32(arch + ".feed_forward_length", static_cast<uint32_t>(c.ffn));
  g.u32(arch + ".attention.head_count", static_cast<uint32_t>(c.heads));
  g.u32(arch + ".attention.head_count_kv", static_cast<uint32_t>(c.kv_heads));
  g.u32(arch + ".context_length", static_cast<uint32_t>(c.max_context));
  g.f32(arch + ".attention.layer_norm_rms_epsilon", c.rms_eps);
  g.f32(arch + ".rope.freq_base", c.rope_theta);
  g.u32(arch + ".rope.dimension_count", static_cast<uint32_t>(c.head_dim));
  static const std::pair<const char*, const char*> kNames[] = {
      {"model.embed_tokens.", "token_embd."}, {"model.norm.", "output_norm."},          {"lm_head.", "output."},
      {"model.layers.", "blk."},              {"input_layernorm.", "attn_norm."},       {"self_attn.q_proj.", "attn_q."},
      {"self_attn.k_proj.", "attn_k."},       {"self_attn.v_proj.", "attn_v."},         {"self_attn.o_proj.", "attn_output."},
      {"mlp.gate_proj.", "ffn_gate."},        {"post_attention_layernorm.", "ffn_norm."}, {"mlp.up_proj.", "ffn_up."},
      {"mlp.down_proj.", "ffn_down."}};
  for (const auto& [from, s] : sources) {
    std::string name = from;
    for (const auto& [hf, gguf] : kNames)
      if (const size_t at = name.find(hf); at != std::string::npos) name.replace(at, std::strlen(hf), gguf);
    std::vector<float> v = s.values;
    const int64_t heads = name.find("attn_q.") != std::string::npos ? c.heads : name.find("attn_k.") != std::string::npos ? c.kv_heads : 0;
    if (heads && arch == "llama") {
      const int64_t cols = static_cast<int64_t>(v.size()) / (heads * c.head_dim), half = c.head_dim / 2;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < c.head_dim; ++i)
          for (int64_t k = 0; k < cols; ++k)
            v[static_cast<size_t>((h * c.head_dim + i % half * 2 + i / half) * cols + k)] =
                s.values[static_cast<size_t>((h * c.head_dim + i) * cols + k)];
    }
    g.tensor(name, s.shape, v);
  }
  return g;
}

}  // namespace aerie::test
