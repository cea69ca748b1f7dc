#!/usr/bin/env bash
# Install what building Aerie needs and is missing (Debian 12, as root or with sudo). Does nothing when
# everything is there. Usage: .ci/setup.sh [python] [tests] [cross] [windows] [wine] [bindings]
set -euo pipefail
packages=(g++ cmake ninja-build pkg-config libhwy-dev libflatbuffers-dev flatbuffers-compiler libzstd-dev
          libxxhash-dev libcli11-dev nlohmann-json3-dev libpcre2-dev)
[[ " $* " == *" python "* ]] && packages+=(python3)
[[ " $* " == *" tests "* ]] && packages+=(libgtest-dev python3 python3-pycparser binutils dpkg-dev file)
[[ " $* " == *" bindings "* ]] && packages+=(golang-go mono-mcs mono-runtime python3-venv)
[[ " $* " == *" cross "* ]] && packages+=(g++-aarch64-linux-gnu qemu-user)
[[ " $* " == *" windows "* ]] && packages+=(g++-mingw-w64-x86-64-posix)
[[ " $* " == *" wine "* ]] && packages+=(wine wine64)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then  # another system: what is there may be enough, and what is not, CMake names
  echo "no apt-get here; building needs what Debian calls ${packages[*]}" >&2
  exit 0
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "missing: ${missing[*]}; neither root nor sudo can install them here" >&2; exit 1; }
  sudo=sudo
fi
echo "installing: ${missing[*]}" >&2
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
