#!/usr/bin/env python3
"""docs/candidate-head.md: tau lost on the demo target and time saved at large vocabularies.

    python3 tests/bench/candidate_head.py --build build/tests [--rounds 15]

The build needs -DAERIE_BENCH=ON.
"""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "acceptance"))
import prompts  # noqa: E402

ROOT = HERE.parent.parent
RANKS = [16, 32, 64, 96, 128, 192]
HEADS = ["demo-eagle", "demo-fasteagle", "demo-hydra"]  # those that use the target's LM head
TREES = ["chain", "eagle2"]
TIMED = [64, 128, 256]


def text_of(command) -> tuple[str, str]:
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)
    return done.stdout, done.stderr


def measure_tau(aerie: Path, work: Path, count: int) -> tuple[list[list[str]], int]:
    models = ROOT / "samples/models"
    prompt_file = prompts.write(work, None, count)["stories"]
    taus, kept = {}, {0: ""}
    for rank in [0, *RANKS]:
        model = work / f"rank{rank}.aerie"
        _, note = text_of([aerie, "convert", models / "demo.aerie", "-o", model, "--dtype", "bf16", "--candidate-head", rank])
        if rank:
            kept[rank] = note.split(" holds ")[1].split(" of the")[0]
        command = [aerie, "bench", "--model", model, "--temperature", 0, "--prompts", prompt_file, "--limit", count,
                   "--repeats", 1, "--json"]
        for head in HEADS:
            command += ["--drafter", models / f"{head}.aerie"]
        for tree in TREES:
            command += ["--tree", tree]
        for row in json.loads(text_of(command)[0])["rows"]:
            if row["drafter"] != "none":
                taus[rank, Path(row["drafter"]).stem, row["tree"]] = row["tau"]
    table = [["rank", "of \\|W\\|²"] + [f"{h}, {t}" for h in HEADS for t in TREES]]
    for rank in [0, *RANKS]:
        line = [str(rank) if rank else "full head", kept[rank]]
        for h in HEADS:
            for t in TREES:
                tau, full = taus[rank, h, t], taus[0, h, t]
                line.append(f"{tau:.2f}" + (f" ({100 * (tau / full - 1):+.1f} %)" if rank else ""))
        table.append(line)
    return table, count


def measure_time(bench: Path, rounds: int) -> tuple[list[list[str]], str]:
    lines = text_of([bench, rounds, *TIMED])[0].splitlines()
    ms = {(r["dtype"], int(r["vocab"]), int(r["rows"]), int(r["rank"])): float(r["ms"]) for r in csv.DictReader(lines[1:])}
    table = [["dtype", "V", "rows", "full head"] + [f"rank {r}" for r in TIMED]]
    for dtype, vocab, rows, rank in ms:
        if rank == 0:
            full = ms[dtype, vocab, rows, 0]
            table.append([dtype, f"{vocab // 1024}k", str(rows), f"{full:.2f} ms"] +
                         [f"{ms[dtype, vocab, rows, r]:.2f} ms ({full / ms[dtype, vocab, rows, r]:.1f}×)" for r in TIMED])
    return table, lines[0].lstrip("# ")


def markdown(table: list[list[str]]) -> str:
    rows = ["| " + " | ".join(r) + " |" for r in table]
    return "\n".join([rows[0], "|" + "-|" * len(table[0]), *rows[1:]])


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--note", default="", help="about the machine, for the page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/candidate-head.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        tau, count = measure_tau(args.build / "bin/aerie", Path(tmp), args.prompts)
    time, isa = measure_time(args.build / "bin/candidate_head_bench", args.rounds)
    page = (HERE / "candidate_head.md.in").read_text()
    for key, value in {"TAU": markdown(tau), "TIME": markdown(time), "PROMPTS": str(count), "ROUNDS": str(args.rounds),
                       "MACHINE": f"{cpu()}, {os.cpu_count()} cores ({isa}), {datetime.date.today()}"
                                  + (f"; {args.note}" if args.note else "")}.items():
        page = page.replace(f"@{key}@", value)
    args.out.write_text(page)


if __name__ == "__main__":
    main()
