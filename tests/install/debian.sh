#!/usr/bin/env bash
# The Debian packages: names, dependencies, contents; unpacked somewhere they run. (tests/full.sh installs them
# into a clean system.)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
if ! command -v dpkg-shlibdeps >/dev/null || ! command -v cpack >/dev/null; then echo "no dpkg-dev"; exit 77; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$tmp" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
version=$(sed -n 's/^project(aerie VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
deb() { echo "$tmp/${1}_${version}_$(dpkg --print-architecture).deb"; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
packages=(libaerie1 libaerie-dev aerie-tools)
for p in "${packages[@]}"; do [ -f "$(deb $p)" ] || fail "no package $p: $(ls "$tmp")"; done
[ -n "$(find "$build/lib" -name 'libaerie-cuda.so')" ] || [ -z "$(ls "$tmp"/aerie-cuda* 2>/dev/null)" ] || fail "aerie-cuda without CUDA"

for p in libaerie-dev aerie-tools; do
  [[ $(field $p Depends) == *"libaerie1 (= $version)"* ]] || fail "$p depends on: $(field $p Depends)"
done
for library in libc6 libhwy1 libzstd1 libxxhash0 libpcre2-8-0 libstdc++6; do
  [[ ", $(field libaerie1 Depends)," =~ ", $library"[\ ,] ]] || fail "libaerie1 depends on: $(field libaerie1 Depends)"
done

for p in "${packages[@]}"; do dpkg-deb -c "$(deb $p)" | awk '$1 !~ /^d/ {print $6}' >"$tmp/$p.list"; done
has() { grep -qxF "./usr/$2" "$tmp/$1.list" || fail "$1 lacks $2"; }
lib="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
has libaerie1 "$lib/libaerie.so.1"
has libaerie1 "$lib/libaerie-text.so.1"
for d in "$build"/lib/aerie/drafters/*.so; do has libaerie1 "$lib/aerie/drafters/$(basename "$d")"; done
for h in "$root"/capi/include/aerie/*; do has libaerie-dev "include/aerie/$(basename "$h")"; done
has libaerie-dev "$lib/libaerie.so"
has libaerie-dev "$lib/libaerie.a"
has libaerie-dev "$lib/cmake/aerie/aerie-config.cmake"
has libaerie-dev "$lib/pkgconfig/aerie.pc"
has aerie-tools "bin/aerie"
both=$(sort "$tmp"/*.list | uniq -d)
[ -z "$both" ] || fail "in two packages: $both"

for p in "${packages[@]}"; do dpkg -x "$(deb $p)" "$tmp/system"; done
if [[ $(readelf -S "$tmp/system/usr/$lib/libaerie.so.1") == *.symtab* ]]; then fail "libaerie is not stripped"; fi
size=$(cat "$tmp/system/usr/$lib"/libaerie.so.1 "$tmp/system/usr/$lib"/aerie/drafters/*.so | wc -c)
[ "$size" -le 5000000 ] || fail "library and drafters take $size bytes"
for drafter in ngram "$root/samples/models/demo-eagle.aerie"; do
  "$tmp/system/usr/bin/aerie" run --model "$root/samples/models/demo.aerie" --drafter "$drafter" \
    --prompt "It was" --max-tokens 32 --compare >"$tmp/text" 2>&1 || { cat "$tmp/text"; exit 1; }
done
