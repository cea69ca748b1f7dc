#include "core/platform/win32.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <new>

#include "core/platform/file.h"

namespace aerie::platform {

using win32::Handle;
using win32::os_error;
using win32::wide;

namespace {

constexpr const char* kSeparators = "/\\";

Status check_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) return error(Code::invalid_argument, "path: contains a NUL byte");
  if (wide(path).empty()) return error(Code::invalid_argument, "path: is empty or not UTF-8");
  return {};
}

// Opens a regular file for reading; `size` receives its length. Others may replace the file by renaming meanwhile.
Status open_regular(const std::string& path, Handle* file, uint64_t* size) {
  AERIE_TRY(check_path(path));
  const PathKind kind = path_kind(path);
  if (kind == PathKind::directory) return error(Code::invalid_argument, path + ": is a folder, not a file");
  file->handle = CreateFileW(wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr,
                             OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (!*file) return os_error(path, "cannot open");
  if (GetFileType(file->handle) != FILE_TYPE_DISK) return error(Code::invalid_argument, path + ": is not a regular file");
  LARGE_INTEGER length;
  if (!GetFileSizeEx(file->handle, &length)) return os_error(path, "cannot read its size");
  *size = static_cast<uint64_t>(length.QuadPart);
  return {};
}

OVERLAPPED at_offset(uint64_t offset) {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return at;
}

constexpr size_t kMostAtOnce = size_t{1} << 30;

Status write_all(HANDLE file, const uint8_t* data, size_t n, uint64_t offset, const std::string& path) {
  while (n > 0) {
    OVERLAPPED at = at_offset(offset);
    DWORD done = 0;
    if (!WriteFile(file, data, static_cast<DWORD>(std::min(n, kMostAtOnce)), &done, &at))
      return os_error(path, "cannot write");
    if (done == 0) return error(Code::io, path + ": cannot write: no progress");
    data += done;
    n -= done;
    offset += done;
  }
  return {};
}

HANDLE handle_of(int64_t value) { return reinterpret_cast<HANDLE>(static_cast<intptr_t>(value)); }

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  Handle file;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &file, &size));
  if (size > std::numeric_limits<size_t>::max() / 2) return error(Code::limit, path + ": too large for this machine");
  void* data = nullptr;
  if (size > 0) {  // an empty mapping is an error to the system, not to us
    const Handle mapping(CreateFileMappingW(file.handle, nullptr, PAGE_READONLY, 0, 0, nullptr));
    if (!mapping) return os_error(path, "cannot map");
    data = MapViewOfFile(mapping.handle, FILE_MAP_READ, 0, 0, static_cast<size_t>(size));
    if (!data) return os_error(path, "cannot map");  // the view keeps mapping and file; their handles may go
  }
  auto* mapped = new (std::nothrow) MappedFile(static_cast<const uint8_t*>(data), static_cast<size_t>(size));
  if (!mapped) {
    if (data) UnmapViewOfFile(data);
    return error(Code::out_of_memory, path + ": out of memory");
  }
  return std::shared_ptr<const MappedFile>(mapped);
}

MappedFile::~MappedFile() {
  if (data_) UnmapViewOfFile(data_);
}

void will_need(std::span<const uint8_t> bytes) {
  WIN32_MEMORY_RANGE_ENTRY range{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  if (!bytes.empty()) PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path) {
  AERIE_TRY(check_path(path));
  const PathKind kind = path_kind(path);
  if (kind == PathKind::directory) return error(Code::invalid_argument, path + ": is a folder");
  if (kind == PathKind::other) return error(Code::invalid_argument, path + ": is not a regular file");
  std::unique_ptr<AtomicFile> file(new AtomicFile(path));  // before there is something to remove
  static std::atomic<uint32_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary =
        join_path(parent_directory(path), "." + short_name(file_name(path)) + "." + std::to_string(GetCurrentProcessId()) + "-" +
                                              std::to_string(counter.fetch_add(1)) + ".part");
    Handle handle(CreateFileW(wide(temporary).c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_NEW,
                              FILE_ATTRIBUTE_NORMAL, nullptr));
    if (handle) {
      file->handle_ = reinterpret_cast<intptr_t>(handle.release());
      file->temporary_ = std::move(temporary);
      return file;
    }
    if (GetLastError() != ERROR_FILE_EXISTS) return os_error(path, "cannot create");
  }
  return error(Code::io, path + ": cannot create: temporary names are all taken");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (handle_ != -1) CloseHandle(handle_of(handle_));
  handle_ = -1;
  try {
    if (!temporary_.empty()) DeleteFileW(wide(temporary_).c_str());
  } catch (const std::bad_alloc&) {  // it stays where it is
  }
  temporary_.clear();
}

Status AtomicFile::failed(const char* what) const { return os_error(path_, what); }

Status AtomicFile::append(std::span<const uint8_t> bytes) {
  if (handle_ == -1) return error(Code::internal, path_ + ": written after it was closed");
  AERIE_TRY(write_all(handle_of(handle_), bytes.data(), bytes.size(), size_, path_));
  size_ += bytes.size();
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  if (handle_ == -1 || offset > size_ || bytes.size() > size_ - offset)
    return error(Code::internal, path_ + ": write outside the file");
  return write_all(handle_of(handle_), bytes.data(), bytes.size(), offset, path_);
}

Status AtomicFile::commit() {
  if (handle_ == -1) return error(Code::internal, path_ + ": written after it was closed");
  const auto give_up = [&](const char* what) {
    const Status s = failed(what);
    discard();
    return s;
  };
  if (!FlushFileBuffers(handle_of(handle_))) return give_up("cannot flush");
  const bool closed = CloseHandle(handle_of(handle_)) != 0;
  handle_ = -1;
  if (!closed) return give_up("cannot close");
  // Windows does not replace a file in use. A scanner's use is over soon.
  for (int attempt = 0; !MoveFileExW(wide(temporary_).c_str(), wide(path_).c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH); ++attempt) {
    const DWORD why = GetLastError();
    const bool held = why == ERROR_ACCESS_DENIED || why == ERROR_SHARING_VIOLATION || why == ERROR_USER_MAPPED_FILE;
    if (!held) return give_up("cannot rename into place");
    if (attempt == 4) return give_up("cannot be replaced; a program has it open, or it is read-only");
    Sleep(50);
  }
  temporary_.clear();
  return {};
}

PathKind path_kind(const std::string& path) {
  if (path.find('\0') != std::string::npos) return PathKind::absent;
  const DWORD attributes = GetFileAttributesW(wide(path).c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return PathKind::absent;
  if (attributes & FILE_ATTRIBUTE_DIRECTORY) return PathKind::directory;
  return attributes & FILE_ATTRIBUTE_DEVICE ? PathKind::other : PathKind::file;
}

bool same_file(const std::string& a, const std::string& b) {
  BY_HANDLE_FILE_INFORMATION x, y;
  const auto look = [](const std::string& path, BY_HANDLE_FILE_INFORMATION* out) {
    if (path_kind(path) == PathKind::absent) return false;
    const Handle handle(CreateFileW(wide(path).c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                    FILE_FLAG_BACKUP_SEMANTICS, nullptr));
    return handle && GetFileInformationByHandle(handle.handle, out) != 0;
  };
  return look(a, &x) && look(b, &y) && x.dwVolumeSerialNumber == y.dwVolumeSerialNumber && x.nFileIndexHigh == y.nFileIndexHigh &&
         x.nFileIndexLow == y.nFileIndexLow;
}

Result<std::vector<uint8_t>> read_file(const std::string& path, uint64_t max_bytes) {
  Handle file;
  uint64_t size = 0;
  AERIE_TRY(open_regular(path, &file, &size));
  if (size > max_bytes)
    return error(Code::limit, path + ": " + std::to_string(size) + " bytes, the limit is " + std::to_string(max_bytes));
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  size_t done = 0;
  while (done < bytes.size()) {
    DWORD n = 0;
    if (!ReadFile(file.handle, bytes.data() + done, static_cast<DWORD>(std::min(bytes.size() - done, kMostAtOnce)), &n,
                  nullptr))
      return os_error(path, "cannot read");
    if (n == 0) break;  // it shrank meanwhile; what is there is judged by the caller
    done += n;
  }
  bytes.resize(done);
  return bytes;
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory.find_last_of(kSeparators) == directory.size() - 1) return directory + name;
  return directory + "\\" + name;
}

std::string parent_directory(const std::string& path) {
  const size_t slash = path.find_last_of(kSeparators);
  if (slash == std::string::npos) return path.size() > 1 && path[1] == ':' ? path.substr(0, 2) + "." : ".";
  const bool root = slash == 0 || (slash == 2 && path[1] == ':');  // "\x", "C:\x"
  return path.substr(0, root ? slash + 1 : slash);
}

std::string file_name(const std::string& path) {
  const size_t end = path.find_last_not_of(kSeparators);
  if (end == std::string::npos) return {};
  const size_t slash = path.find_last_of("/\\:", end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end - begin + 1);
}

}  // namespace aerie::platform
