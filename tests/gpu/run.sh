#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and nothing but the CUDA toolkit, cmake and ninja: kernel tests on
# the real device, whole sessions, `aerie verify --device cuda`, compute-sanitizer, and benchmarks as JSON and a table.
#
#   tests/gpu/run.sh [--prebuilt DIR] [--out DIR] [--quick]
#
# --prebuilt: what tests/gpu/carry.sh made on a machine with our dependencies; without it this builds, which needs them
# (.ci/setup.sh tests). --quick: a short bench, and no model of 8 billion weights (16 GB in the temporary folder). Results
# go to --out ($OUT, or build/gpu). Without a device it says so and ends with status 0.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
prebuilt="" out=${OUT:-$root/build/gpu} quick=0
while [ $# -gt 0 ]; do
  case $1 in
    --prebuilt) prebuilt=$(cd "$2" && pwd); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    *) echo "usage: tests/gpu/run.sh [--prebuilt DIR] [--out DIR] [--quick]" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
rm -f "$out"/{checks.txt,bench.json,inflated.json,torch.json}
passed=0 failed=0 skipped=0
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ]
  exit
}
skip() {  # what, why
  skipped=$((skipped + 1)); echo "skipped $1: $2"; echo "skipped $1 ($2)" >>"$out/checks.txt"
}
check() {  # name, command... (status 77: skipped)
  local name=$1 log rc; shift
  log=$out/$(echo "$name" | tr ' /' '__').log
  "$@" >"$log" 2>&1
  rc=$?
  case $rc in
    0) passed=$((passed + 1)); echo "ok      $name"; echo "ok $name" >>"$out/checks.txt" ;;
    77) skip "$name" "$(tail -1 "$log")" ;;
    *) failed=$((failed + 1)); echo "FAILED  $name"; echo "failed $name" >>"$out/checks.txt"; tail -25 "$log" ;;
  esac
  return $rc
}
if ! nvidia-smi -L >"$out/device.txt" 2>&1; then
  skip "everything" "no GPU: nvidia-smi says $(head -1 "$out/device.txt")"
  finish
fi
cat "$out/device.txt"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv,noheader | tee -a "$out/device.txt"
date -u +%Y-%m-%d | tee -a "$out/device.txt"

if [ -z "$prebuilt" ]; then
  cd "$root" && cmake --preset tests -DAERIE_CUDA=ON >"$out/build.log" 2>&1 &&
    cmake --build --preset tests -- -j"$(nproc)" >>"$out/build.log" 2>&1 ||
    { tail -40 "$out/build.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
  prebuilt=$root/build/tests
fi
bin=$prebuilt/bin
export AERIE_TEST_SOURCE_DIR=$root AERIE_TEST_BINARY_DIR=$prebuilt
export LD_LIBRARY_PATH=$prebuilt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to() { local file=$1; shift; "$@" >"$file"; }

check "kernel and session tests" "$bin/gpu_tests" --gtest_output=json:"$out/gpu_tests.json"

# Same seed, same text, through the program that users have.
demo=$root/samples/models
if [ -f "$demo/demo.aerie" ]; then
  check "aerie run on cuda" "$bin/aerie" run --model "$demo/demo.aerie" --prompt "Once" --max-tokens 64 --device cuda --json
  args=(verify --model "$demo/demo.aerie" --device cuda --drafter ngram --tokens "$([ $quick = 1 ] && echo 500 || echo 5000)")
  for d in "$demo"/demo-*.aerie; do [ -f "$d" ] && args+=(--drafter "$d"); done
  check "aerie verify on cuda" "$bin/aerie" "${args[@]}"
  # Costs as CAST reads them: PassTimer runs a pass twice before it times it, so these are times of graphs.
  check "aerie profile on cuda" "$bin/aerie" profile --model "$demo/demo.aerie" --drafter "$demo/demo-eagle.aerie" --device cuda \
    --json -o "$out/costs"
else
  skip "aerie on cuda" "no demo model"
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
# Small tests: the tools slow kernels down a hundredfold.
small='CudaRows.*:CudaAttention.Rope*:CudaAttention.KvCopy*:CudaAttention.ANaN*:CudaLinear.Adds*:CudaLinear.Rows*:CudaGraphs.*:CudaDraw.TopKOf*:CudaDraw.Rescore*:CudaDraw.WalkReports*:CudaDraw.AHead*'
for tool in memcheck racecheck; do
  if [ -n "$sanitizer" ]; then
    check "compute-sanitizer $tool" timeout 900 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/gpu_tests" --gtest_filter="$small"
  else
    skip "compute-sanitizer $tool" "not installed"
  fi
done

options=()
[ $quick = 1 ] && options=(--layers 4)
check "benchmarks" to "$out/bench.json" "$bin/gpu_bench" "${options[@]}"
check "PyTorch decode" to "$out/torch.json" python3 "$root/tests/gpu/torch_decode.py" "${options[@]}" || rm -f "$out/torch.json"

# The demo model with its real tau at the cost of one of 8 billion weights, made here: 16 GB are not carried.
inflate() {
  "$bin/inflate" --target "$demo/demo.aerie" --drafter "$demo/demo-eagle.aerie" --dtype bf16 --shape 8b -o "$work/big"
}
bench_inflated() {
  local eagle=$work/big/demo-eagle.aerie head=$((4096 * 128256 * 2)) json=$work/inflated.json
  "$bin/aerie" bench --device cuda --model "$work/big/target.aerie" --drafter "$eagle" --tree chain --tree eagle2 --tree cast \
    --temperature 0 --max-tokens 64 --repeats 3 --json >"$json" || return
  # A pass of the target reads all of it (the demo's embedding is its head); one of the drafter, itself and that head.
  { sed '$d' "$json"
    echo "  ,\"target_bytes\": $(stat -c %s "$work/big/target.aerie"),"
    echo "  \"drafters\": {\"$eagle\": {\"pass_bytes\": $(($(stat -c %s "$eagle") + head))}}"
    echo "}"
  } >"$out/inflated.json"
}
room=$(df --output=avail -BG "$work" | tail -1 | tr -dc 0-9)
if [ $quick = 1 ]; then skip "inflated model" "--quick"
elif [ ! -x "$bin/inflate" ] || [ ! -f "$demo/demo.aerie" ]; then skip "inflated model" "no inflate, or no demo model"
elif [ "$room" -lt 40 ]; then skip "inflated model" "$room GB left in $work, 40 are needed"
else check "inflating" inflate && check "inflated model" bench_inflated
fi

[ -f "$out/bench.txt" ] || cp "$out/benchmarks.log" "$out/bench.txt" 2>/dev/null
"$bin/gpu_report" "$out"
echo "results: $out"
finish
