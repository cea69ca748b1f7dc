#!/usr/bin/env python3
"""Golden encodings for core/text.

  pip install tokenizers sentencepiece protobuf
  make_golden.py [path to tok512.model]

Byte-level BPE: trains tiny tokenizers on the text below with Hugging Face `tokenizers` and stores
<name>/tokenizer.json and <name>/golden.json, a list of
  {"text", "plain": ids with special tokens as text, "special": ids with special tokens parsed,
   "decoded": text of "special" without special tokens}   (both ids with the BOS, if the model has one).
"decoded" is null where a special token opens the text: `tokenizers` then drops a space further on, we only behind the BOS.
SentencePiece: spm/tokenizer.model, trained on the text below, too, and spm/golden.json by `sentencepiece`; spm_prepend and
spm_metaspace are the same model as transformers writes it down (older and newer). gemma_spm and gemma are the like of Gemma 3's:
its special tokens, no space in front, runs of spaces and line breaks that are tokens of the user. stories260k/golden.json: ids of
tok512.model by `sentencepiece`, without BOS.
"""
import io
import json
import pathlib
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])

CORPUS = """The dragon opened the door and saw that there was nothing inside the castle.
"I don't think we're going to find it," said the little girl. "It's too dark, and they've taken the lamp."
She'll look again tomorrow; he'd rather sleep. I'm sure you can't see 100 or 2024 or 3.14159 from here.
def encode(self, text: str) -> list[int]:
    if not text:
        return []
    for index, piece in enumerate(self.pieces):
        print(index, piece)
\tint main(int argc, char** argv) { return 0; }  // comment\r
Der schnelle braune Fuchs springt über den faulen Hund. Größe, Straße, Äpfel.
Le garçon a mangé une crème brûlée à l'hôtel. Être ou ne pas être.
Быстрая коричневая лиса прыгает через ленивую собаку. Привет, мир!
敏捷的棕色狐狸跳过了懒狗。你好，世界！今日は世界。こんにちは、ありがとう。
안녕하세요 세계. مرحبا بالعالم. नमस्ते दुनिया. สวัสดีชาวโลก
😀 😃 👍🏽 👩‍👩‍👧‍👦 🇩🇪 emoji 🎉🎉
""".splitlines(keepends=True)

TEXTS = [
    "", " ", "  ", "   \n", "\n", "\n\n\n", "\r\n", "\r\n\r\n  x", "\t", "a", " a", "a ", "a  ", "  a  b   c    ",
    "The dragon opened the door.", "Hello, world! How's it going?", "I'm he'll we'VE THEY'RE you'd can'T it's' ''s",
    "DON'T Don't dON'T 'S 'LL", "it\u2019s not the same apostrophe, is it\u2019s", "'\u017f '\u017ftrange I'\u212a",
    "0", "12", "123", "1234", "12345678901234567890", "3.14159 2,000,000 1e-10 0xDEADBEEF", "\u0661\u0662\u0663\u0664 \u2167 \u00bd \u00b2\u00b3",
    "def f(x):\n    if x:\n        return [x, -x]\n\n\treturn None\n", "int main() {\r\n\treturn 0;\r\n}\r\n", "x  =  1 ;   // two   spaces  ",
    "foo_bar.baz(qux)->quux::corge<T>&&", "https://example.com/a?b=c&d=%20#frag", "{\"key\": [1, 2, {\"nested\": null}]}",
    "Größe Straße Äpfel über", "crème brûlée à l'hôtel", "Привет, мир! Быстрая лиса", "敏捷的棕色狐狸 你好，世界！", "こんにちは 世界。カタカナ ﾊﾝｶｸ",
    "안녕하세요 세계", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "Ελληνικά ὦ", "עברית שלום",
    "😀", "😀😃 👍🏽", "👩‍👩‍👧‍👦 🇩🇪", "a😀b 😀 c", "🎉🎉🎉!!!", "\U0001f468\u200d\U0001f4bb codes",
    "e\u0301 a\u0308\u0323 \u1e9b\u0323 \u0344 \u2126 \uac00\u11a8 \u1112\u1161\u11ab \ufb01 \u0958", "\u00e9 e\u0301 \u00c5 A\u030a \u212b",
    "\u00a0nbsp\u00a0\u00a0 \u2003em\u2003 \u3000ideographic\u3000\u3000x \u180e mongolian \u0085nel \u200b zwsp \ufeffbom",
    "\u2028line\u2029para\u000bvt\u000cff\x1cfs", "trailing spaces   ", "   leading", "tabs\t\tand \t mixed \t\n \n  x",
    "a\u0000b\u0000", "\x7f\x80\x9f", "\u31350 \U00031350\U000323af\U0002ebf0 \U0001e4f0\U00010d40 \U000105c0",
    "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> <|endoftext|>\n", "<|endoftext", "<|endof<|endoftext|>text|>",
    "<tool>", "x <tool> y", "  <mask>  <mask>x", "<pad>  \n z", "<|endoftext|><tool><mask><pad>", "<toolbox> <tool", "      four    spaces",
    "caf\u00e9s cafe\u0301s <\u01cdx> <A\u030cx>", "zanzibar zanzibars Zanzibar", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "SHOUTING CamelCase snake_case XMLHttpRequest iPhone McDonald \u01c5x \u02b0y", "!!!???...---===***///\\\\\\", "$100 €50 £20 ¥1000 50% #1 @user",
    "\U0010ffff\ue000\ufffd", "word" * 30, " the" * 40, "".join(chr(c) for c in range(32, 127)),
]


META = ["\u2581", "a\u2581b", "\u2581 x\u2581\u2581y", "<s></s><unk><0x41>", "see the little dog"] + ["x" + " " * n + "y" for n in range(1, 20)]
GEMMA = ["\n", "\n\n", "\n\n\n", "\u2581\u2581", "\u2581\u2581\u2581", "\u2581\u2581\u2581\u2581", "\t", "\t\t", "<table>", "</table>"]
TURNS = ["<start_of_turn>user\nI'm here<end_of_turn>\n<start_of_turn>model\n", "<bos>a <bos> b<eos>", "<table>  <tr>\n\n\n\n\t\t\tx</table>",
         "a\u2581\u2581b", "a \u2581\u2581 b", "\u2581 \u2581", "a     b", "  \n  \n     ", "<pad>  <unk> x", "\n dragon", "\n\n\n\n\n"]
SPECIAL = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<mask>", "<pad>"]


def train(pre):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(CORPUS * 2, trainers.BpeTrainer(
        vocab_size=720, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"],
        show_progress=False))
    return tok


def split(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns] +
                                   [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def add_tokens(tok):
    # No added token here has a character that ByteLevel also uses for a byte (such as U+00E9): `tokenizers`
    # decodes those as that byte, which breaks the text; we give the text back.
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("<pad>", rstrip=True, special=True)])
    tok.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<\u01cdx>", normalized=True),
                    AddedToken("    ", normalized=True), AddedToken("  ", normalized=True)])


def write(name, tok, edit=lambda j: None):
    data = json.loads(tok.to_str())
    edit(data)
    tok = Tokenizer.from_str(json.dumps(data))
    out = []
    for text in TEXTS + (META if data["model"].get("byte_fallback") else []) + (TURNS if name == "gemma" else []):
        tok.encode_special_tokens = True
        plain = tok.encode(text).ids
        tok.encode_special_tokens = False
        special = tok.encode(text).ids
        opens = special[1:2] and tok.id_to_token(special[1]) in SPECIAL and data["model"].get("byte_fallback")
        out.append({"text": text, "plain": plain, "special": special, "decoded": None if opens else tok.decode(special)})
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    rows = ",\n".join(json.dumps(row) for row in out)
    (folder / "golden.json").write_text(f"[\n{rows}\n]\n")
    print(name, len(data["model"]["vocab"]), "tokens,", len(out), "texts")


def legacy_merges(j):  # as tokenizers wrote them before 0.20
    j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]
    del j["pre_tokenizer"]["use_regex"]


def ignore_merges(j):  # a token that no merge makes
    j["model"]["ignore_merges"] = True
    size = len(j["model"]["vocab"])
    for token in j["added_tokens"]:
        token["id"] += token["id"] >= size
    j["model"]["vocab"]["Ġzanzibar"] = size


def train_sentencepiece(**settings):
    import sentencepiece
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line.rstrip("\r\n") for line in CORPUS * 2), model_writer=file, model_type="bpe", vocab_size=640,
        byte_fallback=True, character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, allow_whitespace_only_pieces=True, hard_vocab_limit=False, minloglevel=2, **settings)
    return file.getvalue()


def write_model(name, data, texts):
    import sentencepiece
    (HERE / name).mkdir(exist_ok=True)
    (HERE / name / "tokenizer.model").write_bytes(data)
    sp = sentencepiece.SentencePieceProcessor(model_proto=data)
    rows = ",\n".join(json.dumps({"text": t, "ids": sp.encode(t), "decoded": sp.decode(sp.encode(t))}) for t in texts)
    (HERE / name / "golden.json").write_text(f"[\n{rows}\n]\n")


def merges_of(model):
    """Ranked merges of the pieces, as transformers makes them."""
    scores = {p.piece: p.score for p in model.pieces}
    ids = {p.piece: i for i, p in enumerate(model.pieces)}
    found = []
    for piece, score in scores.items():
        splits = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in ids and piece[i:] in ids]
        found += [(left, right, score) for left, right in sorted(splits, key=lambda s: (ids[s[0]], ids[s[1]]))]
    return [(left, right) for left, right, _ in sorted(found, key=lambda m: m[2], reverse=True)]


def write_gemma():
    from sentencepiece import sentencepiece_model_pb2
    turns = ["<start_of_turn>", "<end_of_turn>"]
    data = train_sentencepiece(pad_id=0, eos_id=1, bos_id=2, unk_id=3, eos_piece="<eos>", bos_piece="<bos>", add_dummy_prefix=False,
                               user_defined_symbols=["<mask>"] + turns + GEMMA)
    write_model("gemma_spm", data, TEXTS + META + TURNS)
    model = sentencepiece_model_pb2.ModelProto.FromString(data)
    # As transformers' GemmaConverter has it: tokens of the user are merged, too, and before the others.
    ids = {p.piece: i for i, p in enumerate(model.pieces)}
    found = [(p.score, i, len(p.piece) - i, p.piece[:i], p.piece[i:]) for p in model.pieces for i in range(1, len(p.piece))
             if p.piece[:i] in ids and p.piece[i:] in ids]
    merges = [(left, right) for *_, left, right in sorted(found, key=lambda m: m[:3], reverse=True)]
    tok = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Replace(" ", "\u2581")
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B:1", special_tokens=[("<bos>", ids["<bos>"])])
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ["<pad>", "<eos>", "<bos>", "<unk>"] + turns])
    tok.add_tokens([AddedToken(t, normalized=False) for t in ["<mask>"] + GEMMA])
    write("gemma", tok)


def write_sentencepiece():
    from sentencepiece import sentencepiece_model_pb2
    data = train_sentencepiece(control_symbols=["<|endoftext|>"], user_defined_symbols=["<tool>"])
    write_model("spm", data, TEXTS + META)
    model = sentencepiece_model_pb2.ModelProto.FromString(data)
    for name in ("spm_prepend", "spm_metaspace"):
        tok = Tokenizer(models.BPE({p.piece: i for i, p in enumerate(model.pieces)}, merges_of(model), unk_token="<unk>",
                                   fuse_unk=True, byte_fallback=True))
        if name == "spm_prepend":
            tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        else:
            tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
        tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                         decoders.Strip(" ", 1, 0)])
        tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B:1", special_tokens=[("<s>", 1)])
        tok.add_special_tokens([AddedToken(t, normalized=False, special=True)
                                for t in ("<unk>", "<s>", "</s>", "<|endoftext|>")])
        tok.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True),
                                AddedToken("<pad>", rstrip=True, normalized=False, special=True)])
        tok.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("the little", normalized=False)])
        write(name, tok)


def main():
    write_sentencepiece()
    write_gemma()
    write("gpt2", train(pre_tokenizers.ByteLevel(add_prefix_space=False)), legacy_merges)
    write("gpt2_prefix", train(pre_tokenizers.ByteLevel(add_prefix_space=True)))

    tok = train(split(LLAMA3))
    add_tokens(tok)
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B:1", special_tokens=[("<|endoftext|>", 0)])])
    write("llama3", tok, ignore_merges)

    tok = train(split(QWEN2))
    tok.normalizer = normalizers.NFC()
    add_tokens(tok)
    write("qwen2", tok)

    write("o200k", train(split(O200K)))
    tok = train(split(LLAMA3))  # as OLMo 2 has it: no BOS, merges alone
    tok.add_tokens([AddedToken("|||IP_ADDRESS|||", normalized=False)])
    write("cl100k", tok)
    write("digits", train(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])))

    if len(sys.argv) > 1:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
        model = sentencepiece_model_pb2.ModelProto.FromString(pathlib.Path(sys.argv[1]).read_bytes())
        # The model asks to squeeze runs of spaces; run.c, whose format tokenizer.bin is, keeps them.
        model.normalizer_spec.remove_extra_whitespaces = False
        sp = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        # U+2581 is SentencePiece's own sign for a space and a NUL ends run.c's strings.
        rows = [{"text": t, "ids": sp.encode(t)} for t in TEXTS if "\0" not in t and "\u2581" not in t]
        (HERE / "stories260k").mkdir(exist_ok=True)
        body = ",\n".join(json.dumps(row) for row in rows)
        (HERE / "stories260k/golden.json").write_text(f"[\n{body}\n]\n")
        print("stories260k", len(rows), "texts")


main()
