#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and nothing but the CUDA toolkit, cmake and ninja: kernel tests on
# the real device, whole sessions, `aerie verify --device cuda`, compute-sanitizer, and benchmarks as JSON and a table.
#
#   tests/gpu/run.sh [--prebuilt DIR] [--out DIR] [--quick]
#
# --prebuilt: what tests/gpu/carry.sh made on a machine with our dependencies; without it this builds, which needs them
# (.ci/setup.sh tests). Results go to --out ($OUT, or build/gpu). Without a device it says so and ends with status 0.
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
passed=0 failed=0 skipped=0
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ]
  exit
}
if ! nvidia-smi -L >"$out/device.txt" 2>&1; then
  echo "no GPU: nvidia-smi says $(head -1 "$out/device.txt")"
  skipped=1
  finish
fi
cat "$out/device.txt"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv,noheader | tee -a "$out/device.txt"
date -u +%Y-%m-%d | tee -a "$out/device.txt"

if [ -z "$prebuilt" ]; then
  cd "$root" && cmake --preset tests >"$out/build.log" 2>&1 &&
    cmake --build --preset tests --target gpu_tests gpu_bench aerie-cuda aerie-cli -- -j"$(nproc)" >>"$out/build.log" 2>&1 &&
    cmake --build --preset tests -- -j"$(nproc)" >>"$out/build.log" 2>&1 ||
    { tail -40 "$out/build.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
  prebuilt=$root/build/tests
fi
bin=$prebuilt/bin
export AERIE_TEST_SOURCE_DIR=$root AERIE_TEST_BINARY_DIR=$prebuilt
export LD_LIBRARY_PATH=$prebuilt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

check() {  # name, command...
  local name=$1 log; shift
  log=$out/$(echo "$name" | tr ' /' '__').log
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1)); echo "ok      $name"
  else
    failed=$((failed + 1)); echo "FAILED  $name"; tail -25 "$log"
  fi
}

check "kernel and session tests" "$bin/gpu_tests" --gtest_output=json:"$out/gpu_tests.json"

# Same seed, same text, through the program that users have.
demo=$root/samples/models
target=$(ls "$demo"/demo.aerie 2>/dev/null)
if [ -n "$target" ]; then
  check "aerie run on cuda" "$bin/aerie" run --model "$target" --prompt "Once" --max-tokens 64 --device cuda --json
  args=(verify --model "$target" --device cuda --drafter ngram --tokens "$([ $quick = 1 ] && echo 500 || echo 5000)")
  for d in "$demo"/demo-*.aerie; do [ -f "$d" ] && args+=(--drafter "$d"); done
  check "aerie verify on cuda" "$bin/aerie" "${args[@]}"
else
  echo "skipped aerie verify: no demo model"; skipped=$((skipped + 1))
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
  # Small tests: the tools slow kernels down a hundredfold.
  small='CudaRows.*:CudaAttention.Rope*:CudaAttention.KvCopy*:CudaAttention.ANaN*:CudaLinear.Adds*:CudaLinear.Rows*:CudaDraw.TopKOf*:CudaDraw.Rescore*:CudaDraw.WalkReports*:CudaDraw.AHeads*'
  for tool in memcheck racecheck; do
    check "compute-sanitizer $tool" timeout 900 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/gpu_tests" --gtest_filter="$small"
  done
else
  echo "skipped compute-sanitizer: not installed"; skipped=$((skipped + 2))
fi

bench() {
  if "$bin/gpu_bench" "$@" >"$out/bench.json" 2>"$out/bench.txt"; then
    passed=$((passed + 1)); cat "$out/bench.txt"
  else
    failed=$((failed + 1)); echo "FAILED  bench"; cat "$out/bench.txt"
  fi
}
if [ $quick = 1 ]; then bench --layers 4; else bench; fi
echo "results: $out"
finish
