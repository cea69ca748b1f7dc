#!/usr/bin/env bash
# The text of one instruction set on two processors: this one, and the one that qemu-user emulates.
# Usage: tests/cross/x86_text.sh BUILD (needs qemu-user; part of tests/full.sh)
set -euo pipefail
aerie=$(realpath "$1")/bin/aerie
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for dtype in f32 bf16 fp8 int8 int4 q4_1 mxfp4; do
  "$aerie" convert samples/models/demo.aerie -o "$tmp/$dtype.aerie" --dtype $dtype
  for level in AVX2 SSE4; do
    run=("$aerie" run --model "$tmp/$dtype.aerie" --device cpu:$level --prompt "It was" --max-tokens 20 --temperature 0.8 --seed 7 --json)
    "${run[@]}" >"$tmp/here.json"
    qemu-x86_64 -cpu max "${run[@]}" >"$tmp/emulated.json"
    python3 - "$tmp/here.json" "$tmp/emulated.json" "$dtype, $level" <<'PY'
import json, sys
here, emulated = (json.load(open(p))["tokens"] for p in sys.argv[1:3])
same = next((i for i, (a, b) in enumerate(zip(here, emulated)) if a != b), len(here))
print(f"-- {sys.argv[3]}: {same} of {len(here)} tokens the same")
sys.exit(here != emulated or not here)
PY
  done
done
