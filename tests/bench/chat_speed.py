#!/usr/bin/env python3
"""chat_speed.py BUILD [--questions FILE.jsonl]... > table: SmolLM2-135M-Instruct, a published model, with and without drafters.

Every line and every question is one `aerie run --compare`: the same answer twice, with the drafter and by plain decode; the lines
take turns, question after question, so that all see the same weather. Ratio: all tokens over all seconds, with over without;
in brackets the questions' least and most. tau: tokens over cycles. FILE.jsonl: lines with `turns`, as MT-bench's, of which
the first is asked; without one, QUESTIONS. --people: answers are JSON of samples/smollm2/person.json, laid
out as --layout says; plain decode is then without foresight, and a line without drafters is with foresight alone. BUILD keeps the model (samples/published/model.sh fetches it).
"""
import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = ROOT / "samples/models/smollm2-eagle3.aerie"
QUESTIONS = [
    "How does a bicycle stay upright while it moves?", "Write a Python function that checks whether a text is a palindrome.",
    "Write an email to a colleague who has helped me with a difficult task.", "What are the advantages of public libraries?",
    "Write a short story about a lighthouse keeper who finds a letter.", "Explain what a hash table is to a beginner.",
    "Give me a list of ten things to pack for a week in the mountains.", "Why do leaves change their colour in autumn?"]
PEOPLE = [f"Describe {who} as a JSON object." for who in (
    "a fictional person", "a teacher in Paris", "an old farmer in Ireland", "a young painter from Tokyo", "an engineer who builds bridges",
    "the neighbour of a writer", "a person who loves the sea", "somebody who has just moved to Berlin")]
WAYS = [
    (["head"], ["chain", "2"]),
    (["head"], ["chain", "3"]),
    (["head"], ["auto"]),
    (["ngram"], ["auto"]),
    (["head", "ngram"], ["auto"]),
]


PEOPLE_WAYS = [([], ["auto"]), (["head"], ["chain", "3"]), (["head"], ["auto"]), (["ngram"], ["auto"]), (["head", "ngram"], ["auto"])]


def package(build, dtype, name="smollm2"):
    done = subprocess.run([ROOT / "samples/published/model.sh", name, build, dtype], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip())


def line(name, drafters, tree, temperature, runs):
    total = lambda key: sum(r[key] for r in runs)
    with_, without = (sum(len(r["tokens"]) / r[key] for r in runs) for key in ("tokens_per_second", "plain_tokens_per_second"))
    tokens, ratios = sum(len(r["tokens"]) for r in runs), [r["tokens_per_second"] / r["plain_tokens_per_second"] for r in runs]
    way = f"{' + '.join(drafters)}, {tree[0]}" + (f" of {tree[1]}" if len(tree) > 1 else "") if drafters else "foresight alone"
    return (f"| {name} | {temperature:g} | {way} | {tokens / with_:.0f} | {tokens / without:.0f} | {without / with_:.2f} "
            f"({min(ratios):.2f}–{max(ratios):.2f}) | {tokens / total('cycles'):.2f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--questions", action="append", default=[])
    p.add_argument("--people", action="store_true")
    p.add_argument("--layout", default="free", help="of --people's JSON: free, one-line, compact")
    p.add_argument("--limit", type=int, default=20, help="questions of each file, spread evenly over it")
    p.add_argument("--dtype", default="stored")
    p.add_argument("--temperatures", default="0,0.7")
    p.add_argument("--tokens", type=int, default=192)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--head", default=HEAD)
    a = p.parse_args()
    aerie = pathlib.Path(a.build) / "bin/aerie"
    model = package(a.build, a.dtype)
    ways = PEOPLE_WAYS if a.people else WAYS
    sets = {f"people, {a.layout}": PEOPLE} if a.people else {"built-in": QUESTIONS} if not a.questions else {}
    for file in map(pathlib.Path, a.questions):
        turns = [json.loads(text)["turns"][0] for text in file.read_text().splitlines()]
        count = min(a.limit, len(turns))
        sets[file.stem] = [turns[i * len(turns) // count] for i in range(count)]
    print("| questions | temperature | drafter, tree | tokens/s with | without | ratio | τ |\n|---|---|---|---|---|---|---|")
    for name, questions in sets.items():
        for temperature in map(float, a.temperatures.split(",")):
            runs = [[] for _ in ways]
            for seed, question in enumerate(questions, 1):
                for (drafters, tree), out in zip(ways, runs):
                    command = [aerie, "run", "--model", model, "--tree", tree[0],
                               *(["--tree-nodes", tree[1]] if len(tree) > 1 else []), "--threads", a.threads, "--temperature", temperature,
                               "--seed", seed, "--max-tokens", a.tokens, "--chat", "--prompt", question, "--compare", "--json"]
                    if a.people:
                        command += ["--json-schema", ROOT / "samples/smollm2/person.json", "--json-layout", a.layout]
                    for drafter in drafters:
                        command += ["--drafter", a.head if drafter == "head" else drafter]
                    out.append(json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True).stdout))
            for (drafters, tree), r in zip(ways, runs):
                print(line(name, drafters, tree, temperature, r), flush=True)


if __name__ == "__main__":
    main()
