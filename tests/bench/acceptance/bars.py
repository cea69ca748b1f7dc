"""The bars the study is held against. Means over the kinds of text decide; the kinds stand beside them."""

from rows import NAMES, cell, mean, number, taus

TRAINED = ["demo-eagle", "demo-eagle3", "demo-fasteagle", "demo-medusa", "demo-hydra", "demo-small"]


def variant(ablations, group, words):
    """τ (backbone tree if judged, else chain) of the variant of a group of aerie.train.ablations whose name has `words`."""
    for a in ablations:
        for v in a.get(group, {}).get("variants", []) if "rows" not in a else []:
            if words in v["name"]:
                return v.get("tau_backbone", v["tau_chain"])
    return None


def bars(results: dict, ablations: list[dict]) -> list[tuple]:
    """Rows (bar, who, τ by kind, mean, holds)."""
    out = []

    def compare(what, parts, holds):
        """parts: (who, τ by kind); holds(means) or None for numbers without a threshold."""
        means = [mean(values) for _, values in parts]
        verdict = "not measured" if None in means else "–" if holds is None else "yes" if holds(*means) else "**no**"
        for i, (who, values) in enumerate(parts):
            out.append((what if i == 0 else "", who, cell(values), number(means[i]), verdict if i == 0 else ""))

    def one(drafter, tree, temperature=0, noise="shared", nodes=0, label=""):
        return f"{NAMES[drafter]}, {tree}{label}", taus(results, temperature, drafter, tree, noise, nodes)

    order = lambda a, b, c: a > b > c
    trees = ("eagle2", "static", "chain")
    compare("eagle2 > static > chain", [one("demo-eagle", t) for t in trees], order)
    compare("the same, temperature 1, draft noise none", [one("demo-eagle", t, 1, "none") for t in trees], order)
    compare("chains of 7: FastEagle at most 10 % below EAGLE-3",
            [one("demo-fasteagle", "chain", nodes=7), one("demo-eagle3", "chain", nodes=7)], lambda a, b: a >= 0.9 * b)
    compare("70 drafted nodes, both numbers (no threshold)",
            [one("demo-fasteagle", "backbone"), one("demo-eagle3", "eagle2", nodes=71),
             one("demo-eagle3", "backbone")], None)
    passes = [r["draft_passes"] for r in results["rows"] if r["drafter"] == "demo-fasteagle"]
    # Below 1 only because the cycle that the token limit ends needs no draft.
    out.append(("FastEagle: one draft pass a cycle", "all its rows", "", f"{min(passes):.3f} to {max(passes):.3f}",
                "yes" if 0.9 < min(passes) and max(passes) <= 1 else "**no**") if passes
               else ("FastEagle: one draft pass a cycle", "", "", "–", "not measured"))
    for group, training in (("fasteagle", "short training"), ("fasteagle-longer", "five times as long"),
                            ("fasteagle-chain", "the loss of the demo head's third stage"),
                            ("fasteagle-early", "the same, early levels first, three times as long")):
        cascade, parallel = (variant(ablations, group, w) for w in ("cascade", "parallel"))
        measured = cascade is not None and parallel is not None
        out.append((f"FastEagle's cascade beats parallel layers ({training})", "cascade, parallel, backbone tree", "",
                    f"{number(cascade)}, {number(parallel)}",
                    ("yes" if cascade > parallel else "**no**") if measured else "not measured"))
    for drafter in (d for d in TRAINED if d in results["drafters"]):
        compare(f"{NAMES[drafter]}: τ > 1.3", [one(drafter, "eagle2"), one(drafter, "chain")], lambda tree, chain: min(tree, chain) > 1.3)
    ngram = (taus(results, 0, "ngram", "chain")[results["kinds"].index("python")] if "python" in results["kinds"] else None)
    out.append(("ngram on Python source: τ ≥ 1.5", "ngram, chain", "", number(ngram),
                "not measured" if ngram is None else "yes" if ngram >= 1.5 else "**no**"))
    return out
