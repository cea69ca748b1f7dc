#!/usr/bin/env bash
# Biases, penalties, grammars and schemas on the command line: the text has the form, with a drafter and without, and what is wrong is said.
set -euo pipefail
source "$(dirname "$0")/../support/cli.sh"
run() { "$aerie" run --model "$model" --prompt "It was" --json "$@"; }
both() {  # with a drafter; and without, to $tmp/without
  run --drafter "$head" --tree chain "$@"
  run "$@" >>"$tmp/without"
}

for seed in 1 2 3; do
  both --seed $seed --max-tokens 300 --json-schema '{"type": "object", "required": ["name", "age", "tags"], "properties":
    {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}, "tags": {"type": "array", "maxItems": 3, "items": {"enum": ["red", "blue"]}}}}'
done >"$tmp/schema"
schema='{"properties": {"name": {"type": "string", "maxLength": 20}, "tags": {"type": "array", "maxItems": 3, "items": {"enum": ["red", "blue"]}}}, "required": ["name", "tags"]}'
for seed in 1 2; do both --seed $seed --max-tokens 300 --json-schema "$schema" --json-layout one-line; done >"$tmp/one-line"
for seed in 1 2; do both --seed $seed --max-tokens 300 --json-schema "$schema" --json-layout compact; done >"$tmp/compact"
printf 'root ::= "The answer is " ("yes" | "no") "." [a-z]{0,4}\n' >"$tmp/answer.gbnf"
for seed in 1 2 3; do both --seed $seed --grammar "$tmp/answer.gbnf"; done >"$tmp/grammar"
both --temperature 0 --max-tokens 40 --repetition-penalty 1.5 --presence-penalty 0.5 --frequency-penalty 0.5 --penalty-window 50 >"$tmp/penalised"
# Plain, and each of its tokens forbidden.
run --temperature 0 --max-tokens 40 >"$tmp/plain"
run --temperature 0 --max-tokens 40 $(python3 -c 'import json,sys; print(*(f"--logit-bias {t}=-inf" for t in set(json.load(open(sys.argv[1]))["tokens"])))' "$tmp/plain") >"$tmp/forbidden"
python3 - "$tmp" <<'EOF'
import json, re, sys
read = lambda name: [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
for r in read("schema"):
    v = json.loads(r["text"])
    assert r["finish"] in ("eos", "constraint"), r["finish"]
    assert isinstance(v["name"], str) and len(v["name"]) <= 20 and isinstance(v["age"], int), v
    assert len(v["tags"]) <= 3 and set(v["tags"]) <= {"red", "blue"}, v
for layout, separators in (("one-line", (", ", ": ")), ("compact", (",", ":"))):
    for r in read(layout):
        assert r["text"] == json.dumps(json.loads(r["text"]), separators=separators, ensure_ascii=False), r["text"]
        assert 0 < r["foreseen"]["accepted"] <= r["foreseen"]["verified"] and r["cycles"] < len(r["tokens"]), r
for r in read("grammar"):
    assert re.fullmatch(r"The answer is (yes|no)\.[a-z]{0,4}", r["text"]), r["text"]
assert [r["tokens"] for r in read("schema") + read("one-line") + read("compact") + read("grammar") + read("penalised")] == [r["tokens"] for r in read("without")], "a drafter changed the text"
plain, forbidden, penalised = (read(n)[0] for n in ("plain", "forbidden", "penalised"))
assert len(forbidden["tokens"]) == 40 and not set(plain["tokens"]) & set(forbidden["tokens"])
assert penalised["repeated_4grams"] < plain["repeated_4grams"], (penalised["repeated_4grams"], plain["repeated_4grams"])
EOF
expect 2 "ID=BIAS" "$aerie" run --model "$model" --prompt x --logit-bias 3
expect 2 "ID=BIAS" "$aerie" run --model "$model" --prompt x --logit-bias 3=much
expect 1 "vocabulary" "$aerie" run --model "$model" --prompt x --logit-bias 99999=1
expect 1 "repetition_penalty" "$aerie" run --model "$model" --prompt x --repetition-penalty 1000
expect 2 "too large" "$aerie" run --model "$model" --prompt x --logit-bias 3=1e39
expect 2 "standard input" "$aerie" run --model "$model" --prompt-file - --grammar -
expect 1 "longer than 1048576 bytes" "$aerie" run --model "$model" --prompt x --grammar /dev/zero
printf 'root ::= "a"\n\0' >"$tmp/zero.gbnf"
expect 1 "zero byte" "$aerie" run --model "$model" --prompt x --grammar "$tmp/zero.gbnf"
expect 0 "" "$aerie" run --model "$model" --prompt x --max-tokens 2 --json-schema ' {}'
expect 1 "no-such" "$aerie" run --model "$model" --prompt x --grammar "$tmp/no-such"
printf 'root ::= "a"\nother ::= missing\n' >"$tmp/bad.gbnf"
expect 1 "missing" "$aerie" run --model "$model" --prompt x --grammar "$tmp/bad.gbnf"
expect 1 "patternX" "$aerie" run --model "$model" --prompt x --json-schema '{"patternX": 1}'
expect 2 "json-layout" "$aerie" run --model "$model" --prompt x --json-schema '{}' --json-layout wide
expect 2 "requires" "$aerie" run --model "$model" --prompt x --json-layout compact
expect 2 "excludes" "$aerie" run --model "$model" --prompt x --json-schema '{}' --grammar "$tmp/answer.gbnf"
