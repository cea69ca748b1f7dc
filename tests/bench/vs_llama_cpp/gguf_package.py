#!/usr/bin/env python3
"""A target package as GGUF files, so that llama.cpp runs the same weights; an EAGLE-3 head's, with its target's beside it.

    python3 tests/bench/vs_llama_cpp/gguf_package.py --build build/release TARGET.aerie -o DIR --formats F16,Q8_0,Q4_0
    python3 tests/bench/vs_llama_cpp/gguf_package.py --build build/release HEAD.aerie --target TARGET.aerie -o DIR --formats Q8_0

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
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
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


@dataclass(frozen=True)
class Eagle3(random_model.Shape):
    """A head; `vocab` is its target's, `vocab_map` the target's id of each of its own (none: all of them)."""

    taps: tuple[int, ...] = ()
    vocab_map: tuple[int, ...] = ()

    def tensors(self):
        h, q, kv = self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield "", "fc.weight", (h, len(self.taps) * h)
        yield "", "blk.0.attn_norm.weight", (h,)
        yield "", "blk.0.attn_norm_2.weight", (h,)
        for gguf, shape in (("attn_q", (q, 2 * h)), ("attn_k", (kv, 2 * h)), ("attn_v", (kv, 2 * h)), ("attn_output", (h, q)),
                            ("ffn_norm", (h,)), ("ffn_gate", (self.ffn, h)), ("ffn_up", (self.ffn, h)), ("ffn_down", (h, self.ffn))):
            yield "", f"blk.0.{gguf}.weight", shape
        yield "", "output_norm.weight", (h,)
        yield "", "output.weight", (len(self.vocab_map) or self.vocab, h)
        if self.vocab_map:
            yield "", "d2t", (len(self.vocab_map),)

    def metadata(self) -> dict[str, bytes]:
        return {"target_layers": random_model.array(4, [struct.pack("<I", t) for t in self.taps]),
                "target_hidden_size": random_model.u32(self.hidden)}


@contextmanager
def opened(build: Path, package: Path):
    """(what the package says about itself, its next tensor), one tensor at a time in memory."""
    with subprocess.Popen([build / "bin/package_weights", package], stdout=subprocess.PIPE) as reader:
        about = json.loads(reader.stdout.readline() or "{}")
        if not about:
            sys.exit(f"gguf_package.py: package_weights ended with status {reader.wait()}")

        def tensor(name: str, dims: tuple[int, ...]):
            data = reader.stdout.read(4 * math.prod(dims))
            if len(data) != 4 * math.prod(dims):
                sys.exit(f"gguf_package.py: {package} ends within {name}")
            return np.frombuffer(data, np.float32).reshape(dims)

        yield about, tensor
        reader.kill()  # not all was wanted


def write(build: Path, package: Path, files: dict[str, Path], vocab: int = 0) -> dict:
    """{format: file} of one target package; returns what the package says about itself."""
    with opened(build, package) as (about, tensor):
        if about.get("departures", {}).get("experts"):
            sys.exit(f"{package}: mixtures of experts are not written")
        shape = random_model.Shape(**{f.name: about[f.name] for f in fields(random_model.Shape) if f.name in about})
        padded = replace(shape, vocab=max(vocab, shape.vocab))
        tokens = vocabulary(about, padded.vocab)
        writers = [random_model.Gguf(file, padded, kind, package.stem, tokens) for kind, file in files.items()]
        for name, gguf, dims in shape.tensors():
            w = tensor(name, dims)
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


def write_head(build: Path, package: Path, files: dict[str, Path], target: dict) -> None:
    """{format: file} of an EAGLE-3 head; `target`: what its target says about itself."""
    with opened(build, package) as (about, tensor):
        shape = Eagle3(hidden=int(about["hidden"]), layers=1, heads=int(about["heads"]), kv_heads=int(about["kv_heads"]), ffn=int(about["ffn"]),
                       vocab=target["vocab"], context=int(about["positions"]), rms_eps=about["rms_eps"], rope_theta=about["rope_theta"],
                       head_size=int(about["head_dim"]), taps=tuple(int(about[f"tap.{i}"]) for i in range(int(about["taps"]))),
                       vocab_map=tuple(about.get("vocab_map", ())))
        tokens = vocabulary(target, shape.vocab)
        writers = [random_model.Gguf(file, shape, kind, package.stem, tokens, "eagle3", shape.metadata()) for kind, file in files.items()]
        for name, gguf, dims in shape.tensors():
            if gguf == "d2t":
                w = np.array(shape.vocab_map, np.int64)
            else:
                w = tensor(gguf, dims)
                if gguf == "output.weight":
                    ids = np.array(shape.vocab_map) if shape.vocab_map else np.arange(shape.vocab)
                    w = np.where((ids < target["vocab_used"])[:, None], w, QUIET * w)
            for writer in writers:
                writer.add(name, gguf, w)
        for writer in writers:
            writer.file.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder")
    parser.add_argument("--build", type=Path, required=True, help="Aerie's build folder, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--formats", default="F16", help="comma-separated: " + ", ".join(random_model.GGUF_TYPES))
    parser.add_argument("--vocab", type=int, default=0, help="pad the vocabulary to so many ids")
    parser.add_argument("--target", type=Path, help="the package of an EAGLE-3 head's target")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    files = {f: args.out / f"{f}.gguf" for f in args.formats.split(",")}
    if args.target:
        with opened(args.build, args.target) as (about, _):
            write_head(args.build, args.package, files, about)
    else:
        write(args.build, args.package, files, args.vocab)


if __name__ == "__main__":
    main()
