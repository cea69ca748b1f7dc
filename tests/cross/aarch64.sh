#!/usr/bin/env bash
# Cross-compile everything for 64-bit ARM and run the kernels' tests and the command line under qemu-user.
# Usage: tests/cross/aarch64.sh X86_BUILD [OUT] (X86_BUILD/bin/aerie says which text is right; OUT: build/aarch64)
# Emulated: what the instructions compute is tested, not their speed, nor a weakly ordered memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
x86=$(realpath "$1")/bin/aerie
out=$(realpath -m "${2:-$root/build/aarch64}")
cd "$root"
bash .ci/setup.sh tests cross
bash tests/cross/sysroot.sh "$out/sysroot"
qemu() { qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$out/sysroot/usr/lib/aarch64-linux-gnu" "$@"; }
build() {  # folder, compiler flags, target...
  cmake --no-warn-unused-cli -S . -B "$out/$1" -G Ninja \
    -DCMAKE_TOOLCHAIN_FILE=tests/cross/aarch64.cmake -DAERIE_SYSROOT="$out/sysroot" \
    -DCMAKE_CXX_FLAGS="$2" -DAERIE_TESTS=ON >"$out/$1.log" &&
    cmake --build "$out/$1" --target "${@:3}" -- -j2 >>"$out/$1.log" || { tail -n 40 "$out/$1.log"; return 1; }
}

build armv8 "" all
for cpu in cortex-a72 max,sve-default-vector-length=64; do  # without and with dot products and 512-bit SVE
  echo "-- kernels, $cpu"
  qemu -cpu "$cpu" "$out/armv8/bin/test_kernels" --gtest_brief=1 --gtest_filter='-*Promptly'  # wall-clock bounds
done
for tests in "test_tree" "test_text" "test_session --gtest_filter=*Golden*"; do  # golden: against PyTorch's logits
  echo "-- $tests"
  qemu "$out/armv8/bin/"$tests --gtest_brief=1
done
build dotprod -march=armv8.2-a+dotprod test_kernels
echo "-- linear kernels with dot products"
qemu -cpu max "$out/dotprod/bin/test_kernels" --gtest_brief=1 --gtest_filter='Linear.*'

aerie() { qemu -cpu max "$out/armv8/bin/aerie" "$@"; }
models=samples/models

level=()  # an x86 CPU with a matrix unit has other sums of bf16 (docs/exactness.md)
if grep -qw amx_bf16 /proc/cpuinfo; then level=(--device cpu:AVX3_DL); fi
same_text() {  # dtype: what the demo model writes here, and on ARM
  local run temperature
  for temperature in 0 0.8; do
    run=(run --model "$out/$1.aerie" --prompt "It was" --max-tokens 48 --temperature $temperature --seed 7 --json)
    "$x86" "${run[@]}" "${level[@]}" >"$out/x86.json"
    aerie "${run[@]}" >"$out/arm.json"
    python3 - "$out/x86.json" "$out/arm.json" "$1, temperature $temperature" <<'PY'
import json, sys
x86, arm = (json.load(open(p))["tokens"] for p in sys.argv[1:3])
same = next((i for i, (a, b) in enumerate(zip(x86, arm)) if a != b), len(x86))
print(f"-- {sys.argv[3]}: {same} of {len(x86)} tokens as on x86")
sys.exit(x86 != arm)
PY
  done
}

for dtype in f32 bf16 fp8 int8 int4 q4_1 mxfp4; do
  "$x86" convert $models/demo.aerie -o "$out/$dtype.aerie" --dtype $dtype
  aerie convert $models/demo.aerie -o "$out/$dtype-arm.aerie" --dtype $dtype
  cmp "$out/$dtype.aerie" "$out/$dtype-arm.aerie"
  # The promise is one text for each ISA. Those with fused multiply-add have the same order of sums, so they agree; but
  # an x86 CPU without VNNI rounds the rows that meet int8 weights in its own way (kernels/ops.h, ActivationCodes).
  if [ $dtype = int8 ] && ! grep -qE 'avx_vnni|avx512_vnni' /proc/cpuinfo; then
    echo "-- int8: not compared, this CPU has no VNNI"
  else
    same_text $dtype
  fi
  # A short round for each drafter: a tree of 60 nodes takes a second under the emulator.
  aerie verify --model "$out/$dtype.aerie" --drafter $models/demo-eagle.aerie --drafter ngram --tokens 200 --length 8
done
