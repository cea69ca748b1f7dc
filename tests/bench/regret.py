#!/usr/bin/env python3
"""The study of docs/regret.md: every tree policy replayed over recorded trees, in the time of recorded pass costs.

    cmake --preset tests -DAERIE_BENCH=ON && cmake --build --preset tests
    python3 tests/bench/regret.py --build build/tests

Measures what passes cost here (a minute; wants a quiet machine), or takes the table of --costs, records what the drafters
propose, replays, and writes docs/regret/results.json and docs/regret.md. `--page` writes the page anew from results.json.
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRAFTERS = {"eagle3": "demo-eagle3.aerie", "ngram": "ngram", "eagle": "demo-eagle.aerie", "fasteagle": "demo-fasteagle.aerie",
            "medusa": "demo-medusa.aerie", "hydra": "demo-hydra.aerie", "small": "demo-small.aerie"}
BAR = 0.02
# What was found when the replay was last taken apart, cycle by cycle.
ABOVE = """
## Where it is above the bar, and why

All of it is in batches of two and four, where one session's choice weighs much in a pass. Held out, temperature 0, batch 2: eagle
alone (3.2 %) and a hostile drafter beside eagle3 (3.6 %), not taken apart; in this table the target's pass takes the same for up
to eight rows and then rises steeply. At temperature 1, batch 4, all seven drafters together, of which two (eagle, eagle3) are 2 to
3 % apart while a cycle brings 1.5 tokens.

At the same costs 130 and 129 cells were within it (worst 4.2 and 9.6 %) while each session of a batch decided by itself, as if the
others did likewise.

At the costs of an earlier table the worst cell (held out, temperature 1, batch 4: 3.6 %) was taken apart. A text of 3000 tokens
lost about 110 against the best drafter alone, known beforehand:

- 42 in cycles of the runner-up. Which of the two is better shows over hundreds of cycles only: their cycles differ by 0.05
  tokens, and the texts that each happens to be measured on by more;
- 59 in cycles of the other four that cost passes: trials, later ones too, and returns to those that might be better;
- 14 in cycles of the best one, before it knows its confidences; ngram wins 3.

Of all that 34 go into catching up: who is asked again is first shown up to 64 tokens that were written without it. This counts
against a return; when it did not, near equals took turns and lost more. A longer memory, wider and narrower doubts, shorter
trials and taking a text's difficulty out of the comparison were each tried; none brought these cells down without lifting others.

Which cells are above is partly chance, as the table of costs is: at the costs of two earlier tables and with earlier policies four
(worst 2.7 %) and five were (worst 3.6 %). In two orders of the texts each, at the costs of a still earlier and quicker table, 9 of
576 cells were above 2 %, the worst at 4.9 %: six of these had all drafters together at temperature 1, three one drafter alone at
temperature 0, batch 1 (eagle, medusa), where single choices of depth weigh most.
"""
HALVES = ("developed on", "held out")


def measure(args: argparse.Namespace) -> dict:
    command = [args.build / "bin/regret", "--model", args.models / "demo.aerie", "--plugins", args.build.resolve() / "lib/aerie/drafters"]
    for name, file in DRAFTERS.items():
        command += ["--drafter", f"{name}={args.models / file if '.' in file else file}"]
    if args.costs:
        command += ["--costs", args.costs]
    if args.recordings:
        args.recordings.mkdir(parents=True, exist_ok=True)
        command += ["--recordings", args.recordings]
    if args.smoke:
        command += ["--quick", "--tokens", "48", "--run", "300", "--batch", "1,8"]
    return json.loads(subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE).stdout)


def summary(name: str, cells: list[dict]) -> str:
    worst = max(cells, key=lambda c: c["regret"])
    lost = sum(max(0, c["regret"]) for c in cells) / len(cells)
    return (f"| {name} | {len(cells)} | {sum(c['regret'] <= BAR for c in cells)} | {100 * worst['regret']:.1f} %: {worst['drafter']}, T = "
            f"{worst['temperature']:g}, batch {worst['batch']} | {100 * lost:.2f} % |")


def table(name: str, cells: list[dict]) -> list[str]:
    out = ["", f"## Texts {name}", "",
           "| drafter | T | batch | plain | best fixed | which | auto | regret | plain cycles | chain | static | eagle2 | backbone | cast |",
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for c in cells:
        p = c["published"] or {}
        beside = " | ".join(f"{p[k]:.0f}" if k in p else "" for k in ("chain", "static", "eagle2", "backbone", "cast"))
        mark = "**" if c["regret"] > BAR else ""
        out.append(f"| {c['drafter']} | {c['temperature']:g} | {c['batch']} | {c['plain']:.0f} | {c['best_fixed']:.0f} | {c['best_fixed_policy']} | "
                   f"{c['auto']:.0f} | {mark}{100 * c['regret']:+.1f} %{mark} | {100 * c['auto_plain_share']:.0f} % | {beside} |")
    return out


def page(r: dict) -> str:
    cells = r["cells"]
    out = ["# Regret of the automatic policy", "",
           "Written by `tests/bench/regret.py`. Speculation changes no token, so what the target takes of a tree is known once the text is:",
           f"at each of {r['positions']} positions of texts of the demo model the drafter's tree was recorded ten levels deep, and what passes",
           f"cost was measured ({r['device']}{', ' + r['costs_note'] if 'costs_note' in r else ''}). Then every policy ran {r['tokens']} tokens a text through the core's own policy code in the",
           "time of these costs, without noise, each one beginning with nothing learned. *Best fixed* is the fastest of EAGLE-2 trees of 4 to",
           "60 nodes and depth 1 to 6, chains of 1 to 6, and small backbones, chosen in hindsight for each cell (of several drafters:",
           "for the best of them). Regret is what `auto` falls short of the better of it and plain decode. The published sizes are",
           "EAGLE's chain of 5, EAGLE's static tree, EAGLE-2 60/6, FastEagle's backbone 7 x 10, CAST 72/13/12 with C = 3.", "",
           "The texts are in two halves. `auto` was first developed on replays of the first alone. When it was revised, results of both were",
           "looked at after every change, and some cells of the second step by step: it is held out from the constants before that only.",
           "The pass costs were measured on the day of the last change, before it.", "",
           "| texts | cells | within 2 % | worst | mean of what is lost |", "|---|---|---|---|---|"]
    out += [summary(name, [c for c in cells if c["texts"] == name]) for name in HALVES]
    out += ABOVE.rstrip().split("\n")
    for name in HALVES:
        out += table(name, [c for c in cells if c["texts"] == name])
    large = [c for c in cells if c["batch"] >= 4 and c["published"]]
    wins = sum(c["published"]["cast"] > c["published"]["eagle2"] for c in large)
    out += ["", f"In published sizes `cast` is faster than `eagle2` in {wins} of the {len(large)} cells of batch 4 and more; what each of its parts",
            "brings is in [cast.md](cast.md)."]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/tests")
    parser.add_argument("--models", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--costs", type=Path, help="a cost table of the same machine, model and drafters")
    parser.add_argument("--costs-note", help="how the table of --costs was measured, for the page")
    parser.add_argument("--recordings", type=Path, help="folder that keeps what the drafters propose for the next run")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    folder = args.out / "regret"
    folder.mkdir(parents=True, exist_ok=True)
    results = json.loads((folder / "results.json").read_text()) if args.page else measure(args)
    results["model"] = "samples/models/demo.aerie"
    if args.costs_note:
        results["costs_note"] = args.costs_note
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "regret.md").write_text(page(results))


if __name__ == "__main__":
    main()
