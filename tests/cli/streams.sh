#!/usr/bin/env bash
# The command line at its edges: closed and full streams, Ctrl-C, prompts that are no prompts, stop strings, help.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
aerie=$1/bin/aerie
model=$root/samples/models/demo.aerie
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; cat "$tmp/err"; exit 1; }
failed_with() {  # words; of the command before
  [ "$rc" -eq 1 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q -- "$1" "$tmp/err" || fail "status $rc, not 1 with '$1'"
}
run() { rc=0; "$aerie" run --model "$model" --temperature 0 "$@" 2>"$tmp/err" || rc=$?; }

# What cannot be printed is a failure, and is not waited for.
if [ -w /dev/full ]; then
  run --prompt "It was" --max-tokens 8 >/dev/full; failed_with "standard output: cannot write: No space"
  run --prompt "It was" --max-tokens 8 --json >/dev/full; failed_with "standard output: cannot write"
  run --prompt "It was" --max-tokens 8 --trace /dev/full >/dev/null; failed_with "/dev/full: cannot be written: No space"
  rc=0; "$aerie" inspect "$model" >/dev/full 2>"$tmp/err" || rc=$?; failed_with "standard output: cannot write"
fi
run --prompt "It was" --max-tokens 8 >&-; failed_with "standard output: cannot write: Bad file"
(trap '' PIPE; run --prompt "It was" --ignore-eos --max-tokens 500; echo $rc >"$tmp/rc") | head -c 1 >/dev/null
rc=$(cat "$tmp/rc"); failed_with "standard output: cannot write: Broken pipe"
# The trace has descriptor 1 if nobody keeps it: no text may get into it.
run --prompt "It was" --max-tokens 8 --trace "$tmp/trace" >&- || true
[ -f "$tmp/trace" ] || fail "there is no trace"
if grep -q "It was" "$tmp/trace"; then fail "the text went into another file"; fi

# A text that fails in its midst is a line of its own.
run --prompt "It was" --ignore-eos --max-tokens 400 --kv-positions 64 >"$tmp/out"; failed_with "KV"
[ "$(head -c 6 "$tmp/out")" = "It was" ] && [ "$(tail -c 1 "$tmp/out" | wc -l)" -eq 1 ] || fail "the text has no end"

# Ctrl-C: what there is is printed and counted, and the shell sees the signal.
python3 - "$aerie" "$model" <<'EOF'
import signal, subprocess, sys
aerie, model = sys.argv[1:]
def interrupted(before):  # after the text has begun
    command = [aerie, "run", "--model", model, "--prompt", "It was", "--threads", "1", "--ignore-eos", "--max-tokens", "500"]
    p = subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, before))
    first = p.stdout.read(12)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate()
    assert b"tokens/s" in err and out.endswith(b"\n"), (first, out, err)
    return p.returncode
# 0: it was ready before the signal came; not ten times running.
assert -signal.SIGINT in [interrupted(signal.SIG_DFL) for _ in range(10)]
assert interrupted(signal.SIG_IGN) == 0  # as under nohup
EOF

# So is a conversion: nothing of it stays behind.
python3 - "$aerie" "$model" "$tmp/interrupted" <<'EOF'
import os, signal, subprocess, sys, time
aerie, model, folder = sys.argv[1:]
os.mkdir(folder)
def interrupted(number):  # when there is a file
    p = subprocess.Popen([aerie, "convert", model, "-o", folder + "/x.aerie", "--dtype", "int4", "--candidate-head", "64"], stderr=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # in the background of a script SIGINT is ignored
    while not os.listdir(folder) and p.poll() is None:
        time.sleep(0.001)
    p.send_signal(number)
    err = p.stderr.read()
    p.communicate()
    left = os.listdir(folder)
    assert left == ([] if p.returncode else ["x.aerie"]), (p.returncode, left, err)
    assert p.returncode == 0 or b"nothing was written" in err, err
    for name in left:
        os.remove(os.path.join(folder, name))
    return p.returncode
for number in (signal.SIGINT, signal.SIGTERM):
    assert -number in [interrupted(number) for _ in range(10)]
EOF

# Prompts.
printf 'It was' | "$aerie" run --model "$model" --temperature 0 --max-tokens 8 --prompt-file - >"$tmp/out" 2>"$tmp/err"
run --prompt "It was" --max-tokens 8 >"$tmp/same"
cmp "$tmp/out" "$tmp/same"
run --prompt '<|endoftext|>It was' --max-tokens 8 >"$tmp/out"
grep -q '^<|endoftext|>It was' "$tmp/out" || fail "a marker in the prompt was taken for its token"
run --prompt '<|endoftext|>It was' --special --max-tokens 8 >"$tmp/out"  # a token that has no text
grep -q '^It was' "$tmp/out" && ! cmp -s "$tmp/out" "$tmp/same" || fail "--special: a marker in the prompt was not taken for its token"
# A BOS in the text is the one that the tokenizer would put there. Of a context of one position an error counts the prompt.
mkdir "$tmp/short"
cp "$root/tests/golden/text/llama3/tokenizer.json" "$tmp/short/"
python3 - "$tmp/short" <<'EOF'
import json, math, pathlib, sys
folder, vocab = pathlib.Path(sys.argv[1]), 727
shapes = {"model.embed_tokens": (vocab, 4), "lm_head": (vocab, 4), "model.norm": (4,)}
layer = {"input_layernorm": (4,), "post_attention_layernorm": (4,), "mlp.gate_proj": (4, 4), "mlp.up_proj": (4, 4), "mlp.down_proj": (4, 4)}
layer |= {f"self_attn.{n}_proj": (4, 4) for n in "qkvo"}
shapes |= {f"model.layers.0.{n}": s for n, s in layer.items()}
header, at = {}, 0
for name, shape in shapes.items():
    header[name + ".weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * math.prod(shape)]}
    at += 4 * math.prod(shape)
text = json.dumps(header).encode()
(folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))
(folder / "config.json").write_text(json.dumps({
    "model_type": "llama", "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": vocab,
    "max_position_embeddings": 1, "eos_token_id": 0}))
EOF
"$aerie" convert "$tmp/short" -o "$tmp/short.aerie" >/dev/null 2>"$tmp/err" || fail "no model of one position"
long=$model model=$tmp/short.aerie
run --prompt " the the"; failed_with "the prompt has 3 tokens"
run --prompt "<|endoftext|> the the" --special; failed_with "the prompt has 3 tokens"
run --prompt " the the" --special; failed_with "the prompt has 3 tokens"
run --prompt "<|endoftext|><|endoftext|> the" --special; failed_with "the prompt has 3 tokens"
model=$long
run --prompt-file "$tmp"; failed_with "is a folder"
run --prompt-file "$model" >"$tmp/out"; failed_with "the prompt has .* tokens, the model's context is 512"
[ ! -s "$tmp/out" ] || fail "a prompt that is too long was printed"
run; failed_with "give --prompt, --prompt-file or --tokens"
rc=0; "$aerie" run --model "$model" "It was" 2>"$tmp/err" || rc=$?
[ $rc = 2 ] && grep -q "not expected: It was; the text to continue goes behind --prompt (aerie run --help)" "$tmp/err" || { cat "$tmp/err"; exit 1; }
rc=0; "$aerie" bench --model "$model" --prompts /dev/null >/dev/null 2>"$tmp/err" || rc=$?; failed_with "/dev/null: no prompts"
rc=0; "$aerie" convert "$model" -o "$tmp/x.aerie" --tokenizer "$model" 2>"$tmp/err" || rc=$?; failed_with "a tokenizer goes into"

# A stop string ends the text and is no part of it, wherever the borders of tokens are.
run --prompt "It was" --max-tokens 60 --json >"$tmp/json"
python3 - "$aerie" "$model" "$tmp/json" <<'EOF'
import json, subprocess, sys
aerie, model, path = sys.argv[1:]
text = json.load(open(path))["text"]
for at in (0, 7, 20, 33):
    stop = text[at:at + 5]
    command = [aerie, "run", "--model", model, "--prompt", "It was", "--temperature", "0", "--max-tokens", "60", "--stop", stop]
    want = text[:text.index(stop)]
    assert json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)["text"] == want, stop
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode() == "It was" + want + "\n", stop
EOF

# Help.
"$aerie" --version | grep -qE '^aerie [0-9]+\.[0-9]+\.[0-9]+$'
rc=0; "$aerie" 2>"$tmp/err" || rc=$?
[ $rc -eq 2 ] && grep -q "generate text" "$tmp/err" || fail "no help without a command"
rc=0; "$aerie" run 2>"$tmp/err" || rc=$?
[ $rc -eq 2 ] && grep -q "aerie run --help" "$tmp/err" || fail "usage errors do not say where help is"
