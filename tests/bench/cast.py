#!/usr/bin/env python3
"""CAST's parts (its Table 3) and `cast` beside `eagle2`, in the simulated time of recorded pass costs: docs/cast.md.

    cmake --preset tests -DAERIE_BENCH=ON && cmake --build --preset tests
    python3 tests/bench/cast.py --build build/tests

Measures what passes of the demo pair and of two inflated ones cost (minutes; wants a quiet machine) unless --costs has the
tables, records what the drafter proposes, replays, and writes docs/cast/results.json and docs/cast.md. `--page` writes the
page anew from results.json.
"""

import argparse
import datetime
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# name: shape to inflate to, batches and rows to measure. What lies beyond is taken from a pass of as many rows in all.
SHAPES = {
    "demo": (None, "1,2,4,8,16", "1,2,4,8,12,16,24,32,48,64"),
    "110M": ("dim=768,layers=16,heads=12,kv_heads=4,ffn=2048,vocab=32000", "1,4,8", "1,2,4,8,16,32,64"),
    "1B": ("dim=3072,layers=16,heads=32,kv_heads=8,ffn=6144,vocab=32000", "1", "1,2,4,8,16,32,64,128"),
}
VARIANTS = ["DR", "DR+DP", "DR+BP", "CAST"]


def tool(args: argparse.Namespace, what: str, target: Path, drafter: Path, *more: object) -> str:
    plugin = args.build.resolve() / "lib/aerie/drafters/eagle.so"
    command = [args.build / "bin/cast_ablation", what, "--model", target, "--drafter", drafter, "--plugin", plugin, *more]
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(args: argparse.Namespace, name: str, table: Path) -> None:
    shape, batches, rows = SHAPES[name]
    target, drafter = args.models / "demo.aerie", args.models / args.drafter
    with tempfile.TemporaryDirectory() as folder:
        if shape:
            subprocess.run([args.build / "bin/inflate", "--target", target, "--drafter", drafter, "--shape", shape, "--dtype", args.dtype, "-o", folder],
                           check=True, stdout=subprocess.DEVNULL)
            target, drafter = Path(folder, "target.aerie"), Path(folder, args.drafter)
        tool(args, "measure", target, drafter, "--batch", batches, "--rows", rows, "-o", table)


def study(args: argparse.Namespace) -> dict:
    args.costs.mkdir(parents=True, exist_ok=True)
    more = []
    for name in args.shape:
        table = args.costs / f"{name}.costs"
        if not table.exists():
            measure(args, name, table)
        more += ["--costs", f"{name}={table}"]
    more += ["--tokens", "24", "--run", "100", "--batch", "1,4"] if args.smoke else ["--batch", "1,4,8,16", "--run", "1000"]
    replayed = json.loads(tool(args, "replay", args.models / "demo.aerie", args.models / args.drafter, *more))
    return {"date": datetime.date.today().isoformat()} | replayed


def best(cell: dict, variant: str) -> dict:
    return max(cell[variant], key=lambda r: r["speed"])


def at(cell: dict, variant: str, threshold: float) -> dict:
    return next(r for r in cell[variant] if r["threshold"] == threshold)


def page(r: dict) -> str:
    cells = r["cells"]
    large = [c for c in cells if c["batch"] >= 4]

    def beats(variant: str, pick) -> int:
        return sum(pick(c, variant)["speed"] > c["eagle2"]["speed"] for c in large)

    device = next(iter(r["costs"].values()))["device"]
    out = ["# CAST, part by part", "",
           "Written by `tests/bench/cast.py`. Speculation changes no token, so what the target takes of a tree is known once the text is. At each of",
           f"{r['positions']} positions of texts of the demo model the tree of its EAGLE-3 head was recorded, ten levels deep; what passes cost was measured",
           f"({device}, {r['date']}; 110M and 1B are the demo pair *inflated* to int8 models of such shapes, which say the same). Then each policy wrote {r['tokens']} tokens",
           "a text through the core's own policy code in the time of these costs, without noise. Draft noise is shared. 110M is measured up to batch 8, 1B at",
           "batch 1: a pass beyond that costs what one of as many rows in all does.", "",
           "## Table 3", "",
           "EAGLE-2 with dynamic reranking (DR), depth pruning (DP) and breadth pruning (BP) added, all in EAGLE-2's sizes (60 nodes, depth 6, top 10), and CAST in",
           "its own (72, 13, 12), as multiples of plain decode. The one threshold C is the best of 0.25 to 4 for each entry, in brackets: the paper sets it by model and batch",
           "(4, 3, 2.5). *Tuned* is the fastest EAGLE-2 tree of 4 to 60 nodes and depth 1 to 6, to which the paper does not compare.", "",
           "| shape | T | batch | EAGLE-2 | +DR | +DR+DP | +DR+BP | CAST | CAST 72/13/12 | EAGLE-2 tuned |", "|" + "---|" * 10]
    for c in cells:
        entries = [f"{best(c, v)['speed'] / c['plain']:.2f} ({best(c, v)['threshold']:g})" for v in VARIANTS + ["CAST 72"]]
        n, d = c["eagle2_tuned"]["nodes_depth"]
        out.append(f"| {c['shape']} | {c['temperature']:g} | {c['batch']} | {c['eagle2']['speed'] / c['plain']:.2f} | " + " | ".join(entries) +
                   f" | {c['eagle2_tuned']['speed'] / c['plain']:.2f} ({n}/{d}) |")
    out += ["", "## cast beside eagle2", "",
            f"In the sizes that `--tree` gives them (`cast` 72/13/12 with C = 3, `eagle2` 60/6) `cast` is the faster one in {beats('CAST 72', lambda c, v: at(c, v, 3))} of the {len(large)} cells of",
            f"batch 4 and more, with the best C in {beats('CAST 72', best)}.", "",
            "| shape | T | batch | cast / eagle2 | nodes verified, τ of cast | of eagle2 | cast / plain, C = 3 | C = 1 | best C |", "|" + "---|" * 9]
    for c in cells:
        three, one, top, e = at(c, "CAST 72", 3), at(c, "CAST 72", 1), best(c, "CAST 72"), c["eagle2"]
        out.append(f"| {c['shape']} | {c['temperature']:g} | {c['batch']} | {three['speed'] / e['speed']:.2f} | {three['nodes']:.1f}, {three['tau']:.2f} | "
                   f"{e['nodes']:.1f}, {e['tau']:.2f} | {three['speed'] / c['plain']:.2f} | {one['speed'] / c['plain']:.2f} | {top['speed'] / c['plain']:.2f} ({top['threshold']:g}) |")
    account = ROOT / "tests/bench/cast/account.md.in"
    return "\n".join(out) + "\n\n" + account.read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/tests")
    parser.add_argument("--models", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--drafter", default="demo-eagle3.aerie", help="a file in --models")
    parser.add_argument("--dtype", default="int8", help="of the inflated models")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="default: all")
    parser.add_argument("--costs", type=Path, help="folder of NAME.costs; those that are not there are measured. Default: in --build")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.shape = args.shape or (["demo"] if args.smoke else list(SHAPES))
    args.costs = args.costs or args.build / "cast-costs"
    folder = args.out / "cast"
    folder.mkdir(parents=True, exist_ok=True)
    results = json.loads((folder / "results.json").read_text()) if args.page else study(args)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "cast.md").write_text(page(results))


if __name__ == "__main__":
    main()
