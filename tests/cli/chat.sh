#!/usr/bin/env bash
# aerie run --chat: the prompt is what the package's chat template makes of it, its markers are tokens and BOS is there once.
set -euo pipefail
source "$(dirname "$0")/../support/cli.sh"
mkdir "$tmp/model"
cp "$root"/tests/golden/logits/gqa_tied/{config.json,model.safetensors} "$tmp/model"
python3 - "$tmp/model" <<'EOF'
import json, pathlib, random, struct, sys
folder = pathlib.Path(sys.argv[1])
special = ["<unk>", "<s>", "</s>", "<|role|>"]
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level BPE spells as they are
letters = [chr(b if b in plain else 256 + sum(c not in plain for c in range(b))) for b in range(256)]
vocab = {t: i for i, t in enumerate(special + letters)}
# The little model of the tests, with rows for all of them.
config = json.loads((folder / "config.json").read_text())
(folder / "config.json").write_text(json.dumps({**config, "vocab_size": len(vocab)}))
old = (folder / "model.safetensors").read_bytes()
size = struct.unpack("<Q", old[:8])[0]
header, data = json.loads(old[8:8 + size]), old[8 + size:]
dice = random.Random(1)
rows = struct.pack(f"<{len(vocab) * 48}f", *(dice.gauss(0, 0.3) for _ in range(len(vocab) * 48)))
header["model.embed_tokens.weight"] = {"dtype": "F32", "shape": [len(vocab), 48], "data_offsets": [len(data), len(data) + len(rows)]}
tensors, out = {}, b""
for name, t in header.items():
    if name == "__metadata__":
        continue
    begin, end = t["data_offsets"]
    tensors[name] = {**t, "data_offsets": [len(out), len(out) + end - begin]}
    out += (data + rows)[begin:end]
text = json.dumps(tensors).encode()
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + out)
post = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
(folder / "tokenizer.json").write_text(json.dumps({
    "added_tokens": [{"id": i, "content": t, "special": True} for i, t in enumerate(special)],
    "model": {"type": "BPE", "vocab": vocab, "merges": []}, "post_processor": post,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}}))
(folder / "chat_template.jinja").write_text(
    "{{ bos_token }}{% for m in messages %}<|role|>{{ m.role[0] }}{{ m.content | trim }}{{ eos_token }}{% endfor %}\n"
    "{%- if messages[-1].content == 'no' %}{{ raise_exception('I was not asked') }}{% endif %}"
    "{% if add_generation_prompt %}<|role|>a{% endif %}")
def ids(*parts):
    out = []
    for part in parts:
        out += [special.index(part)] if part in special else [vocab[c] for c in part]
    return ",".join(map(str, out))
(folder / "alone").write_text(ids("<s>", "<|role|>", "uHi", "</s>", "<|role|>", "a"))
(folder / "both").write_text(ids("<s>", "<|role|>", "sBe", "</s>", "<|role|>", "uHi", "</s>", "<|role|>", "a"))
EOF
"$aerie" convert "$tmp/model" -o "$tmp/chat.aerie" --dtype f32 >/dev/null
run() { "$aerie" run --model "$tmp/chat.aerie" --max-tokens 24 --ignore-eos --json "$@" | python3 -c 'import json,sys; print(json.load(sys.stdin)["tokens"])'; }
[ "$(run --chat --prompt " Hi ")" = "$(run --tokens "$(cat "$tmp/model/alone")")" ] || { echo "another prompt than the template's"; exit 1; }
[ "$(printf 'Hi\n' | run --chat --system Be --prompt-file -)" = "$(run --tokens "$(cat "$tmp/model/both")")" ] || { echo "another prompt, with --system"; exit 1; }
[ "$(run --tokens "$(cat "$tmp/model/alone")")" != "$(run --tokens "$(cat "$tmp/model/both")")" ]
expect 1 "chat template, line 2: I was not asked" "$aerie" run --model "$tmp/chat.aerie" --chat --prompt no
expect 1 "has no chat template" "$aerie" run --model "$model" --chat --prompt x
expect 2 "requires --chat" "$aerie" run --model "$model" --system x --prompt x
expect 2 "excludes" "$aerie" run --model "$model" --chat --special --prompt x
expect 2 "excludes" "$aerie" run --model "$model" --chat --tokens 1,2
expect 1 "zero byte" "$aerie" run --model "$tmp/chat.aerie" --chat --prompt-file <(printf 'a\0b')
printf '{{ x | nope }}' >"$tmp/model/chat_template.jinja"
"$aerie" convert "$tmp/model" -o "$tmp/bad.aerie" --dtype f32 >/dev/null
expect 1 "filter 'nope' is not supported" "$aerie" run --model "$tmp/bad.aerie" --chat --prompt x
