"""Reproduce the demo models from the novels alone.

    python3 -m aerie.train.demo --novels novels.tar.zst --out models

corpus -> tokenizer -> stream -> target -> generate -> eagle -> evaluate. A step whose result exists is skipped
and an interrupted training step continues, so the same command can simply be repeated.
"""

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

from . import settings


def run(step: str, *options) -> None:
    command = [sys.executable, "-m", f"aerie.train.{step}", *map(str, options)]
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the demo target and its EAGLE head.")
    parser.add_argument("--novels", type=Path, required=True, help="archive of .txt novels (.tar, .tar.gz, .tar.zst)")
    parser.add_argument("--python-lib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--out", type=Path, required=True, help="gets data/, runs/, target/ and eagle/")
    parser.add_argument("--target-recipe", type=Path, default=settings.RECIPES / "target.toml")
    parser.add_argument("--eagle-recipe", type=Path, default=settings.RECIPES / "eagle-demo.toml")
    parser.add_argument("--generated-tokens", type=int, default=1_500_000,
                        help="text by the target to train the head on; 0 for a recipe without generated_share")
    args = parser.parse_args()
    data, runs, target, eagle = (args.out / name for name in ("data", "runs", "target", "eagle"))
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
    if args.generated_tokens and not (data / "generated.u16").exists():
        run("generate", "--target", target, "--data", data, "--tokens", args.generated_tokens)
    if not (eagle / "config.json").exists():
        run("eagle", "--recipe", args.eagle_recipe, "--target", target, "--data", data, "--work", runs / "eagle",
            "--out", eagle)
    run("evaluate", "--target", target, "--head", eagle, "--data", data, "--json", runs / "tau.json")


if __name__ == "__main__":
    main()
