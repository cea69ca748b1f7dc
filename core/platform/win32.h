// What the Windows files of this folder share: UTF-8 and UTF-16, handles, the system's error texts.
// It has run under Wine (tests/cross/windows.sh), never on Windows itself.
#pragma once

#include <string>

#include "kernels/status.h"
#include "kernels/win32.h"

namespace aerie::platform::win32 {

// Empty when the text is not valid UTF-8 (no path of ours is empty).
inline std::wstring wide(const std::string& utf8) {
  const int size = static_cast<int>(utf8.size());
  const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8.data(), size, nullptr, 0);
  std::wstring out(static_cast<size_t>(n > 0 ? n : 0), L'\0');
  if (n > 0) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8.data(), size, out.data(), n);
  return out;
}

inline std::string utf8(const std::wstring& wide) {
  const int size = static_cast<int>(wide.size());
  const int n = WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<size_t>(n > 0 ? n : 0), '\0');
  if (n > 0) WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, out.data(), n, nullptr, nullptr);
  return out;
}

inline std::string text_of(DWORD code) {
  wchar_t text[512];
  DWORD n = 0;
  for (const DWORD language : {DWORD{MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US)}, DWORD{0}})  // as the rest of the message, if it is there
    if (n == 0) n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, code, language, text, 512, nullptr);
  while (n > 0 && (text[n - 1] == L'\n' || text[n - 1] == L'\r' || text[n - 1] == L'.')) --n;
  return n > 0 ? utf8(std::wstring(text, n)) : "error " + std::to_string(code);
}

inline Status os_error(const std::string& path, const char* what, DWORD code = GetLastError()) {
  Code kind = Code::io;
  switch (code) {
    case ERROR_FILE_NOT_FOUND: case ERROR_PATH_NOT_FOUND: case ERROR_INVALID_NAME: case ERROR_BAD_PATHNAME: case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH: case ERROR_BAD_NET_NAME: kind = Code::not_found; break;
    case ERROR_NOT_ENOUGH_MEMORY: case ERROR_OUTOFMEMORY: case ERROR_COMMITMENT_LIMIT: kind = Code::out_of_memory; break;
    default: break;
  }
  return error(kind, path + ": " + what + ": " + text_of(code));
}

struct Handle {
  HANDLE handle = INVALID_HANDLE_VALUE;
  Handle() = default;
  explicit Handle(HANDLE h) : handle(h) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { close(); }
  explicit operator bool() const { return handle && handle != INVALID_HANDLE_VALUE; }
  bool close() {
    const bool closed = !*this || CloseHandle(handle) != 0;
    handle = INVALID_HANDLE_VALUE;
    return closed;
  }
  HANDLE release() {
    const HANDLE h = handle;
    handle = INVALID_HANDLE_VALUE;
    return h;
  }
};

}  // namespace aerie::platform::win32
