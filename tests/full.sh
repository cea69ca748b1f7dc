#!/usr/bin/env bash
# The long tests: 200,000 tokens of exactness for every weight dtype, the tests that take long under AddressSanitizer,
# ThreadSanitizer, fuzzing, llama.cpp's tokenizer tests, each file compiled by itself, Windows under Wine, the kernels and the command line on an
# emulated 64-bit ARM, one level's text on an emulated x86, x86 levels that the machine lacks, a published model, the Debian packages
# in a clean system, and a newcomer's first steps there.
# Not part of CI. Usage: tests/full.sh [exactness|sanitize|tsan|fuzz|vocabularies|files|windows|aarch64|levels|published|debian|newcomer]... (all of them by default)
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
bash .ci/setup.sh tests
all="exactness sanitize tsan fuzz vocabularies files windows aarch64 levels published debian newcomer"
what=${*:-$all}
for section in $what; do
  [[ " $all " == *" $section "* ]] || { echo "tests/full.sh: no section $section; there are $all" >&2; exit 2; }
done
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
  drafters=(--drafter ngram --drafter ngram-suffix --drafter lookahead)
  for d in samples/models/demo-*.aerie; do drafters+=(--drafter "$d"); done
  for dtype in f32 bf16 fp8 int8 int4 q4_1 mxfp4; do
    $aerie convert $model -o "$tmp/$dtype.aerie" --dtype $dtype || exit 1
    $aerie convert $model -o "$tmp/small.aerie" --dtype int4  # an external draft model that often agrees
    $aerie convert $head -o "$tmp/head.aerie" --drafter-for "$tmp/$dtype.aerie" --dtype q4_1
    check "exactness $dtype, f32 KV" $aerie verify --model "$tmp/$dtype.aerie" "${drafters[@]}" --drafter "$tmp/small.aerie" --drafter "$tmp/head.aerie" \
      --tokens 76000 --seed $RANDOM
  done
  for kv in bf16 int8; do
    check "exactness int8, $kv KV" $aerie verify --model "$tmp/int8.aerie" --kv-dtype $kv --drafter $head --drafter ngram --tokens 20000
  done
  for name in mixtral olmoe gpt_oss_mxfp4 glm4_moe; do  # mixtures of experts; one of 4 bits drafts for one of 8
    for dtype in int8 int4; do $aerie convert tests/golden/logits/$name -o "$tmp/$name-$dtype.aerie" --dtype $dtype || exit 1; done
    check "exactness of $name" $aerie verify --model "$tmp/$name-int8.aerie" --drafter "$tmp/$name-int4.aerie" --drafter ngram --tokens 20000
  done
  for name in qwen3_5 qwen3_5_moe qwen3_next lfm2 lfm2_moe glm4_moe gemma4 gemma4_keys gemma4_moe gemma2; do  # recurrent layers, layers for multi-token prediction, layers that differ, caps
    $aerie convert "tests/golden/logits/$name" -o "$tmp/target.aerie" --dtype int8 || exit 1
    drafters=(--drafter ngram --drafter lookahead)
    for kind in mtp assistant; do
      [ -d "tests/golden/heads/${kind}_$name" ] || continue
      $aerie convert "tests/golden/heads/${kind}_$name" -o "$tmp/$kind.aerie" --drafter-for "$tmp/target.aerie" --dtype int8 || exit 1
      drafters+=(--drafter "$tmp/$kind.aerie")
    done
    check "exactness of $name, all its drafters" $aerie verify --model "$tmp/target.aerie" "${drafters[@]}" --tokens 20000
  done
  for id in random token confidence device_shape; do
    check "exactness with drafter $id" $aerie verify --model $model --plugin "$root/build/tests/lib/test-plugins/hostile.so" \
      --drafter $id --tokens 5000
  done
  for id in extra extra_parent extra_chosen_fails; do
    check "exactness with drafter $id" $aerie verify --model $model --plugin "$root/build/tests/lib/test-plugins/extra_rows.so" \
      --drafter $id --tokens 5000
  done
fi
if [[ " $what " == *" sanitize "* ]]; then
  # All targets and checks, whatever tests/run.sh left out.
  if cmake --preset sanitize -DAERIE_SANITIZE_ACCESSES=ON -DCMAKE_CXX_FLAGS="${CXXFLAGS:-}" >/dev/null && cmake --build --preset sanitize -- -j2 >"$tmp/sanitize.log"; then
    for t in build/sanitize/bin/test_*; do check "sanitized $(basename "$t")" env AERIE_EVERY_ALLOCATION=1 "$t" --gtest_brief=1; done
  else
    tail -n 40 "$tmp/sanitize.log"
    failed=$((failed + 1))
  fi
fi
if [[ " $what " == *" tsan "* ]]; then
  if cmake --preset tsan >/dev/null && cmake --build --preset tsan -- -j2 >"$tmp/tsan.log"; then
    for t in build/tsan/bin/test_*; do
      # What fails allocations one by one runs the same code hundreds of times, of what is long only Exactness is about threads, the
      # emulated GPU's kernels and gpu_report's program have one: no other race to show, and with them an hour is not enough.
      filter="-*OutOfMemory*:$(grep -v '^Exactness' tests/long_sanitized.txt | paste -sd:)"
      case $(basename "$t") in
        test_gpu_report) continue ;;
        test_cuda) filter='CudaGraphs.*:CudaDevice.*:CudaFaults.*:CudaBackend.*' ;;
      esac
      check "tsan $(basename "$t")" "$t" --gtest_brief=1 --gtest_filter="$filter"
    done
  else
    tail -n 40 "$tmp/tsan.log"
    failed=$((failed + 1))
  fi
fi
if [[ " $what " == *" fuzz "* ]]; then
  for target in tests/fuzz/*_fuzz.cc; do
    name=$(basename "$target" .cc)
    # Each target's first comment says how it is built: from "clang++" to "-o".
    build=$(sed -n '\#^//  *clang++#,\#-o #s#^//  *##p' "$target" | tr '\n' ' ')
    build=${build% -o *}
    if [ -z "$build" ]; then echo "FAILED: $target does not say how it is built"; failed=$((failed + 1)); continue; fi
    if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
         clang++ -x c++ -fsanitize=fuzzer - -o "$tmp/probe" 2>/dev/null; then
      echo "== fuzz $name: skipped, no clang++ with libFuzzer (libclang-rt-14-dev)"
      skipped=$((skipped + 1))
      continue
    fi
    mkdir -p "$tmp/corpus-$name"
    if [ "$name" = tokenizer_fuzz ]; then  # see its layout
      for t in tests/golden/text/*/tokenizer.{json,model}; do
        [ -f "$t" ] || continue
        kind=1; [[ $t == *.model ]] && kind=3
        { printf "\\x0$kind\\x10The <mask> café"; cat "$t"; } >"$tmp/corpus-$name/$(basename "$(dirname "$t")").$kind"
      done
    elif [ "$name" = grammar_fuzz ]; then
      printf '\0\20{"a": [1, true]}root ::= "{" (ws [^"\\\\]* | root{0,3})? "}"\nws ::= [ \\t\\x0a]+ # blank\n' >"$tmp/corpus-$name/gbnf"
      printf '\1\20{"a": [1, true]}{"properties":{"a":{"items":{"type":["integer","boolean"],"minimum":-3}},"b":{"$ref":"#"}},"required":["a"]}' \
        >"$tmp/corpus-$name/schema"
    else
      cp samples/models/*.aerie "$tmp/corpus-$name/"
      if [ "$name" = package_fuzz ]; then
        for t in qwen3_moe gemma2 gemma3 gpt_oss glm4_moe qwen3_5_moe gemma4 gemma4_moe lfm2_moe; do  # what departs from Llama's architecture
          $aerie convert tests/golden/logits/$t -o "$tmp/corpus-$name/$t.aerie" --dtype int4 || failed=$((failed + 1))
        done
        $aerie convert tests/golden/heads/mtp_qwen3_5_moe -o "$tmp/corpus-$name/mtp.aerie" --drafter-for "$tmp/corpus-$name/qwen3_5_moe.aerie" \
          --dtype int4 || failed=$((failed + 1))
        $aerie convert tests/golden/heads/assistant_gemma4 -o "$tmp/corpus-$name/assistant.aerie" --drafter-for "$tmp/corpus-$name/gemma4.aerie" \
          --dtype int4 || failed=$((failed + 1))
      fi
    fi
    check "fuzz $name" bash -c "${build//BUILD/build/tests} -o $tmp/$name && cd $tmp && ./$name -max_total_time=${FUZZ_SECONDS:-120} -max_len=65536 corpus-$name"
  done
fi
if [[ " $what " == *" vocabularies "* ]]; then  # in the source distribution that tests/bench/vs_llama_cpp/build.sh takes, too
  if python3 -m pip download -q --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36 -d "$tmp"; then
    tar -xzf "$tmp"/llama_cpp_python-*.tar.gz -C "$tmp"
    check "llama.cpp's tokenizer tests" env AERIE_LLAMA_CPP_MODELS="$(echo "$tmp"/llama_cpp_python-*/vendor/llama.cpp/models)" \
      build/tests/bin/test_package --gtest_filter='GgufTokenizer.GivesLlamaCppsIds'
  else
    echo "== llama.cpp's tokenizer tests: skipped, PyPI cannot be reached"
    skipped=$((skipped + 1))
  fi
fi
if [[ " $what " == *" files "* ]]; then  # each has what it includes
  check "files" bash -c "cmake --preset release -B $tmp/files -DCMAKE_UNITY_BUILD=OFF >/dev/null && cmake --build $tmp/files -- -j2 >$tmp/files.log || { tail -n 40 $tmp/files.log; exit 1; }"
fi
if [[ " $what " == *" windows "* ]]; then
  if bash .ci/setup.sh windows wine && command -v x86_64-w64-mingw32-g++-posix >/dev/null && command -v wine >/dev/null; then
    check "Windows, under Wine" bash tests/cross/windows.sh build/tests
  else
    echo "== Windows: skipped, no cross compiler or no Wine (g++-mingw-w64-x86-64-posix wine)"
    skipped=$((skipped + 1))
  fi
fi
if [[ " $what " == *" aarch64 "* ]]; then
  if bash .ci/setup.sh cross && command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
    check "aarch64" bash tests/cross/aarch64.sh build/tests
    [ "$(uname -m)" = x86_64 ] && check "one text for one instruction set" bash tests/cross/x86_text.sh build/tests
  else
    echo "== aarch64: skipped, no cross compiler or no qemu-user (g++-aarch64-linux-gnu qemu-user)"
    skipped=$((skipped + 1))
  fi
fi
if [[ " $what " == *" published "* ]]; then
  for name in smollm2 gemma3 qwen_coder; do
    [ -f build/tests/published/$name/$name.gguf ] || python3 samples/published/fetch.py $name build/tests/published/$name/$name.gguf || {
      echo "== published model $name: skipped, not fetched"
      skipped=$((skipped + 1))
      continue
    }
    dtypes="bf16 int8 int4 stored" tokens=400
    [ $name != qwen_coder ] || dtypes=stored tokens=100
    for dtype in $dtypes; do
      package=$(bash samples/published/model.sh $name build/tests $dtype)
      drafters=(--drafter ngram --drafter ngram-suffix)
      [ $name != smollm2 ] || drafters=(--drafter samples/models/smollm2-eagle3.aerie)
      [ $name-$dtype = smollm2-int4 ] || [ $name = gemma3 ] ||  # 4-bit weights rounded to 4 bits again; a base model that would rather tell stories
        check "$name knows Paris, $dtype" bash -c "$aerie run --model $package --temperature 0 --max-tokens 4 --prompt 'The capital of France is' | grep Paris"
      check "exactness of $name, $dtype" $aerie verify --model "$package" "${drafters[@]}" --tokens $tokens
    done
  done
fi
if [[ " $what " == *" levels "* || " $what " == *" debian "* || " $what " == *" newcomer "* ]]; then
  if [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then
    [[ " $what " == *" levels "* ]] && check "x86 levels" bash tests/cross/x86_levels.bash build/tests
    [[ " $what " == *" debian "* ]] && check "Debian packages in a clean system" bash tests/install/chroot.bash build/tests
    [[ " $what " == *" newcomer "* ]] && check "newcomer in a clean system" bash tests/install/newcomer.bash
  else
    echo "== levels, debian, newcomer: skipped, no debootstrap or not root"
    for section in levels debian newcomer; do [[ " $what " == *" $section "* ]] && skipped=$((skipped + 1)); done
  fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
