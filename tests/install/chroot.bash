#!/usr/bin/env bash
# The packages install with apt into a fresh Debian, run, compile a program, and go away again, and lintian has nothing
# against them. Part of tests/full.sh; clean_system.bash says what it needs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
. "$root/tests/install/clean_system.bash"
tmp=$(mktemp -d)
system=$tmp/system
trap 'leave_system "$system"; rm -rf "$tmp"' EXIT
clean_system "$system"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$tmp/packages" >/dev/null 2>&1
mkdir "$system/aerie"
cp "$tmp"/packages/*.deb "$root"/samples/models/demo.aerie "$root"/samples/models/demo-eagle.aerie \
  "$root"/samples/quickstart/quickstart.c "$system/aerie/"
in_system "$system" <<'EOC'
cd /aerie
apt-get update -qq
everything() { find / -xdev -path /proc -prune -o \( -path /aerie -o -path /tmp -o -path /var -o -name __pycache__ \) -prune -o -print | LC_ALL=C sort; }
apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config cmake ninja-build >/dev/null 2>&1
everything >/tmp/before
if dpkg -i libaerie-dev_*.deb >/dev/null 2>&1; then echo "libaerie-dev installs without libaerie1"; exit 1; fi
dpkg --purge libaerie-dev >/dev/null 2>&1
apt-get install -y -qq --no-install-recommends ./libaerie1_*.deb ./libaerie-dev_*.deb ./aerie-tools_*.deb >/dev/null 2>&1
run() { aerie run --model demo.aerie --prompt "It was" --max-tokens 32 "$@"; }
run --drafter demo-eagle.aerie --compare >/dev/null 2>&1
cc quickstart.c $(pkg-config --cflags --libs aerie aerie-text) -o quickstart
text=$(./quickstart demo.aerie demo-eagle.aerie "The old man")
[ ${#text} -gt 100 ]

# A project that wants CUDA is told, as is a program; and with the package, that there is no driver.
mkdir project
printf 'cmake_minimum_required(VERSION 3.20)\nproject(c C)\nfind_package(aerie REQUIRED COMPONENTS core text cuda)\n' >project/CMakeLists.txt
finds_cuda() { cmake -G Ninja -S project -B project/build >said 2>&1; }
says() { if run --device cuda >said 2>&1; then echo "CUDA without a GPU?"; exit 1; fi; grep -q "$1" said || { cat said; exit 1; }; }
if finds_cuda; then echo "find_package finds cuda"; exit 1; fi
grep -q "package aerie-cuda" said || { cat said; exit 1; }
says "libaerie-cuda.so is not installed"
if ls aerie-cuda_*.deb >/dev/null 2>&1; then
  apt-get install -y -qq --no-install-recommends ./aerie-cuda_*.deb >/dev/null 2>&1
  says "no NVIDIA driver"
  finds_cuda || { cat said; exit 1; }
  run >/dev/null 2>&1
else
  echo "no aerie-cuda: built without nvcc"
fi

apt-get purge -y -qq 'libaerie*' 'aerie-*' >/dev/null 2>&1
apt-get autoremove -y -qq --purge >/dev/null 2>&1
everything >/tmp/after
left=$(comm -13 /tmp/before /tmp/after; dpkg -l | grep aerie || true; find /var -name '*aerie*' -not -path '/var/cache/*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }

apt-get install -y -qq --no-install-recommends lintian >/dev/null 2>&1
# Not a source package of Debian's: no changelog and no manual page. cpack calls ldconfig beside the trigger. A drafter may
# do without any function of libc.
lintian --allow-root --fail-on error,warning --tag-display-limit 0 --suppress-tags \
  no-changelog,no-manual-page,maintscript-calls-ldconfig,library-not-linked-against-libc ./*.deb
EOC
