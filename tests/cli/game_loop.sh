#!/usr/bin/env bash
# The frame loop sample talks and shows its frame times. Nothing about how long they are: machines are noisy.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
run() { "$1/bin/game_loop" --model "$root/samples/models/demo.aerie" --seconds 0.5 --render-ms 2 "${@:2}" >"$tmp/out" </dev/null; }
for drafter in "$root/samples/models/demo-eagle3.aerie" ""; do
  run "$1" --drafter "$drafter" --threads 1
  python3 - "$tmp/out" <<'PY'
import re, sys
out = open(sys.argv[1]).read()
prompt = "The old man looked up from the fire, and said:"
assert out.startswith(prompt), out
spoken, report = out[len(prompt):].split("\nwith Aerie: ", 1)
with_, without = report.split("\nwithout Aerie: ", 1)
assert len(spoken.split()) >= 3, f"it said {spoken!r}"
for part in with_, without:
    assert part.startswith("30 frames"), part
    bins = re.findall(r"^ +[\d.]+ - +[\d.]+ ms +(\d+) #+$", part, re.M)
    assert sum(map(int, bins)) == 30, part
assert float(re.search(r"([\d.]+) tokens spoken per second", with_)[1]) > 0
PY
done
rc=0
run "$1" --render-ms >/dev/null 2>&1 || rc=$?
[ $rc -eq 2 ]
