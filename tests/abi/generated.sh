#!/usr/bin/env bash
# What bindings/generate.py writes is fresh, the layout is what it says, and the libraries export what the headers
# declare and nothing else.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
python3 "$root/bindings/generate.py" --check
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "-I$root/capi/include" -fsyntax-only "$root/tests/abi/layout.c"
for lib in libaerie.so libaerie-text.so; do
  # It calls its own functions, whoever else in the process has some of their names.
  if readelf -rW "$build/lib/$lib" | grep ' aerie_'; then echo "$lib asks for functions that it has"; exit 1; fi
  nm -D --defined-only "$build/lib/$lib" | awk -v lib=$lib '$2 != "A" {sub(/@.*/, "", $NF); print lib, $NF}'
done | LC_ALL=C sort | diff - <(LC_ALL=C sort "$root/tests/abi/symbols.txt") || { echo "exports (<) are not the golden list (>)"; exit 1; }
