#!/usr/bin/env python3
"""SmolLM2-135M-Instruct, a published model, beside llama.cpp: the same weights, each engine drafting in its ways.

    python3 tests/bench/chat_vs_llama_cpp.py --build build/bench >section.md

Both engines answer the questions of chat_speed.py, all ways in turn, round after round. llama.cpp's file is written from the
f32 package (gguf_package.py) in the format that is ours, and its head from the shipped one. Its ways to draft: that head and
lookup, through its own common/speculative. Texts go on behind their end, so that all have one length. Needs numpy, and the
network once for the model (samples/published/model.sh) and llama.cpp (vs_llama_cpp/build.sh).
"""

import argparse
import datetime
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "vs_llama_cpp")]
import end_to_end  # noqa: E402
import gguf_package  # noqa: E402
import vs_llama_cpp  # noqa: E402
from chat_speed import HEAD, QUESTIONS, package  # noqa: E402
from end_to_end_page import beside, pick, ratio, spread  # noqa: E402
from generating import Aerie, Llama, Way, llama_program  # noqa: E402
from page import table  # noqa: E402


def ways():
    yield from end_to_end.PLAIN
    for n in (2, 3):
        yield Way("aerie", f"EAGLE-3, chain of {n}", ("head",), "chain", n)
    yield Way("aerie", "EAGLE-3, auto", ("head",), "auto")
    yield Way("aerie", "EAGLE-3 and lookup, auto", ("head", "ngram"), "auto")
    for n in (1, 2, 3):
        for p_min in (0, 0.5):
            yield Way("llama.cpp", f"EAGLE-3, at most {n}, p ≥ {p_min:g}", method="draft-eagle3", nodes=n, p_min=p_min)
    for method in ("ngram-cache", "ngram-simple"):
        yield Way("llama.cpp", f"{method}, at most 2", method=method, nodes=2)


def ask(model, question: str) -> list[int]:
    """A user's question as the model's chat template has it."""
    return model.tokenizer.encode(model.chat_template.render([{"role": "user", "content": question}]), bos=False, special=True)


def table_of(result: dict) -> str:
    theirs = pick(result, "llama.cpp", True)
    header = ["engine", "way", "tokens/s", "× its plain", "× llama.cpp plain", "tokens a pass", "text, beside its plain decode's"]
    out = []
    for row in result["rows"]:
        plain = pick(result, row["engine"], True)
        tokens = sum(map(len, row["texts"]))
        out.append([row["engine"], row["name"], spread(row["speeds"], 0), f"{median(ratio(row, plain)):.2f}", spread(ratio(row, theirs), 2),
                    f"{tokens / row['cycles']:.2f}", beside(row, plain)])
    return table(header, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="Aerie's, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--dtype", default="int8", choices=["bf16", "int8", "int4"])
    parser.add_argument("--temperatures", default="0,0.7")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama", type=Path, help="llama_speculation, already built")
    args = parser.parse_args()
    args.build, args.date, args.roofline = args.build.resolve(), str(datetime.date.today()), Path(os.devnull) / "none"
    gguf, head = (vs_llama_cpp.PAIRS[t][1] for t in (args.dtype, "int8"))
    chosen = list(ways())
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        (folder / "target.aerie").symlink_to(package(args.build, args.dtype).resolve())
        (folder / "head.aerie").symlink_to(HEAD)
        about = gguf_package.write(args.build, package(args.build, "f32"), {gguf: folder / "target.gguf"})
        gguf_package.write_head(args.build, HEAD, {head: folder / "head.gguf"}, about)
        aerie = Aerie(args.build, folder, args.threads)
        aerie.drafters["ngram"] = aerie.model.drafter(plugin="ngram")
        texts = [ask(aerie.model, q) for q in QUESTIONS]
        llama = Llama(args.llama or llama_program([]), folder / "target.gguf", args.threads, 512, about["vocab_used"], [folder / "head.gguf"])
        others, running = vs_llama_cpp.OtherWork(), {"aerie": aerie, "llama.cpp": llama}
        results = []
        for args.temperature in map(float, args.temperatures.split(",")):
            rows = list(end_to_end.rounds(args, chosen, texts, args.rounds, running).values())
            results.append({"temperature": args.temperature, "rows": rows})
        llama.close()
        machine = vs_llama_cpp.machine(args)
    print(f"""Made by `tests/bench/chat_vs_llama_cpp.py` on {machine['date']}: {machine['cpu']}, {machine['cpus']} CPUs, {args.threads} threads each; Aerie {machine['commit']} ({aerie.about}),
llama.cpp {llama.about['version']}. {args.dtype} / {gguf}; {len(texts)} questions, {args.tokens} tokens each, {args.rounds} rounds in which all ways take turns:
median (least–most), ratios of the same round. Prompts, and the first pass, are not timed. Other work on the machine: at most {100 * others.share():.0f} %.""")
    for result in results:
        print(f"\n### SmolLM2, temperature {result['temperature']:g}\n\n{table_of(result)}", end="")


if __name__ == "__main__":
    main()
