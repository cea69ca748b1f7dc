#!/usr/bin/env bash
# The Python wheel holds the library and runs where nothing else of Aerie is; what docs/python.md shows runs too.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
cd "$root/bindings/python"
# By its door, which is what pip would knock at: pip itself is not on every machine.
AERIE_DIR=$build PYTHONDONTWRITEBYTECODE=1 python3 -c "import backend; backend.build_wheel('$tmp')"
wheel=$(ls "$tmp"/*.whl)
version=$(sed -n 's/^project(aerie VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
[ "$(basename "$wheel")" = "aerie-$version-py3-none-linux_$(uname -m).whl" ] || fail "tag: $wheel"
if python3 -m pip --version >/dev/null 2>&1; then
  python3 -m pip install --quiet --no-index --no-deps --target "$tmp/site" "$wheel" 2>"$tmp/log" || { cat "$tmp/log"; exit 1; }
else
  python3 -m zipfile -e "$wheel" "$tmp/site"
fi
for f in libaerie.so.1 libaerie-text.so.1 aerie/drafters/eagle.so; do [ -f "$tmp/site/aerie/_lib/$f" ] || fail "no $f inside"; done
[ -f "$tmp/site/aerie/py.typed" ] || fail "no py.typed"
info=$tmp/site/aerie-$version.dist-info
for f in LICENSE COPYRIGHT; do [ -s "$info/$f" ] || fail "no $f inside"; done
# Wanted from the system beyond what manylinux allows, for which the tag is plain linux, and nothing else:
wanted=$(readelf -d "$tmp"/site/aerie/_lib/*.so.1 "$tmp"/site/aerie/_lib/aerie/drafters/*.so | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | sort -u)
for library in $wanted; do
  case $library in
    libhwy.so.1 | libzstd.so.1 | libxxhash.so.0 | libpcre2-8.so.0) ;;  # docs/python.md says where to get them
    libstdc++.so.6 | libgcc_s.so.1 | libm.so.6 | libc.so.6 | ld-linux-*) ;;
    *) fail "the wheel wants $library" ;;
  esac
done

python3 "$root/tests/install/samples.py" "$root/docs/python.md" "$tmp"
cd "$root"
unset AERIE_DIR
for sample in "$tmp"/sample*.py; do
  PYTHONPATH=$tmp/site python3 -W error "$sample" >"$tmp/out" 2>&1 || { cat "$sample" "$tmp/out"; exit 1; }
done
