#!/usr/bin/env python3
"""Whole texts beside llama.cpp: the demo model inflated, the same weights in both engines, each drafting in its best way.

    python3 tests/bench/end_to_end.py --build build/bench --models DIR prepare bf16
    python3 tests/bench/end_to_end.py --build build/bench --models DIR choose bf16 0.7 --text TEXT.u16...
    python3 tests/bench/end_to_end.py --build build/bench --models DIR time bf16 0.7 --text TEXT.u16...
    python3 tests/bench/end_to_end.py --models DIR page >page.md        # or readme: the short table

`prepare` writes the models of one weight format (6 GB for bf16); `choose` tries every way to draft on some held-out
prompts; `time` takes the fastest of each kind and measures it on other prompts, in turn, round after round; `page`
writes what is known. TEXT: token ids as 16-bit integers (docs/training.md makes them). Needs numpy, and the network
once for llama.cpp (vs_llama_cpp/build.sh).
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "vs_llama_cpp")]
import end_to_end_page  # noqa: E402
import gguf_package  # noqa: E402
import vs_llama_cpp  # noqa: E402
from generating import ROOT, Aerie, Llama, Way, llama_program  # noqa: E402

SHAPE = "dim=3072,layers=16,heads=32,kv_heads=8,ffn=6144,vocab=32000"
DEMO = ROOT / "samples/models"
HEADS = ["demo-eagle", "demo-eagle3", "demo-fasteagle"]
HEAD_DTYPES = {"bf16": "int8", "int8": "int8", "int4": "int4"}  # of a target's heads: a draft pass is to cost little beside a target's
CONTEXT = 512
PLAIN = [Way("aerie", "plain"), Way("llama.cpp", "plain")]


def ways():
    """What `choose` tries."""
    yield from PLAIN
    for head in HEADS:
        name = head.removeprefix("demo-")
        yield Way("aerie", f"{name}, auto", (head,), "auto")
        for n in (3, 5, 7):
            yield Way("aerie", f"{name}, chain of {n}", (head,), "chain", n)
        yield Way("aerie", f"{name}, eagle2 of 6", (head,), "eagle2", 6, 6)
    yield Way("aerie", "eagle and eagle3, auto", ("demo-eagle", "demo-eagle3"), "auto")
    for i, draft in enumerate(("demo-small", "demo-small inflated")):
        for n in (2, 4, 6):
            for p_min in (0, 0.5):
                yield Way("llama.cpp", f"{draft}, at most {n}, p ≥ {p_min:g}", method="draft-simple", draft=i, nodes=n, p_min=p_min)
    for n in (2, 4, 6):
        for p_min in (0, 0.5):
            yield Way("llama.cpp", f"EAGLE-3, at most {n}, p ≥ {p_min:g}", method="draft-eagle3", draft=2, nodes=n, p_min=p_min)
    for method in ("ngram-cache", "ngram-simple", "ngram-map-k"):
        for n in (2, 4):
            yield Way("llama.cpp", f"{method}, at most {n}", method=method, nodes=n)


def prompts(files: list[Path], count: int, length: int, other: bool) -> list[list[int]]:
    """`count` windows spread over the texts; `other`: windows between those."""
    texts = [np.fromfile(f, np.uint16) for f in files]
    out = []
    for i in range(count):
        text = texts[i % len(texts)]
        at = int((i + (0.5 if other else 0)) * (len(text) - length) / count)
        out.append([int(t) for t in text[at:at + length]])
    return out


def prepare(args, dtype: str) -> None:
    def packages(names: list[str], kind: str) -> list[Path]:
        """Of the demo's drafters, which are int8."""
        if kind == "int8":
            return [DEMO / f"{name}.aerie" for name in names]
        folder = args.models / f"heads-{kind}"
        folder.mkdir(exist_ok=True)
        for name in names:
            subprocess.run([args.build / "bin/aerie", "convert", DEMO / f"{name}.aerie", "--dtype", kind, "-o", folder / f"{name}.aerie"],
                           check=True, stderr=subprocess.DEVNULL)
        return [folder / f"{name}.aerie" for name in names]

    def inflate(kind: str, names: list[str]) -> Path:
        folder = args.models / kind
        if not (folder / "target.aerie").exists():
            drafters = [x for file in packages(names, HEAD_DTYPES[kind]) for x in ("--drafter", file)]
            subprocess.run([args.build / "bin/inflate", "--target", DEMO / "demo.aerie", *drafters, "--shape", args.shape,
                            "--dtype", kind, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        return folder

    bits16 = inflate("bf16", [*HEADS, "demo-small"])
    inflate(dtype, HEADS)
    gguf = vs_llama_cpp.PAIRS[dtype][1]
    vocab = int(args.shape.rsplit("vocab=", 1)[1].split(",")[0])
    about = gguf_package.write(args.build, bits16 / "target.aerie", {gguf: args.models / f"{gguf}.gguf"})
    for package, name in ((DEMO / "demo-small.aerie", "small"), (bits16 / "demo-small.aerie", "small-inflated")):
        gguf_package.write(args.build, package, {gguf: args.models / f"{name}-{gguf}.gguf"}, vocab)
    head = head_format(dtype)
    gguf_package.write_head(args.build, bits16 / "demo-eagle3.aerie", {head: args.models / f"eagle3-{head}.gguf"}, about)
    (args.models / f"{dtype}.json").write_text(json.dumps({"shape": args.shape, "vocab_used": about["vocab_used"]}))


def head_format(dtype: str) -> str:
    """llama.cpp's that is Aerie's."""
    return vs_llama_cpp.PAIRS[HEAD_DTYPES[dtype]][1]


def engines(args, dtype: str) -> dict:
    gguf = vs_llama_cpp.PAIRS[dtype][1]
    about = json.loads((args.models / f"{dtype}.json").read_text())
    drafts = [args.models / f"{name}.gguf" for name in (f"small-{gguf}", f"small-inflated-{gguf}", f"eagle3-{head_format(dtype)}")]
    return {"aerie": Aerie(args.build, args.models / dtype, args.threads),
            "llama.cpp": Llama(args.llama or llama_program(args.llama_option), args.models / f"{gguf}.gguf", args.threads, CONTEXT,
                               about["vocab_used"], drafts)}


def rounds(args, chosen: list[Way], texts: list[list[int]], count: int, running: dict) -> dict:
    """{way's name: what came out}, after one round that warms up. Speeds: one a round, over all texts."""
    out = {f"{w.engine}: {w.name}": {"engine": w.engine, "name": w.name, "group": w.group, "speeds": [], "texts": [], "cycles": 0}
           for w in chosen}
    for i in range(-1, count):
        for way in chosen[::1 if i % 2 else -1]:
            row, ms, timed = out[f"{way.engine}: {way.name}"], 0.0, 0
            for seed, text in enumerate(texts[:1] if i < 0 else texts):
                g = running[way.engine].generate(way, text, args.temperature, seed, args.tokens if i >= 0 else args.tokens // 4)
                ms, timed = ms + g["ms"], timed + g["timed_tokens"]
                if i == 0:
                    row["texts"].append(g["tokens"])
                    row["cycles"] += g["cycles"]
            if i >= 0:
                row["speeds"].append(timed / ms * 1e3)
    for name, row in out.items():  # the promise
        if row["engine"] == "aerie" and row["texts"] != out["aerie: plain"]["texts"]:
            sys.exit(f"{name}: another text than plain decode's")
    return out


def measure(args, stage: str, chosen: list[Way], texts: list[list[int]], count: int) -> dict:
    others = vs_llama_cpp.OtherWork()
    running = engines(args, args.dtype)
    rows = rounds(args, chosen, texts, count, running)
    about = {name: engine.about for name, engine in running.items()}
    running["llama.cpp"].close()
    known = json.loads((args.models / f"{args.dtype}.json").read_text())
    out = {"dtype": args.dtype, "gguf": vs_llama_cpp.PAIRS[args.dtype][1], "temperature": args.temperature, "shape": known["shape"],
           "tokens": args.tokens, "texts": len(texts), "threads": args.threads, "rows": list(rows.values()), "about": about,
           "machine": vs_llama_cpp.machine(args), "other_work": others.share()}
    file = result_file(args, stage)
    if args.more and file.exists():
        out = extended(json.loads(file.read_text()), out)
    file.write_text(json.dumps(out, indent=1) + "\n")
    return out


def extended(old: dict, new: dict) -> dict:
    """Both runs' rounds, if they measured the same."""
    for before, row in zip(old["rows"], new["rows"], strict=True):
        if (before["name"], before["texts"]) != (row["name"], row["texts"]):
            sys.exit(f"end_to_end.py: --more: {row['name']}: other ways or texts than before")
        row["speeds"] = before["speeds"] + row["speeds"]
    new["other_work"] = max(old["other_work"], new["other_work"])
    return new


def result_file(args, stage: str) -> Path:
    return args.models / f"{stage}-{args.dtype}-{args.temperature:g}.json"


def fastest(tried: dict) -> list[Way]:
    """Plain decode and the best of every other group."""
    speed = {(r["engine"], r["name"]): float(np.median(r["speeds"])) for r in tried["rows"]}
    best: dict[tuple[str, str], Way] = {}
    for way in ways():
        key = (way.engine, way.group)
        if key not in best or speed[way.engine, way.name] > speed[best[key].engine, best[key].name]:
            best[key] = way
    return list(best.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--build", type=Path, default=Path("build/bench"), help="Aerie's, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("stage", choices=["prepare", "choose", "time", "page", "readme"])
    parser.add_argument("dtype", nargs="?", default="bf16", choices=["bf16", "int8", "int4"])
    parser.add_argument("temperature", nargs="?", type=float, default=0)
    parser.add_argument("--shape", default=SHAPE)
    parser.add_argument("--text", type=Path, nargs="+", default=[])
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--prompt-tokens", type=int, default=48)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--more", action="store_true", help="time: add the rounds to those that are there")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama", type=Path, help="llama_speculation, already built")
    parser.add_argument("--llama-option", action="append", default=[], help="for build.sh, such as -DGGML_LLAMAFILE=OFF")
    args = parser.parse_args()
    args.build, args.date, args.roofline = args.build.resolve(), str(datetime.date.today()), Path(os.devnull) / "none"
    args.models.mkdir(parents=True, exist_ok=True)
    if args.stage in ("page", "readme"):
        timed, tried = ([json.loads(f.read_text()) for f in args.models.glob(f"{stage}-*.json")] for stage in ("time", "choose"))
        print(end_to_end_page.page(timed, tried) if args.stage == "page" else end_to_end_page.short(timed), end="")
        return
    if args.stage == "prepare":
        prepare(args, args.dtype)
        return
    if not args.text:
        parser.error("--text: held-out token ids")
    texts = prompts(args.text, args.prompts, args.prompt_tokens, args.stage == "choose")
    if args.stage == "choose":
        found = measure(args, "choose", list(ways()), texts, 1)
    else:
        found = measure(args, "time", fastest(json.loads(result_file(args, "choose").read_text())), texts, args.rounds)
    for line in end_to_end_page.lines(found):
        print(line)


if __name__ == "__main__":
    main()
