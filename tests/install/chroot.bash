#!/usr/bin/env bash
# The packages install with apt into a fresh Debian, run, compile a program, and go away again. Needs root,
# debootstrap and the network; part of tests/full.sh. CHROOT_SUITE, CHROOT_MIRROR: another Debian, another mirror.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
system=$tmp/system
trap 'umount "$system/proc" 2>/dev/null; rm -rf --one-file-system "$tmp"' EXIT
debootstrap --variant=minbase "${CHROOT_SUITE:-bookworm}" "$system" ${CHROOT_MIRROR:+"$CHROOT_MIRROR"} >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; exit 1; }
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$tmp/packages" >/dev/null 2>&1
mount -t proc proc "$system/proc"  # plugins are loaded through it
mkdir "$system/aerie"
cp "$tmp"/packages/*.deb "$root"/samples/models/demo.aerie "$root"/samples/models/demo-eagle.aerie \
  "$root"/samples/quickstart/quickstart.c "$system/aerie/"
chroot "$system" bash -euo pipefail -s <<'EOC'
export DEBIAN_FRONTEND=noninteractive
cd /aerie
if dpkg -i libaerie-dev_*.deb >/dev/null 2>&1; then echo "libaerie-dev installs without libaerie1"; exit 1; fi
dpkg --purge libaerie-dev >/dev/null 2>&1
apt-get install -y -qq --no-install-recommends ./*.deb gcc libc6-dev pkg-config >/dev/null
aerie run --model demo.aerie --drafter demo-eagle.aerie --prompt "It was" --max-tokens 32 --compare >/dev/null
cc quickstart.c $(pkg-config --cflags --libs aerie aerie-text) -o quickstart
text=$(./quickstart demo.aerie demo-eagle.aerie "The old man")
[ ${#text} -gt 100 ]
apt-get purge -y -qq libaerie1 libaerie-dev aerie-tools >/dev/null
left=$(find /usr -name '*aerie*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
EOC
