#!/usr/bin/env bash
# The long tests: 200,000 tokens of exactness for every weight dtype, ThreadSanitizer, fuzzing.
# Not part of CI. Usage: tests/full.sh [exactness|tsan|fuzz]... (all of them by default)
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
bash .ci/setup.sh tests
what=${*:-exactness tsan fuzz}
passed=0 failed=0 skipped=0
check() {
  echo "== $1"
  local name=$1; shift
  if "$@"; then passed=$((passed + 1)); else echo "FAILED: $name"; failed=$((failed + 1)); fi
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --preset tests >/dev/null && cmake --build --preset tests -- -j2 >"$tmp/build.log" || { tail -n 40 "$tmp/build.log"; exit 1; }
aerie=build/tests/bin/aerie

if [[ " $what " == *" exactness "* ]]; then
  model=samples/models/demo.aerie head=samples/models/demo-eagle.aerie
  for dtype in f32 bf16 int8 int4; do
    $aerie convert $model -o "$tmp/$dtype.aerie" --dtype $dtype 2>/dev/null || cp $model "$tmp/$dtype.aerie"
    $aerie convert $model -o "$tmp/small.aerie" --dtype int4
    check "exactness $dtype, f32 KV" $aerie verify --model "$tmp/$dtype.aerie" --drafter $head --drafter "$tmp/small.aerie" \
      --drafter ngram --tokens 50000 --seed $RANDOM
  done
  check "exactness int8, bf16 KV" $aerie verify --model "$tmp/int8.aerie" --kv-dtype bf16 --drafter $head --drafter ngram --tokens 20000
  for id in random token confidence device_shape; do
    check "exactness with drafter $id" $aerie verify --model $model --plugin "$root/build/tests/lib/test-plugins/hostile.so" \
      --drafter $id --tokens 5000
  done
fi
if [[ " $what " == *" tsan "* ]]; then
  if cmake --preset tsan >/dev/null && cmake --build --preset tsan -- -j2 >"$tmp/tsan.log"; then
    for t in build/tsan/bin/test_*; do check "tsan $(basename "$t")" "$t" --gtest_brief=1; done
  else
    tail -n 40 "$tmp/tsan.log"
    failed=$((failed + 1))
  fi
fi
if [[ " $what " == *" fuzz "* ]]; then
  for target in tests/fuzz/*_fuzz.cc; do
    name=$(basename "$target" .cc)
    # Each target's first lines say how it is built: the line after "Build:".
    build=$(sed -n 's#^//  *\(clang++ .*\)#\1#p' "$target" | head -n 1)
    if ! command -v clang++ >/dev/null || [ -z "$build" ]; then
      skipped=$((skipped + 1))
      continue
    fi
    check "fuzz $name" bash -c "$build -o $tmp/$name && $tmp/$name -max_total_time=${FUZZ_SECONDS:-120} -max_len=65536"
  done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
