#!/usr/bin/env python3
"""The study of docs/acceptance.md: every drafter with every tree on held-out text, through the runtime.

    python3 tests/bench/acceptance.py --aerie build/release/bin/aerie --models samples/models --data DATA

DATA is the folder that `python3 -m aerie.train.corpus` wrote (held-out books and modules); without it only the story
openings are used. `--resume` keeps what results.json has already.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "acceptance"))
import page  # noqa: E402
import prompts  # noqa: E402

ROOT = HERE.parent.parent
TREES = ["chain", "static", "eagle2", "backbone"]
HEADS = ["demo-eagle", "demo-eagle3", "demo-fasteagle", "demo-medusa", "demo-hydra", "demo-small"]
FREE = ["ngram", "ngram-suffix", "lookahead"]


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def settings(drafter: str):
    """(trees, --tree-nodes) to run: the published sizes, chains of 7, and EAGLE-3 with as many nodes as a backbone."""
    yield TREES, 0
    yield ["chain"], 7
    if drafter in ("demo-eagle", "demo-eagle3"):
        yield ["eagle2"], 71


def bench(args, file: Path, temperature: float, drafter: str, name: str, trees: list[str], nodes: int) -> list[dict]:
    noises = ["shared"] if temperature == 0 else ["none", "shared", "sampled"]
    if nodes and temperature:
        return []
    command = [args.aerie, "bench", "--model", args.models / "demo.aerie", "--drafter", drafter, "--threads", 1, "--json",
               "--temperature", temperature, "--prompts", file, "--limit", args.prompts, "--max-tokens", args.max_tokens,
               "--repeats", 1, "--tree-nodes", nodes]
    for tree in trees:
        command += ["--tree", tree]
    for noise in noises:
        command += ["--draft-noise", noise]
    out = json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout)
    for row in out["rows"]:
        row |= {"kind": file.stem, "temperature": temperature, "nodes": nodes}
        if row["drafter"] != "none":
            row["drafter"] = name
    return out["rows"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--aerie", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/acceptance", help="folder; the page is written beside it")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="a quick look that everything works")
    args = parser.parse_args()
    args.aerie = args.aerie.resolve()
    drafters = {h: args.models / f"{h}.aerie" for h in HEADS if (args.models / f"{h}.aerie").exists()} | {f: f for f in FREE}
    temperatures = [0, 1]
    if args.smoke:
        args.prompts, args.max_tokens, temperatures = 2, 16, [0]
        drafters = dict(list(drafters.items())[:1] + [("ngram", "ngram")])
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "results.json"
    with tempfile.TemporaryDirectory() as tmp:
        files = prompts.write(Path(tmp), args.data, args.prompts)
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        results = {"command": "python3 tests/bench/acceptance.py --aerie build/release/bin/aerie --models samples/models --data DATA"
                              + f" --prompts {args.prompts}",
                   "machine": {"cpu": cpu(), "cpus": os.cpu_count(), "date": str(datetime.date.today()), "commit": commit},
                   "prompts": args.prompts, "max_tokens": args.max_tokens, "kinds": list(files), "temperatures": temperatures,
                   "drafters": list(drafters), "trees": TREES, "rows": []}
        if args.resume and file.exists():
            old = json.loads(file.read_text())
            results |= {"rows": old["rows"], "machine": old["machine"]}
        done = {(r["kind"], r["temperature"], r["drafter"], r["nodes"]) for r in results["rows"]}
        for name, drafter in drafters.items():
            for kind, prompt_file in files.items():
                for temperature in temperatures:
                    for trees, nodes in settings(name):
                        if (kind, temperature, name, nodes) in done:
                            continue
                        rows = bench(args, prompt_file, temperature, drafter, name, trees, nodes)
                        have_plain = any(r["drafter"] == "none" and r["kind"] == kind and r["temperature"] == temperature
                                         for r in results["rows"])
                        results["rows"] += [r for r in rows if r["drafter"] != "none" or (not have_plain and not nodes)]
                        file.write_text(json.dumps(results, indent=1) + "\n")
            print(name, flush=True)
    ablations = sorted((ROOT / "docs/training").glob("*ablations*.json"))
    try:
        import plots

        found = [json.loads(p.read_text()).get("calibration") for p in ablations]
        plots.draw(results, args.out, next((c for c in found if c), None))
    except ImportError:
        print("no matplotlib: no plots")
    page.write(results, args.out.parent / f"{args.out.name}.md", ablations)


if __name__ == "__main__":
    main()
