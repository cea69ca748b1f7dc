"""docs/acceptance.md from the study's JSON: every number on the page is in it."""

import json
from pathlib import Path

NAMES = {"demo-eagle": "EAGLE", "demo-eagle3": "EAGLE-3", "demo-fasteagle": "FastEagle", "demo-medusa": "Medusa",
         "demo-hydra": "Hydra", "demo-small": "small model", "ngram": "ngram (PLD)", "ngram-suffix": "ngram-suffix",
         "lookahead": "Lookahead"}
TRAINED = ["demo-eagle", "demo-eagle3", "demo-fasteagle", "demo-medusa", "demo-hydra", "demo-small"]


def find(results, kind, temperature, drafter, tree, noise="shared", nodes=0):
    for r in results["rows"]:
        if (r["kind"], r["temperature"], r["drafter"], r["tree"], r["draft_noise"], r["nodes"]) == (
                kind, temperature, drafter, tree, noise, nodes):
            return r
    return None


def mean_tau(results, temperature, drafter, tree, noise="shared", nodes=0):
    rows = [find(results, kind, temperature, drafter, tree, noise, nodes) for kind in results["kinds"]]
    rows = [r for r in rows if r]
    return sum(r["tau"] for r in rows) / len(rows) if rows else None


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("-" * max(3, len(h)) for h in header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def number(x, digits=2):
    return "–" if x is None else f"{x:.{digits}f}"


def bars(results):
    """(what, measured, holds) of the project's own bars at temperature 0, means over the kinds of text."""
    tau = lambda d, t, nodes=0: mean_tau(results, 0, d, t, nodes=nodes)
    out = []

    def bar(what, values, holds):
        if None in values:
            out.append((what, "not measured", "–"))
        else:
            out.append((what, " / ".join(number(v) for v in values), "yes" if holds(*values) else "**no**"))

    e = [tau("demo-eagle", t) for t in ("eagle2", "static", "chain")]
    bar("EAGLE: eagle2 > static > chain", e, lambda a, b, c: a > b > c)
    e = [mean_tau(results, 1, "demo-eagle", t, "none") for t in ("eagle2", "static", "chain")]
    bar("the same at temperature 1, draft noise none", e, lambda a, b, c: a > b > c)
    same = [tau("demo-fasteagle", "chain", 7), tau("demo-eagle3", "chain", 7)]
    bar("chains of 7: FastEagle within 10 % of EAGLE-3", same, lambda a, b: a >= 0.9 * b)
    trees = [tau("demo-fasteagle", "backbone"), tau("demo-eagle3", "eagle2", 71)]
    bar("70 drafted nodes: FastEagle's backbone within 10 % of EAGLE-3's eagle2 tree", trees, lambda a, b: a >= 0.9 * b)
    passes = [r["draft_passes"] for r in results["rows"] if r["drafter"] == "demo-fasteagle"]
    bar("FastEagle: draft passes a cycle, at most", [max(passes) if passes else None], lambda a: a <= 1)
    for d in TRAINED:
        best = max((t for t in (tau(d, tree) for tree in results["trees"]) if t), default=None)
        bar(f"{NAMES[d]}: τ > 1.3 (best tree)", [best], lambda a: a > 1.3)
    r = max((x["tau"] for x in results["rows"] if x["drafter"].startswith("ngram") and x["kind"] == "python"
             and x["temperature"] == 0), default=None)
    bar("ngram on Python source: τ ≥ 1.5", [r], lambda a: a >= 1.5)
    return out


def ablation(a: dict) -> str:
    """The JSON of aerie.train.eagle2_ablations (one table) or of aerie.train.ablations (a table a group)."""
    if "rows" in a:
        return f"\n## {a['title']}\n\n{a['text']}\n\n" + table(a["header"], a["rows"])
    out = []
    for name, group in a.items():
        if not isinstance(group, dict) or "variants" not in group:
            continue
        budget = group["budget"]
        columns = [key for key in group["variants"][0] if key.startswith("tau_")]
        out.append(f"\n## Ablation: {name}\n\nPyTorch twin, temperature 0, {budget['steps']} steps ({budget['tokens']} tokens) for each "
                   f"variant, same text and seed, recipe {group['recipe']} {' '.join(group['options'])}.\n\n")
        out.append(table(["variant"] + [c.replace("tau_", "τ, ") for c in columns] + ["accepted at depth 1, 2, …"],
                         [[v["name"]] + [number(v.get(c)) for c in columns] + [", ".join(f"{x:.2f}" for x in v["accepted_at_depth"])]
                          for v in group["variants"]]))
    return "".join(out)


def write(results: dict, out: Path, ablations: list[Path]) -> None:
    m = results["machine"]
    text = [f"""# What each drafter reaches

Made by `{results["command"]}` on {m["cpu"]} ({m["cpus"]} CPUs, one thread used), {m["date"]}, commit {m["commit"]}; the numbers are in
[results.json](acceptance/results.json). {results["prompts"]} prompts of each kind (held-out books and Python modules, story openings),
{results["max_tokens"]} tokens each, int8 heads on the bf16 demo target. τ is tokens emitted per cycle; prefill's token and cycles cut
short by the limit do not count. A greedy small model repeats itself: the share of repeated 4-grams stands beside τ, and
temperature 0 flatters every drafter. All texts are the target's own, whatever drafted them.

## Bars, temperature 0, mean over {", ".join(results["kinds"])}
"""]
    text.append(table(["bar", "measured", "holds"], bars(results)))
    if Path(out.parent / "acceptance" / "account.md").exists():
        text.append("\n" + (out.parent / "acceptance" / "account.md").read_text())
    text.append("\n## τ by drafter and tree\n")
    for temperature in results["temperatures"]:
        for noise in (["shared"] if temperature == 0 else ["none", "shared", "sampled"]):
            text.append(f"\nTemperature {temperature:g}" + (f", draft noise {noise}" if temperature and noise != "sampled" else
                        ", the papers' sampled rule" if temperature else "") + "\n\n")
            rows = []
            for d in results["drafters"]:
                cells = [[number((find(results, kind, temperature, d, tree, noise) or {}).get("tau")) for kind in results["kinds"]]
                         for tree in results["trees"]]
                if any(c != "–" for cell in cells for c in cell):
                    rows.append([NAMES.get(d, d)] + [" / ".join(c) for c in cells])
            text.append(table(["drafter"] + results["trees"], rows))
    repeated = [(kind, t, (find(results, kind, t, "none", "-", "-") or {}).get("repeated_4grams")) for kind in results["kinds"]
                for t in results["temperatures"]]
    text.append("\nCells: " + " / ".join(results["kinds"]) + ". Repeated 4-grams of the texts: " +
                ", ".join(f"{k} at {t:g}: {100 * r:.0f} %" for k, t, r in repeated if r is not None) + ".\n")
    text.append("\n## Acceptance by depth (n-α), chains of 7, temperature 0\n\n")
    rows = []
    for d in results["drafters"]:
        tried, taken = [0] * 7, [0.0] * 7
        for kind in results["kinds"]:
            r = find(results, kind, 0, d, "chain", "shared", 7)
            for i, (a, n) in enumerate(zip(r["acceptance"], r["tried"]) if r else []):
                if i < 7:
                    tried[i] += n
                    taken[i] += a * n
        if tried[0]:
            rows.append([NAMES.get(d, d)] + [number(t / n) if n >= 20 else "–" for t, n in zip(taken, tried)])
    text.append(table(["drafter"] + [f"{i}-α" for i in range(7)], rows))
    text.append("\n![acceptance by depth](acceptance/n-alpha.png)\n![tau by tree](acceptance/tau.png)\n")
    text.append("\n## Cost, temperature 0\n\nDraft cost is all draft passes of a cycle over one plain token of the same run, verify cost likewise; the machine was busy. "
                "This target takes a fraction of a millisecond\na token: see [benchmarking](benchmarking.md) for larger costs.\n\n")
    rows = []
    for d in results["drafters"]:
        for tree in results["trees"]:
            r = [find(results, kind, 0, d, tree) for kind in results["kinds"]]
            if all(r):
                plain = [1000 * x["speedup"] / x["tokens_per_second"] for x in r]  # ms a token of the same run
                draft = sum(x["draft_ms"] for x in r) / sum(plain)
                verify = sum(x["verify_ms"] for x in r) / sum(plain)
                rows.append([NAMES.get(d, d), tree, number(sum(x["draft_passes"] for x in r) / len(r), 1),
                             number(sum(x["verified"] for x in r) / len(r), 1), number(draft), number(verify),
                             " / ".join(number(x["speedup"]) for x in r)])
    text.append(table(["drafter", "tree", "draft passes", "nodes verified", "draft cost", "verify cost", "x plain decode"], rows))
    for path in ablations:
        text.append(ablation(json.loads(path.read_text())))
    if any("calibration" in json.loads(p.read_text()) for p in ablations):
        text.append("\n![calibration](acceptance/calibration.png)\n")
    out.write_text("".join(text))
