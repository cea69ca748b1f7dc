#!/usr/bin/env bash
# The command line as scripts rely on it: JSON keys, exit status, one clear line on failure.
set -euo pipefail
source "$(dirname "$0")/../support/cli.sh"
for drafter in "" "--drafter $head" "--drafter ngram" "--drafter $model"; do
  # shellcheck disable=SC2086
  "$aerie" run --model "$model" $drafter --prompt "It was" --max-tokens 24 --temperature 0.7 --seed 5 --json >"$tmp/r.json"
  python3 - "$tmp/r.json" "$tmp/first.json" <<'EOF'
import json, os, shutil, sys
r = json.load(open(sys.argv[1]))
assert r["finish"] == "max tokens", r["finish"]
for k in "text tokens tau cycles proposed accepted tokens_per_second prefill_ms draft_ms verify_ms other_ms".split():
    assert k in r, k
if not os.path.exists(sys.argv[2]): shutil.copy(sys.argv[1], sys.argv[2])
assert r["tokens"] == json.load(open(sys.argv[2]))["tokens"], "a drafter changed the text"
EOF
done
"$aerie" convert "$model" -o "$tmp/int8.aerie" --dtype int8
expect 0 "quantised before" "$aerie" convert "$tmp/int8.aerie" -o "$tmp/int4.aerie" --dtype int4
# Both ways, as often as it takes; the statistics are one text's.
"$aerie" run --model "$model" --drafter "$head" --prompt "It was" --max-tokens 24 --temperature 0.7 --seed 5 --compare --json >"$tmp/r.json"
python3 - "$tmp/r.json" "$tmp/first.json" <<'EOF'
import json, sys
r, first = (json.load(open(p)) for p in sys.argv[1:])
assert r["tokens"] == first["tokens"] and r["cycles"] <= 24, r
assert 1 <= r["compared"] <= 25 and r["tokens_per_second"] > 0 and r["plain_tokens_per_second"] > 0, r
EOF
"$aerie" inspect "$model" --json | python3 -c 'import json,sys; json.load(sys.stdin)'
"$aerie" verify --model "$model" --drafter "$head" --drafter ngram --drafter "$model" --tokens 4000 --length 48
# However few tokens: what it says equals plain decode has been compared.
"$aerie" verify --model "$model" --drafter ngram --drafter ngram-suffix --drafter "$head" --tokens 1 >"$tmp/verified"
[ "$(awk '/, 0 differences$/ { if ($2 > 100) n++ } END { print n }' "$tmp/verified")" = 3 ]
grep -q "temperature 0, 0.7, 1, top-p, top-k + min-p, 0.7 + repetition penalty;" "$tmp/verified"
head -c 100000 "$model" >"$tmp/cut.aerie"
expect 1 "cut.aerie" "$aerie" run --model "$tmp/cut.aerie" --prompt x
expect 1 "no-such" "$aerie" run --model /no-such.aerie --prompt x
expect 1 "drafter" "$aerie" run --model "$head" --prompt x
expect 1 "" "$aerie" run --model "$model" --drafter "$head" --verify-policy sampled --prompt x --tree eagle2
expect 2 "chain, static, eagle2, backbone, cast and auto" "$aerie" run --model "$model" --tree best --prompt x
expect 2 "--tree-nodes: is a size of chain, eagle2, cast" "$aerie" run --model "$model" --tree backbone --tree-nodes 5 --prompt x
expect 2 "--tree-depth: is a size of eagle2, backbone, cast" "$aerie" run --model "$model" --tree-depth 3 --prompt x
expect 2 "--tree-top-k" "$aerie" bench --model "$model" --tree chain --tree auto --tree-top-k 3
expect 0 "" "$aerie" bench --help
grep -q "takes the sizes .* that it has" "$tmp/out"
mkdir "$tmp/ngram" "$tmp/files"  # a folder of that name is no package, nor is a file
touch "$tmp/files/ngram"
cp "$head" "$tmp/files/head"
for at in "$tmp" "$tmp/files"; do (cd "$at" && expect 0 "" "$aerie" run --model "$model" --drafter ngram --prompt x --max-tokens 2); done
(cd "$tmp/files" && expect 0 "" "$aerie" run --model "$model" --drafter head --prompt x --max-tokens 2)
expect 1 "$tmp/ngram: is a folder" "$aerie" run --model "$model" --drafter "$tmp/ngram" --prompt x
expect 2 "" "$aerie" run
expect 2 "" "$aerie" nonsense
expect 1 "" "$aerie" convert "$tmp" -o "$tmp/x.aerie"
[ ! -e "$tmp/x.aerie" ]
# Requantising keeps the model: the drafter still fits.
"$aerie" convert "$model" -o "$tmp/int4.aerie" --dtype int4 2>/dev/null || "$aerie" convert "$model" -o "$tmp/int4.aerie" --dtype int4
"$aerie" run --model "$tmp/int4.aerie" --drafter "$head" --prompt "It was" --max-tokens 8 --json >/dev/null
# So does a head of another dtype.
"$aerie" convert "$model" -o "$tmp/mixed.aerie" --dtype int4 --head-dtype int8 2>/dev/null
"$aerie" inspect "$tmp/mixed.aerie" --json | python3 -c 'import json,sys; t = {t["name"]: t["dtype"] for t in json.load(sys.stdin)["tensors"]}; assert (t["embed"], t["layers.0.mlp.down"]) == ("int8", "int4"), t'
"$aerie" run --model "$tmp/mixed.aerie" --drafter "$head" --prompt "It was" --max-tokens 8 --json >/dev/null
expect 2 "" "$aerie" convert "$model" -o "$tmp/x.aerie" --head-dtype int3
# As it is stored; and the weights of 4 bits with a minimum.
"$aerie" convert "$tmp/mixed.aerie" -o "$tmp/stored.aerie" --dtype stored
cmp "$tmp/mixed.aerie" "$tmp/stored.aerie"
"$aerie" convert "$model" -o "$tmp/q4_1.aerie" --dtype q4_1 --head-dtype stored
"$aerie" inspect "$tmp/q4_1.aerie" --json | python3 -c 'import json,sys; t = {t["name"]: t["dtype"] for t in json.load(sys.stdin)["tensors"]}; assert (t["embed"], t["layers.0.mlp.down"]) == ("bf16", "q4_1"), t'
"$aerie" convert "$model" -o "$tmp/mxfp4.aerie" --dtype mxfp4 --head-dtype int8
"$aerie" convert "$tmp/mxfp4.aerie" -o "$tmp/again.aerie" --dtype int8  # MXFP4 stays
cmp "$tmp/mxfp4.aerie" "$tmp/again.aerie"
"$aerie" run --model "$tmp/mxfp4.aerie" --drafter "$head" --prompt "It was" --max-tokens 8 --json >/dev/null
expect 2 "int4,q4_1,mxfp4,stored" "$aerie" convert "$model" -o "$tmp/x.aerie" --dtype q4_0
# A candidate head: the same model, the same text; the drafter still fits.
"$aerie" convert "$model" -o "$tmp/candidates.aerie" --candidate-head 24 2>"$tmp/err"
grep -q "rank 24 holds" "$tmp/err"
"$aerie" inspect "$tmp/candidates.aerie" --json | python3 -c 'import json,sys; assert json.load(sys.stdin)["candidate_rank"] == 24'
"$aerie" run --model "$tmp/candidates.aerie" --drafter "$head" --tree eagle2 --prompt "It was" --max-tokens 24 --temperature 0.7 --seed 5 --json >"$tmp/r.json"
python3 -c 'import json,sys; a, b = (json.load(open(p))["tokens"] for p in sys.argv[1:]); assert a == b' "$tmp/r.json" "$tmp/first.json"
expect 1 "above the hidden size" "$aerie" convert "$model" -o "$tmp/x.aerie" --candidate-head 193
expect 1 "part of its target" "$aerie" convert "$head" -o "$tmp/x.aerie" --candidate-head 8
expect 2 "" "$aerie" convert "$model" -o "$tmp/x.aerie" --candidate-head -3

# The longest text that a package is for: as long as the model can, but where one has to choose.
phi=$root/tests/golden/logits/phi3
expect 0 "up to 64 tokens.*--context 128" "$aerie" convert "$phi" -o "$tmp/phi.aerie" --tokenizer none
[[ $("$aerie" inspect "$tmp/phi.aerie") == *"max_context: 64"* ]]
"$aerie" convert "$phi" -o "$tmp/phi.aerie" --tokenizer none --context 100
[[ $("$aerie" inspect "$tmp/phi.aerie") == *"max_context: 100"* ]]
expect 1 "reads 128 tokens, --context asks for more" "$aerie" convert "$phi" -o "$tmp/x.aerie" --tokenizer none --context 129
expect 1 "a context is chosen where" "$aerie" convert "$model" -o "$tmp/x.aerie" --context 16
expect 2 "" "$aerie" convert "$phi" -o "$tmp/x.aerie" --context 0
[ ! -e "$tmp/x.aerie" ]
# Cost tables: printed, kept, used, refused.
"$aerie" profile --model "$model" --drafter "$head" --drafter ngram --threads 1 --batch 1,2 --context 40,200 --json -o "$tmp/here.costs" >"$tmp/p.json"
python3 - "$tmp/p.json" "$tmp/here.costs" <<'EOF'
import json, sys
t = json.load(open(sys.argv[1]))
assert {(p["batch"], p["context"]) for p in t["target"]} == {(b, c) for b in (1, 2) for c in (40, 200)}
assert {p["rows"] for p in t["target"]} >= {1, 128}
assert set(t["drafters"]) == {"eagle", "ngram"}
for p in t["target"] + t["drafters"]["eagle"] + t["drafters"]["ngram"]:
    assert 0 < p["low"] <= p["ms"] <= p["high"], p
line, body = open(sys.argv[2]).read().split("\n", 1)
assert line.startswith("aerie-costs 1 ") and json.loads(body) == t
EOF
"$aerie" run --model "$model" --drafter "$head" --threads 1 --profile "$tmp/here.costs" --prompt "It was" --max-tokens 24 \
  --temperature 0.7 --seed 5 --json >"$tmp/r.json"
python3 -c 'import json,sys; a, b = (json.load(open(p))["tokens"] for p in sys.argv[1:]); assert a == b' "$tmp/r.json" "$tmp/first.json"
"$aerie" bench --model "$model" --drafter "$head" --tree auto --threads 1 --profile "$tmp/here.costs" --max-tokens 4 --repeats 1 >/dev/null
"$aerie" bench --model "$model" --batch 1 --batch 2 --threads 1 --max-tokens 4 --repeats 1 --json >"$tmp/b.json"
python3 -c 'import json,sys; assert [(r["batch"], r["speedup"]) for r in json.load(open(sys.argv[1]))["rows"]] == [(1, 1), (2, 1)]' "$tmp/b.json"
"$aerie" profile --model "$model" --quick --threads 1 -o "$tmp/quick.costs" >"$tmp/out"
grep -q "^target" "$tmp/out"
expect 1 "prefill fast: device cpu has one way to multiply" "$aerie" run --model "$model" --prefill fast --prompt x
expect 2 "" "$aerie" run --model "$model" --prefill quick --prompt x
expect 1 "verify: --prefill fast is not bit-exact" "$aerie" verify --model "$model" --drafter ngram --prefill fast
expect 1 "here.costs: threads: " "$aerie" run --model "$model" --threads 2 --profile "$tmp/here.costs" --prompt x
expect 1 "here.costs: model: " "$aerie" run --model "$root/samples/models/demo-small.aerie" --threads 1 --profile "$tmp/here.costs" --prompt x
expect 1 "here.costs: weights: " "$aerie" run --model "$tmp/int4.aerie" --threads 1 --profile "$tmp/here.costs" --prompt x
expect 1 "quick.costs: drafter: no costs of eagle" "$aerie" run --model "$model" --drafter "$head" --threads 1 --profile "$tmp/quick.costs" --prompt x
head -c 3000 "$tmp/here.costs" >"$tmp/cut.costs"
expect 1 "cut.costs: checksum: " "$aerie" run --model "$model" --profile "$tmp/cut.costs" --prompt x
expect 1 "not a cost table" "$aerie" run --model "$model" --profile "$model" --prompt x
expect 1 "contexts: 100000" "$aerie" profile --model "$model" --context 100000
expect 2 "" "$aerie" profile --model "$model" --batch 0
# What could not be kept is not measured first: nothing is said of the context.
profile() { expect 1 "$1" "$aerie" profile --model "$model" --context 100000 "${@:2}"; }
mkdir "$tmp/costs"
cp "$tmp/here.costs" "$tmp/costs/old"
profile "no/such.costs: cannot create: No such file" -o "$tmp/no/such.costs"
profile "costs: is a folder" -o "$tmp/costs"
profile "/dev/null: is not a regular file" -o /dev/null
XDG_CACHE_HOME=$tmp/costs/old profile "cannot create: Not a directory; -o names another file"
profile "contexts: 100000" -o "$tmp/costs/old"
profile "contexts: 100000" -o "$tmp/costs/new"
[ "$(ls -A "$tmp/costs")" = old ]
cmp "$tmp/costs/old" "$tmp/here.costs"
# What is there and was not made by this command, or is what it reads, is not written over.
cp "$model" "$tmp/mine.aerie"
echo "It was" >"$tmp/mine.txt"
expect 1 "mine.aerie: is there, and no cost table" "$aerie" profile --model "$tmp/mine.aerie" -o "$tmp/mine.aerie"
expect 1 "mine.txt: is there, and no cost table" "$aerie" profile --model "$tmp/mine.aerie" -o "$tmp/mine.txt"
expect 1 "mine.aerie: is read by this command" "$aerie" run --model "$tmp/mine.aerie" --prompt x --trace "$tmp/mine.aerie"
expect 1 "mine.txt: is read by this command" "$aerie" run --model "$model" --prompt-file "$tmp/mine.txt" --trace "$tmp/mine.txt"
cmp "$tmp/mine.aerie" "$model"
[ "$(cat "$tmp/mine.txt")" = "It was" ]
# Sizes that no number of positions holds.
python3 -c 'import json, sys; json.dump({"prompt": "a" * 34_000_000}, open(sys.argv[1], "w"))' "$tmp/long.jsonl"
expect 1 "--batch 64: prompts of up to 34000000 bytes" "$aerie" bench --model "$model" --prompts "$tmp/long.jsonl" --batch 64
# What a newcomer types: the answer names the option or the file, and what would do.
expect 2 "--temperature = abc: is no number" "$aerie" run --model "$model" --temperature abc --prompt x
expect 2 "--max-tokens: Value 0 not in range 1 to 2147483647 " "$aerie" run --model "$model" --max-tokens 0 --prompt x
expect 2 "--tree: there are chain.*, not chian " "$aerie" run --model "$model" --tree chian --prompt x
expect 2 "--compare: .*give --drafter" "$aerie" run --model "$model" --compare --prompt x
expect 1 "is a folder, not a package; aerie convert" "$aerie" run --model "$root/samples/models" --prompt x
expect 1 "not an Aerie package; aerie convert" "$aerie" run --model "$root/README.md" --prompt x
expect 2 "there is no command foo " "$aerie" foo
expect 2 "there is no command foo " "$aerie" plugin foo
expect 2 "there is no option --mode " "$aerie" run --mode "$model" --prompt x
expect 2 "--seed: -1 is negative" "$aerie" run --model "$model" --seed -1 --prompt x
expect 2 "--top-p: Value 3 not in range" "$aerie" run --model "$model" --top-p 3 --prompt x
expect 2 "--top-p: nan is not finite" "$aerie" run --model "$model" --top-p nan --prompt x
expect 2 "--temperature: nan is not finite" "$aerie" run --model "$model" --temperature nan --prompt x
expect 2 "--seed: 18446744073709551616 is more than" "$aerie" run --model "$model" --seed 18446744073709551616 --prompt x
expect 2 "--tree-nodes: -1 is negative" "$aerie" run --model "$model" --tree chain --tree-nodes -1 --prompt x
expect 0 "" "$aerie" run --model "$model" --tokens "1, 2" --max-tokens 1
expect 2 "--tokens: '1,,2' is no list of token ids" "$aerie" run --model "$model" --tokens 1,,2
expect 2 "--tokens: '1,' is no list of token ids" "$aerie" run --model "$model" --tokens 1,
expect 2 "--device: there are cpu, cpu:LEVEL, cuda and cuda:N, not gpu" "$aerie" run --model "$model" --device gpu --prompt x
for option in --seed --temperature --top-k --stream-id --threads --tree-nodes --profile --trace --stop --tokens --model; do
  expect 2 "$option: its value is empty" "$aerie" run --model "$model" --prompt x "$option" ""
done
expect 1 "cannot write" bash -c "'$aerie' --version >/dev/full"
expect 1 "cannot write" bash -c "'$aerie' run --help >/dev/full"
expect 1 "mine.bin: .*File too large" bash -c "ulimit -f 50; '$aerie' convert '$model' -o '$tmp/mine.bin'"
[ -z "$(find "$tmp" -name '*mine.bin*')" ]
expect 2 "--limit requires --prompts" "$aerie" bench --model "$model" --limit 2
# A marker of a chat template is its token where --special says so, as in run.
echo '{"prompt": "<|endoftext|>It was"}' >"$tmp/chat.jsonl"
of_bench() {
  "$aerie" bench --model "$model" --drafter "$head" --tree chain --repeats 1 --json --prompts "$tmp/chat.jsonl" "$@" |
    python3 -c 'import json, sys; r = json.load(sys.stdin)["rows"][1]; print(r["cycles"], round(r["cycles"] * r["accepted"]))'
}
of_run() {
  "$aerie" run --model "$model" --drafter "$head" --tree chain --json --ignore-eos --max-tokens 64 --prompt "<|endoftext|>It was" "$@" |
    python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["cycles"], r["accepted"])'
}
[ "$(of_bench --special)" = "$(of_run --special)" ]
[ "$(of_bench)" = "$(of_run)" ]
[ "$(of_bench)" != "$(of_bench --special)" ]
expect 1 "a drafter package, not a target" "$aerie" convert "$head" --drafter-for "$head" -o "$tmp/x.aerie"
expect 1 "not a checkpoint of any known format (Hugging Face folder" "$aerie" convert "$root/README.md" -o "$tmp/x.aerie"
expect 0 "no row of ngram, tree chain, noise sampled: " "$aerie" bench --model "$model" --drafter ngram --draft-noise sampled --max-tokens 2 --repeats 1
# What is said of a text: tau only of cycles that no limit cut, a cycle is not "1 cycles".
expect 0 "tau - (1 cycle, " "$aerie" run --model "$model" --drafter "$head" --tree chain --prompt "It was" --max-tokens 1
