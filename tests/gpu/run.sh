#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and nothing but the CUDA toolkit, cmake and ninja: kernel tests on
# the real device, whole sessions, benchmarks as JSON and a table, `aerie verify --device cuda`, compute-sanitizer.
#
#   tests/gpu/run.sh [--prebuilt DIR|FILE.tar.gz] [--out DIR] [--quick]
#
# --prebuilt: what tests/gpu/carry.sh made on a machine with our dependencies; without it this builds, which needs them
# (.ci/setup.sh tests). --quick: a short bench, and no model of 8 billion weights (16 GB in the temporary folder).
# --out ($OUT, or build/gpu) holds, brought up to date after every check: results.md, results.json, checks.txt, and all logs
# and JSON in all.tgz. Without a device it says so and ends with status 0.
#
# Nothing here may take forever. Seconds that all of it may take, building aside; checks that no time is left for are skipped:
budget=${AERIE_GPU_BUDGET:-540}
# and each check (the first: one suite of tests; the second: one test of a suite that failed):
suite_limit=${AERIE_GPU_SUITE_SECONDS:-120} test_limit=${AERIE_GPU_TEST_SECONDS:-30} verify_limit=${AERIE_GPU_VERIFY_SECONDS:-120}
bench_limit=${AERIE_GPU_BENCH_SECONDS:-90} torch_limit=${AERIE_GPU_TORCH_SECONDS:-90} inflate_limit=${AERIE_GPU_INFLATE_SECONDS:-240}
sanitizer_limit=${AERIE_GPU_SANITIZER_SECONDS:-90}
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
prebuilt="" out=${OUT:-$root/build/gpu} quick=0
usage() { echo "usage: tests/gpu/run.sh [--prebuilt DIR|FILE.tar.gz] [--out DIR] [--quick]" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --prebuilt) [ $# -ge 2 ] && [ -e "$2" ] || usage; prebuilt=$(realpath "$2"); shift 2 ;;
    --out) [ $# -ge 2 ] || usage; out=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    *) usage ;;
  esac
done
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
rm -f "$out"/{results.md,results.json,checks.txt,all.tgz}

work=$(mktemp -d)
results=$work/results  # what is in all.tgz
mkdir "$results" "$work/tmp"
touch "$results/checks.txt"
export TMPDIR=$work/tmp  # what is stopped leaves things behind
running="" inflating="" testing=""  # process groups
cleanup() {
  local group
  for group in $running $inflating $testing; do kill -KILL -- "-$group" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT
now=""  # the check that runs
trap '[ -z "$now" ] || echo "failed $now (the script was stopped)" >>"$results/checks.txt"; record; exit 143' TERM INT HUP

passed=0 failed=0 skipped=0
bin=""
until=$((SECONDS + budget))
left() { echo $((until - SECONDS)); }
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ]
  exit
}
record() {  # what there is so far
  local file
  [ -z "$bin" ] || timeout -k 2 20 "$bin/gpu_report" "$results" >"$results/report.log" 2>&1
  for file in results.md results.json checks.txt; do
    if [ -f "$results/$file" ]; then cp -f "$results/$file" "$out/.new" && mv -f "$out/.new" "$out/$file"; fi
  done
  tar czf "$out/.new" -C "$results" . 2>/dev/null
  [ $? -le 1 ] && mv -f "$out/.new" "$out/all.tgz"  # 1: a log grew meanwhile
}
skip() {  # what, why
  skipped=$((skipped + 1)); echo "skipped $1: $2"; echo "skipped $1 ($2)" >>"$results/checks.txt"
  record
}
# A command in a process group of its own; status 124: it took longer. What does not die even then is left behind.
limited() {  # seconds, command...
  local end=$((SECONDS + $1)) pid signal rc; shift
  set -m
  "$@" </dev/null &
  pid=$!
  set +m
  running=$pid
  for signal in TERM KILL ""; do
    while kill -0 $pid 2>/dev/null; do
      [ $SECONDS -ge $end ] && break
      sleep 0.1
    done
    if ! kill -0 $pid 2>/dev/null; then
      wait $pid; rc=$?
      running=""
      [ "$signal" != TERM ] || return $rc
      kill -KILL -- "-$pid" 2>/dev/null  # what it started
      return 124
    fi
    [ -z "$signal" ] || kill -"$signal" -- "-$pid" 2>/dev/null
    end=$((SECONDS + 3))
  done
  running=""
  return 124
}
check() {  # name, seconds, command...: its status; 77: skipped, 75: no time. Its output is in $log
  local name=$1 most=$2 rc why
  shift 2
  log=$results/$(tr -c 'A-Za-z0-9_.\n-' _ <<<"$name").log
  if [ "$(left)" -lt 10 ]; then skip "$name" "no time left"; return 75; fi
  [ "$most" -le "$(left)" ] || most=$(left)
  now=$name
  limited "$most" "$@" >"$log" 2>&1
  rc=$?
  now=""
  if [ "$(stat -c %s "$log")" -gt 2000000 ]; then
    { head -c 1000000 "$log"; echo; echo "... cut here ..."; tail -c 1000000 "$log"; } >"$log.cut" && mv "$log.cut" "$log"
  fi
  case $rc in
    0) passed=$((passed + 1)); echo "ok      $name"; echo "ok $name" >>"$results/checks.txt" ;;
    77) skip "$name" "$(tail -1 "$log" | cut -c 1-400)"; return 77 ;;
    *)
      why="status $rc"
      [ $rc -ne 124 ] || why="no end within $most s"
      failed=$((failed + 1)); echo "FAILED  $name: $why"; echo "failed $name ($why)" >>"$results/checks.txt"
      tail -25 "$log" | cut -c 1-400 ;;
  esac
  record
  return $rc
}

if ! limited 30 nvidia-smi -L >"$results/device.txt" 2>&1; then
  skip "everything" "no GPU: nvidia-smi says $(head -1 "$results/device.txt")"
  finish
fi
cat "$results/device.txt"
limited 30 nvidia-smi -q >"$results/nvidia-smi.txt" 2>&1
limited 30 nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv,noheader >"$work/query" 2>&1
tee -a "$results/device.txt" <"$work/query"
date -u +%Y-%m-%d | tee -a "$results/device.txt"

if [ -z "$prebuilt" ]; then
  cd "$root" && cmake --preset tests -DAERIE_CUDA=ON >"$results/build.log" 2>&1 &&
    cmake --build --preset tests -- -j"$(nproc)" >>"$results/build.log" 2>&1 ||
    { tail -40 "$results/build.log"; failed=1; echo "failed building" >>"$results/checks.txt"; record; finish; }
  prebuilt=$root/build/tests
  until=$((SECONDS + budget))
elif [ -f "$prebuilt" ]; then
  mkdir "$work/prebuilt" && tar xzf "$prebuilt" -C "$work/prebuilt" || { echo "$prebuilt: not what carry.sh makes" >&2; exit 2; }
  prebuilt=$work/prebuilt
fi
bin=$prebuilt/bin
export AERIE_TEST_SOURCE_DIR=$root AERIE_TEST_BINARY_DIR=$prebuilt
# Ours; then, for cuBLASLt, the toolkit's and those of Python's packages. PyTorch is run without.
before=(env -u LD_LIBRARY_PATH)
[ -z "${LD_LIBRARY_PATH+set}" ] || before=(env "LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
path=$prebuilt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/usr/local/cuda/lib64
while read -r folder; do
  for folder in "$folder"/*/lib; do [ ! -d "$folder" ] || path+=:$folder; done
done < <(timeout -k 2 20 python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null)
export LD_LIBRARY_PATH=$path
# The compiler's libraries are the machine's if they are new enough.
starts() { limited 20 "$bin/gpu_tests" --gtest_list_tests && limited 20 "$bin/aerie" --version; } >"$results/starts.log" 2>&1
starts || [ ! -d "$prebuilt/lib/standard" ] || LD_LIBRARY_PATH=$prebuilt/lib/standard:$path

# The demo model with its real tau at the cost of one of 8 billion weights, made here: 16 GB are not carried. It takes
# minutes of one core, meanwhile the rest runs.
demo=$root/samples/models
big=$work/big
# with_candidates.aerie: the same target with a candidate head for its drafters (rank 128 of the demo model's 192, 256 of 4096).
inflate() {
  { nice -n 5 "$bin/inflate" --target "$demo/demo.aerie" --drafter "$demo/demo-eagle.aerie" --dtype bf16 --candidate-head 128 --shape 8b -o "$big" &&
    mv "$big/target.aerie" "$big/with_candidates.aerie" &&
    nice -n 5 "$bin/aerie" convert "$big/with_candidates.aerie" -o "$big/target.aerie" --dtype bf16 --candidate-head 0
  } >"$results/inflate.log" 2>&1 </dev/null
  echo $? >"$work/inflated"
}
room=$(df --output=avail -BG "$work" | tail -1 | tr -dc 0-9)
not_inflated=""
if [ $quick = 1 ]; then not_inflated="--quick"
elif [ ! -x "$bin/inflate" ] || [ ! -f "$demo/demo.aerie" ]; then not_inflated="no inflate, or no demo model"
elif [ "$room" -lt 40 ]; then not_inflated="$room GB left in $work, 40 are needed"
else
  set -m
  inflate &
  inflating=$!
  set +m
fi

# Every suite is a process: an error that stays with the device's context ends with it. Suites together may take two fifths
# of the time. Tests of a suite that failed run once more, each in a process: each has a result of its own.
whole=$until
until=$((SECONDS + $(left) * 2 / 5))
tests_in() { awk -v suite="$1." '/^[^ ]/ { inside = $1 == suite; next } inside { print $1 }' "$results/tests.txt"; }
again=()
if limited 30 "$bin/gpu_tests" --gtest_list_tests >"$results/tests.txt" 2>"$results/tests.log" && grep -q '^  ' "$results/tests.txt"; then
  suites=$(awk '/^[^ ]+\.( |$)/ { sub(/\.$/, "", $1); print $1 }' "$results/tests.txt")
  # Four at once (more would ask for more managed memory than a card has): most of a test is the reference's time.
  suite_limit=$(( suite_limit < $(left) ? suite_limit : $(left) ))
  export bin work suite_limit
  set -m
  xargs -P 4 -I SUITE bash -c 'timeout --foreground -k 3 "$suite_limit" "$bin/gpu_tests" --gtest_filter="SUITE.*" </dev/null \
    >"$work/SUITE.out" 2>&1; echo $? >"$work/SUITE.rc"' <<<"$suites" &
  testing=$!
  set +m
  wait_for_suite() {
    while [ ! -s "$work/$1.rc" ]; do sleep 0.1; done
    cat "$work/$1.out"
    return "$(cat "$work/$1.rc")"
  }
  for suite in $suites; do
    check "tests: $suite" "$((2 * suite_limit + 5))" wait_for_suite "$suite"
    case $? in
      0)
        while read -r test why; do skip "$test" "$why"; done < <(
          awk '/: Skipped$/ { getline why } /^\[  SKIPPED \] [^ ]+ \(/ { print $4, why }' "$log") ;;
      75) ;;
      77) break ;;  # no device
      *) again+=("$suite") ;;
    esac
  done
  kill -KILL -- "-$testing" 2>/dev/null  # what no time was left for must not run beside what is measured
  testing=""
  for suite in "${again[@]}"; do
    for test in $(tests_in "$suite"); do check "test: $suite.$test" "$test_limit" "$bin/gpu_tests" --gtest_filter="$suite.$test"; done
  done
else
  check "list of tests" 20 "$bin/gpu_tests" --gtest_list_tests && skip "tests" "there are none"
fi
until=$whole

options=()
[ $quick = 1 ] && options=(--layers 4)
check "benchmarks" "$bench_limit" "$bin/gpu_bench" --parts --save "$results/bench.json" "${options[@]}"

# Same seed, same text, through the program that users have.
if [ -f "$demo/demo.aerie" ]; then
  check "aerie run on cuda" 60 "$bin/aerie" run --model "$demo/demo.aerie" --prompt "Once" --max-tokens 64 --device cuda --json
  drafters=(--drafter ngram)
  for d in "$demo"/demo-*.aerie; do [ -f "$d" ] && drafters+=(--drafter "$d"); done
  # One text with every drafter, each with 8 trees and 2 noises.
  length=$([ $quick = 1 ] && echo 8 || echo 16)
  check "aerie verify on cuda, f32 cache" "$verify_limit" "$bin/aerie" verify --model "$demo/demo.aerie" --device cuda --kv-dtype f32 "${drafters[@]}" \
    --length "$length" --tokens $((${#drafters[@]} / 2 * 16 * length))
  check "aerie verify on cuda, bf16 cache" "$verify_limit" "$bin/aerie" verify --model "$demo/demo.aerie" --device cuda \
    --drafter "$demo/demo-eagle.aerie" --drafter "$demo/demo-fasteagle.aerie" --length "$length" --tokens $((2 * 16 * length))
  # Costs as CAST reads them: PassTimer runs a pass twice before it times it, so these are times of graphs.
  check "aerie profile on cuda" 60 "$bin/aerie" profile --model "$demo/demo.aerie" --drafter "$demo/demo-eagle.aerie" --device cuda \
    --json -o "$results/costs"
else
  skip "aerie on cuda" "no demo model"
fi

torch() { "${before[@]}" python3 "$root/tests/gpu/torch_decode.py" "${options[@]}" >"$work/torch.json" && mv "$work/torch.json" "$results/"; }
check "PyTorch decode" "$torch_limit" torch

inflated() {
  while [ ! -s "$work/inflated" ]; do sleep 0.5; done
  cat "$results/inflate.log"
  return "$(cat "$work/inflated")"
}
bench_inflated() {
  local eagle=$big/demo-eagle.aerie head=$((4096 * 128256 * 2)) json=$work/inflated.json
  "$bin/aerie" bench --device cuda --model "$big/target.aerie" --drafter "$eagle" --tree chain --tree eagle2 --tree cast --tree auto \
    --temperature 0 --max-tokens 64 --repeats 3 --json >"$json" || return
  # A pass of the target reads all of it but the embedding, which is as large as its head and of which it reads rows; one of
  # the drafter, itself and that head.
  { sed '$d' "$json"
    echo "  ,\"target_bytes\": $(($(stat -c %s "$big/target.aerie") - head)),"
    echo "  \"drafters\": {\"$eagle\": {\"pass_bytes\": $(($(stat -c %s "$eagle") + head))}}"
    echo "}"
  } >"$results/inflated.json"
}
bench_candidates() {
  "$bin/aerie" bench --device cuda --model "$big/with_candidates.aerie" --drafter "$big/demo-eagle.aerie" --tree chain --tree eagle2 --tree auto \
    --temperature 0 --max-tokens 64 --repeats 3 --json >"$work/candidate.json" && mv "$work/candidate.json" "$results/"
}
if [ -n "$not_inflated" ]; then skip "inflated model" "$not_inflated"
elif check "inflating" "$inflate_limit" inflated; then
  check "inflated model" "$bench_limit" bench_inflated
  check "inflated model with a candidate head" "$bench_limit" bench_candidates
fi
if [ -n "$inflating" ]; then
  kill -KILL -- "-$inflating" 2>/dev/null
  inflating=""
  rm -rf "$big"
fi

# Small tests: the tools slow kernels down a hundredfold.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
small=('CudaRows.*' 'CudaAttention.Rope*:CudaAttention.KvCopy*:CudaAttention.ANaN*:CudaSinks.WhatIs*'
  'CudaLinear.Adds*:CudaLinear.Rows*:CudaLinear.Powers*' 'CudaGraphs.*'
  'CudaDraw.TopKOf*:CudaDraw.Rescore*:CudaDraw.WalkReports*:CudaDraw.AHead*'
  'CudaExperts.Routes*:CudaExperts.AnOutput*:CudaExperts.AddsThe*:CudaExpertLayers.AWhole*')
for tool in memcheck racecheck; do
  if [ -z "$sanitizer" ]; then skip "compute-sanitizer $tool" "not installed"; continue; fi
  apart=()
  [ $tool != memcheck ] || apart=(env AERIE_GPU_TESTS_APART=1)
  for filter in "${small[@]}"; do
    check "compute-sanitizer $tool: ${filter%%.*}" "$sanitizer_limit" "${apart[@]}" "$sanitizer" --tool $tool --error-exitcode 9 \
      "$bin/gpu_tests" --gtest_filter="$filter"
  done
done

record
cat "$results/results.md"
echo "results: $out"
finish
