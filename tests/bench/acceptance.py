#!/usr/bin/env python3
"""The study of docs/acceptance.md: every drafter with every tree on held-out text, through the runtime.

    python3 tests/bench/acceptance.py --aerie build/release/bin/aerie --models samples/models --data DATA

DATA is the folder that `python3 -m aerie.train.corpus` wrote (held-out books and modules); without it only the story
openings are used. `--resume` keeps what results.json has of the same packages and prompts; `--retime` keeps that but
measures speed again, which wants a quiet machine.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "acceptance"))
import measure  # noqa: E402
import page  # noqa: E402
import prompts  # noqa: E402


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--aerie", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=measure.ROOT / "samples/models")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ablations", type=Path, action="append", help="JSON of an ablation module; default: all in docs/training")
    parser.add_argument("--out", type=Path, help="folder, by default docs/acceptance; the page is written beside it")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--timing-prompts", type=int, default=4)
    parser.add_argument("--timing-repeats", type=int, default=5)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--retime", action="store_true", help="--resume, but measure speed again")
    parser.add_argument("--smoke", action="store_true", help="a quick look that everything works")
    args = parser.parse_args()
    args.aerie = args.aerie.resolve()
    args.ablations = args.ablations or sorted((measure.ROOT / "docs/training").glob("*ablations*.json"))
    if args.smoke and not args.out:
        parser.error("--smoke needs --out: it is no study, and docs/acceptance has one")
    args.out = args.out or measure.ROOT / "docs/acceptance"
    if args.smoke:
        args.prompts, args.max_tokens, args.timing_prompts, args.timing_repeats = 2, 16, 1, 1
    return args


def main() -> None:
    args = options()
    names = list(measure.drafters(args.models))
    if args.smoke:
        names = [names[0], "ngram"]
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "results.json"
    with tempfile.TemporaryDirectory() as tmp:
        files = prompts.write(Path(tmp), args.data, args.prompts)
        results = {"command": "python3 tests/bench/acceptance.py --aerie build/release/bin/aerie --models samples/models"
                              + f"{' --data DATA' * bool(args.data)} --prompts {args.prompts} --max-tokens {args.max_tokens}",
                   "machine": measure.machine(), "prompts": args.prompts, "max_tokens": args.max_tokens, "kinds": list(files),
                   "temperatures": [0] if args.smoke else [0, 1], "drafters": names, "trees": measure.TREES, "rows": [], "timing": []}
        if (args.resume or args.retime) and file.exists():
            old = json.loads(file.read_text())
            results["rows"] = old["rows"]
            results["timing"] = [] if args.retime else old.get("timing", [])

        def save():
            file.write_text(json.dumps(results, indent=1) + "\n")

        measure.acceptance(args, results, files, save)
        measure.timing(args, results, files, save)
    ablations = [json.loads(path.read_text()) for path in args.ablations]
    try:
        import plots

        plots.draw(results, args.out, next((a["calibration"] for a in ablations if "calibration" in a), None))
    except ImportError:
        print("no matplotlib: no plots")
    page.write(results, args.out, ablations)


if __name__ == "__main__":
    main()
