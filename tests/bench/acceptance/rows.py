"""Looking up rows of the study's JSON, and formatting."""

NAMES = {"demo-eagle": "EAGLE", "demo-eagle3": "EAGLE-3", "demo-fasteagle": "FastEagle", "demo-medusa": "Medusa",
         "demo-hydra": "Hydra", "demo-small": "small model", "ngram": "ngram (PLD)", "ngram-suffix": "ngram-suffix",
         "lookahead": "Lookahead"}
NOISES = {0: ["shared"], 1: ["none", "shared", "sampled"]}
FEW = 20  # a share of fewer walks than this is not shown


def find(results, kind, temperature, drafter, tree, noise="shared", nodes=0):
    for r in results["rows"]:
        if (r["kind"], r["temperature"], r["drafter"], r["tree"], r["draft_noise"], r["nodes"]) == (
                kind, temperature, drafter, tree, noise, nodes):
            return r
    return None


def taus(results, temperature, drafter, tree, noise="shared", nodes=0):
    """τ by kind of text, None where there is no row."""
    return [(find(results, kind, temperature, drafter, tree, noise, nodes) or {}).get("tau") for kind in results["kinds"]]


def mean(values):
    return None if not values or None in values else sum(values) / len(values)


def by_depth(results, temperature, drafter, noise, nodes):
    """[n-α, ...] of chains over all kinds of text; None where too few walks came so deep."""
    tried, taken = [], []
    for kind in results["kinds"]:
        r = find(results, kind, temperature, drafter, "chain", noise, nodes)
        for depth, (share, walks) in enumerate(zip(r["acceptance"], r["tried"]) if r else []):
            if depth == len(tried):
                tried.append(0)
                taken.append(0.0)
            tried[depth] += walks
            taken[depth] += share * walks
    return [t / n if n >= FEW else None for t, n in zip(taken, tried)]


def number(x, digits=2):
    return "–" if x is None else f"{x:.{digits}f}"


def cell(values, digits=2):
    return " / ".join(number(v, digits) for v in values)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("-" * max(3, len(h)) for h in header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"
