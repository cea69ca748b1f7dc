#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include "core/platform/file.h"

namespace aerie::platform {

namespace {

Status os_error(const std::string& path, const char* what) {
  const int e = errno;
  const Code code = e == ENOENT || e == ENOTDIR ? Code::not_found : Code::io;
  return error(code, path + ": " + what + ": " + std::strerror(e));
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Opens a regular file for reading; `size` receives its length.
Status open_regular(const std::string& path, Descriptor* d, uint64_t* size) {
  if (path.empty()) return error(Code::invalid_argument, "path: is empty");
  if (path.find('\0') != std::string::npos) return error(Code::invalid_argument, "path: contains a NUL byte");
  // O_NONBLOCK: a FIFO under this name must give an error, not wait for a writer.
  do d->fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (d->fd < 0 && errno == EINTR);
  if (d->fd < 0) return os_error(path, "cannot open");
  struct stat st;
  if (fstat(d->fd, &st) != 0) return os_error(path, "cannot read its size");
  if (S_ISDIR(st.st_mode)) return error(Code::invalid_argument, path + ": is a folder, not a file");
  if (!S_ISREG(st.st_mode)) return error(Code::invalid_argument, path + ": is not a regular file");
  *size = static_cast<uint64_t>(st.st_size);
  return {};
}

Status write_all(int fd, const uint8_t* data, size_t n, uint64_t offset, const std::string& path) {
  while (n > 0) {
    const ssize_t done = pwrite(fd, data, std::min(n, size_t{1} << 30), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return os_error(path, "cannot write");
    if (done == 0) return error(Code::io, path + ": cannot write: no progress");
    data += done;
    n -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return {};
}

// What a fault then reads from the disk comes into memory in huge pages, where the file system has them: weights pass by
// once for each token, and looking up where each page of 4 KiB lies takes a tenth of the time.
void map_in_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t size) {
#if defined(__linux__)
  (void)madvise(data, size, MADV_HUGEPAGE);  // a kernel without them refuses
#endif
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  Descriptor d;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &d, &size));
  if (size > std::numeric_limits<size_t>::max() / 2) return error(Code::limit, path + ": too large for this machine");
  void* data = nullptr;
  if (size > 0) {  // an empty mapping is an error to the system, not to us
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, d.fd, 0);
    if (data == MAP_FAILED) return os_error(path, "cannot map");
    map_in_huge_pages(data, size);
  }
  auto* file = new (std::nothrow) MappedFile(static_cast<const uint8_t*>(data), static_cast<size_t>(size));
  if (!file) {
    if (data) munmap(data, size);
    return error(Code::out_of_memory, path + ": out of memory");
  }
  return std::shared_ptr<const MappedFile>(file);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<uint8_t*>(data_), size_);
}

void will_need([[maybe_unused]] std::span<const uint8_t> bytes) {
#if defined(__linux__)
#ifndef MADV_POPULATE_READ  // Linux 5.14; an older kernel refuses it, and pages come one by one
#define MADV_POPULATE_READ 22
#endif
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  static const bool huge = access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
  constexpr uintptr_t kPages = 4096;  // asked about at once
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  for (uintptr_t at = reinterpret_cast<uintptr_t>(bytes.data()) / page * page; at < end; at += kPages * page) {
    const size_t size = std::min(end - at, kPages * page), pages = (size + page - 1) / page;
    void* const piece = reinterpret_cast<void*>(at);
    unsigned char in_memory[kPages];
    if (mincore(piece, size, in_memory) != 0) return;
    const bool all = std::all_of(in_memory, in_memory + pages, [](unsigned char v) { return (v & 1) != 0; });
    // Faults read whole huge pages, and ahead; read before them, a file would come in small ones and stay so.
    if (!all && huge) continue;
    if (madvise(piece, size, all ? MADV_POPULATE_READ : MADV_WILLNEED) != 0) return;
  }
#endif
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return error(Code::invalid_argument, "output path: empty or contains a NUL byte");
  // Renaming over a device or a folder would do harm or fail only after all the work.
  const PathKind kind = path_kind(path);
  if (kind == PathKind::directory) return error(Code::invalid_argument, path + ": is a folder");
  if (kind == PathKind::other) return error(Code::invalid_argument, path + ": is not a regular file");
  std::unique_ptr<AtomicFile> file(new AtomicFile(path));  // before there is something to remove
  static std::atomic<uint32_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary =
        join_path(parent_directory(path), std::string(".") + short_name(file_name(path)) + "." + std::to_string(getpid()) + "-" +
                                              std::to_string(counter.fetch_add(1)) + ".part");
    const int fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      file->handle_ = fd;
      file->temporary_ = std::move(temporary);
      return file;
    }
    if (errno != EEXIST && errno != EINTR) return os_error(path, "cannot create");
  }
  return error(Code::io, path + ": cannot create: temporary names are all taken");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (handle_ >= 0) close(static_cast<int>(handle_));
  handle_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::failed(const char* what) const { return os_error(path_, what); }

Status AtomicFile::append(std::span<const uint8_t> bytes) {
  if (handle_ < 0) return error(Code::internal, path_ + ": written after it was closed");
  AERIE_TRY(write_all(static_cast<int>(handle_), bytes.data(), bytes.size(), size_, path_));
  size_ += bytes.size();
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  if (handle_ < 0 || offset > size_ || bytes.size() > size_ - offset)
    return error(Code::internal, path_ + ": write outside the file");
  return write_all(static_cast<int>(handle_), bytes.data(), bytes.size(), offset, path_);
}

Status AtomicFile::commit() {
  if (handle_ < 0) return error(Code::internal, path_ + ": written after it was closed");
  const auto give_up = [&](const char* what) {
    const Status s = failed(what);
    discard();
    return s;
  };
  const std::string parent = parent_directory(path_);
  if (fsync(static_cast<int>(handle_)) != 0) return give_up("cannot flush");
  const int closed = close(static_cast<int>(handle_));
  handle_ = -1;
  if (closed != 0) return give_up("cannot close");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return give_up("cannot rename into place");
  temporary_.clear();
  // The name itself must survive a power cut. Some file systems refuse to flush folders; the data is safe.
  Descriptor folder;
  folder.fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.fd >= 0) (void)fsync(folder.fd);
  return {};
}

PathKind path_kind(const std::string& path) {
  struct stat st;
  if (path.find('\0') != std::string::npos || stat(path.c_str(), &st) != 0) return PathKind::absent;
  if (S_ISREG(st.st_mode)) return PathKind::file;
  return S_ISDIR(st.st_mode) ? PathKind::directory : PathKind::other;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat x, y;
  return path_kind(a) != PathKind::absent && path_kind(b) != PathKind::absent && stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 &&
         x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

Result<std::vector<uint8_t>> read_file(const std::string& path, uint64_t max_bytes) {
  Descriptor d;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &d, &size));
  if (size > max_bytes)
    return error(Code::limit, path + ": " + std::to_string(size) + " bytes, the limit is " + std::to_string(max_bytes));
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(d.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(path, "cannot read");
    if (n == 0) break;  // it shrank meanwhile; what is there is judged by the caller
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory.back() == '/') return directory + name;
  return directory + "/" + name;
}

std::string parent_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const size_t slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

}  // namespace aerie::platform
