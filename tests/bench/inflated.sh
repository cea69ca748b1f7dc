#!/usr/bin/env bash
# Speed with real acceptance at the cost of larger models: the demo target and its drafters, inflated.
# Usage: tests/bench/inflated.sh BUILD_DIR [SHAPE...] (default: 110m-class and 1b-class shapes that are bit-exact)
# Environment: DTYPES (bf16 int8), DRAFTERS (demo-*), TREES (chain eagle2), NODES (6), TOKENS (32), REPEATS (3), TEMPERATURE (0.7).
# A shape with experts=,experts_used= is a mixture (not bit-exact).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
shift
[ $# -gt 0 ] || set -- dim=768,layers=16,heads=12,kv_heads=4,ffn=2048,vocab=32000 \
                       dim=3072,layers=16,heads=32,kv_heads=8,ffn=6144,vocab=32000
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
models=$root/samples/models
drafters=()
for d in "$models"/${DRAFTERS:-demo-*}.aerie; do drafters+=(--drafter "$d"); done
trees=()
for t in ${TREES:-chain eagle2}; do trees+=(--tree "$t"); done
echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(nproc) CPUs, $(date +%F); all rows inflated"
for shape in "$@"; do
  for dtype in ${DTYPES:-bf16 int8}; do
    rm -rf "$out/m"
    "$build/bin/inflate" --target "$models/demo.aerie" "${drafters[@]}" --shape "$shape" --dtype "$dtype" -o "$out/m" >"$out/log"
    echo "== inflated, $shape, $dtype ($(du -m "$out/m/target.aerie" | cut -f1) MiB)"
    big=()
    for d in "$out"/m/demo-*.aerie; do big+=(--drafter "$d"); done
    "$build/bin/aerie" bench --model "$out/m/target.aerie" "${big[@]}" "${trees[@]}" --tree-nodes "${NODES:-6}" \
      --temperature "${TEMPERATURE:-0.7}" --max-tokens "${TOKENS:-32}" --repeats "${REPEATS:-3}"
  done
done
