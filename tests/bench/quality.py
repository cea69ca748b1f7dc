#!/usr/bin/env python3
"""What weight formats cost in quality, beside llama.cpp's, on held-out text.

    python3 tests/bench/quality.py --build build/bench --target TARGET TEXT.u16... >table.md

TARGET: a Hugging Face directory, a package of no coarser weights than what it is made of, or a GGUF file. TEXT: its token ids as
16-bit integers (docs/training.md makes both). Both engines read the same windows, each from nothing; llama.cpp's files
hold the weights of our bf16 package, or it reads the GGUF file itself. Perplexity stands beside the f32 package's, with the standard error of the
difference over the windows; divergence (Kullback-Leibler, in nats) and the share of places with the same best token are
against the f32 package's distributions. These lie in a temporary folder meanwhile: windows x length x vocabulary x 4
bytes for each TEXT. llama.cpp is built outside the tree (vs_llama_cpp/build.sh). Needs numpy.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "vs_llama_cpp")]
import gguf_package  # noqa: E402
from vs_llama_cpp import Driver  # noqa: E402

OURS = {d: ["--dtype", d] for d in ("f32", "bf16", "fp8", "int8", "int4", "q4_1", "mxfp4")}  # the first is the base
for d in ("int4", "q4_1"):
    OURS[f"{d}, head int8"] = ["--dtype", d, "--head-dtype", "int8"]
THEIRS = ["F16", "Q8_0", "Q4_0"]


def windows(file: Path, count: int, length: int) -> list[np.ndarray]:
    """Spread evenly over the text."""
    ids = np.fromfile(file, np.uint16)
    if len(ids) < 2 * length:
        sys.exit(f"quality.py: {file} is too short for two windows of {length} tokens")
    fit = len(ids) // length
    count = min(count, fit)
    return [ids[w * fit // count * length:][:length] for w in range(count)]


def shares(engine: Driver, file: Path, text: np.ndarray) -> np.ndarray:
    """log P of every token of the vocabulary at each place but the last, (length - 1, vocabulary)."""
    engine.ask("logits", file, *text)
    logits = np.fromfile(file, np.float32).reshape(len(text), -1)[:-1].astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@dataclass
class Figures:
    """Of each window: mean negative log-likelihood (its first token is not predicted); mean Kullback-Leibler divergence of
    the distributions from the base's, in nats; share of places with the base's best token."""

    loss: np.ndarray
    divergence: np.ndarray
    same: np.ndarray


def measure(engine: Driver, folder: Path, name: str, texts: list[np.ndarray]) -> Figures:
    """The first engine is the base: what it says is kept in the folder."""
    found = []
    for i, text in enumerate(texts):
        mine, kept = shares(engine, folder / "logits", text), folder / f"{name}.{i}.npy"
        if not kept.exists():
            np.save(kept, mine.astype(np.float32))
        base = np.load(kept).astype(np.float64)
        found.append((-mine[np.arange(len(text) - 1), text[1:]].mean(), (np.exp(base) * (base - mine)).sum(axis=1).mean(),
                      (base.argmax(axis=1) == mine.argmax(axis=1)).mean()))
    return Figures(*np.array(found).T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, nargs="+", help="*.u16")
    parser.add_argument("--build", type=Path, required=True, help="Aerie's build folder, with AERIE_TESTS and AERIE_BENCH")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--ours", action="store_true", help="leave llama.cpp out")
    parser.add_argument("--llama-driver", type=Path, help="already built; else vs_llama_cpp/build.sh is run")
    parser.add_argument("--windows", type=int, default=150)
    parser.add_argument("--length", type=int, default=512, help="tokens of a window")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    build = args.build.resolve()
    if not args.llama_driver and not args.ours:
        done = subprocess.run([HERE / "vs_llama_cpp/build.sh"], check=True, stdout=subprocess.PIPE, text=True)
        args.llama_driver = Path(done.stdout.strip().splitlines()[-1])
    gguf = args.target.suffix == ".gguf"
    if gguf:
        OURS["stored"] = ["--dtype", "stored"]
    texts = {file.name.split(".")[0]: windows(file, args.windows, args.length) for file in args.text}
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        for name, options in OURS.items():
            subprocess.run([build / "bin/aerie", "convert", args.target, "-o", folder / f"{name}.aerie", *options], check=True,
                           stdout=subprocess.DEVNULL)
        files = [("Aerie", build / "bin/aerie_driver", d, ".aerie") for d in OURS]
        theirs = ["the file"] if gguf else THEIRS
        if not args.ours:
            if gguf:
                (folder / "the file.gguf").symlink_to(args.target.resolve())
            else:
                gguf_package.write(build, folder / "bf16.aerie", {f: folder / f"{f}.gguf" for f in theirs})
            files += [("llama.cpp", args.llama_driver, f, ".gguf") for f in theirs]
        print("| engine | weights | " + " | ".join(f"{name}: perplexity | against f32 | divergence | same best" for name in texts) + " |")
        print("|---" * (2 + 4 * len(texts)) + "|")
        base = {}
        for engine, program, kind, suffix in files:
            driver = Driver(program, folder / (kind + suffix), args.threads, args.length)
            # llama.cpp says what it was compiled for; ours names what it runs.
            name = f"{engine}, {driver.about['features'].split(',')[0]}" if engine == "Aerie" else engine
            cells = []
            for text, chosen in texts.items():
                found = measure(driver, folder, text, chosen)
                apart = found.loss - base.setdefault(text, found.loss)
                error = apart.std(ddof=1) / math.sqrt(len(apart))
                cells += [f"{math.exp(found.loss.mean()):.4f}", f"{100 * math.expm1(apart.mean()):+.3f} % ± {100 * error:.3f}",
                          f"{max(found.divergence.mean(), 0):.5f}", f"{100 * found.same.mean():.2f} %"]
            driver.close()
            print(f"| {name} | {kind} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{args.windows} windows of {args.length} tokens each, or as many as the text has.")


if __name__ == "__main__":
    main()
