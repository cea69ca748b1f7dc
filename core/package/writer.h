// PackageWriter: writes a .aerie file under a temporary name and renames it when it is whole, so an
// interrupted conversion leaves nothing behind.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/package/package.h"

namespace aerie {

struct WriterOptions {
  bool compress = false;                  // zstd in independent checksummed chunks
  int64_t chunk_bytes = 4 << 20;          // raw bytes in a chunk, <= 16 MiB
};

class PackageWriter {
 public:
  static Result<std::unique_ptr<PackageWriter>> create(const std::string& path, const WriterOptions& = {});
  virtual ~PackageWriter() = default;  // unfinished: removes the temporary file
  virtual void set_name(std::string name) = 0;
  virtual void set_fingerprint(std::string hex) = 0;
  virtual void set_target(LlamaConfig config) = 0;
  virtual void set_drafter(DrafterConfig config) = 0;
  virtual Status add_blob(std::string name, std::span<const uint8_t> bytes) = 0;
  // `t` is host memory with its scales; written at once, not kept.
  virtual Status add_tensor(std::string name, const kernels::Tensor& t) = 0;
  virtual Status finish() = 0;
};

}  // namespace aerie
