// Files: mapping, bounded reading, and writing that is whole or absent. Paths are UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace aerie::platform {

// A whole file as read-only pages (a store into them faults). Shrinking the file while it is mapped makes
// reads fault too, so packages are replaced by rename, never rewritten in place. Thread-safe.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

// Bytes of a mapping that will be read soon: what the system has in memory is mapped now, at a fraction of what
// a fault for every page would cost later. The rest is not waited for: it comes in huge pages when it is first read, or,
// where there are none, the system begins to read it. Only a hint.
void will_need(std::span<const uint8_t> bytes);

// Of a file's name what leaves room for more behind it: at most 200 bytes, whole characters.
inline std::string short_name(std::string name) {
  size_t n = 200;
  if (name.size() <= n) return name;
  while (n > 0 && (static_cast<unsigned char>(name[n]) & 0xC0) == 0x80) --n;
  name.resize(n);
  return name;
}

// A new file that appears under `path` only when commit() succeeds; until then, and for ever if it fails or
// is never called, its bytes are in a temporary neighbour that the destructor removes. One thread.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status append(std::span<const uint8_t> bytes);
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes);  // inside what was appended
  uint64_t size() const { return size_; }
  Status commit();  // flush to the disk, rename over `path`, flush the folder
  const std::string& path() const { return path_; }

 private:
  explicit AtomicFile(std::string path) : path_(std::move(path)) {}
  Status failed(const char* what) const;
  void discard();

  std::string path_, temporary_;
  int64_t handle_ = -1;  // the system's, -1 when closed
  uint64_t size_ = 0;
};

enum class PathKind : uint8_t { absent, file, directory, other };
PathKind path_kind(const std::string& path);
// Both are there and are one, whatever they are called. What cannot be looked at is not.
bool same_file(const std::string& a, const std::string& b);

// The whole file; Code::limit when it is longer than `max_bytes`.
Result<std::vector<uint8_t>> read_file(const std::string& path, uint64_t max_bytes);

std::string join_path(const std::string& directory, const std::string& name);
std::string parent_directory(const std::string& path);  // "." when there is none
std::string file_name(const std::string& path);         // last component, trailing separators ignored

}  // namespace aerie::platform
