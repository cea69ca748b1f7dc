#!/usr/bin/env bash
# aerie plugin check: first-party drafters pass, liars are found out, each by the check that is for it, and a plugin
# that crashes, exits or prints is a line of the report.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
aerie=$build/bin/aerie
models=$root/samples/models
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
run() {  # wanted status, plugin, options...
  local want=$1 rc=0
  shift
  "$aerie" plugin check "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc -eq "$want" ] || { echo "status $rc, not $want: plugin check $*"; cat "$tmp/out" "$tmp/err"; exit 1; }
  [ "$(wc -l <"$tmp/err")" -eq "$want" ] || { echo "stderr of: plugin check $*"; cat "$tmp/err"; exit 1; }
}
says() { grep -qE -- "$1" "$tmp/out" || { echo "no line '$1' in:"; cat "$tmp/out"; exit 1; }; }

run 0 "$build/lib/aerie/drafters/ngram.so" --model "$models/demo.aerie"
says '^ok +ngram-suffix: text .* nodes accepted'
run 0 "$build/lib/aerie/drafters/eagle.so" --model "$models/demo.aerie" --drafter "$models/demo-eagle.aerie"
says '^ok +eagle: batch '
says '^skip +eagle3: text +the package is for eagle$'
run 0 "$build/lib/aerie/drafters/small_model.so" --model "$models/demo.aerie" --drafter "$models/demo-small.aerie"
says '^ok +small_model: sequences '
run 0 "$build/lib/aerie/drafters/eagle.so"
says '^skip +eagle: text +needs --model'

plugins=$build/lib/test-plugins
run 1 "$plugins/hostile.so" --model "$models/demo.aerie"
for line in 'random: proposals +it writes behind the capacity' 'count: proposals +count is 1073741824' 'negative_count: proposals +count is -5' \
    'parent: proposals +node 2: parent 3' 'token: proposals +node 1: token 1007' 'confidence: proposals +node 0: confidence nan' \
    'throw: proposals +plugin exception' 'fail: proposals +propose_host failed' 'device_shape: text .*wrong shape' \
    'device_root_layer: text .*level 0 attend to nothing' 'device_silent: text .*no candidates' 'device_twice: text .*given twice' 'device_throw: text .*threw' \
    'no_functions: proposals +a function is missing' 'open_fails: proposals +open: weights: not today'; do
  says "^FAIL +$line"
done
run 1 "$plugins/extra_rows.so" --model "$models/demo.aerie"
says '^FAIL +extra_count: text .*count 9'
says '^FAIL +extra_bad_table: open '
run 1 "$plugins/wrong_major.so"
says '^FAIL +table +drafter ABI 2'
run 1 "$plugins/too_new.so"
says '^FAIL +table +needs drafter ABI'
run 1 "$plugins/no_entry.so"
says '^FAIL +table .*aerie_drafter_plugin_entry'
echo "not a library" >"$tmp/text.so"
run 1 "$tmp/text.so"
run 1 /no/such/plugin.so

# What no plugin of the other tests does: die, leave, talk.
for deed in 'abort();' 'exit(0);' 'puts("hello");' 'id = "Bad Id";' 'id = "";'; do
  cat >"$tmp/p.c" <<EOF2
#include <aerie/drafter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int32_t describe(uint32_t i, aerie_drafter_desc *out) {
  const char *id = "p";
  if (i > 0) return AERIE_D_INVALID;
  $deed
  strcpy(out->id, id); strcpy(out->title, "p"); strcpy(out->version, "1");
  return AERIE_D_OK;
}
static int32_t create(const aerie_drafter_host *h, const char *id, aerie_drafter *d, aerie_drafter_error *e) {
  (void)h; (void)id; (void)d; (void)e;
  return AERIE_D_FAILED;
}
AERIE_DRAFTER_EXPORT const aerie_drafter_plugin_table *aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table t = {sizeof t, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR, describe, create};
  return &t;
}
EOF2
  cc -shared -fPIC "-I$root/capi/include" "$tmp/p.c" -o "$tmp/p.so"
  run 1 "$tmp/p.so"
  case $deed in
    abort*) says '^FAIL +describe +the process died' ;;
    exit*) says '^FAIL +describe +the plugin ended the process' ;;
    puts*) says '^FAIL +describe +it wrote to the terminal: hello' ;;
    *) says '^FAIL +describe +drafter 0: its id' ;;
  esac
done
