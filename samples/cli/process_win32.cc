// Arguments, names of files and the environment are UTF-8 by the manifest (utf8.manifest).
#ifndef NOMINMAX  // libstdc++ may have it
#define NOMINMAX
#endif
#include <windows.h>

#include <fcntl.h>
#include <io.h>

#include <cstdlib>

#include "process.h"

namespace cli {

void begin_process() {
  static const UINT before = GetConsoleOutputCP();
  SetConsoleOutputCP(CP_UTF8);
  std::atexit([] { SetConsoleOutputCP(before); });
  for (const DWORD stream : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {  // colours
    const HANDLE console = GetStdHandle(stream);
    DWORD mode = 0;
    if (GetConsoleMode(console, &mode)) SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  for (const int stream : {0, 1}) _setmode(stream, _O_BINARY);
}

std::filesystem::path cache_folder() {
  const wchar_t* local = _wgetenv(L"LOCALAPPDATA");
  const std::filesystem::path folder = local ? local : L"";
  return folder.is_absolute() ? folder : std::filesystem::path();
}

}  // namespace cli
