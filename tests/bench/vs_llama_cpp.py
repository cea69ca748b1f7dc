#!/usr/bin/env python3
"""Aerie beside llama.cpp on this CPU: the same random weights, the two engines' passes interleaved.

    cmake -S . -B build/bench -DAERIE_TESTS=ON -DAERIE_BENCH=ON && cmake --build build/bench
    python3 tests/bench/vs_llama_cpp.py --build build/bench --out results.json --page results.md

A pass of n rows behind a context gives the logits of all n: decode at n = 1, verification above. llama.cpp is fetched
and built outside the tree (vs_llama_cpp/build.sh). Before anything is timed, both engines' logits of one text are
compared. Needs numpy.
"""

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "vs_llama_cpp")]
import page  # noqa: E402
import random_model  # noqa: E402

PAIRS = {"bf16": ("bf16", "F16"), "bf16-bf16": ("bf16", "BF16"), "int8": ("int8", "Q8_0"), "int4": ("int4", "Q4_0"),
         "q4_1": ("q4_1", "Q4_1"), "mxfp4": ("mxfp4", "MXFP4")}
# Of a weight. Blocks of 32 have a half as their scale; our int8 has one scale a row, which counts for nothing.
BYTES = {"bf16": 2, "int8": 1, "int4": 18 / 32, "q4_1": 20 / 32, "F16": 2, "BF16": 2, "Q8_0": 34 / 32, "Q4_0": 18 / 32, "Q4_1": 20 / 32,
         "mxfp4": 17 / 32, "MXFP4": 17 / 32}
BYTES_BESIDE_EXPERTS = {"mxfp4": 1, "MXFP4": 34 / 32}
TEXT = [1, 450, 4996, 17354, 1701, 29916, 432, 17204]  # any ids
LEAST_COSINE = 0.99  # of 16-bit logits; 8 and 4 bits are rounded differently by the two


class Driver:
    """One engine with one model open, in a process of its own (vs_llama_cpp/protocol.h)."""

    def __init__(self, *command):
        self.name = Path(command[0]).name
        self.process = subprocess.Popen([str(c) for c in command], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.about = self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"vs_llama_cpp.py: {self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, *words) -> dict:
        print(*words, file=self.process.stdin, flush=True)
        return self.answer()

    def logits(self, folder: str):
        file = Path(folder) / self.name
        self.ask("logits", file, *TEXT)
        return np.fromfile(file, np.float32).reshape(len(TEXT), -1)

    def close(self) -> None:
        print("quit", file=self.process.stdin, flush=True)
        self.process.wait()


def models(args, shape: str, pairs: list[str]) -> Path:
    """The folder with all files of this shape, written if they are missing."""
    folder = args.models / shape
    formats = [PAIRS[p][1] for p in pairs if not (folder / f"{PAIRS[p][1]}.gguf").exists()]
    packages = {PAIRS[p][0]: source_of(shape, p) for p in pairs if not (folder / f"{PAIRS[p][0]}.aerie").exists()}
    if "hf" in packages.values() and not (folder / "hf/model.safetensors").exists():
        formats.insert(0, "hf")
    if formats:
        random_model.write(random_model.SHAPES[shape], args.seed, folder, formats)
    for dtype, source in sorted(packages.items()):
        subprocess.run([args.build / "bin/aerie", "convert", folder / source, "-o", folder / f"{dtype}.aerie",
                        "--dtype", "stored" if dtype == "mxfp4" else dtype], check=True, stdout=subprocess.DEVNULL)
    return folder


def source_of(shape: str, pair: str) -> str:
    """What our package is made of: of MXFP4 the other's file, whose types it keeps, as of architectures that have no other."""
    alone = isinstance(random_model.SHAPES[shape], random_model.GptOss | random_model.Qwen35 | random_model.Gemma4)
    return f"{PAIRS[pair][1]}.gguf" if alone or pair == "mxfp4" else "hf"


def weight_bytes(shape: random_model.Shape, kind: str) -> float:
    experts = shape.streamed_experts()
    return experts * BYTES[kind] + (shape.streamed_weights() - experts) * BYTES_BESIDE_EXPERTS.get(kind, BYTES[kind])


def agreement(a, b) -> dict:
    """How near two engines' logits (rows, vocab) are: the worst row's cosine, and rows whose argmax agrees."""
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return {"cosine": float(cosine.min()), "argmax": float((a.argmax(axis=1) == b.argmax(axis=1)).mean())}


class OtherWork:
    """What share of the machine's CPU time went elsewhere: a thread that loses its CPU stalls its whole pass."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        ticks = [int(t) for t in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # all but idle and iowait
        return busy, children.ru_utime + children.ru_stime + time.process_time(), time.monotonic()

    def share(self) -> float:
        """Once the engines have ended."""
        busy, own, wall = (b - a for a, b in zip(self.start, self.now()))
        return max(0.0, (busy - own) / wall / os.cpu_count())


def opened_again(engine: Path, file: Path, *options) -> Driver:
    """The file is in the page cache as the engine itself brought it there, in large or in small pages: what another
    reader left is dropped, and a first opening is not measured."""
    with file.open("rb") as f:
        os.fsync(f.fileno())  # what is not on the disk yet would stay
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    first = Driver(engine, file, *options)
    first.ask("time", 1)
    first.close()
    return Driver(engine, file, *options)


def measure(args, shape: str, pair: str, threads: int, folder: Path) -> dict:
    ours, theirs = PAIRS[pair]
    others = OtherWork()
    engines = {"aerie": opened_again(args.build / "bin/aerie_driver", folder / f"{ours}.aerie", threads, args.context, args.kv),
               "llama.cpp": opened_again(args.llama_driver, folder / f"{theirs}.gguf", threads, args.context)}
    with tempfile.TemporaryDirectory() as tmp:
        agree = agreement(*(e.logits(tmp) for e in engines.values()))
    if ours == "bf16" and agree["cosine"] < LEAST_COSINE:
        sys.exit(f"vs_llama_cpp.py: {shape} {pair}: the engines' logits differ (cosine {agree['cosine']:.4f})")
    passes = {name: {n: [] for n in args.rows} for name in engines}
    prefill = {name: [] for name in engines}
    for repeat in range(-1, args.repeats):  # the first round warms up
        order = list(engines.items())[::1 if repeat % 2 else -1]
        for n in args.rows:
            for name, engine in order:
                ms = engine.ask("time", n)["ms"]
                if repeat >= 0:
                    passes[name][n].append(ms)
        if 0 <= repeat < args.prefill_repeats:
            for name, engine in order:
                prefill[name].append(engine.ask("prefill", args.prefill)["ms"])
    run = {"shape": shape, "pair": pair, "formats": [ours, theirs], "threads": threads, "logits": agree,
           "weight_bytes": {name: weight_bytes(random_model.SHAPES[shape], f) for name, f in zip(engines, (ours, theirs))}}
    for name, engine in engines.items():
        run[name] = engine.about | {"ms": passes[name], "prefill_ms": prefill[name]}
        engine.close()
    return run | {"other_work": others.share()}


def machine(args) -> dict:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    git = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    out = {"cpu": next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "unknown CPU"),
           "cpus": os.cpu_count(), "date": args.date, "commit": git.stdout.strip(), "load_before": os.getloadavg()[0]}
    roofline = args.roofline or args.build / "bin/roofline"
    if roofline.exists():
        out["dram_read_gbps"] = dram_read(roofline, args.threads)
    return out


def dram_read(roofline: Path, threads: list[int]) -> dict:
    """GB/s by number of threads; one number in the output stands for all of them."""
    asked = [x for t in threads for x in ("--threads", str(t))]
    done = json.loads(subprocess.run([roofline, "--json", *asked], check=True, stdout=subprocess.PIPE, text=True).stdout)
    if "dram_read_gbps" in done:
        return {t: done["dram_read_gbps"] for t in threads}
    return {f["threads"]: f["median"] for f in done["figures"] if f["name"] == "dram_read"}


def main() -> None:
    cache = Path(os.environ.get("AERIE_BENCH_CACHE", Path.home() / ".cache/aerie-bench"))
    listed = lambda kind: lambda text: [kind(x) for x in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="Aerie's build folder, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--llama-driver", type=Path, help="already built; else vs_llama_cpp/build.sh is run")
    parser.add_argument("--models", type=Path, default=cache / "models", help="written where missing")
    parser.add_argument("--roofline", type=Path, help="default: the build's; without one, no share of the bandwidth")
    parser.add_argument("--shape", type=listed(str), default=["110m", "1b"])
    parser.add_argument("--dtypes", type=listed(str), default=["bf16", "int8", "int4"], help=", ".join(PAIRS))
    parser.add_argument("--threads", type=listed(int), default=[1, 2])
    parser.add_argument("--rows", type=listed(int), default=[1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64], help="must begin with 1")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--prefill-repeats", type=int, default=3)
    # llama.cpp attends to its cache in steps of 256 cells: 192 and 64 rows stay within the first.
    parser.add_argument("--context", type=int, default=192)
    parser.add_argument("--kv", choices=["f32", "bf16", "int8"], default="f32", help="Aerie's cache; llama.cpp's is f16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--date", default=str(datetime.date.today()))
    parser.add_argument("--out", type=Path, default=Path("vs_llama_cpp.json"))
    parser.add_argument("--page", type=Path, help="also a Markdown page")
    args = parser.parse_args()
    for what, chosen, known in (("--shape", args.shape, random_model.SHAPES), ("--dtypes", args.dtypes, PAIRS)):
        if unknown := [c for c in chosen if c not in known]:
            parser.error(f"{what}: {', '.join(unknown)} is not one of {', '.join(known)}")
    if args.rows[0] != 1:
        parser.error("--rows: must begin with 1")
    args.build = args.build.resolve()
    if not args.llama_driver:
        done = subprocess.run([HERE / "vs_llama_cpp/build.sh"], check=True, stdout=subprocess.PIPE, text=True)
        args.llama_driver = Path(done.stdout.strip())
    folders = {shape: models(args, shape, args.dtypes) for shape in args.shape}
    results = {"weights": "random", "machine": machine(args), "context": args.context, "prefill": args.prefill,
               "rows": args.rows, "repeats": args.repeats, "runs": []}
    for shape in args.shape:
        for pair in args.dtypes:
            for threads in args.threads:
                results["runs"].append(measure(args, shape, pair, threads, folders[shape]))
                results["machine"]["load_after"] = os.getloadavg()[0]
                args.out.write_text(json.dumps(results, indent=1) + "\n")
                print(page.line(json.loads(args.out.read_text())["runs"][-1]), flush=True)
    if args.page:
        page.write(json.loads(args.out.read_text()), args.page)


if __name__ == "__main__":
    main()
