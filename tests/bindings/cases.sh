#!/usr/bin/env bash
# Every case of bindings/conformance.md is a test of that name in Rust, Go, C# and Python. (That they pass, the scripts
# beside this one see.) A case with "(Rust, Python)" is theirs alone.
set -euo pipefail
cd "$(dirname "$0")/../../bindings"
missing=0
lacks() { echo "$1: no $2"; missing=1; }
cases=$(sed -n 's/^| `\([a-z_]*\)`.*/\1/p' conformance.md)
[ "$(wc -w <<<"$cases")" -ge 26 ] || { echo "conformance.md: where are the cases?"; exit 1; }
for name in $cases; do
  camel=$(sed -E 's/(^|_)([a-z])/\U\2/g' <<<"$name")
  grep -rqE "def test_$name\(" python/tests || lacks Python "$name"
  grep -rqE "fn $name\(" rust --include='*.rs' || lacks Rust "$name"
  grep -q "^| \`$name\` (Rust, Python)" conformance.md && continue
  grep -rqiE "func Test$camel\(" go --include='*_test.go' || lacks Go "$name"
  grep -rqE "void $name\(" csharp/Aerie.Tests || lacks C# "$name"
done
exit $missing
