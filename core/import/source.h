// A checkpoint as f32 tensors by name, whatever its file format.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace aerie {

struct SourceTensor {
  std::vector<int64_t> shape;
  kernels::DType stored = kernels::DType::f32;  // of ours that which is nearest to what the file has it in
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }
};

// A matrix on its way into a package.
struct SourceMatrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
  kernels::DType stored = kernels::DType::f32;  // as SourceTensor's
};

// The one with more bits a weight, for a matrix that is made of both.
kernels::DType finer(kernels::DType a, kernels::DType b);

// A matrix that rows are put into, and its next ones.
inline SourceMatrix no_rows(int64_t cols) { return {0, cols, {}, kernels::DType::mxfp4}; }  // the coarsest
void append(SourceMatrix* all, const SourceMatrix& rows);

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& name() const = 0;  // for errors
  virtual const std::map<std::string, SourceTensor>& tensors() const = 0;
  Result<std::vector<float>> read(const std::string& tensor) const { return read(tensor, 0, tensors().at(tensor).elements()); }
  // n of its elements, from `first` on; both multiples of what shares a scale in the file. Part of a tensor is as the file has it,
  // whatever changed() says.
  virtual Result<std::vector<float>> read(const std::string& tensor, int64_t first, int64_t n) const = 0;
  // Integers and booleans.
  virtual Result<std::vector<int64_t>> read_integers(const std::string& tensor) const = 0;
  // What it is a byte of each element of, where the source lies.
  virtual Result<std::span<const uint8_t>> bytes(const std::string& tensor) const;
};

// A .safetensors file; or in a directory model.safetensors, the shards of model.safetensors.index.json, or
// the only .safetensors file there is.
Result<std::unique_ptr<TensorSource>> open_safetensors(const std::string& path);
// The same with `other` in place of the names' `prefix`; names that lack it stay.
std::unique_ptr<TensorSource> without_prefix(std::unique_ptr<TensorSource> source, const std::string& prefix, const std::string& other = "");
// The same with what it reads changed.
using ChangeTensor = std::function<void(const std::string& tensor, std::vector<float>* values)>;
std::unique_ptr<TensorSource> changed(const TensorSource& source, ChangeTensor change);
// The directory whose config.json belongs to such a path.
std::string checkpoint_directory(const std::string& path);

// Takes tensors out of a source and keeps count, so that nothing is missing and nothing is left over.
class TensorTaker {
 public:
  explicit TensorTaker(const TensorSource& source) : source_(source) {
    for (const auto& t : source.tensors()) left_.insert(t.first);
  }
  bool has(const std::string& name) const { return left_.count(name) != 0; }
  // `shape` is (rows, cols), or (n) for a vector.
  Result<std::vector<float>> take(const std::string& name, const std::vector<int64_t>& shape);
  // A vector, which may be a matrix of one row.
  Result<std::vector<float>> take_row(const std::string& name, int64_t n);
  Result<SourceMatrix> take_matrix(const std::string& name, int64_t rows, int64_t cols);
  // It is there, of that shape, and not left over: for who reads it in parts. The i-th is that of its first dimension.
  Status expect(const std::string& name, const std::vector<int64_t>& shape) { return take_shape(name, shape); }
  kernels::DType stored(const std::string& name) const { return source_.tensors().at(name).stored; }
  Result<std::vector<float>> part(const std::string& name, int64_t i) const;
  const std::string& source_name() const { return source_.name(); }
  Result<std::vector<int64_t>> take_integers(const std::string& name, const std::vector<int64_t>& shape);
  Result<std::span<const uint8_t>> take_bytes(const std::string& name, const std::vector<int64_t>& shape);
  template <class F>
  void ignore_if(F&& f) {
    std::erase_if(left_, f);
  }
  Status nothing_left() const;

 private:
  Status take_shape(const std::string& name, const std::vector<int64_t>& shape);
  const TensorSource& source_;
  std::set<std::string> left_;
};

}  // namespace aerie
