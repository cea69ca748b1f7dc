#!/usr/bin/env bash
# README's first command: install what is missing, build, and stream text from the demo model with and
# without its drafter; then from the same model at the cost of a larger one.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bash .ci/setup.sh
cmake --preset release >/dev/null
# What it takes and the samples, not the CUDA library: nvcc would be longer at it than all the rest.
cmake --build --preset release --target runtime samples inflate
prompt=${1:-It was a bright morning, and}
both() {  # model, drafter, threads (0: one for each core)
  build/release/bin/aerie run --model "$1" --drafter "$2" --temperature 0.7 --seed 7 --max-tokens 200 --threads "$3" \
    --compare --prompt "$prompt"
}
printf '\n== The demo model, 7.1 M parameters, with its EAGLE-3 head\n\n' >&2
both samples/models/demo.aerie samples/models/demo-eagle3.aerie 1
printf '\n== The demo model inflated to a 330 M shape, with its EAGLE head: the same text, the cost of a larger model\n\n' >&2
larger=$(bash samples/quickstart/larger.sh build/release)
both "$larger/target.aerie" "$larger/demo-eagle.aerie" 0
