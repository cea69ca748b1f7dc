#!/usr/bin/env bash
# README's first command: install what is missing, build, and stream text from the demo model with and
# without its drafter.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bash .ci/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release
# One thread and a chain of one: the demo model fits the cache, so more of either costs about what it brings.
exec build/release/bin/aerie run --model samples/models/demo.aerie --drafter samples/models/demo-eagle3.aerie \
  --tree chain --tree-nodes 1 --threads 1 --temperature 0.7 --seed 7 --max-tokens 200 --compare \
  --prompt "${1:-It was a bright morning, and}"
