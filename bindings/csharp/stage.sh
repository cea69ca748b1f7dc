#!/usr/bin/env bash
# Put an installed Aerie's libraries where Aerie.csproj takes them from.
#   stage.sh PREFIX [RID] [FOLDER]     RID: linux-x64
set -euo pipefail
prefix=$1 rid=${2:-linux-x64}
to=${3:-$(cd "$(dirname "$0")" && pwd)/Aerie}/runtimes/$rid/native
libdir=$(dirname "$(find "$prefix" -name libaerie.so | head -1)")
[ "$libdir" != . ] || { echo "$prefix has no libaerie.so" >&2; exit 1; }
mkdir -p "$to/aerie/drafters"
cp -L "$libdir/libaerie.so" "$libdir/libaerie-text.so" "$to/"
cp -L "$libdir"/aerie/drafters/*.so "$to/aerie/drafters/"
if [ -e "$libdir/aerie/libaerie-cuda.so" ]; then cp -L "$libdir/aerie/libaerie-cuda.so" "$to/aerie/"; fi
