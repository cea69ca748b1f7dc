#!/usr/bin/env bash
# Unpack the arm64 libraries that Aerie needs into a folder. Usage: tests/cross/sysroot.sh DIR
# With lists of its own, so that the machine's apt learns of no second architecture.
set -euo pipefail
dir=$(realpath -m "$1")
packages=(libhwy-dev libhwy1 libzstd-dev libzstd1 libxxhash-dev libxxhash0 libpcre2-dev libpcre2-8-0
          libflatbuffers-dev libcli11-dev nlohmann-json3-dev libgtest-dev)
stamp="$dir/.packages"
[ "$(cat "$stamp" 2>/dev/null)" = "${packages[*]}" ] && exit 0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$dir"
options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$tmp/lists"
         -o Dir::Cache="$tmp/cache" -o APT::Sandbox::User="$(id -un)")
echo "downloading for arm64: ${packages[*]}" >&2
cd "$tmp"
apt-get "${options[@]}" update
apt-get "${options[@]}" download "${packages[@]}"
for deb in *.deb; do dpkg -x "$deb" "$dir"; done
echo "${packages[*]}" >"$stamp"
