#include "core/platform/win32.h"

#include <algorithm>
#include <cstring>

#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"

namespace aerie::platform {

using win32::Handle;
using win32::os_error;
using win32::utf8;
using win32::wide;

// A file that is held open without leave to write, rename or delete it stays as it is: the checked bytes are those that are loaded.
Result<void*> load_library_symbol(std::span<const uint8_t> bytes, const std::string& path, const char* symbol) {
  Handle held(CreateFileW(wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!held) return os_error(path, "cannot be held open");
  AERIE_ASSIGN(const std::vector<uint8_t> again, read_file(path, UINT64_MAX));
  if (again.size() != bytes.size() || std::memcmp(again.data(), bytes.data(), bytes.size()) != 0)
    return error(Code::plugin, path + ": it was changed while it was loaded");
  std::wstring full(32768, L'\0');  // the longest there is; with backslashes, which the loader wants
  const DWORD n = GetFullPathNameW(wide(path).c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr);
  if (n == 0 || n >= full.size()) return os_error(path, "cannot be loaded");
  full.resize(n);
  // What it needs comes from beside it, from the program's folder, from those that the program has added, or the system's.
  DWORD before = 0;  // a failure is an error and no dialog
  SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &before);
  const HMODULE library =
      LoadLibraryExW(full.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
  const DWORD why = GetLastError();
  SetThreadErrorMode(before, nullptr);
  if (!library) {
    if (why == ERROR_BAD_EXE_FORMAT) return error(Code::plugin, path + ": cannot be loaded: it is damaged, no DLL, or for another machine");
    if (why == ERROR_MOD_NOT_FOUND)
      return error(Code::plugin, path + ": cannot be loaded: a DLL that it needs is neither beside it nor in the program's or the system's folder");
    return error(Code::plugin, os_error(path, "cannot be loaded", why).message());
  }
  held.release();  // for as long as the code is there, that is, for ever
  HMODULE pinned;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, full.c_str(), &pinned);
  const FARPROC address = GetProcAddress(library, symbol);
  if (!address) return error(Code::plugin, path + ": symbol " + symbol + " is missing");
  return reinterpret_cast<void*>(address);
}

std::string directory_of_code(const void* address) {
  HMODULE module;
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                          static_cast<const wchar_t*>(address), &module))
    return {};
  std::wstring path(32768, L'\0');  // the longest there is
  const DWORD n = GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
  if (n == 0 || n == path.size()) return {};
  path.resize(n);
  return parent_directory(utf8(path));
}

Result<std::vector<std::string>> list_files(const std::string& directory, const std::string& suffix) {
  struct Search {
    HANDLE handle;
    ~Search() {
      if (handle != INVALID_HANDLE_VALUE) FindClose(handle);
    }
  };
  WIN32_FIND_DATAW entry;
  const Search search{FindFirstFileW(wide(join_path(directory, "*")).c_str(), &entry)};
  if (search.handle == INVALID_HANDLE_VALUE) return os_error(directory, "cannot list");
  std::vector<std::string> files;
  do {
    const std::string name = utf8(entry.cFileName);
    const bool regular = !(entry.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
    const std::wstring end = wide(suffix), file = entry.cFileName;
    if (regular && file.size() > end.size() && CompareStringOrdinal(file.data() + file.size() - end.size(), -1, end.data(), -1, TRUE) == CSTR_EQUAL)
      files.push_back(join_path(directory, name));
  } while (FindNextFileW(search.handle, &entry));
  if (GetLastError() != ERROR_NO_MORE_FILES) return os_error(directory, "cannot list");
  std::sort(files.begin(), files.end());
  return files;
}

bool is_absolute_path(const std::string& path) {  // "C:\x", "C:/x", "\\server\share"
  const auto slash = [](char c) { return c == '/' || c == '\\'; };
  if (path.size() >= 2 && slash(path[0]) && slash(path[1])) return true;
  return path.size() >= 3 && path[1] == ':' && slash(path[2]);
}

const char* library_suffix() { return ".dll"; }

}  // namespace aerie::platform
