#!/usr/bin/env bash
# README's second command: set up, build everything, run every test, with and without sanitizers.
# Ends with "N passed, N failed, N skipped". What takes longer is in tests/full.sh.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
bash .ci/setup.sh tests || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
passed=0 failed=0 skipped=0
failures=()  # named again beside the last line: a long output is cut
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bash .ci/setup.sh bindings >"$out/bindings.log" 2>&1 &  # while the build begins
installing=$!

count() {  # a GoogleTest program's JSON report
  read -r p f s < <(python3 - "$1" <<'EOF'
import json, sys
p = f = s = 0
for suite in json.load(open(sys.argv[1]))["testsuites"]:
    for t in suite["testsuite"]:
        if t.get("failures"): f += 1
        elif t.get("result") == "SKIPPED": s += 1
        elif t.get("status") == "RUN": p += 1
print(p, f, s)
EOF
  )
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

program() {  # one test program; its output, its status and what it makes on the way go to files
  local name=$1
  mkdir "$out/$name.tmp"
  TMPDIR=$out/$name.tmp "$2" --gtest_brief=1 --gtest_output=json:"$out/$name.json" </dev/null >"$out/$name.log" 2>&1
  echo $? >"$out/$name.status"
}

programs() {  # every test program of a build, two at a time, those that take minutes first
  local t name names=()
  for t in "$1"/bin/test_{capi,session,cuda} $(ls "$1"/bin/test_* | grep -v -e _session -e _cuda -e _capi); do
    [ -x "$t" ] || continue  # no nvcc, no test_cuda
    name=$(basename "$1")-$(basename "$t")
    names+=("$name")
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    program "$name" "$t" &
  done
  wait
  for name in "${names[@]}"; do
    local report=$out/$name.json rc
    rc=$(cat "$out/$name.status")
    echo "== $name"
    cat "$out/$name.log"
    if [ -s "$report" ]; then count "$report"; fi
    [ "$rc" -eq 0 ] || failures+=("$name: $(grep -aom3 '^\[  FAILED  \] [A-Za-z0-9_./]*' "$out/$name.log" | cut -c14- | sort -u | tr '\n' ' ')status $rc")
    if [ "$rc" -ne 0 ] && ! { [ -s "$report" ] && grep -q '"failures": [1-9]' "$report"; }; then
      echo "$name ended with status $rc"
      failed=$((failed + 1))
    fi
    if [ -n "$(ls -A "$out/$name.tmp")" ]; then
      echo "$name left behind: $(ls -A "$out/$name.tmp" | head -n 5 | tr '\n' ' ')"
      failures+=("$name left something behind")
      failed=$((failed + 1))
    fi
  done
}

check() {  # name, command...; status 77: skipped, for the reason it printed
  echo "== $1"
  local name=$1; shift
  "$@"
  case $? in
    0) passed=$((passed + 1)) ;;
    77) echo "skipped: $name"; skipped=$((skipped + 1)) ;;
    *) echo "FAILED: $name"; failures+=("$name"); failed=$((failed + 1)) ;;
  esac
}

build() {  # preset, targets...
  cmake --preset "$1" >"$out/$1.cmake.log" 2>&1 && cmake --build --preset "$1" ${2:+--target "${@:2}"} -- -j2 >"$out/$1.build.log" 2>&1 && return 0
  tail -n 60 "$out/$1.cmake.log" "$out/$1.build.log" 2>/dev/null
  return 1
}

named() {  # every line of tests/long_sanitized.txt is a test's name, or the test is no longer left out
  local t gone absent='^$'
  [ -x build/tests/bin/test_cuda ] || absent='^Cuda'
  gone=$(for t in build/tests/bin/test_*; do "$t" --gtest_list_tests; done | awk '/^[^ ]/ { suite = $1; next } { print suite $1 }' |
    grep -vxFf - tests/long_sanitized.txt | grep -v "$absent")
  [ -z "$gone" ] || { echo "no such test: $gone"; return 1; }
}

# Where no GPU will run them CUDA's kernels are compiled quickly, for four architectures all the same.
quick=OFF
if ! nvidia-smi -L >/dev/null 2>&1 && { nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc); "$nvcc" --help 2>/dev/null | grep -e --Ofast-compile >/dev/null; }; then
  quick=ON
fi
cmake --preset tests -DAERIE_CUDA_QUICK=$quick >/dev/null 2>&1  # what goes wrong `build` says
check "release build" build tests || true
wait $installing || echo "no toolchains for the bindings"  # their tests are skipped then
cat "$out/bindings.log"
check "tests/long_sanitized.txt" named
programs build/tests
# The scripts keep one core busy; meanwhile the other one builds.
# With sanitizers the library's tests alone: those of what measures it (inflate, the GPU reports) have run. Nor is compiled twice
# what this machine cannot run, or of two targets with AVX-512 the lesser: of its own it has but how integers are added without
# VNNI, as AVX2 does in narrower vectors; tests/full.sh has both.
(
  renice -n 10 $BASHPID >/dev/null
  if [ "$(uname -m)" = x86_64 ]; then
    if ! grep -qm1 avx512f /proc/cpuinfo; then export CXXFLAGS="${CXXFLAGS:-} -DAERIE_WITHOUT_AVX512"
    elif grep -qm1 avx512_bitalg /proc/cpuinfo; then export CXXFLAGS="${CXXFLAGS:-} -DAERIE_WITHOUT_AVX3"; fi
  fi
  build sanitize test_{capi,cost,cuda,kernels,kv,package,session,text,tree}
) >"$out/sanitize.log" 2>&1 &
sanitizing=$!
sanitized() { wait $sanitizing; local rc=$?; cat "$out/sanitize.log"; return $rc; }
for script in tests/kernels/*.sh tests/abi/*.sh tests/install/*.sh tests/cli/*.sh tests/bindings/*.sh tests/cross/mingw.sh; do
  [ -f "$script" ] && check "$script" bash "$script" "$root/build/tests"
done
# The CUDA backend is emulated in test_cuda; the real one needs nvcc to be built and a GPU to run.
if [ ! -f build/tests/lib/aerie/libaerie-cuda.so ]; then
  echo "== libaerie-cuda: skipped, no nvcc"
  skipped=$((skipped + 2))
elif ! nvidia-smi -L >/dev/null 2>&1; then
  echo "== libaerie-cuda is built; its tests on a GPU: skipped, no device"
  skipped=$((skipped + 1))
else
  check "GPU tests" bash tests/gpu/run.sh --prebuilt build/tests --quick
fi
# The training recipes need PyTorch, which nothing else here does.
if python3 -c 'import torch, tokenizers, safetensors, flatbuffers, zstandard' 2>/dev/null; then
  check "training recipes" env AERIE_DIR="$root/build/tests" PYTHONPATH=bindings/python python3 -m unittest discover -s bindings/python/tests
else
  echo "== training recipes: skipped, no PyTorch"
  skipped=$((skipped + 1))
fi
check "sanitizer build" sanitized
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
# The slowest with sanitizers (ten seconds to minutes each) have run without them; tests/full.sh runs them with.
export GTEST_FILTER="-$(paste -sd: tests/long_sanitized.txt)"
programs build/sanitize

[ ${#failures[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failures[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
