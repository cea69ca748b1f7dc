#!/usr/bin/env python3
"""Decode and verify passes while other programs want the same cores, for Aerie and, if its driver is given, llama.cpp.

    python3 tests/bench/under_load.py --build build/bench --models DIR --shape 110m [--llama-driver FILE]

Busy loops compete, as many as said; each row is the median of interleaved repeats. A library inside a game has to
live with this: an engine whose threads wait for each other by spinning does not. Models are those of vs_llama_cpp.py.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from vs_llama_cpp import PAIRS, Driver  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--shape", default="110m")
    parser.add_argument("--pair", default="int8", choices=PAIRS)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--busy", default="0,1,2,4", help="competing busy loops")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--llama-driver", type=Path)
    args = parser.parse_args()
    folder = args.models / args.shape
    ours, theirs = PAIRS[args.pair]
    engines = {}
    for threads in args.threads.split(","):
        engines[f"aerie, {threads} threads"] = Driver(args.build / "bin/aerie_driver", folder / f"{ours}.aerie", threads, 192)
        if args.llama_driver:
            engines[f"llama.cpp, {threads} threads"] = Driver(args.llama_driver, folder / f"{theirs}.gguf", threads, 192)
    print(f"{args.shape}, {args.pair}, random weights; passes of {args.rows} rows, ms: median [least, most] of {args.repeats}\n")
    print("| busy loops | " + " | ".join(engines) + " |\n|" + "---|" * (len(engines) + 1))
    for busy in map(int, args.busy.split(",")):
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            seen = {name: [] for name in engines}
            for repeat in range(-1, args.repeats):  # the first round warms up
                for name, engine in engines.items():
                    ms = engine.ask("time", args.rows)["ms"]
                    if repeat >= 0:
                        seen[name].append(ms)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        print(f"| {busy} | " + " | ".join(f"{statistics.median(v):.2f} [{min(v):.2f}, {max(v):.2f}]" for v in seen.values()) + " |",
              flush=True)
    for engine in engines.values():
        engine.close()


if __name__ == "__main__":
    main()
