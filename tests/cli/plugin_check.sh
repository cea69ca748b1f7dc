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

plugin() {  # functions beside the table; what describe, open and propose_host do
  cat >"$tmp/q.c" <<EOF2
#define _POSIX_C_SOURCE 200809L
#include <aerie/drafter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
${1:-}
static int32_t describe(uint32_t i, aerie_drafter_desc *out) {
  const char *id = "q";
  if (i > 0) return AERIE_D_INVALID;
  ${2:-}
  out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
  strcpy(out->id, id); strcpy(out->title, "q"); strcpy(out->version, "1");
  return AERIE_D_OK;
}
static void destroy(void *s) { (void)s; }
static int32_t open_(void *s, const aerie_drafter_open_info *info, aerie_drafter_needs *needs, aerie_drafter_error *e) {
  (void)s; (void)info; (void)needs; (void)e;
  ${3:-}
  return AERIE_D_OK;
}
static int32_t begin(void *s, int32_t seq) { return (void)s, (void)seq, AERIE_D_OK; }
static void end(void *s, int32_t seq) { (void)s, (void)seq; }
static int32_t propose_host(void *s, const aerie_host_context *c, aerie_host_candidates *out) {
  (void)s;
  ${4:-}
  out->token[0] = c->tokens[c->n_tokens - 1];
  out->parent[0] = -1;
  out->confidence[0] = 0.5f;
  out->count = 1;
  return AERIE_D_OK;
}
static int32_t create(const aerie_drafter_host *h, const char *id, aerie_drafter *d, aerie_drafter_error *e) {
  (void)h; (void)id; (void)e;
  d->destroy = destroy; d->open = open_; d->begin = begin; d->end = end; d->propose_host = propose_host;
  return AERIE_D_OK;
}
AERIE_DRAFTER_EXPORT const aerie_drafter_plugin_table *aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table t = {sizeof t, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR, describe, create};
  return &t;
}
EOF2
  cc -shared -fPIC "-I$root/capi/include" "$tmp/q.c" -o "$tmp/q.so"
}

# What no plugin of the other tests does: die, leave, talk.
for deed in 'abort();' 'exit(0);' 'puts("hello");' 'id = "Bad Id";' 'id = "";'; do
  plugin '' "$deed"
  run 1 "$tmp/q.so"
  case $deed in
    abort*) says '^FAIL +describe +the process died' ;;
    exit*) says '^FAIL +describe +the plugin ended the process' ;;
    puts*) says '^FAIL +describe +it wrote to the terminal: hello' ;;
    *) says '^FAIL +describe +drafter 0: its id' ;;
  esac
done

# A library that hangs when it is loaded is a line too, and what it does at exit is its child's. A drafter may be slow, and may refuse a
# target that it was not made for.
plugin '__attribute__((constructor)) static void load(void) { for (;;) pause(); }'
run 1 "$tmp/q.so" --seconds 1
says '^FAIL +table +no answer within 3 s'
plugin '__attribute__((destructor)) static void leave(void) { abort(); }'
run 0 "$tmp/q.so"
says '^ok +describe +q$'
plugin '' '' 'if (info->vocab == 1000) { strcpy(e->message, "vocabulary of 1000"); return AERIE_D_INVALID; }'
run 0 "$tmp/q.so" --model "$models/demo.aerie"
says '^skip +q: proposals +it refuses a made-up target: open: vocabulary of 1000$'
says '^ok +q: text '
plugin '' '' '' 'nanosleep(&(struct timespec){0, 20000000}, NULL);'
run 0 "$tmp/q.so" --model "$models/demo.aerie" --seconds 4  # by the sleep alone at most 9 tokens of a text, and 50 of one in a batch
says '^ok +q: proposals '
says '^note +q: text +too slow to be checked'
says '^(ok +q: batch +3 sessions in a batch, in texts of [1-5][0-9] tokens: it is slow|note +q: batch +too slow to be checked)'
says '^(ok|note) +q: sequences '
