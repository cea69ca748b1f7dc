#!/usr/bin/env python3
"""demo_speed.py BUILD [--seeds N] > table: the demo model with and without its drafters, one line a way to draft; and the
same inflated to the quickstart's larger shape.

Every line and every seed is one `aerie run --compare`: the same text twice, with the drafter and without. The lines take
turns, seed after seed, so that all see the same weather. Ratio: with over without, of the same run. The table of docs/demo-speed.md.
BUILD has `inflate` (cmake --build BUILD --target inflate).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "samples/models"
# target's format, drafter, tree, threads
WAYS = [
    ("bf16", "eagle3", ["chain", "1"], 1),
    ("bf16", "eagle3", ["chain", "2"], 1),
    ("bf16", "eagle3", ["auto"], 1),
    ("bf16", "eagle", ["chain", "1"], 1),
    ("bf16", "eagle", ["auto"], 1),
    ("int8", "eagle3", ["chain", "1"], 1),
    ("int8", "eagle3", ["chain", "2"], 1),
    ("int8", "eagle3", ["auto"], 1),
    ("int4", "eagle3", ["chain", "1"], 1),
    ("int4", "eagle3", ["auto"], 1),
    ("inflated", "eagle", ["chain", "4"], 1),
    ("inflated", "eagle", ["auto"], 1),
    ("inflated", "eagle", ["chain", "4"], 2),
    ("inflated", "eagle", ["eagle2", "6"], 2),
    ("inflated", "eagle", ["auto"], 2),
]


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--temperature", type=float, default=0.7)
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--prompt", default="It was a bright morning, and")
    p.add_argument("--only", help="a target: bf16, int8, int4, inflated")
    a = p.parse_args()
    aerie = pathlib.Path(a.build) / "bin/aerie"
    ways = [w for w in WAYS if a.only in (None, w[0])]
    with tempfile.TemporaryDirectory() as folder:
        targets = {"bf16": MODELS / "demo.aerie"}
        if any(w[0] == "inflated" for w in ways):
            made = subprocess.run([ROOT / "samples/quickstart/larger.sh", a.build], check=True, stdout=subprocess.PIPE, text=True)
            targets["inflated"] = pathlib.Path(made.stdout.strip()) / "target.aerie"
        for dtype in {w[0] for w in ways} - set(targets):
            targets[dtype] = pathlib.Path(folder) / f"{dtype}.aerie"
            subprocess.run([aerie, "convert", MODELS / "demo.aerie", "-o", targets[dtype], "--dtype", dtype], check=True, capture_output=True)
        runs = [[] for _ in ways]
        for seed in range(1, a.seeds + 1):
            for (dtype, drafter, tree, threads), out in zip(ways, runs):
                drafters = targets[dtype].parent if dtype == "inflated" else MODELS
                command = [aerie, "run", "--model", targets[dtype], "--drafter", drafters / f"demo-{drafter}.aerie", "--tree", tree[0],
                           *(["--tree-nodes", tree[1]] if len(tree) > 1 else []), "--threads", threads, "--temperature", a.temperature,
                           "--seed", seed, "--max-tokens", a.tokens, "--prompt", a.prompt, "--ignore-eos", "--compare", "--json"]
                out.append(json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True).stdout))
    print(f"{a.seeds} seeds, {a.tokens} tokens each, temperature {a.temperature:g}; medians (least–most)\n")
    print("| target | threads | drafter, tree | tokens/s with | without | ratio | τ |\n|---|---|---|---|---|---|---|")
    for (dtype, drafter, tree, threads), r in zip(ways, runs):
        median = lambda key: f"{statistics.median(x[key] for x in r):.0f}"
        ratio = spread([x["tokens_per_second"] / x["plain_tokens_per_second"] for x in r])
        name = f"{drafter}, {tree[0]}" + (f" of {tree[1]}" if len(tree) > 1 else "")
        print(f"| {dtype} | {threads} | {name} | {median('tokens_per_second')} | {median('plain_tokens_per_second')} | {ratio} "
              f"| {statistics.median(x['tau'] for x in r):.2f} |")


if __name__ == "__main__":
    main()
