#!/usr/bin/env bash
# Cross-compile everything for 64-bit Windows with MinGW-w64 and run the unit tests and the command line under Wine.
# Usage: tests/cross/windows.sh LINUX_BUILD [OUT] (LINUX_BUILD/bin/aerie says which text is right; OUT: build/windows)
# Wine is not Windows: what is shown is that the code is right for its interfaces as Wine has them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
linux=$(realpath "$1")/bin/aerie
out=$(realpath -m "${2:-$root/build/windows}")
cd "$root"
bash .ci/setup.sh tests windows wine
bash tests/cross/mingw_sysroot.sh "$out/sysroot"
cmake --no-warn-unused-cli -S . -B "$out" -G Ninja -DCMAKE_TOOLCHAIN_FILE=tests/cross/mingw.cmake -DAERIE_SYSROOT="$out/sysroot" \
  -DAERIE_TESTS=ON >"$out/log" && cmake --build "$out" -- -j2 >>"$out/log" || { tail -n 40 "$out/log"; exit 1; }
export WINEPREFIX=$out/wine WINEDEBUG=-all LC_ALL=C.UTF-8 TMPDIR=/tmp
# Death tests crash on purpose: no debugger is to wait for somebody.
wine reg add 'HKLM\Software\Microsoft\Windows NT\CurrentVersion\AeDebug' /v Debugger /d false /f >"$out/reg.log" 2>&1
wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f >>"$out/reg.log" 2>&1
for program in "$out"/bin/test_*.exe; do
  echo "-- $(basename "$program")"
  # A bound of wall-clock time is not kept beside Wine's own threads.
  timeout 900 wine "$program" --gtest_brief=1 --gtest_filter='-*Promptly' 2>&1 | tr -d '\r' | grep -vE '^(Running main|Note:|$|wine: Unhandled)'
done

# What is let out is what Linux's libraries let out.
for name in aerie aerie-text; do
  cmp <(nm -D --defined-only "$(dirname "$linux")/../lib/lib$name.so" | sed -nE 's/.* (aerie_[a-z0-9_]+)(@.*)?$/\1/p' | sort) \
      <(x86_64-w64-mingw32-objdump -p "$out/bin/$name.dll" | sed -n '/\[Ordinal\/Name Pointer\]/,/^$/p' | sed -nE 's/^\s+\[[^]]*\] (\S+)$/\1/p' | sort)
done
# A program that links what was installed.
cmake --install "$out" --prefix "$out/prefix" >"$out/install.log"
x86_64-w64-mingw32-gcc-posix -I "$out/prefix/include" samples/quickstart/quickstart.c -L "$out/prefix/lib" -laerie -laerie-text -o "$out/prefix/bin/quickstart.exe"
wine "$out/prefix/bin/quickstart.exe" samples/models/demo.aerie samples/models/demo-eagle.aerie >"$out/quickstart.txt"
echo "-- quickstart.exe: $(tail -n 1 "$out/quickstart.txt")"

aerie() { wine "$out/bin/aerie.exe" "$@"; }
models=samples/models work=$out/work
strange="$work/Ünïcode 漢"
rm -rf "$work" && mkdir -p "$strange"
for dtype in bf16 int8 int4 q4_1 mxfp4; do
  "$linux" convert $models/demo.aerie -o "$work/linux.aerie" --dtype $dtype
  aerie convert $models/demo.aerie -o "$strange/$dtype.aerie" --dtype $dtype
  cmp "$work/linux.aerie" "$strange/$dtype.aerie"
  for temperature in 0 0.8; do
    text=(--prompt "It was é, 漢" --max-tokens 48 --temperature $temperature --seed 7)
    "$linux" run --model "$work/linux.aerie" --device cpu:AVX2 "${text[@]}" >"$work/linux.txt"
    aerie run --model "$strange/$dtype.aerie" --device cpu:AVX2 "${text[@]}" --drafter $models/demo-eagle.aerie >"$work/windows.txt"
    cmp "$work/linux.txt" "$work/windows.txt"
  done
  echo "-- $dtype: the package and the texts are Linux's"
  aerie verify --model "$strange/$dtype.aerie" --drafter $models/demo-eagle.aerie --drafter $models/demo-small.aerie --drafter ngram \
    --tokens 400 --length 16
done
# Whatever a name goes through.
cp $models/demo-eagle.aerie "$strange/eagle.aerie" && cp "$out/bin/test-plugins/extra_rows.dll" "$strange/own.dll" && printf 'It was' >"$strange/prompt.txt"
aerie run --model $models/demo.aerie --drafter "$strange/eagle.aerie" --plugin "$strange/own.dll" --prompt-file "$strange/prompt.txt" \
  --max-tokens 8 --trace "$strange/trace.jsonl" >"$work/strange.txt"
if aerie run --model $models/demo.aerie --prompt-file "$strange/prompt.txt" --trace "$strange/prompt.txt" 2>"$work/lost.txt"; then exit 1; fi
grep -q 'would be lost' "$work/lost.txt" && [ "$(cat "$strange/prompt.txt")" = 'It was' ]
aerie profile --model $models/demo.aerie --quick -o "$strange/costs" >"$work/profile.txt" && [ -s "$strange/costs" ]
wine "$out/bin/game_loop.exe" --seconds 2 >"$work/game.txt"
grep -q 'with Aerie: ' "$work/game.txt" || { cat "$work/game.txt"; exit 1; }
