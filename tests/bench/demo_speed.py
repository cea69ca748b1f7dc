#!/usr/bin/env python3
"""demo_speed.py BUILD [--seeds N] > table: the demo model with and without its drafters, one line a way to draft.

Every line and every seed is one `aerie run --compare`: the same text twice, with the drafter and without. The lines take
turns, seed after seed, so that all see the same weather. Ratio: with over without, of the same run. README's table.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "samples/models"
# target's format, drafter, tree
WAYS = [
    ("bf16", "eagle3", ["chain", "1"]),
    ("bf16", "eagle3", ["chain", "2"]),
    ("bf16", "eagle3", ["auto"]),
    ("bf16", "eagle", ["chain", "1"]),
    ("bf16", "eagle", ["auto"]),
    ("int8", "eagle3", ["chain", "1"]),
    ("int8", "eagle3", ["chain", "2"]),
    ("int8", "eagle3", ["auto"]),
    ("int4", "eagle3", ["chain", "1"]),
]


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--temperature", type=float, default=0.7)
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--prompt", default="It was a bright morning, and")
    p.add_argument("--only", help="a target format")
    a = p.parse_args()
    aerie = pathlib.Path(a.build) / "bin/aerie"
    ways = [w for w in WAYS if a.only in (None, w[0])]
    with tempfile.TemporaryDirectory() as folder:
        targets = {"bf16": MODELS / "demo.aerie"}
        for dtype in {w[0] for w in ways} - {"bf16"}:
            targets[dtype] = pathlib.Path(folder) / f"{dtype}.aerie"
            subprocess.run([aerie, "convert", MODELS / "demo.aerie", "-o", targets[dtype], "--dtype", dtype], check=True, capture_output=True)
        runs = [[] for _ in ways]
        for seed in range(1, a.seeds + 1):
            for (dtype, drafter, tree), out in zip(ways, runs):
                command = [aerie, "run", "--model", targets[dtype], "--drafter", MODELS / f"demo-{drafter}.aerie", "--tree", tree[0],
                           *(["--tree-nodes", tree[1]] if len(tree) > 1 else []), "--threads", a.threads, "--temperature", a.temperature,
                           "--seed", seed, "--max-tokens", a.tokens, "--prompt", a.prompt, "--ignore-eos", "--compare", "--json"]
                out.append(json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True).stdout))
    print(f"{a.seeds} seeds, {a.tokens} tokens each, temperature {a.temperature:g}, threads {a.threads}; medians (least–most)\n")
    print("| target | drafter, tree | tokens/s with | without | ratio | τ |\n|---|---|---|---|---|---|")
    for (dtype, drafter, tree), r in zip(ways, runs):
        median = lambda key: f"{statistics.median(x[key] for x in r):.0f}"
        ratio = spread([x["tokens_per_second"] / x["plain_tokens_per_second"] for x in r])
        name = f"{drafter}, {tree[0]}" + (f" of {tree[1]}" if len(tree) > 1 else "")
        print(f"| {dtype} | {name} | {median('tokens_per_second')} | {median('plain_tokens_per_second')} | {ratio} "
              f"| {statistics.median(x['tau'] for x in r):.2f} |")


if __name__ == "__main__":
    main()
