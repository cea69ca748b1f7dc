#!/usr/bin/env bash
# An installed and then moved prefix serves programs in C and C++, through find_package and through pkg-config.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/first" >/dev/null
mv "$tmp/first" "$tmp/moved"
libdir=$(dirname "$(find "$tmp/moved" -name 'libaerie.so')")
quickstart=$root/samples/quickstart/quickstart.c
model=$root/samples/models/demo.aerie head=$root/samples/models/demo-eagle.aerie
fail() { echo "$*"; exit 1; }

# Nothing in it knows where it was built or first installed.
if grep -rlIF -e "$tmp/first" -e "$root" "$tmp/moved"; then fail "an installed file names its old place"; fi
[[ $(readelf -d "$libdir/libaerie.so") == *"soname: [libaerie.so.1]"* ]] || fail "SONAME"
for f in "$libdir"/*.so.1 "$libdir"/aerie/drafters/*.so; do
  if [[ $(readelf -d "$f") == *PATH* ]]; then fail "$f has a run path"; fi
done

cmake -S "$root/tests/install" -B "$tmp/cmake" -DCMAKE_PREFIX_PATH="$tmp/moved" -DQUICKSTART="$quickstart" >/dev/null
cmake --build "$tmp/cmake" >/dev/null
grep -qx "plugins=$libdir/aerie/drafters" "$tmp/cmake/found" || fail "aerie_PLUGIN_DIR: $(cat "$tmp/cmake/found")"
# `cuda` is found where its library is. A component that is not there is an error only for who requires it, and says why.
backend=$libdir/aerie/libaerie-cuda.so
grep -qx "cuda=$(ls "$backend" 2>/dev/null || true)" "$tmp/cmake/found" || fail "cuda: $(cat "$tmp/cmake/found")"
rm -f "$backend"
printf 'cmake_minimum_required(VERSION 3.20)\nproject(c C)\nfind_package(aerie ${HOW} COMPONENTS core text ${WHAT})\n' >"$tmp/CMakeLists.txt"
find_aerie() { cmake -S "$tmp" -B "$tmp/refused" -DCMAKE_PREFIX_PATH="$tmp/moved" -DHOW="$1" -DWHAT="$2" 2>&1 | tr -s '[:space:]' ' ' >"$tmp/said"; }
if find_aerie REQUIRED cuda; then fail "cuda was found"; fi
grep -q "component cuda: no $backend" "$tmp/said" || fail "$(cat "$tmp/said")"
if find_aerie REQUIRED vulkan; then fail "vulkan was found"; fi
grep -q "component vulkan: there are core" "$tmp/said" || fail "$(cat "$tmp/said")"
find_aerie QUIET cuda || fail "not required, and yet: $(cat "$tmp/said")"
touch "$backend"
find_aerie REQUIRED cuda || fail "$(cat "$tmp/said")"
rm "$backend"

export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
cc -std=c99 "$quickstart" $(pkg-config --cflags --libs aerie aerie-text) -o "$tmp/c"
c++ -std=c++11 "$root/tests/install/consumer.cc" $(pkg-config --cflags --libs aerie) -o "$tmp/cc"

"$tmp/moved/bin/aerie" inspect "$model" >/dev/null
a=$("$tmp/cmake/quickstart" "$model" "$head" "The old man")
b=$("$tmp/c" "$model" "$head" "The old man")
[ -n "$a" ] && [ "$a" = "$b" ] || fail "C: '$a' and '$b'"
a=$("$tmp/cmake/consumer" "$model" ngram "$head")
b=$("$tmp/cc" "$model" ngram-suffix "$head")
[ -n "$a" ] && [ "$a" = "$b" ] || fail "C++: '$a' and '$b'"
