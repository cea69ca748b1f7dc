#include "core/platform/win32.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"

namespace aerie::platform {

using win32::Handle;
using win32::os_error;
using win32::utf8;
using win32::wide;

namespace {

// Windows loads code from files only. So the checked bytes go to a file of our own in the temporary folder, which is
// then held open without leave to write or delete, and compared once more, before its code is loaded.
// `made`: that file, also where it failed after it was there.
Status private_copy(std::span<const uint8_t> bytes, const std::string& name, Handle* held, std::wstring* made) {
  wchar_t folder[MAX_PATH + 1];
  const DWORD n = GetTempPathW(MAX_PATH + 1, folder);
  if (n == 0 || n > MAX_PATH) return os_error(name, "cannot find the temporary folder");
  static std::atomic<uint32_t> counter{0};
  const std::wstring path = std::wstring(folder, n) + L"aerie-" + std::to_wstring(GetCurrentProcessId()) + L"-" +
                            std::to_wstring(GetTickCount64()) + L"-" + std::to_wstring(counter.fetch_add(1)) + L".dll";
  {
    const Handle file(CreateFileW(path.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY, nullptr));
    if (!file) return os_error(name, "cannot copy the plugin");
    *made = path;
    size_t done = 0;
    while (done < bytes.size()) {
      DWORD wrote = 0;
      const auto want = static_cast<DWORD>(std::min(bytes.size() - done, size_t{1} << 30));
      if (!WriteFile(file.handle, bytes.data() + done, want, &wrote, nullptr) || wrote == 0)
        return os_error(name, "cannot copy the plugin");
      done += wrote;
    }
  }
  held->handle = CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr);
  if (!*held) return os_error(name, "cannot hold the plugin's copy");
  AERIE_ASSIGN(const std::vector<uint8_t> again, read_file(utf8(path), bytes.size()));
  if (again.size() != bytes.size() || std::memcmp(again.data(), bytes.data(), bytes.size()) != 0)
    return error(Code::plugin, name + ": the plugin's copy was changed");
  return {};
}

}  // namespace

Result<void*> load_library_symbol(std::span<const uint8_t> bytes, const std::string& name, const char* symbol) {
  Handle held;
  std::wstring path;
  if (const Status s = private_copy(bytes, name, &held, &path); !s.ok()) {
    held.close();
    if (!path.empty()) DeleteFileW(path.c_str());
    return s;
  }
  // What it needs comes from the program's folder or the system's, never from beside the copy: anybody may write there.
  const HMODULE library = LoadLibraryExW(path.c_str(), nullptr, LOAD_LIBRARY_SEARCH_APPLICATION_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (!library) {
    const Status why = os_error(name, "cannot be loaded");
    held.close();
    DeleteFileW(path.c_str());
    return error(Code::plugin, why.message());
  }
  held.release();  // for as long as the code is there, that is, for ever
  HMODULE pinned;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, path.c_str(), &pinned);
  const FARPROC address = GetProcAddress(library, symbol);
  if (!address) return error(Code::plugin, name + ": symbol " + symbol + " is missing");
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
    if (regular && name.size() > suffix.size() && name.ends_with(suffix)) files.push_back(join_path(directory, name));
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
