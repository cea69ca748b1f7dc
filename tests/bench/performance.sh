#!/usr/bin/env bash
# performance.sh BUILD MODELS TEXT... > docs/performance.md: every figure of that page, in one run on an idle machine.
# BUILD has the benches (-DAERIE_TESTS=ON -DAERIE_BENCH=ON). MODELS keeps the random-weight models of vs_llama_cpp.py
# between runs (13 GB for the 1 B shape). TEXT: held-out token ids (*.u16) of TARGET, a Hugging Face directory of the
# demo target (docs/training.md makes both) or its package. Environment: TARGET, SHAPE (1b), DTYPES, THREADS (2), REPEATS (7), INFLATED
# (the shape of the inflated model; 10 GB in the folder for temporary files). Takes about an hour.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/bench build=$1 models=$2
shift 2
shape=${SHAPE:-1b} dtypes=${DTYPES:-bf16,int8,int4} threads=${THREADS:-2} repeats=${REPEATS:-7}
inflated=${INFLATED:-dim=3072,layers=16,heads=32,kv_heads=8,ffn=6144,vocab=32000}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
say() { echo "performance.sh: $*" >&2; }
fenced() { echo '```'; cat; echo '```'; }

echo "# Performance"
echo
echo "Made by \`tests/bench/performance.sh\` on $(date +%F): $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) CPUs,"
echo "load average $(cut -d' ' -f1 /proc/loadavg) at the start. A virtual machine on a shared host: its memory bandwidth changes by a factor of two and more within"
echo "minutes, so only figures of one table compare, and those were measured in turn."
echo
echo "What to read first: [one token and passes of more beside llama.cpp](#beside-llamacpp-random-weights), and"
echo "[whole texts beside it](#end-to-end-beside-llamacpp-inflated)."
echo
echo "## What the machine can do"
echo
echo "\`dram_read_1_stream\`: each thread reads one stream of memory; \`dram_read\`: four, as the kernels do. GMAC/s: 10^9 multiply-adds a second,"
echo "out of registers."
echo
say roofline
"$build/bin/roofline" --rounds 5 | tee "$out/roofline" | fenced

if [ $# -gt 0 ]; then
  say quality
  echo
  echo "## What weight formats cost in quality"
  echo
  echo "By \`tests/bench/quality.py\`, on held-out text of the demo target (7.1 M parameters; a published model may lose more). fp8 is for"
  echo "GPUs: on a CPU it is right but its kernel is not tuned, and int8 loses less."
  echo
  python3 "$here/quality.py" --build "$build" --target "$TARGET" --threads "$threads" "$@" 2>/dev/null
fi

say "beside llama.cpp"
driver=$("$here/vs_llama_cpp/build.sh" 2>/dev/null | tail -n 1)
python3 "$here/vs_llama_cpp.py" --build "$build" --models "$models" --shape "$shape" --dtypes "$dtypes" --threads "$threads" \
  --rows 1,2,3,4,5,6,7,8,10,12,16 --repeats "$repeats" --out "$out/llama.json" --page "$out/llama.md" >&2
echo
sed -e 's/^#/##/' -e 's/^### Aerie and llama.cpp.*/## Beside llama.cpp, random weights/' -e 's/^## Aerie and llama.cpp.*/## Beside llama.cpp, random weights/' "$out/llama.md"

say "pass profile"
echo
echo "## Where a verify pass spends its time"
echo
echo "\`pass_profile\`, random weights, $threads threads, behind 192 positions; each op timed alone, medians of 15 passes."
for d in ${dtypes//,/ }; do
  echo
  echo "$d:"
  echo
  "$build/bin/pass_profile" "$models/$shape/$d.aerie" "$threads" 1 6 8 12 13 16 17 | tee "$out/profile.$d" | fenced
done
echo
echo "The compute roof of a pass is the time of Linear's multiply-adds at the peak that \`roofline\` measures for the format:"
echo
for d in ${dtypes//,/ }; do
  peak=$([ "$d" = bf16 ] && echo f32 || echo "$d")
  awk -v d="$d" -v threads="$threads" -v peak="$peak" 'NR == FNR { if ($1 == peak && $2 == threads) roof = $3; next }
    $1 == "all" && roof { printf "- %s, 16 rows: %.1f ms, roof %.1f ms: %.2f times the roof\n", d, $12, $12 * $13 / roof, roof / $13 }' \
    "$out/roofline" "$out/profile.$d"
done
cat "$here/verify_roof.md.in"
echo
echo "### Pages"
echo
echo "Where a page of memory lies must be looked up, in a virtual machine twice over, once for every token. A package that Aerie is the"
echo "first to read lies in huge pages, where kernel and file system have them for files. The int8 package as it lies after the"
echo "sections above, and a copy that was read in pages of 4 KiB (by \`posix_fadvise\`):"
echo
cp "$models/$shape/int8.aerie" "$out/small.aerie"
python3 - "$out/small.aerie" <<'END'
import os, sys
f, step = os.open(sys.argv[1], os.O_RDONLY), 1 << 24
os.fsync(f)
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
for at in range(0, os.fstat(f).st_size, step):
    os.posix_fadvise(f, at, step, os.POSIX_FADV_WILLNEED)
    os.pread(f, step, at)
END
for turn in 1 2 3; do
  for file in "$models/$shape/int8.aerie" "$out/small.aerie"; do
    "$build/bin/pass_profile" "$file" "$threads" 1 8 12 13 16 17 |
      awk -v name="$(basename "$file" .aerie)" '/^ms a pass/ { for (i = 6; i <= NF; i += 2) rows[i] = $i }
        $1 == "all" { printf "%-6s", name; for (i = 6; i in rows; i += 2) printf "  %3d rows %6.2f ms", rows[i], $(i - 4); print "" }'
  done
done | fenced
rm "$out/small.aerie"

say "other instruction sets"
echo
echo "## With other instruction sets"
echo
echo "\`isa_speed\`, random weights, $threads threads, medians of $repeats rounds in turn; AVX3 is AVX-512, AVX3_DL what Ice Lake and Zen 4 brought, VNNI with it."
echo
for d in ${dtypes//,/ }; do echo "$models/$shape/$d.aerie"; done | xargs "$build/bin/isa_speed" "$threads" "$repeats" | tee "$out/isas"
echo
echo "16 rows against the roofs of each set, that of its multiply-adds and that of memory (\`roofs.py\`), medians of 5 rounds in turn [least, most]:"
echo
isas=$(grep -o '| [A-Z0-9_]*, ' "$out/isas" | tr -d '|, ' | grep -v SSE4 | awk '!seen[$0]++' | paste -sd,)
for d in ${dtypes//,/ }; do echo "$models/$shape/$d.aerie"; done | xargs python3 "$here/roofs.py" --threads "$threads" --rounds 5 "$build" "$isas"

say "threads"
echo
cat "$here/threads.md.in"
echo
python3 "$here/threads.py" "$build"

say "under load"
echo
echo "## While other programs want the cores"
echo
echo "Busy loops compete with the engine. llama.cpp's threads wait for each other by spinning."
echo
python3 "$here/under_load.py" --build "$build" --models "$models" --shape "$shape" --pair int8 --llama-driver "$driver" --repeats "$repeats"

if [ $# -gt 0 ]; then
  say "inflated"
  whole=(python3 "$here/end_to_end.py" --build "$build" --models "$out/inflated" --threads "$threads" --shape "$inflated")
  for dtype in ${dtypes//,/ }; do
    "${whole[@]}" prepare "$dtype"
    for t in 0 0.7; do
      "${whole[@]}" choose "$dtype" "$t" --text "$@" --prompts 2 --tokens 32 >&2
      "${whole[@]}" time "$dtype" "$t" --text "$@" --rounds "$repeats" >&2
    done
    [ "$dtype" = bf16 ] || rm -rf "${out:?}/inflated/$dtype" "$out"/inflated/*.gguf  # others are made from bf16
  done
  echo
  "${whole[@]}" page
fi
