#!/usr/bin/env bash
# The completion sample types: a line for every key, most of the text reused, and a key that comes at once cancels.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
run() { (cd "$root" && "$1/bin/editor_complete" "${@:2}") >"$tmp/out" </dev/null; }
# arguments: keys typed, and how fast
check() {
  python3 - "$tmp/out" "$@" <<'PY'
import re, sys
out, keys, slow = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3] == "slow"
file, typed = out.split("    total = 0\n", 2)[0], out.rsplit("    total = 0\n", 1)[1]
assert file.startswith("def mean(values):"), out
lines = typed.splitlines()
assert [line[0] for line in lines] == list(keys), out
for i, line in enumerate(lines):
    reused, tokens = map(int, re.search(r"(\d+) of +(\d+) tokens reused", line).groups())
    assert reused < tokens and (i == 0 or reused > tokens / 2), line
    last = i + 1 == len(lines)
    if last:
        assert "cancelled" not in line, line
        assert int(re.search(r"ms, +(\d+) in", line)[1]) > 0, line
    elif not slow:  # how far the others come is the machine's business
        assert "cancelled |" in line, line
PY
}
for drafter in samples/models/demo-eagle3.aerie ngram ""; do
  run "$(realpath "$1")" --drafter "$drafter" --type "    re<turn" --key-ms 100 --tokens 4
  check "    re<turn" slow
done
run "$(realpath "$1")" --type "    for value" --key-ms 0 --tokens 200
check "    for value" fast
rc=0
run "$(realpath "$1")" --type >/dev/null 2>&1 || rc=$?
[ $rc -eq 2 ]
