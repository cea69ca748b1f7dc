#!/usr/bin/env bash
# The library can be opened and closed 1,000 times without growth, and used while the process exits.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cc -std=c99 -Wall -Wextra -Werror "-I$root/capi/include" "$root/tests/abi/loader.c" -o "$tmp/loader"
"$tmp/loader" "$build/lib/libaerie.so" "$root/samples/models/demo.aerie"
