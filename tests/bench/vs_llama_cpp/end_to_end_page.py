"""A Markdown section from the results of end_to_end.py: every number on it is computed from them."""

from statistics import median

from page import table

# What is aimed at: over plain decode, over llama.cpp's plain decode, over its best speculation.
BARS = {"bf16": (1.7, 1.9, 1.2), "int8": (1.5, 1.9, 1.2), "int4": (1.3, 1.9, 1.2)}


def spread(values, digits: int) -> str:
    low, middle, high = (f"{f(values):.{digits}f}" for f in (min, median, max))
    return f"{middle} ({low}–{high})"


def ratio(row: dict, other: dict) -> list[float]:
    """Of the same rounds."""
    return [a / b for a, b in zip(row["speeds"], other["speeds"])]


def repeated(texts: list[list[int]]) -> float:
    """The share of 4-grams that occurred before in their text."""
    again = total = 0
    for text in texts:
        grams = [tuple(text[i:i + 4]) for i in range(len(text) - 3)]
        again, total = again + len(grams) - len(set(grams)), total + len(grams)
    return again / max(1, total)


def alike(texts: list[list[int]], others: list[list[int]]) -> float:
    """The share of tokens before the first that differs."""
    same = sum(next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), len(a)) for a, b in zip(texts, others))
    return same / sum(map(len, texts))


def pick(result: dict, engine: str, plain: bool) -> dict:
    """Plain decode, or the fastest way to draft."""
    rows = [r for r in result["rows"] if r["engine"] == engine and (r["group"] == "plain") == plain]
    return max(rows, key=lambda r: median(r["speeds"]))


def beside(row: dict, plain: dict) -> str:
    """A text and its engine's plain decode."""
    return "the same" if row["texts"] == plain["texts"] else f"{100 * alike(row['texts'], plain['texts']):.0f} % before a difference"


def lines(result: dict):
    """A line a way, for a terminal."""
    for row in result["rows"]:
        other = pick(result, row["engine"], True)
        yield (f"{row['engine']:10}{row['name']:42}{spread(row['speeds'], 1):>24} tokens/s{median(ratio(row, other)):6.2f} x plain, "
               f"{result['texts'] * result['tokens'] / row['cycles']:.2f} a pass")


def summary(results: list[dict]) -> str:
    header = ["weights", "temperature", "tokens/s plain", "drafting", "way", "× own plain", "× llama.cpp plain", "× llama.cpp's best speculation",
              "repeated 4-grams"]
    rows = []
    for r in results:
        plain, best = pick(r, "aerie", True), pick(r, "aerie", False)
        theirs = pick(r, "llama.cpp", True), pick(r, "llama.cpp", False)
        # Where drafting does not help it, its best is not to draft.
        strongest = max(theirs, key=lambda row: median(row["speeds"]))
        bars = [f"{spread(ratio(best, other), 2)}{' ' if median(ratio(best, other)) >= bar else ' **below** '}[{bar}]"
                for other, bar in zip((plain, theirs[0], strongest), BARS[r["dtype"]])]
        rows.append([f"{r['dtype']} / {r['gguf']}", f"{r['temperature']:g}", f"{median(plain['speeds']):.1f}", f"{median(best['speeds']):.1f}",
                     best["name"], *bars, f"{100 * repeated(plain['texts']):.0f} %"])
    return table(header, rows)


def short(results: list[dict]) -> str:
    """README's table: tokens a second."""
    rows = []
    for r in ordered(results):
        plain, best = pick(r, "aerie", True), pick(r, "aerie", False)
        speed = lambda row: f"{median(row['speeds']):.1f}"
        rows.append([f"{r['dtype']} / {r['gguf']}", f"{r['temperature']:g}", speed(plain), speed(best), f"{median(ratio(best, plain)):.2f}",
                     speed(pick(r, "llama.cpp", True)), speed(pick(r, "llama.cpp", False))])
    return table(["weights", "temperature", "plain, tokens/s", "drafting", "ratio", "llama.cpp plain", "its best speculation"], rows)


def ordered(results: list[dict]) -> list[dict]:
    return sorted(results, key=lambda r: (list(BARS).index(r["dtype"]), r["temperature"]))


def details(result: dict) -> str:
    rows = []
    for row in result["rows"]:
        plain = pick(result, row["engine"], True)
        rows.append([row["engine"], row["name"], spread(row["speeds"], 1), f"{median(ratio(row, plain)):.2f}",
                     f"{result['texts'] * result['tokens'] / row['cycles']:.2f}", beside(row, plain)])
    return table(["engine", "way", "tokens/s", "× its plain", "tokens a pass", "text, beside its plain decode's"], rows)


def page(results: list[dict], tried: list[dict]) -> str:
    results = ordered(results)
    first, m = results[0], results[0]["machine"]
    features = [w.split("=")[0].split(":")[-1].strip() for w in first["about"]["llama.cpp"]["features"].split("|") if "= 1" in w]
    greedy = [f"{r['dtype']} {100 * alike(pick(r, 'aerie', True)['texts'], pick(r, 'llama.cpp', True)['texts']):.0f} %"
              for r in results if r["temperature"] == 0]
    count = sum(len(r["rows"]) for r in tried) / len(tried)
    out = f"""## End to end beside llama.cpp, inflated

Made by `tests/bench/end_to_end.py` on {m['date']}: {m['cpu']}, {m['cpus']} CPUs, {first['threads']} threads each; Aerie {m['commit']} ({first['about']['aerie']}),
llama.cpp {first['about']['llama.cpp']['version']} ({', '.join(features)}). The demo model inflated to {first['shape']}:
real text and real acceptance at the cost of a large model, the same weights for llama.cpp (rounded to its formats from bf16).
{first['texts']} held-out prompts, {first['tokens']} tokens each, {len(first['rows'][0]['speeds'])} rounds in which all ways take turns: median (least–most); ratios are
of the same round. Prompts, and the first pass, are not timed. Each engine drafts in its fastest ways of {count:.0f} that were tried on other
held-out prompts. llama.cpp's: a draft model (the small demo model as it is and inflated in the same proportion,
p_min 0 and 0.5), the demo model's EAGLE-3 head, inflated (the same weights as Aerie's: int8 and Q8_0, for int4 targets int4 and Q4_0) and lookup
(ngram-cache, ngram-simple, ngram-map-k), through its own `common/speculative`. Its tokens are drawn by temperature alone, as ours. In brackets what is aimed at. Other work on the machine: at most {100 * max(r['other_work'] for r in results):.0f} %.

{summary(results)}
Up to the first token that differs, the two engines' greedy texts are alike in: {', '.join(greedy)} of the tokens.
"""
    for r in results:
        out += f"\n### {r['dtype']} / {r['gguf']}, temperature {r['temperature']:g}\n\n{details(r)}"
    return out
