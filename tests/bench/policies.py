#!/usr/bin/env python3
"""Every tree policy in wall-clock: the demo model and inflated ones, by batch and temperature, interleaved, with 95 % intervals.

    cmake --preset tests && cmake --build --preset tests
    python3 tests/bench/policies.py --build build/tests --minutes 25

Writes docs/policies-measured.json and, from it, docs/policies-measured.md; `--page` writes the page anew, `--smoke` a short
run of a few cells. Wants a machine with nothing else to do. What is measured and how: docs/benchmarking.md.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREES = ["chain", "static", "eagle2", "backbone", "cast", "auto"]
COLUMNS = ["plain"] + TREES
T975 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]
MOST_ROUNDS = 40
PROCESSES = 5  # that a cell's rounds are spread over: where memory lies, and what `auto` saw first, differs by process
CONTENDER = 0.75  # of the fastest in the first round: what is slower is not raced against
EAGLE2_ROUNDS = 3
PROMPTS = ["It was a bright morning, and the old man", "def read_lines(path):\n    ", "\"I do not believe you,\" said the girl,",
           "import os\nimport sys\n\n", "The ship had been three weeks at sea when", "class Parser:\n    def __init__(self, text):\n        "]
# Shapes whose width is four times the demo model's (times a power of four): they say what it says, bit for bit.
SHAPES = {
    "demo": {"batches": [1, 2, 4, 8, 16, 32], "tokens": 96, "prompts": 6},
    "110M": {"batches": [8, 16, 32], "tokens": 48, "prompts": 6, "shape": "dim=768,layers=16,heads=12,kv_heads=4,ffn=2048,vocab=32000"},
    "1B": {"batches": [1], "tokens": 24, "prompts": 2, "shape": "dim=3072,layers=16,heads=32,kv_heads=8,ffn=6144,vocab=32000"},
}


def interval(values: list) -> dict:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": mean, "low": None, "high": None}
    half = T975[min(len(values) - 1, 20)] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def models(args: argparse.Namespace, name: str) -> tuple:
    """Target and drafter of a shape; inflated ones are made once and kept in args.work."""
    target, drafter = args.models / "demo.aerie", args.models / args.drafter
    if "shape" not in SHAPES[name]:
        return target, drafter
    folder = args.work / name
    if not (folder / "done").exists():
        subprocess.run([args.build / "bin/inflate", "--target", target, "--drafter", drafter, "--shape", SHAPES[name]["shape"], "--dtype",
                        args.dtype, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        (folder / "done").touch()
    return folder / "target.aerie", folder / args.drafter


def bench(args: argparse.Namespace, cell: dict, repeats: int, trees: list) -> list:
    """One dictionary a repeat: tokens a second of plain decode and by policy, taken in turns in one process."""
    shape = SHAPES[cell["shape"]]
    target, drafter = models(args, cell["shape"])
    prompts = args.work / f"prompts-{shape['prompts']}.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS[:shape["prompts"]]))
    command = [args.build / "bin/aerie", "bench", "--model", target, "--drafter", drafter, "--prompts", prompts, "--profile", "none", "--temperature",
               cell["temperature"], "--batch", cell["batch"], "--max-tokens", 8 if args.smoke else shape["tokens"], "--repeats", repeats, "--json"]
    for tree in trees:
        command += ["--tree", tree]
    rows = json.loads(subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE).stdout)["rows"]
    speeds = {"plain" if row["drafter"] == "none" else row["tree"]: row["speeds"] for row in rows}
    return [{c: speed[i] for c, speed in speeds.items()} for i in range(repeats)]


def judge(cell: dict) -> None:
    races = cell["races"] or [[cell["first"]]]
    slow = [[r] for r in cell["eagle2_rounds"] or [cell["first"]]]
    mean = lambda race, value: statistics.fmean(value(r) for r in race)  # rounds of one process are no independent observations
    measured = {c: [mean(race, lambda r: r[c]) for race in next(rs for rs in (races, slow, [[cell["first"]]]) if c in rs[0][0])] for c in COLUMNS}
    cell["tokens_per_second"] = {c: interval(v) for c, v in measured.items()}
    # The best other one by its median: the best of each round would be luck.
    best = max((c for c in races[0][0] if c != "auto"), key=lambda c: statistics.median(measured[c]))
    cell["best_other"] = best
    cell["auto_over_best_other"] = interval([mean(race, lambda r: r["auto"] / r[best]) for race in races])
    cell["cast_over_eagle2"] = interval([r["cast"] / r["eagle2"] for (r,) in slow])


def seconds(cell: dict, columns: list) -> float:
    """Of a round of these, by the first one of all."""
    return cell["seconds"] * sum(1 / cell["first"][c] for c in columns) / sum(1 / v for v in cell["first"].values())


def race(args: argparse.Namespace, cell: dict, share: float) -> None:
    """As many rounds as the time allows of whoever might be the fastest; what is learned about a drafter is learned in one before."""
    fastest = max(cell["first"].values())
    trees = [t for t in TREES if t in ("cast", "auto") or cell["first"][t] >= CONTENDER * fastest]
    n = min(2 if args.smoke else MOST_ROUNDS // PROCESSES, int(share / PROCESSES / seconds(cell, ["plain"] + trees)) - 1)
    if n >= 1:
        cell["races"] = [bench(args, cell, n + 1, trees)[1:] for _ in range(2 if args.smoke else PROCESSES)]


def measure(args: argparse.Namespace) -> dict:
    end = time.monotonic() + 60 * args.minutes
    for name in args.shape:
        models(args, name)
    cells = [{"shape": name, "batch": batch, "temperature": t} for name in args.shape for batch in SHAPES[name]["batches"] for t in (0, 1)]
    if args.smoke:
        cells = [c for c in cells if c["batch"] in (1, 4)]
    results = {"machine": machine(), "drafter": args.drafter, "dtype": args.dtype, "load": os.getloadavg()[0], "cells": cells}
    for c in cells:  # one round of all, which says how long each takes
        start = time.monotonic()
        c["first"] = bench(args, c, 1, TREES)[0]
        c["seconds"] = time.monotonic() - start
        c["races"], c["eagle2_rounds"] = [], []
        note(args, results, c)
    large = [c for c in cells if c["batch"] >= 4]
    kept = EAGLE2_ROUNDS * sum(seconds(c, ["plain", "cast", "eagle2"]) for c in large)
    # The quick ones first: what they do not use of their share is left to the others.
    waiting = sorted(cells, key=lambda c: c["seconds"])
    while waiting:
        c = waiting.pop(0)
        race(args, c, (end - kept - time.monotonic()) / (len(waiting) + 1))
        note(args, results, c)
    waiting = sorted(large, key=lambda c: c["seconds"])
    while waiting:
        c = waiting.pop(0)
        n = min(EAGLE2_ROUNDS, int((end - time.monotonic()) / (len(waiting) + 1) / seconds(c, ["plain", "cast", "eagle2"])))
        if n >= 2:
            c["eagle2_rounds"] = bench(args, c, n, ["cast", "eagle2"])
        note(args, results, c)
    return results


def note(args: argparse.Namespace, results: dict, c: dict) -> None:
    judge(c)
    args.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{c['shape']:5} T {c['temperature']} batch {c['batch']:2} rounds {raced(c):5}: auto / {c['best_other']} {c['auto_over_best_other']['mean']:.3f}, "
          f"cast / eagle2 {c['cast_over_eagle2']['mean']:.2f}", flush=True)


def raced(cell: dict) -> str:
    return f"{len(cell['races'])} x {len(cell['races'][0])}" if cell["races"] else "1"


def machine() -> str:
    with open("/proc/cpuinfo") as f:
        name = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown processor")
    return f"{name}, {os.cpu_count()} CPUs"


def shown(i: dict, digits: int) -> str:
    if i["low"] is None:
        return f"{i['mean']:,.{digits}f}"
    if digits:
        return f"{i['mean']:.{digits}f} [{i['low']:.{digits}f}, {i['high']:.{digits}f}]"
    return f"{i['mean']:,.0f} ± {(i['high'] - i['low']) / 2:.0f}"


def page(r: dict) -> str:
    measured = [c for c in r["cells"] if c["races"]]
    above = [c for c in measured if c["auto_over_best_other"]["low"] >= 0.98]
    below = [c for c in measured if c["auto_over_best_other"]["high"] < 0.98]
    large = [c for c in r["cells"] if c["batch"] >= 4]
    won = [c for c in large if (c["cast_over_eagle2"]["low"] or 0) > 1]
    out = ["# Tree policies in wall-clock", "",
           f"Written by `tests/bench/policies.py` ([how](benchmarking.md#tree-policies-in-wall-clock)) on {r['machine']}, load average {r['load']:.1f} at the",
           f"start, with the drafter {r['drafter']}: tokens a second of all texts together, mean ± half of a 95 % interval over {PROCESSES} processes. 110M and 1B are the demo",
           f"model *inflated* ({r['dtype']}): they say what it says at the cost of such shapes. *Best* is the fastest of all but `auto` by its median, chosen",
           f"afterwards. Who is slower than {CONTENDER} of the fastest in a first round of all is not raced against: its number is of that round alone; of",
           f"`eagle2` from batch 4 on of {EAGLE2_ROUNDS} rounds beside `cast`. chain, static, eagle2, backbone and cast are in their published sizes; what fixed trees",
           "of other sizes would have come to is in the study in simulated time (`tests/bench/regret.py`).", "",
           f"`auto` is meant to be no more than 2 % slower than any other: of {len(measured)} cells with an interval, {len(above)} have all of it at 0.98 or more, {len(below)} all of it below. `cast` is "
           f"faster than `eagle2` in {len(won)} of {len(large)} of batch 4 and more, the whole interval above 1.", "",
           "| shape | T | batch | rounds | " + " | ".join(COLUMNS) + " | best | auto / best | cast / eagle2 |", "|---" * (len(COLUMNS) + 7) + "|"]
    for c in r["cells"]:
        out.append(f"| {c['shape']} | {c['temperature']} | {c['batch']} | {raced(c)} | " + " | ".join(shown(c["tokens_per_second"][k], 0) for k in COLUMNS) +
                   f" | {c['best_other']} | {shown(c['auto_over_best_other'], 3)} | {shown(c['cast_over_eagle2'], 2)} |")
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/tests", help="has bin/aerie and bin/inflate")
    parser.add_argument("--models", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--drafter", default="demo-eagle3.aerie", help="a file in --models")
    parser.add_argument("--dtype", default="int8", help="of the inflated models")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="default: all, --smoke: demo")
    parser.add_argument("--minutes", type=float, default=25, help="in all; rounds are chosen accordingly")
    parser.add_argument("--work", type=Path, help="keeps the inflated models (2 GB); default: WORK beside --build")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.shape = args.shape or (["demo"] if args.smoke else list(SHAPES))
    args.work = args.work or args.build / "policies-work"
    args.json = args.out / "policies-measured.json"
    args.out.mkdir(parents=True, exist_ok=True)
    args.work.mkdir(parents=True, exist_ok=True)
    results = json.loads(args.json.read_text()) if args.page else measure(args)
    (args.out / "policies-measured.md").write_text(page(results))


if __name__ == "__main__":
    main()
