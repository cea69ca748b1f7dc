#!/usr/bin/env bash
# build.sh [llama_driver | llama_speculation] [CMAKE_OPTION...]: fetch llama.cpp (in the source distribution of the PyPI
# package llama-cpp-python) and build that driver against it, natively, for the CPU only. All of it lies outside the
# tree; the last line printed is the driver's path.
#   AERIE_BENCH_CACHE          where (default ~/.cache/aerie-bench)
#   LLAMA_CPP_PYTHON_VERSION   which (default below)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${AERIE_BENCH_CACHE:-$HOME/.cache/aerie-bench}
version=${LLAMA_CPP_PYTHON_VERSION:-0.3.36}
driver=llama_driver
case ${1:-} in llama_*) driver=$1 && shift ;; esac
source=$cache/llama_cpp_python-$version
build=$cache/llama-driver-$version
mkdir -p "$cache"
if [ ! -d "$source/vendor/llama.cpp" ]; then
  archive=$cache/llama_cpp_python-$version.tar.gz
  [ -f "$archive" ] || python3 -m pip download -q --no-deps --no-binary llama-cpp-python \
    "llama-cpp-python==$version" -d "$cache" >&2
  tar -xzf "$archive" -C "$cache"
fi
grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$here" "$build/CMakeCache.txt" || rm -f "$build/CMakeCache.txt"  # another checkout's
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release -DLLAMA_SOURCE="$source/vendor/llama.cpp" \
  -DPACKAGE_VERSION="$version" "$@" >&2
cmake --build "$build" --target "$driver" -- -j2 >&2
find "$build" -type f -name "$driver" -perm -u+x | head -n 1
