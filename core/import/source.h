// A checkpoint as f32 tensors by name, whatever its file format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/status.h"

namespace aerie {

struct SourceTensor {
  std::vector<int64_t> shape;
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& name() const = 0;  // for errors
  virtual const std::map<std::string, SourceTensor>& tensors() const = 0;
  virtual Result<std::vector<float>> read(const std::string& tensor) const = 0;
};

// model.safetensors, or the shards of model.safetensors.index.json, in `directory`.
Result<std::unique_ptr<TensorSource>> open_safetensors(const std::string& directory);

// JSON of a file, at most `cap` bytes.
Result<nlohmann::json> read_json(const std::string& path, uint64_t cap = 64u << 20);

// Takes tensors out of a source and keeps count, so that nothing is missing and nothing is left over.
class TensorTaker {
 public:
  explicit TensorTaker(const TensorSource& source) : source_(source) {
    for (const auto& t : source.tensors()) left_.emplace(t.first, true);
  }
  bool has(const std::string& name) const { return left_.count(name) != 0; }
  // (rows, cols); rows 1 for a vector.
  Result<std::vector<float>> take(const std::string& name, int64_t rows, int64_t cols);
  void ignore(const std::string& name) { left_.erase(name); }
  template <class F>
  void ignore_if(F&& f) {
    for (auto it = left_.begin(); it != left_.end();) it = f(it->first) ? left_.erase(it) : std::next(it);
  }
  Status nothing_left() const;

 private:
  const TensorSource& source_;
  std::map<std::string, bool> left_;
};

}  // namespace aerie
