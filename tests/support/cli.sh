# Sourced by scripts of tests/cli, whose first argument is the build: names of what they use, and a check of a command.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
aerie=$1/bin/aerie
model=$root/samples/models/demo.aerie head=$root/samples/models/demo-eagle.aerie
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
expect() {  # status, words in stderr, command...
  local want=$1 words=$2 rc=0
  shift 2
  "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc -eq "$want" ] || { echo "status $rc, not $want: $*"; cat "$tmp/err"; return 1; }
  [ -z "$words" ] || grep -q -- "$words" "$tmp/err" || { echo "no '$words' in stderr of: $*"; cat "$tmp/err"; return 1; }
  [ $want -ne 1 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || { echo "more than one line: $*"; cat "$tmp/err"; return 1; }
}
