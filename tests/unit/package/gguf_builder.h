// GGUF files made on the spot.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

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
  void booleans(const std::string& key, const std::vector<bool>& values) {
    std::string& out = list(key, 7, values.size());
    for (const bool v : values) out += raw(v);
  }
  void forget(const std::string& key) { values_.erase(key); }

  // shape: rows first.
  void tensor(const std::string& name, std::vector<int64_t> shape, uint32_t type, const std::string& data) {
    tensors_[name] = {std::move(shape), type, data};
  }
  void tensor(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    tensor(name, std::move(shape), 0, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  }
  const std::string& data(const std::string& tensor) const { return tensors_.at(tensor).data; }
  const std::vector<int64_t>& shape(const std::string& tensor) const { return tensors_.at(tensor).shape; }
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

// GPT-2's characters for the 256 bytes.
inline std::vector<std::string> byte_letters() {
  std::vector<std::string> letters;
  for (uint32_t b = 0, next = 256; b < 256; ++b) {
    const uint32_t c = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD) ? b : next++;
    letters.push_back(c < 128 ? std::string(1, static_cast<char>(c))
                              : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))});
  }
  return letters;
}

// <unk>, <s>, </s>, the bytes, and pieces with falling scores.
inline void add_pieces(Gguf& g, const std::vector<std::string>& pieces) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (unsigned b = 0; b < 256; ++b) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
    types.push_back(6);
  }
  for (const std::string& p : pieces) {
    tokens.push_back(p);
    types.push_back(p.starts_with("<|") ? 3 : p.starts_with("<u") ? 4 : 1);
  }
  std::vector<float> scores(tokens.size());
  for (size_t i = 259; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  g.text("tokenizer.ggml.model", "llama");
  g.texts("tokenizer.ggml.tokens", tokens);
  g.i32s("tokenizer.ggml.token_type", types);
  g.f32s("tokenizer.ggml.scores", scores);
}

// A model of one layer with a tokenizer of either kind.
inline Gguf small_gguf(bool pieces) {
  constexpr int64_t kTokens = 300, kHidden = 8, kFfn = 12;
  Gguf g;
  g.text("general.architecture", "llama");
  for (const auto& [key, value] : {std::pair{"embedding_length", 8u}, {"block_count", 1u}, {"feed_forward_length", 12u},
                                   {"attention.head_count", 2u}, {"attention.head_count_kv", 1u}, {"context_length", 32u}})
    g.u32(std::string("llama.") + key, value);
  g.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  g.text("tokenizer.chat_template", "{{ a template that is not short }}");
  g.u32("tokenizer.ggml.eos_token_id", 2);
  const auto tensor = [&](const std::string& name, const std::vector<int64_t>& shape) {
    std::vector<float> values(static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37 + name.size()) % 101) / 64 - 0.7f;
    g.tensor(name, shape, values);
  };
  for (const char* name : {"token_embd.weight", "output.weight"}) tensor(name, {kTokens, kHidden});
  for (const char* name : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) tensor(name, {kHidden});
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_output.weight"}) tensor(name, {kHidden, kHidden});
  for (const char* name : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"}) tensor(name, {4, kHidden});
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}) tensor(name, {kFfn, kHidden});
  tensor("blk.0.ffn_down.weight", {kHidden, kFfn});
  if (pieces) {
    add_pieces(g, {"\u2581", "a", "\u2581a", "<|im_end|>", "<user>"});
    return g;
  }
  std::vector<std::string> letters = byte_letters();
  letters.insert(letters.end(), {"ab", "<|im_end|>"});
  std::vector<int32_t> types(letters.size(), 1);
  types.back() = 3;
  g.text("tokenizer.ggml.model", "gpt2");
  g.text("tokenizer.ggml.pre", "qwen2");
  g.texts("tokenizer.ggml.tokens", letters);
  g.i32s("tokenizer.ggml.token_type", types);
  g.texts("tokenizer.ggml.merges", {"a b"});
  return g;
}

}  // namespace aerie::test
