#!/usr/bin/env bash
# model.sh NAME BUILD [DTYPE]: a published model (fetch.py has the names) as a package of weights as near to its file's as there are
# (or DTYPE's), fetched and converted once; prints its file.
set -euo pipefail
name=$1 build=$2 dtype=${3:-stored}
here=$(cd "$(dirname "$0")" && pwd)
folder=$build/published/$name
gguf=$folder/$name.gguf package=$folder/$dtype.aerie
[ -f "$gguf" ] || python3 "$here/fetch.py" "$name" "$gguf"
[ "$package" -nt "$gguf" ] || "$build/bin/aerie" convert "$gguf" -o "$package" --dtype "$dtype" >&2
echo "$package"
