#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/platform/file.h"

namespace aerie::platform {

namespace {

Status failed(const std::string& path, const char* what) {
  const int code = errno;
  return error(code == ENOENT ? Code::not_found : Code::io, path + ": " + what + ": " + std::strerror(code));
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Status open_regular(const std::string& path, Descriptor* d, uint64_t* size) {
  d->fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (d->fd < 0) return failed(path, "cannot open");
  struct stat st;
  if (fstat(d->fd, &st) != 0) return failed(path, "cannot stat");
  if (!S_ISREG(st.st_mode)) return error(Code::io, path + ": not a regular file");
  *size = static_cast<uint64_t>(st.st_size);
  return {};
}

Status write_all(int fd, const std::string& path, std::span<const uint8_t> bytes, int64_t offset) {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t left = bytes.size() - done;
    const ssize_t n = offset < 0 ? write(fd, bytes.data() + done, left)
                                 : pwrite(fd, bytes.data() + done, left, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(path, "cannot write");
    done += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  Descriptor d;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &d, &size));
  if (size == 0) return std::unique_ptr<MappedFile>(new MappedFile(nullptr, 0));
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, d.fd, 0);
  if (data == MAP_FAILED) return failed(path, "cannot map");
  return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<uint8_t*>(data_), size_);
}

Result<std::vector<uint8_t>> read_file(const std::string& path, uint64_t max_bytes) {
  Descriptor d;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &d, &size));
  if (size > max_bytes)
    return error(Code::bad_format, path + ": " + std::to_string(size) + " bytes, at most " + std::to_string(max_bytes) +
                                       " expected");
  std::vector<uint8_t> bytes(size);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(d.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path, "cannot read");
    if (n == 0) return error(Code::io, path + ": became shorter while it was read");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

bool is_regular_file(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return failed(path, "cannot create");
  fchmod(fd, 0644);
  return std::unique_ptr<AtomicFile>(new AtomicFile(fd, path, std::move(temporary)));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Status AtomicFile::append(std::span<const uint8_t> bytes) {
  AERIE_TRY(write_all(fd_, path_, bytes, -1));
  size_ += bytes.size();
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset)
    return error(Code::internal, path_ + ": write past what was appended");
  return write_all(fd_, path_, bytes, static_cast<int64_t>(offset));
}

Status AtomicFile::finish() {
  if (fsync(fd_) != 0) return failed(path_, "cannot flush");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return failed(path_, "cannot rename");
  close(fd_);
  fd_ = -1;
  return {};
}

}  // namespace aerie::platform
