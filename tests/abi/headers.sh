#!/usr/bin/env bash
# Every public header alone compiles as C99 and C++11 (drafter.hpp: C++20) with all warnings fatal; the libraries export
# aerie_* only, with versions, and leave nothing to run at exit; a plugin exports its one entry.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for h in "$root"/capi/include/aerie/*.h; do
  name=aerie/$(basename "$h")
  printf '#include <%s>\nint main(void) { return 0; }\n' "$name" >"$tmp/t.c"
  cp "$tmp/t.c" "$tmp/t.cc"
  for cc in gcc clang; do
    command -v $cc >/dev/null || continue
    $cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$root/capi/include" -fsyntax-only "$tmp/t.c"
  done
  for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    $cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$root/capi/include" -fsyntax-only "$tmp/t.cc"
  done
done
for cxx in g++ clang++; do
  command -v $cxx >/dev/null || continue
  for exceptions in "" -fno-exceptions; do
    $cxx -std=c++20 $exceptions -Wall -Wextra -Wpedantic -Wconversion -Werror -I"$root/capi/include" -fsyntax-only -x c++ \
      "$root/capi/include/aerie/drafter.hpp"
  done
done
# A drafter class: what it has and a table cannot take is said, not left out.
cat >"$tmp/drafter.cc" <<'EOF'
#include "aerie/drafter.hpp"
struct Mine : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"mine", "Mine", "1", AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE, 0};
  int32_t open(const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) { return AERIE_D_OK; }
ACCESS:
  int32_t propose_host(const aerie_host_context*, aerie_host_candidates*) { return AERIE_D_OK; }
  int32_t NAME(int, int) { return 0; }
};
AERIE_DRAFTER_PLUGIN(Mine)
EOF
for cxx in g++ clang++; do
  command -v $cxx >/dev/null || continue
  drafter() { $cxx -std=c++20 -Wall -Wextra -Werror -I"$root/capi/include" -DACCESS="$1" -DNAME="$2" -fsyntax-only "$tmp/drafter.cc"; }
  drafter public rollback
  for bad in "private rollback" "public propose_host"; do
    if drafter $bad 2>"$tmp/said"; then echo "$cxx took a drafter whose function is $bad"; exit 1; fi
    grep -q "propose_host is not public, or not one function" "$tmp/said" || { cat "$tmp/said"; exit 1; }
  done
done
for lib in "$build"/lib/libaerie.so "$build"/lib/libaerie-text.so; do
  stray=$(nm -D --with-symbol-versions --defined-only "$lib" | awk '{print $NF}' |
          grep -vE '^(aerie_[a-z0-9_]+@@AERIE_1|AERIE_1(@@AERIE_1)?)$' || true)
  [ -z "$stray" ] || { echo "$lib exports: $stray"; exit 1; }
  [[ $(readelf -d "$lib") == *"soname: [$(basename "$lib").1]"* ]] || { echo "$lib: SONAME"; exit 1; }
done
# Nothing of ours runs at exit: no static object has a destructor, and the one function at the end is the compiler's.
ends=$(printf 'int x;' | cc -shared -fPIC -x c - -o "$tmp/empty.so" && readelf -SW "$tmp/empty.so" | grep -o 'FINI_ARRAY .*' | awk '{print $4}')
for lib in "$build"/lib/libaerie.so "$build"/lib/libaerie-text.so "$build"/lib/aerie/drafters/*.so; do
  if nm -D "$lib" | grep -E ' U (__cxa_atexit|atexit|on_exit)(@|$)'; then echo "$lib leaves work for exit"; exit 1; fi
  [ "$(readelf -SW "$lib" | grep -o 'FINI_ARRAY .*' | awk '{print $4}')" = "$ends" ] || { echo "$lib has functions that run at exit"; exit 1; }
done
entry() {  # library symbol: it exports that, and nothing else
  local got
  got=$(nm -D --defined-only "$1" | awk '{print $NF}')
  [ "$got" = "$2" ] || { echo "$1 exports: $got"; exit 1; }
}
for plugin in "$build"/lib/aerie/drafters/*.so; do entry "$plugin" aerie_drafter_plugin_entry; done
if [ -f "$build/lib/aerie/libaerie-cuda.so" ]; then entry "$build/lib/aerie/libaerie-cuda.so" aerie_backend_entry; fi
# A drafter includes its one header and nothing else of the project.
if grep -rnE '#include *[<"](core|kernels|capi)/' "$root/drafters"; then exit 1; fi
