// Package: an open .aerie file. Immutable and shared; every size in it was checked before use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/package/config.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace aerie {

enum class PackageKind : uint8_t { target = 0, drafter = 1 };

struct TensorInfo {
  std::string name;
  kernels::DType dtype;
  kernels::Layout layout;
  int64_t rows = 0, cols = 0;
  std::string codec;          // "raw" or "zstd"
  int64_t stored_bytes = 0;   // in the file
  int64_t raw_bytes = 0;      // data + scales in memory
};

// Called while chunks are read; return false to stop (the open fails with Code::cancelled).
using LoadProgress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

struct OpenOptions {
  LoadProgress progress;
  bool check_data = false;  // also checksum raw blobs (zstd chunks are always checked)
};

class Package {
 public:
  // `path` is UTF-8. Errors name the file and the field.
  static Result<std::shared_ptr<const Package>> open(const std::string& path, const OpenOptions& = {});
  // The same over bytes the caller keeps alive (tests, fuzzing, embedded packages); name is for errors.
  static Result<std::shared_ptr<const Package>> open_memory(std::span<const uint8_t> bytes, const std::string& name,
                                                            const OpenOptions& = {});
  virtual ~Package() = default;

  virtual const std::string& path() const = 0;
  virtual const std::string& name() const = 0;         // the model's own name
  virtual PackageKind kind() const = 0;
  virtual const std::string& fingerprint() const = 0;  // of this model; a target's survives requantising
  virtual const LlamaConfig* target() const = 0;       // null for a drafter
  virtual const DrafterConfig* drafter() const = 0;    // null for a target
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Host memory, 64-byte aligned (mapped file or unpacked chunks), alive as long as the package.
  // Row-major tensors have stride = cols.
  virtual Result<kernels::Tensor> tensor(std::string_view name) const = 0;  // not_found names file and tensor
  virtual bool has(std::string_view name) const = 0;
  // Opaque byte blobs: "tokenizer", "chat_template". Empty when absent.
  virtual std::span<const uint8_t> blob(std::string_view name) const = 0;
};

}  // namespace aerie
