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

}  // namespace aerie::test
