#!/usr/bin/env bash
# One program with everything inside, from libaerie.a: first-party drafters, and one of its own, registered.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/prefix" >/dev/null
archive=$(find "$tmp/prefix" -name libaerie.a)
libdir=$(dirname "$archive")
mv "$libdir/aerie" "$tmp/away"  # no plugin lies beside it
model=$root/samples/models/demo.aerie head=$root/samples/models/demo-eagle.aerie
fail() { echo "$*"; exit 1; }

# A drafter's entry has a name of its own, and no two objects define the same thing.
nm "$archive" >"$tmp/symbols" 2>/dev/null
for plugin in "$tmp"/away/drafters/*.so; do
  id=$(basename "$plugin" .so)
  grep -q " T aerie_drafter_plugin_entry_$id\$" "$tmp/symbols" || fail "$id is not inside"
done
twice=$(awk '$2 ~ /[TDBR]/ {print $3}' "$tmp/symbols" | sort | uniq -d)
[ -z "$twice" ] || fail "defined twice: $twice"

# Headers that a program may have in another version have names of our own in the archives.
for a in "$archive" "$libdir/libaerie-text.a"; do
  nm -C "$a" >"$tmp/names" 2>/dev/null
  if grep -E '(^|[^A-Za-z0-9_])(flatbuffers|nlohmann)::' "$tmp/names" | head -n 3 | grep .; then fail "$a: names that are not ours"; fi
  grep -q 'aerie_nlohmann::' "$tmp/names" || fail "$a: no names at all"
done

export PKG_CONFIG_PATH=$libdir/pkgconfig
own=$root/tests/plugins/hostile.cc
c++ -std=c++20 -c "$own" $(pkg-config --cflags aerie-static) -DAERIE_DRAFTER_STATIC=mine -o "$tmp/mine.o"
c++ -std=c++11 "$root/tests/install/consumer.cc" "$tmp/mine.o" -DCONSUMER_PLUGIN=aerie_drafter_plugin_entry_mine \
  $(pkg-config --cflags --libs aerie-static) -o "$tmp/consumer"
cmake -S "$root/tests/install" -B "$tmp/cmake" -DSTATIC=ON -DCMAKE_PREFIX_PATH="$tmp/prefix" \
  -DQUICKSTART="$root/samples/quickstart/quickstart.c" >/dev/null
cmake --build "$tmp/cmake" >/dev/null

for program in "$tmp/consumer" "$tmp/cmake/consumer_static" "$tmp/cmake/quickstart_static"; do
  if ldd "$program" | grep libaerie; then fail "$program is not static"; fi
done
a=$("$tmp/consumer" "$model" ngram lookahead "$head" random)
b=$("$tmp/cmake/consumer_static" "$model" ngram "$root/samples/models/demo-eagle3.aerie")
[ -n "$a" ] && [ "$a" = "$b" ] || fail "'$a' and '$b'"
a=$("$tmp/cmake/quickstart_static" "$model" "$head" "The old man")
b=$("$build/bin/quickstart" "$model" "$head" "The old man")
[ -n "$a" ] && [ "$a" = "$b" ] || fail "'$a' and, shared, '$b'"
