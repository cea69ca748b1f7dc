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
[[ $wheel == *aerie-*-py3-none-linux_*.whl ]] || fail "tag: $wheel"
if python3 -m pip --version >/dev/null 2>&1; then
  python3 -m pip install --quiet --no-index --no-deps --target "$tmp/site" "$wheel" 2>"$tmp/log" || { cat "$tmp/log"; exit 1; }
else
  python3 -m zipfile -e "$wheel" "$tmp/site"
fi
for f in libaerie.so.1 libaerie-text.so.1 aerie/drafters/eagle.so; do [ -f "$tmp/site/aerie/_lib/$f" ] || fail "no $f inside"; done
[ -f "$tmp/site/aerie/py.typed" ] || fail "no py.typed"

python3 "$root/tests/install/samples.py" "$root/docs/python.md" "$tmp"
cd "$root"
unset AERIE_DIR
for sample in "$tmp"/sample*.py; do
  PYTHONPATH=$tmp/site python3 -W error "$sample" >"$tmp/out" 2>&1 || { cat "$sample" "$tmp/out"; exit 1; }
done
