#!/usr/bin/env python3
"""Published models beside llama.cpp, both from the same 4-bit GGUF file, each engine drafting from the text in its ways.

    python3 tests/bench/published_vs_llama_cpp.py --build build/bench qwen_coder smollm2 >section.md

llama.cpp reads the file itself; Aerie reads it converted with `--dtype stored`, which keeps what is 4-bit at 4 bits. qwen_coder
does edits of edit_speed.py, smollm2 answers questions of chat_speed.py; all ways in turn, round after round. Texts go on
behind their end, so that all have one length. Needs numpy, and the network once for the models (samples/published/model.sh)
and llama.cpp (vs_llama_cpp/build.sh).
"""

import argparse
import datetime
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "vs_llama_cpp")]
import chat_speed  # noqa: E402
import edit_speed  # noqa: E402
import end_to_end  # noqa: E402
import vs_llama_cpp  # noqa: E402
from chat_vs_llama_cpp import ask, table_of  # noqa: E402
from generating import Aerie, Llama, Way, llama_program  # noqa: E402

CONTEXT = 1536


def ways():
    yield from end_to_end.PLAIN
    for drafter in ("ngram", "ngram-suffix"):
        yield Way("aerie", f"{drafter}, auto", (drafter,), "auto")
    for n in (4, 8):
        yield Way("llama.cpp", f"ngram-simple, keys of 3, at most {n}", method="ngram-simple", draft=3, nodes=n)
    yield Way("llama.cpp", "ngram-cache, at most 4", method="ngram-cache", nodes=4)
    yield Way("llama.cpp", "ngram-map-k, keys of 12, at most 48", method="ngram-map-k", draft=12, nodes=48)
    yield Way("llama.cpp", "ngram-mod, keys of 24, 48", method="ngram-mod", nodes=48)


def prompts(name: str, count: int) -> list[str]:
    if name != "qwen_coder":
        return chat_speed.QUESTIONS[:count]
    return [f"{what} Answer with the whole code and nothing else.\n\n```\n{edit_speed.piece(*where)}\n```"
            for what, *where in edit_speed.EDITS[:count]]


def measure(args, name: str) -> str:
    package = chat_speed.package(args.build, "stored", name)
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        (folder / "target.aerie").symlink_to(package.resolve())
        aerie = Aerie(args.build, folder, args.threads)
        for drafter in ("ngram", "ngram-suffix"):
            aerie.drafters[drafter] = aerie.model.drafter(plugin=drafter)
        model = aerie.model
        texts = [ask(model, p) for p in prompts(name, args.prompts)]
        gguf = package.with_name(f"{name}.gguf")
        llama = Llama(args.llama or llama_program([]), gguf, args.threads, CONTEXT, model.tokenizer.vocab_size, [])
        others = vs_llama_cpp.OtherWork()
        rows = list(end_to_end.rounds(args, list(ways()), texts, args.rounds, {"aerie": aerie, "llama.cpp": llama}).values())
        llama.close()
    machine = vs_llama_cpp.machine(args)
    return f"""### {name}, temperature {args.temperature:g}

Made by `tests/bench/published_vs_llama_cpp.py` on {machine['date']}: {machine['cpu']}, {machine['cpus']} CPUs, {args.threads} threads each; Aerie {machine['commit']} ({aerie.about}),
llama.cpp {llama.about['version']}. {gguf.stat().st_size / 1e6:.0f} MB of GGUF, {package.stat().st_size / 1e6:.0f} MB as a package; {len(texts)} prompts, {args.tokens} tokens each, {args.rounds} rounds in which all ways take
turns: median (least–most), ratios of the same round. Prompts, and the first pass, are not timed. Other work on the machine: at most {100 * others.share():.0f} %.

{table_of({"rows": rows})}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", choices=["qwen_coder", "smollm2"])
    parser.add_argument("--build", type=Path, required=True, help="Aerie's, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama", type=Path, help="llama_speculation, already built")
    args = parser.parse_args()
    args.build, args.date, args.roofline = args.build.resolve(), str(datetime.date.today()), Path(os.devnull) / "none"
    print("\n\n".join(measure(args, name) for name in args.names))


if __name__ == "__main__":
    main()
