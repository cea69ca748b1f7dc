#!/usr/bin/env python3
"""roofs.py BUILD ISA[,ISA...] MODEL.aerie... > table: passes of 16 rows against what the machine can do at most.

`roofline --isa` and `pass_profile --isa` take turns, round after round, for the machine's speed changes. The compute roof is
the time of Linear's multiply-adds at the peak of vector instructions for the format, the memory roof that of reading the weights.
"""
import argparse
import pathlib
import re
import statistics
import subprocess

PEAK = {"bf16": "f32", "int8": "int8", "int4": "int4"}  # bf16 weights are multiplied as f32


def output(build, program, *args):
    return subprocess.run([build / "bin" / program, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True).stdout


def once(build, isa, model, threads, rows):
    figures = {line.split()[0]: float(line.split()[2])
               for line in output(build, "roofline", "--isa", isa, "--threads", threads, "--rounds", 3).splitlines()[1:]}
    ms, gmacs = map(float, re.search(r"^all +([0-9.]+) +([0-9]+)", output(build, "pass_profile", "--isa", isa, model, threads, rows), re.M).groups())
    compute, memory = ms * gmacs / figures[PEAK[model.stem]], model.stat().st_size / figures["dram_read"] * 1e-6
    return {"ms": ms, "compute": compute, "memory": memory, "times": ms / compute}


def spread(rounds, key, digits):
    values = [r[key] for r in rounds]
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("isas")
    parser.add_argument("models", type=pathlib.Path, nargs="+", help="bf16.aerie, int8.aerie, int4.aerie")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    cases = [(isa, model) for isa in args.isas.split(",") for model in args.models]
    seen = {case: [] for case in cases}
    for r in range(args.rounds):
        for isa, model in cases if r % 2 == 0 else cases[::-1]:
            seen[isa, model].append(once(args.build, isa, model, args.threads, args.rows))
    print(f"| instructions | model | {args.rows} rows, ms | compute roof, ms | times it | memory roof, ms |\n|---|---|---|---|---|---|")
    for (isa, model), rounds in seen.items():
        print(f"| {isa} | {model.stem} |", " | ".join(spread(rounds, key, 2 if key == "times" else 1) for key in ("ms", "compute", "times", "memory")), "|")


if __name__ == "__main__":
    main()
