#!/usr/bin/env bash
# larger.sh BUILD: the demo model and its EAGLE head inside a Llama shape of 330 M parameters, made once, in seconds;
# prints its folder. It says what the demo model says, bit for bit, at the cost of its size
# (docs/benchmarking.md, "Real acceptance at the cost of larger models").
set -euo pipefail
build=$1
models=$(cd "$(dirname "$0")/../models" && pwd)
out=$build/larger
if [ ! "$out/target.aerie" -nt "$models/demo.aerie" ] || [ ! "$out/demo-eagle.aerie" -nt "$build/bin/inflate" ]; then
  "$build/bin/inflate" --target "$models/demo.aerie" --drafter "$models/demo-eagle.aerie" --dtype bf16 --check 64 \
    --shape dim=768,layers=32,heads=12,kv_heads=4,ffn=3072,vocab=32000 -o "$out" >&2
fi
echo "$out"
