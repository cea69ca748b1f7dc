#!/usr/bin/env bash
# Makes a folder with the programs that tests/gpu/run.sh --prebuilt needs, for a GPU machine without our dependencies: its
# shared libraries beside them, all but those of the C library and the driver. Usage: tests/gpu/carry.sh DIR
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 1 ] || { echo "usage: tests/gpu/carry.sh DIR" >&2; exit 2; }
mkdir -p "$1/bin" "$1/lib/aerie/drafters"
to=$(cd "$1" && pwd)
cd "$root"
cmake --preset tests -DAERIE_CUDA=ON >/dev/null
cmake --build --preset tests -- -j"${JOBS:-2}"
build=$root/build/tests
cp -f "$build"/bin/{gpu_tests,gpu_bench,gpu_report,inflate,aerie} "$to/bin/"
cp -fL "$build"/lib/libaerie*.so* "$to/lib/"
cp -f "$build/lib/aerie/libaerie-cuda.so" "$to/lib/aerie/"
cp -f "$build"/lib/aerie/drafters/*.so "$to/lib/aerie/drafters/"
strip --strip-debug "$to"/bin/* "$to"/lib/*.so* "$to"/lib/aerie/*.so "$to"/lib/aerie/drafters/*.so
for file in "$to"/bin/* "$to"/lib/*.so*; do
  ldd "$file" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | while read -r library; do
  case $(basename "$library") in
    libaerie*|ld-linux*|libc.so*|libm.so*|libpthread*|libdl.so*|librt.so*|libcuda.so*) ;;
    *) cp -fL "$library" "$to/lib/" ;;
  esac
done
du -sh "$to"
