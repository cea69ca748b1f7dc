// Files: mapping, capped reading, and writing that leaves a whole file or none. Paths are UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace aerie::platform {

// A whole file mapped read-only.
class MappedFile {
 public:
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

Result<std::vector<uint8_t>> read_file(const std::string& path, uint64_t max_bytes);
bool is_regular_file(const std::string& path);
bool is_directory(const std::string& path);

// Writes under a temporary name beside `path` and renames in finish(); without it, nothing stays.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  Status append(std::span<const uint8_t> bytes);
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes);  // within what was appended
  uint64_t size() const { return size_; }
  Status finish();

 private:
  AtomicFile(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}
  int fd_;
  uint64_t size_ = 0;
  std::string path_, temporary_;
};

}  // namespace aerie::platform
