#!/usr/bin/env bash
# An installed and then moved prefix serves a C program through find_package and through pkg-config.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/first" >/dev/null
mv "$tmp/first" "$tmp/moved"
model=$root/samples/models/demo.aerie
mkdir "$tmp/consumer"
cp "$root/samples/quickstart/quickstart.c" "$tmp/consumer/"
cat >"$tmp/consumer/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(aerie REQUIRED COMPONENTS core text)
add_executable(consumer quickstart.c)
target_link_libraries(consumer PRIVATE aerie::aerie aerie::text)
EOF
cmake -S "$tmp/consumer" -B "$tmp/consumer/build" -DCMAKE_PREFIX_PATH="$tmp/moved" >/dev/null
cmake --build "$tmp/consumer/build" >/dev/null
libdir=$(dirname "$(find "$tmp/moved" -name 'libaerie.so')")
export PKG_CONFIG_PATH=$libdir/pkgconfig
cc -std=c99 "$root/samples/quickstart/quickstart.c" $(pkg-config --cflags --libs aerie aerie-text) -o "$tmp/pkg"
export LD_LIBRARY_PATH=$libdir
"$tmp/moved/bin/aerie" inspect "$model" >/dev/null
a=$("$tmp/consumer/build/consumer" "$model" "$root/samples/models/demo-eagle.aerie" "The old man")
b=$("$tmp/pkg" "$model" "$root/samples/models/demo-eagle.aerie" "The old man")
[ -n "$a" ] && [ "$a" = "$b" ]
