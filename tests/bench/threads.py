#!/usr/bin/env python3
"""threads.py BUILD [--against BUILD] > section: plain decode of the demo model with one thread and with two, by batch.

The passes of so small a model are ops of a few microseconds: whether a second thread helps depends on how far it is. All
columns take turns, round after round, as processes of their own; --against adds another build with two threads.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = ["It was a bright morning, and the old man", "def read_lines(path):\n    ", "The ship had been three weeks at sea when"]


def tokens_per_second(build, prompts, batch, threads):
    command = [build / "bin/aerie", "bench", "--model", ROOT / "samples/models/demo.aerie", "--prompts", prompts, "--batch", str(batch),
               "--max-tokens", "64", "--repeats", "4", "--threads", str(threads), "--json"]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]
    return statistics.median(rows[0]["speeds"][1:])


def spread(values, digits=0):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path, help="another build, say of an older revision")
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    columns = {"1 thread": (args.build, 1), "2 threads": (args.build, 2)}
    if args.against:
        columns["2 threads, the other build"] = (args.against, 2)
    names = list(columns)
    print("Demo model, plain decode, tokens/s: median [least, most] of", args.rounds, "processes each, in turn; ratios by round.\n")
    print("| batch |", " | ".join(names), "|", " | ".join(f"{names[1]} / {n}" for n in names if n != names[1]), "|")
    print("|---" * (2 * len(names)), "|", sep="")
    with tempfile.TemporaryDirectory() as folder:
        prompts = pathlib.Path(folder, "prompts.jsonl")
        prompts.write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS))
        for batch in (1, 2, 4, 8, 16):
            speeds = {n: [] for n in names}
            for r in range(args.rounds):
                for n in names if r % 2 == 0 else names[::-1]:
                    speeds[n].append(tokens_per_second(columns[n][0], prompts, batch, columns[n][1]))
            ratios = [[a / b for a, b in zip(speeds[names[1]], speeds[n])] for n in names if n != names[1]]
            print(f"| {batch} |", " | ".join(spread(speeds[n]) for n in names), "|", " | ".join(spread(q, 2) for q in ratios), "|", flush=True)


if __name__ == "__main__":
    main()
