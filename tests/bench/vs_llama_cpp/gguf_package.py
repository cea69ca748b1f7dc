#!/usr/bin/env python3
"""A target package as GGUF files, so that llama.cpp runs the same weights.

    python3 tests/bench/vs_llama_cpp/gguf_package.py --build build/release TARGET.aerie -o DIR --formats F16,Q8_0,Q4_0

Give it a bf16 package: quantised ones would be rounded twice. The vocabulary's texts are there to be printed; without
merges llama.cpp cannot tokenise with them, so give it ids. It knows no `vocab_used`: the padding's rows of the LM head
are made small, so that it never drafts such a token, and cost what they cost. `--vocab` pads further: llama.cpp takes
no draft model whose vocabulary is 128 ids smaller.
"""

import argparse
import json
import math
import struct
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import random_model  # noqa: E402

QUIET = 2.0**-10  # of a padding row's logit


def printable() -> list[str]:
    """GPT-2's character for each byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in kept else next(others)) for b in range(256)]


def vocabulary(about: dict, size: int) -> dict[str, bytes]:
    """The tokenizer's metadata. Tokens without text are special ones."""
    letters, seen, names, kinds = printable(), set(), [], []
    for id in range(size):
        name = "".join(letters[b] for b in bytes.fromhex(about["tokens"][id])) if id < about["vocab_used"] else ""
        if not name or name in seen:
            name, kind = (f"<special {id}>", 3) if id < about["vocab_used"] else (f"<pad {id}>", 5)
        else:
            kind = 1
        seen.add(name)
        names.append(random_model.string(name))
        kinds.append(struct.pack("<i", kind))
    end = {"tokenizer.ggml.eos_token_id": random_model.u32(about["eos"][0])} if about["eos"] else {}
    return {"tokenizer.ggml.model": random_model.text("gpt2"), "tokenizer.ggml.pre": random_model.text("gpt-2"),
            "tokenizer.ggml.tokens": random_model.array(8, names), "tokenizer.ggml.token_type": random_model.array(5, kinds),
            "tokenizer.ggml.merges": random_model.array(8, []), **end}


def write(build: Path, package: Path, files: dict[str, Path], vocab: int = 0) -> dict:
    """{format: file} of one package; returns what the package says about itself. One tensor at a time is in memory."""
    with subprocess.Popen([build / "bin/package_weights", package], stdout=subprocess.PIPE) as reader:
        about = json.loads(reader.stdout.readline() or "{}")
        if not about:
            sys.exit(f"gguf_package.py: package_weights ended with status {reader.wait()}")
        shape = random_model.Shape(**{f.name: about[f.name] for f in fields(random_model.Shape)})
        padded = replace(shape, vocab=max(vocab, shape.vocab))
        tokens = vocabulary(about, padded.vocab)
        writers = [random_model.Gguf(file, padded, kind, package.stem, tokens) for kind, file in files.items()]
        for name, gguf, dims in shape.tensors():
            data = reader.stdout.read(4 * math.prod(dims))
            if len(data) != 4 * math.prod(dims):
                sys.exit(f"gguf_package.py: {package} ends within {name}")
            w = np.frombuffer(data, np.float32).reshape(dims)
            if gguf in ("token_embd.weight", "output.weight"):
                rows = np.arange(padded.vocab)
                rows[shape.vocab:] %= shape.vocab
                w = w[rows]  # a copy
                if gguf == "output.weight":
                    w[about["vocab_used"]:] *= QUIET
            for writer in writers:
                writer.add(name, gguf, w)
        for writer in writers:
            writer.file.close()
    return about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder")
    parser.add_argument("--build", type=Path, required=True, help="Aerie's build folder, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--formats", default="F16", help="comma-separated: " + ", ".join(random_model.GGUF_TYPES))
    parser.add_argument("--vocab", type=int, default=0, help="pad the vocabulary to so many ids")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.build, args.package, {f: args.out / f"{f}.gguf" for f in args.formats.split(",")}, args.vocab)


if __name__ == "__main__":
    main()
