#!/usr/bin/env bash
# What embedding costs: size of the stripped libraries, resident memory above the weights, start-up time.
# Usage: tests/bench/footprint.sh [BUILD [MODEL [DRAFTER]]]. Fails when libaerie and the first-party drafters together
# take more than 5 MB.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/release} model=${2:-$root/samples/models/demo.aerie} drafter=${3-$root/samples/models/demo-eagle.aerie}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
size() { strip -o "$tmp/stripped" "$1"; stat -c %s "$tmp/stripped"; }
row() { printf "  %-28s %9.1f KB\n" "$1" "$(awk "BEGIN { print $2 / 1000 }")"; }

echo "stripped size"
sum=0
for f in "$build/lib/libaerie.so" "$build"/lib/aerie/drafters/*.so; do
  n=$(size "$f"); sum=$((sum + n)); row "$(basename "$f")" "$n"
done
row "together" "$sum"
row "libaerie-text.so (optional)" "$(size "$build/lib/libaerie-text.so")"

cc -O2 -std=c99 "-I$root/capi/include" "$root/tests/bench/footprint.c" -o "$tmp/footprint" "-L$build/lib" -laerie \
  "-Wl,-rpath,$build/lib"
for i in $(seq 21); do "$tmp/footprint" "$model" ${drafter:+"$drafter"}; done >"$tmp/runs"
echo "start-up: median of 21 warm runs; resident memory without the mapped packages"
python3 - "$tmp/runs" <<'EOP'
import statistics, sys
stages = {}
for line in open(sys.argv[1]):
    name, ms, kib = line.split()
    stages.setdefault(name, []).append((float(ms), int(kib)))
for name, rows in stages.items():
    ms, kib = (statistics.median(c) for c in zip(*rows))
    print(f"  {name:<28} {ms:9.2f} ms {kib / 1024:9.1f} MiB")
EOP
[ "$sum" -le 5000000 ] || { echo "more than 5 MB"; exit 1; }
