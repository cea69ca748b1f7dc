#!/usr/bin/env bash
# The public headers and core/platform compile and link for Windows with mingw-w64. Nothing is run; windows.sh does that.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! bash "$root/.ci/setup.sh" windows || ! command -v x86_64-w64-mingw32-g++-posix >/dev/null; then
  echo "no cross compiler (g++-mingw-w64-x86-64-posix)"
  exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$root"
strict=(-Wall -Wextra -Wpedantic -Werror -Icapi/include -fsyntax-only)
for h in capi/include/aerie/*.h; do
  printf '#include <aerie/%s>\nint main(void) { return 0; }\n' "$(basename "$h")" >"$tmp/t.c"
  cp "$tmp/t.c" "$tmp/t.cc"
  x86_64-w64-mingw32-gcc-posix -std=c99 "${strict[@]}" "$tmp/t.c"
  x86_64-w64-mingw32-g++-posix -std=c++11 "${strict[@]}" "$tmp/t.cc"
done
cat >"$tmp/main.cc" <<'EOC'
#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"
#include "core/platform/machine.h"
using namespace aerie::platform;
int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : processor_name();
  const auto mapped = MappedFile::open(path);
  const auto file = AtomicFile::create(join_path(parent_directory(path), file_name(path) + library_suffix()));
  if (!mapped.ok() || !file.ok() || !is_absolute_path(path)) return 1;
  will_need((*mapped)->bytes());
  if (!(*file)->append((*mapped)->bytes()).ok() || !(*file)->write_at(0, {}).ok() || !(*file)->commit().ok()) return 1;
  const auto bytes = read_file(path, 1 << 20);
  return bytes.ok() && load_library_symbol(*bytes, path, "x").ok() && list_files(directory_of_code(argv), ".dll").ok();
}
EOC
for c in core/platform/*_win32.cc "$tmp/main.cc"; do
  x86_64-w64-mingw32-g++-posix -std=c++20 -O1 -Wall -Wextra -Werror -D_WIN32_WINNT=0x0A00 -I. -c "$c" -o "$tmp/$(basename "$c").o"
done
x86_64-w64-mingw32-g++-posix "$tmp"/*.o -ladvapi32 -static -o "$tmp/platform.exe"
# Every posix file has its sibling.
for c in core/platform/*_posix.cc; do [ -f "${c%_posix.cc}_win32.cc" ] || { echo "no Windows file beside $c"; exit 1; }; done
