"""docs/acceptance.md from the study's JSON: every number on the page is in it."""

from pathlib import Path

from bars import bars
from rows import FEW, NAMES, NOISES, by_depth, cell, find, mean, number, table, taus


def noise_name(temperature, noise):
    if not temperature:
        return "temperature 0"
    return "temperature 1, " + ("the papers' sampled rule" if noise == "sampled" else f"draft noise {noise}")


def introduction(results, folder):
    m = results["machine"]
    commits = ", ".join(sorted({r["commit"] for r in results["rows"] + results["timing"]}))
    return f"""# What each drafter reaches

Made by `{results["command"]}`
on {m["cpu"]} ({m["cpus"]} CPUs, one thread used), {m["date"]}, rows measured at {commits}; the numbers are in
[results.json]({folder}/results.json). {results["prompts"]} prompts of each kind, {results["max_tokens"]} tokens each. Novels and Python are
held-out books and modules (DATA, made by [training](training.md#the-steps)), stories are openings written for this page. τ is tokens emitted per cycle; prefill's token and
cycles cut short by the limit do not count. All texts but the sampled rule's are the target's own, whatever drafted them.

A greedy small model repeats itself, and repeats are easy to draft: the share of repeated 4-grams stands beside τ, and
temperature 0 flatters every drafter.
"""


def repeats(results, temperature, noise):
    """The share of repeats of a table's texts: plain decode's, or under the sampled rule the first drafter's."""
    source = "none" if noise != "sampled" else results["drafters"][0]
    where = ("-", "-") if noise != "sampled" else ("chain", noise)
    shares = [(find(results, kind, temperature, source, *where) or {}).get("repeated_4grams") for kind in results["kinds"]]
    return " / ".join("–" if s is None else f"{100 * s:.0f} %" for s in shares)


def tau_tables(results):
    out = [f"\n## τ by drafter and tree\n\nCells: {' / '.join(results['kinds'])}. The sampled rule knows chain and static only.\n"]
    for temperature in results["temperatures"]:
        for noise in NOISES[temperature]:
            trees = ["chain", "static"] if noise == "sampled" else results["trees"]
            rows = [[NAMES[d]] + [cell(taus(results, temperature, d, tree, noise)) for tree in trees] for d in results["drafters"]
                    if any(x for tree in trees for x in taus(results, temperature, d, tree, noise))]
            heading = noise_name(temperature, noise)
            out.append(f"\n{heading[0].upper()}{heading[1:]}; repeated 4-grams {repeats(results, temperature, noise)}\n\n")
            out.append(table(["drafter"] + trees, rows))
    return "".join(out)


def depth_tables(results):
    out = ["\n## Acceptance by depth (n-α), chains only\n\nShare of the walks that got a draft at depth n and took it, all kinds of "
           f"text; – for fewer than {FEW} walks. Drafters without weights\noften draft nothing, and such cycles are in τ but not here.\n"]
    for temperature in results["temperatures"]:
        nodes = 0 if temperature else 7
        for noise in NOISES[temperature]:
            shares = {d: by_depth(results, temperature, d, noise, nodes) for d in results["drafters"]}
            depth = max((len(s) for s in shares.values()), default=0)
            rows = [[NAMES[d]] + [number(x) for x in s + [None] * (depth - len(s))] for d, s in shares.items() if s]
            out.append(f"\nChains of {nodes or 5}, {noise_name(temperature, noise)}\n\n")
            out.append(table(["drafter"] + [f"{i}-α" for i in range(depth)], rows))
    return "".join(out)


def speed_tables(results):
    rows = results["timing"]
    if not rows:
        return ""
    loads = [r["load"] for r in rows]
    plain = [r["tokens_per_second"] for r in rows if r["drafter"] == "none"]
    out = [f"""
## Speed

Tokens per second as a multiple of plain decode, and costs in plain target passes, all from the same call: {rows[0]["prompts"]} prompts of each
kind, median of {rows[0]["repeats"]} interleaved repeats, one thread. Plain decode did {min(plain):.0f} to {max(plain):.0f} tokens a second, the machine's load before a call was
{min(loads):.1f} to {max(loads):.1f} on {results["machine"]["cpus"]} CPUs: **the wider these two ranges, the less the multiples mean**. A pass of this target takes {1000 / max(plain):.2f} ms at
best: see [benchmarking](benchmarking.md) for larger costs. `cast` and `auto` decide by measured time, so their τ is of this run only.
"""]
    for temperature in results["temperatures"]:
        for noise in [n for n in NOISES[temperature] if n != "sampled"]:
            body = []
            for d in results["drafters"]:
                mine = [r for r in rows if (r["drafter"], r["temperature"], r["draft_noise"]) == (d, temperature, noise)]
                for tree in dict.fromkeys(r["tree"] for r in mine):
                    of = [next((r for r in mine if r["tree"] == tree and r["kind"] == k), None) for k in results["kinds"]]
                    if None in of:
                        continue
                    one = [1000 * r["speedup"] / r["tokens_per_second"] for r in of]  # ms a plain token of the same call
                    body.append([NAMES[d], tree, cell([r["tokens_per_second"] for r in of], 0), cell([r["speedup"] for r in of]),
                                 number(mean([r["draft_ms"] / p for r, p in zip(of, one)])),
                                 number(mean([r["verify_ms"] / p for r, p in zip(of, one)])),
                                 number(mean([r["draft_passes"] for r in of]), 1), number(mean([r["verified"] for r in of]), 1),
                                 number(mean([r["tau"] for r in of]))])
            heading = noise_name(temperature, noise)
            out.append(f"\n{heading[0].upper()}{heading[1:]}\n\n")
            out.append(table(["drafter", "tree", "tokens/s", "x plain", "draft cost", "verify cost", "draft passes", "nodes", "τ"], body))
    return "".join(out)


def ablation(a: dict) -> str:
    """The JSON of aerie.train.eagle2_ablations (one table) or of aerie.train.ablations (a table a group)."""
    if "rows" in a:
        return f"\n## Ablation: {a['title']}\n\n{a['text']}\n\n" + table(a["header"], a["rows"])
    out = []
    for name, group in a.items():
        if not isinstance(group, dict) or "variants" not in group:
            continue
        budget = group["budget"]
        columns = [key for key in group["variants"][0] if key.startswith("tau_")]
        out.append(f"\n## Ablation: {name}\n\nThe target's PyTorch twin, temperature 0, {budget['steps']} steps ({budget['tokens']} tokens) for each "
                   f"variant, same text and seed, recipe {' '.join([group['recipe'], *group['options']])}.\n\n")
        out.append(table(["variant"] + [c.replace("tau_", "τ, ") for c in columns] + ["accepted at depth 1, 2, …"],
                         [[v["name"]] + [number(v.get(c)) for c in columns] + [", ".join(f"{x:.2f}" for x in v["accepted_at_depth"])]
                          for v in group["variants"]]))
    return "".join(out)


def constrained(results):
    """FastEagle without its constrained tree: the same one pass, its best path or EAGLE-2's choice of nodes instead."""
    rows = [[noise_name(t, noise)] + [cell(taus(results, t, "demo-fasteagle", tree, noise)) for tree in ("backbone", "eagle2", "chain")]
            for t in results["temperatures"] for noise in NOISES[t] if noise != "sampled"]
    return ("\n## Ablation: FastEagle's constrained tree\n\nThe runtime, the demo head; `eagle2` picks 59 of all combinations of the levels, "
            f"`backbone` has 70 nodes. Cells: {' / '.join(results['kinds'])}.\n\n" + table(["", "backbone", "eagle2", "chain of 5"], rows))


def write(results: dict, folder: Path, ablations: list[dict]) -> None:
    """The page lies beside `folder`, which has the plots and, if written, account.md.in: why a bar fails."""
    account = folder / "account.md.in"
    plot = lambda name, words: f"\n![{words}]({folder.name}/{name})\n" if (folder / name).exists() else ""
    text = [introduction(results, folder.name), "\n## Bars\n\nτ at temperature 0 unless said otherwise; cells: "
            f"{' / '.join(results['kinds'])}. The mean decides.\n\n",
            table(["bar", "of", "τ", "mean", "holds"], bars(results, ablations)),
            "\n" + account.read_text() if account.exists() else "",
            tau_tables(results), plot("tau.png", "tau by tree"), depth_tables(results), plot("n-alpha.png", "acceptance by depth"),
            speed_tables(results), *map(ablation, ablations)]
    if any(taus(results, 0, "demo-fasteagle", "backbone")):
        text.append(constrained(results))
    text.append(plot("calibration.png", "calibration"))
    (folder.parent / f"{folder.name}.md").write_text("".join(text))
