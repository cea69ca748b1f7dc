// Where converted tensors go: packs weights, writes the package, and hashes what it sees.
#pragma once

#include <xxhash.h>

#include <memory>
#include <string>
#include <vector>

#include "core/import/convert.h"
#include "core/package/writer.h"

namespace aerie {

class Sink {
 public:
  static Result<std::unique_ptr<Sink>> create(const ConvertOptions& options);
  ~Sink();
  PackageWriter& writer() { return *writer_; }
  // A linear weight or embedding (rows, cols), packed in the asked dtype.
  Status weight(const std::string& name, const std::vector<float>& values, int64_t rows, int64_t cols);
  // A norm or bias, f32.
  Status vector(const std::string& name, const std::vector<float>& values);
  void hash(const void* data, size_t bytes) { XXH3_128bits_update(state_, data, bytes); }
  // Of all that was seen, weights rounded to bf16: hex. The same model in another dtype keeps it.
  std::string fingerprint() const;

 private:
  explicit Sink(const ConvertOptions& options) : options_(options), state_(XXH3_createState()) {
    XXH3_128bits_reset(state_);
  }
  void hash_values(const std::string& name, const std::vector<float>& values);
  const ConvertOptions& options_;
  std::unique_ptr<PackageWriter> writer_;
  XXH3_state_t* state_;
  std::vector<char> data_, scales_;
};

// What each kind of source does (one file each).
Status import_llama_directory(const ConvertOptions& options, Sink& sink);
Status import_llama2c(const ConvertOptions& options, Sink& sink);
Status import_eagle(const ConvertOptions& options, Sink& sink);
Status import_package(const ConvertOptions& options, Sink& sink);

}  // namespace aerie
