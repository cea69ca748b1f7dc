"""Short runs of an equal number of steps that show what a choice in a recipe is worth.

    python3 -m aerie.train.ablations --target models/target --data data --work runs/ablations --json ablations.json

Every variant differs from its group's first one in the options named here alone; same seed, same text, same steps.
They are judged by tau at temperature 0 on held-out prompts. A variant that is there already is not trained again.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import torch

from . import evaluate, heads, hf, report, settings, stream, tree
from .draft import drafter


@dataclass
class Group:
    name: str
    module: str
    steps: int
    common: list[str]               # options of all variants
    variants: dict[str, list[str]]  # name -> options; the first is the reference
    trees: bool                     # judge trees too
    recipe: str = ""                # file in recipes/; nothing: the module's

    @property
    def recipe_file(self) -> str:
        return self.recipe or f"{self.module}.toml"


MUON = ["--muon-lr", "0.02", "--lr", "0.004"]
GROUPS = [
    Group("eagle-inputs", "eagle", 300, ["--short-share", "1"], {
        "feature and next token (EAGLE)": [],
        "feature and current token": ["--inputs", "unshifted"],
        "next token": ["--inputs", "token"],
        "feature": ["--inputs", "feature"]}, False),
    Group("eagle-recipe", "eagle", 400, [], {
        "eagle.toml": [],
        "eagle-demo.toml": ["--recipe", str(settings.RECIPES / "eagle-demo.toml")]}, True),
    Group("fasteagle", "fasteagle", 300, ["--short-share", "1", *MUON], {
        "cascade with feature loss (FastEagle)": [],
        "parallel layers": ["--no-cascade"],
        "no feature loss": ["--feature-weight", "0"]}, True),
    Group("fasteagle-longer", "fasteagle", 1500, ["--short-share", "1", *MUON], {
        "cascade (FastEagle)": [],
        "parallel layers": ["--no-cascade"]}, True),
    Group("fasteagle-chain", "fasteagle", 900, ["--muon-lr", "0.02", "--lr", "0.004"], {
        "cascade (FastEagle)": [],
        "parallel layers": ["--no-cascade"]}, True, "fasteagle-chain.toml"),
    Group("fasteagle-early", "fasteagle", 2700, ["--muon-lr", "0.02", "--lr", "0.004", "--level-decay", "1.4"], {
        "cascade (FastEagle)": [],
        "parallel layers": ["--no-cascade"]}, True, "fasteagle-chain.toml"),
    Group("fasteagle-recipe", "fasteagle", 250,
          ["--short-share", "1", "--generated-share", "0.45", "--greedy-share", "0"], {
        "AdamW (fasteagle.toml)": [],
        "AdamW, token weight 1": ["--token-weight", "1"],
        "Muon": MUON,
        "Muon, token weight 1, feature weight 0.2, level decay 1.15": [
            *MUON, "--token-weight", "1", "--feature-weight", "0.2", "--level-decay", "1.15"]}, True),
]


def train(group: Group, name: str, options: list[str], args) -> Path:
    folder = args.work / f"{group.name}-{list(group.variants).index(name)}"
    if not (folder / "out" / "config.json").exists():
        command = [sys.executable, "-m", f"aerie.train.{group.module}", "--recipe", settings.RECIPES / group.recipe_file,
                   "--target", args.target, "--data", args.data, "--work", folder, "--out", folder / "out",
                   "--steps", group.steps, "--evaluate-minutes", 1000, "--threads", args.threads, *group.common, *options]
        print("+", *command, flush=True)
        subprocess.run([str(part) for part in command], check=True)
    return folder


def seconds(folder: Path) -> float:
    """Training time by the run's own clock."""
    curve = next(path for path in folder.glob("*.csv"))
    return float(curve.read_text().splitlines()[-1].split(",")[2])


def judge(head, target, text: evaluate.Text, trees: bool) -> dict:
    out = {}
    for name, grow in tree.GROWN.items():
        if name == "chain" or trees:
            numbers = evaluate.cycles(drafter(target, head), text, "none", grow)
            out[f"tau_{name}"] = round(evaluate.mean(numbers), 3)
            if name == "chain":
                out["accepted_at_depth"] = evaluate.by_depth(numbers, 5)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and compare variants of the recipes.")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--group", action="append", help="only this one (may be repeated)")
    parser.add_argument("--prompts", type=int, default=60, help="of each kind, to measure tau on")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    target = hf.load(args.target)
    prompt = torch.cat([evaluate.prompts(args.data, kind, args.prompts, 64) for kind in stream.KINDS])
    text = evaluate.write(target, prompt, 64, 0.0, 1)
    results = json.loads(args.json.read_text()) if args.json.exists() else {}
    results["tau"] = {
        "temperature": 0, "prompts": 2 * args.prompts, "prompt_tokens": 64, "continuation": 64,
        "chain": "5 drafted tokens", "eagle2": "k 10, depth 5, total 60", "backbone": "k 10, 7 levels"}
    for group in GROUPS:
        if args.group and group.name not in args.group:
            continue
        recipe = tomllib.loads((settings.RECIPES / group.recipe_file).read_text())
        entry = {"recipe": group.recipe_file, "options": group.common, "variants": [], "budget": {
            "steps": group.steps, "tokens": group.steps * recipe["rows"] * recipe["sequence"], "seed": recipe["seed"]}}
        for name, options in group.variants.items():
            folder = train(group, name, options, args)
            shown = [Path(option).name for option in options]
            row = {"name": name, "options": shown, "training_seconds": round(seconds(folder)),
                   **judge(heads.load(folder / "out"), target, text, group.trees)}
            report.log(f"{group.name}: {row}")
            entry["variants"].append(row)
            results[group.name] = entry
            args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
