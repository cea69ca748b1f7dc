#!/usr/bin/env bash
# --device cuda through the program and its libraries: what is said without libaerie-cuda or a GPU; and, with the emulated
# backend in the library's place, the same text whatever the drafter.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
models=$root/samples/models
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lib/aerie"
cp -L "$build"/lib/libaerie*.so* "$tmp/lib/"
cp -r "$build/lib/aerie/drafters" "$tmp/lib/aerie/"
run() { LD_LIBRARY_PATH=$tmp/lib "$build/bin/aerie" run --model "$models/demo.aerie" --device cuda --prompt "Once" --max-tokens 10 "$@"; }

if run >"$tmp/out" 2>"$tmp/err"; then echo "ran without libaerie-cuda"; exit 1; fi
grep -q "libaerie-cuda.so is not installed" "$tmp/err" || { cat "$tmp/err"; exit 1; }

cp "$build/lib/test-backend/libemulated_backend.so" "$tmp/lib/aerie/libaerie-cuda.so"
for drafter in "" "--drafter $models/demo-eagle3.aerie --tree eagle2 --tree-nodes 12" "--drafter ngram --tree chain"; do
  # shellcheck disable=SC2086
  run $drafter --temperature 0.7 --seed 5 --json >"$tmp/r.json"
  python3 - "$tmp/r.json" "$tmp/first" <<'PY'
import json, os, sys
tokens = json.load(open(sys.argv[1]))["tokens"]
if not os.path.exists(sys.argv[2]): json.dump(tokens, open(sys.argv[2], "w"))
assert len(tokens) == 10 and tokens == json.load(open(sys.argv[2])), "a drafter changed the text"
PY
done

# Nothing of a short prompt is read fast.
run --prefill fast --temperature 0.7 --seed 5 --json >"$tmp/r.json" 2>"$tmp/err"
grep -q "^aerie: note: --prefill fast: " "$tmp/err" || { cat "$tmp/err"; exit 1; }
python3 -c 'import json,sys; r = json.load(open(sys.argv[1])); assert r["prefill"] == "fast" and r["tokens"] == json.load(open(sys.argv[2]))' \
  "$tmp/r.json" "$tmp/first"

if [ -f "$build/lib/aerie/libaerie-cuda.so" ] && ! nvidia-smi -L >/dev/null 2>&1; then
  cp "$build/lib/aerie/libaerie-cuda.so" "$tmp/lib/aerie/libaerie-cuda.so"
  if run >"$tmp/out" 2>"$tmp/err"; then echo "ran without a GPU"; exit 1; fi
  grep -q "^aerie: cuda: no " "$tmp/err" || { cat "$tmp/err"; exit 1; }
fi
