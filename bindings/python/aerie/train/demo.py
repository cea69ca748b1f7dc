"""Reproduce the demo models from the novels alone.

    python3 -m aerie.train.demo --novels novels.tar.zst --out models

corpus -> tokenizer -> stream -> target -> generate -> heads and small model -> evaluate. A step whose result exists is
skipped and an interrupted training step continues, so the same command can simply be repeated.
"""

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

from . import settings

# Folder of the result -> its module and the recipes of its stages, each starting from the head of the one before.
DRAFTERS = {
    "eagle": ("eagle", ["eagle-demo.toml"]),
    "fasteagle": ("fasteagle", ["fasteagle-demo.toml", "fasteagle-greedy.toml", "fasteagle-chain.toml"]),
    "eagle3": ("eagle3", ["eagle3.toml"]),
    "dflash": ("dflash", ["dflash.toml"]),
    "medusa": ("medusa", ["medusa.toml"]),
    "hydra": ("hydra", ["hydra.toml"]),
    "small": ("small_model", ["small.toml"]),
}


def run(step: str, *options) -> None:
    command = [sys.executable, "-m", f"aerie.train.{step}", *map(str, options)]
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True)


def train(name: str, target: Path, data: Path, runs: Path, out: Path, options: list) -> None:
    module, recipes = DRAFTERS[name]
    initial = []
    for index, recipe in enumerate(recipes):
        work = runs / name / str(index)
        folder = out if index + 1 == len(recipes) else work / "out"
        if not (folder / "config.json").exists():
            run(module, "--recipe", settings.RECIPES / recipe, "--target", target, "--data", data, "--work", work,
                "--out", folder, *initial, *options)
        initial = ["--initial", folder]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the demo target and its drafters.")
    parser.add_argument("--novels", type=Path, required=True, help="archive of .txt novels (.tar, .tar.gz, .tar.zst)")
    parser.add_argument("--python-lib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--out", type=Path, required=True, help="gets data/, runs/, target/ and a folder per drafter")
    parser.add_argument("--target-recipe", type=Path, default=settings.RECIPES / "target.toml")
    parser.add_argument("--drafter", action="append", choices=DRAFTERS, help="only this one (may be repeated)")
    parser.add_argument("--minutes", type=float, help="for each drafter's stage, instead of its recipe's time")
    parser.add_argument("--generated-tokens", type=int, default=1_500_000, help="text by the target to train on")
    parser.add_argument("--greedy-tokens", type=int, default=3_000_000, help="the same at temperature 0")
    parser.add_argument("--whole-tokens", type=int, default=3_900_000, help="whole texts of mostly temperature 0 (FastEagle)")
    args = parser.parse_args()
    data, runs, target = (args.out / name for name in ("data", "runs", "target"))
    tokenizer = data / "tokenizer.json"
    if not (data / "split.json").exists():
        run("corpus", "--novels", args.novels, "--python-lib", args.python_lib, "--out", data)
    if not tokenizer.exists():
        run("tokenizer", "--data", data, "--out", tokenizer)
    if not (data / "python.held.u16").exists():
        run("stream", "--data", data, "--tokenizer", tokenizer)
    if not (target / "config.json").exists():
        run("target", "--recipe", args.target_recipe, "--data", data, "--work", runs / "target", "--out", target)
        run("hf", target)
    if not (data / "generated.u16").exists():
        run("generate", "--target", target, "--data", data, "--tokens", args.generated_tokens)
    if not (data / "greedy.u16").exists():
        run("generate", "--target", target, "--data", data, "--tokens", args.greedy_tokens, "--name", "greedy",
            "--length", 129, "--temperatures", 0, "--seed", 2)
    if not (data / "continuations.u16").exists():
        run("generate", "--target", target, "--data", data, "--tokens", args.whole_tokens, "--name", "continuations",
            "--length", 161, "--prompt", "16,64", "--temperatures", "0,0,0,0,0,0,0.7,1", "--seed", 3)
    chosen = args.drafter or list(DRAFTERS)
    for name in chosen:
        train(name, target, data, runs, args.out / name, ["--minutes", args.minutes] if args.minutes else [])
    folders = [option for name in chosen for option in ("--head", args.out / name)]
    run("evaluate", "--target", target, *folders, "--data", data, "--json", runs / "tau.json")


if __name__ == "__main__":
    main()
