#!/usr/bin/env python3
"""Wall-clock speed of every tree policy: demo model, batch 1 to 32, temperature 0 and 1, interleaved, 95 % intervals.

    python3 tests/bench/policies.py --aerie build/release/bin/aerie --out policies.json

Each round runs every policy of a cell once (`aerie bench` interleaves them); a ratio to plain decode, and of auto to the
best other policy, is taken within each round, and its interval over the rounds is Student's. Wants a quiet machine.
"""

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREES = ["chain", "static", "eagle2", "backbone", "cast", "auto"]
T975 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]


def interval(values: list) -> dict:
    mean = statistics.fmean(values)
    half = T975[min(len(values) - 1, 20)] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return {"mean": mean, "low": mean - half, "high": mean + half}


def rounds(args: argparse.Namespace, drafter: str, batch: int, temperature: float) -> list:
    found = []
    for _ in range(args.rounds):
        command = [args.aerie, "bench", "--model", args.models / "demo.aerie", "--drafter", args.models / drafter if "." in drafter else drafter,
                   "--temperature", temperature, "--batch", batch, "--max-tokens", args.max_tokens, "--repeats", 1, "--json"]
        for tree in TREES:
            command += ["--tree", tree]
        rows = json.loads(subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE).stdout)["rows"]
        found.append({row["tree"] if row["drafter"] != "none" else "plain": row["tokens_per_second"] for row in rows})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--aerie", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--drafter", action="append", help="default: demo-eagle3.aerie and ngram")
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    batches = args.batch or ([1, 4] if args.smoke else [1, 2, 4, 8, 16, 32])
    if args.smoke:
        args.rounds, args.max_tokens = 2, 16
    cells = []
    for drafter in args.drafter or ["demo-eagle3.aerie", "ngram"]:
        for temperature in [0, 1]:
            for batch in batches:
                found = rounds(args, drafter, batch, temperature)
                cell = {"drafter": drafter, "temperature": temperature, "batch": batch, "rounds": found,
                        "over_plain": {t: interval([r[t] / r["plain"] for r in found]) for t in TREES},
                        # The best other policy by its median: the best of each round would be luck.
                        "cast_over_eagle2": interval([r["cast"] / r["eagle2"] for r in found])}
                best = max(["plain"] + TREES[:-1], key=lambda t: statistics.median(r[t] for r in found))
                cell["best_other"] = best
                cell["auto_over_best_other"] = interval([r["auto"] / r[best] for r in found])
                cells.append(cell)
                a = cell["auto_over_best_other"]
                print(f"{drafter:20} T {temperature} batch {batch:2}: auto / {best} {a['mean']:.3f} [{a['low']:.3f}, {a['high']:.3f}], "
                      f"cast / eagle2 {cell['cast_over_eagle2']['mean']:.2f}", flush=True)
                args.out.write_text(json.dumps({"max_tokens": args.max_tokens, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
