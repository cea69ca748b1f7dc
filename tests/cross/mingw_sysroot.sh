#!/usr/bin/env bash
# Build the libraries that Aerie needs for 64-bit Windows, from Debian's sources, into a folder.
# Usage: tests/cross/mingw_sysroot.sh DIR
# Sources come with lists of their own (deb-src), so that the machine's apt learns of nothing new.
set -euo pipefail
dir=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
sources=(highway libzstd xxhash pcre2)
stamp="$dir/.packages"
[ "$(cat "$stamp" 2>/dev/null)" = "${sources[*]}" ] && exit 0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lists/partial" "$dir/include" "$dir/share/cmake"
echo "deb-src http://deb.debian.org/debian bookworm main" >"$tmp/sources.list"
options=(-qq -o Dir::Etc::SourceList="$tmp/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$tmp/lists"
         -o APT::Sandbox::User="$(id -un)")
echo "building for Windows: ${sources[*]}" >&2
cd "$tmp"
apt-get "${options[@]}" update
apt-get "${options[@]}" source --download-only "${sources[@]}"
for archive in *.orig.tar.?z; do tar xf "$archive"; done
build() {  # folder, options...
  cmake -S "$1" -B "$1.build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" -DAERIE_SYSROOT="$dir" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$dir" -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF "${@:2}" >"$tmp/log" 2>&1 &&
    cmake --build "$1.build" -- -j2 >>"$tmp/log" 2>&1 && cmake --install "$1.build" >>"$tmp/log" 2>&1 || { tail -n 30 "$tmp/log"; return 1; }
}
build highway-* -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
build zstd-*/build/cmake -DZSTD_BUILD_SHARED=OFF -DZSTD_BUILD_PROGRAMS=OFF
build xxHash-*/cmake_unofficial -DXXHASH_BUILD_XXHSUM=OFF
build pcre2-* -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DPCRE2_SUPPORT_UNICODE=ON
cp -r /usr/src/googletest . && build googletest
# These are headers only; their CMake files name places beside themselves.
cp -r /usr/include/flatbuffers /usr/include/nlohmann /usr/include/CLI "$dir/include"
cp -r /usr/share/cmake/nlohmann_json /usr/share/cmake/CLI11 "$dir/share/cmake"
echo "${sources[*]}" >"$stamp"
