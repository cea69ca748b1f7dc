"""Judge drafters: tau of chains, EAGLE-2 and backbone trees on continuations of held-out text.

    python3 -m aerie.train.evaluate --target models/target --head models/eagle --head models/fasteagle --data data

Decoding here is lossless, so the text does not depend on the drafter. It is written once per temperature, and
then only drafts are made, for all sequences at a time: the tokens of a cycle are the longest path of the tree
that agrees with the text, plus one. tau is their mean number. The prefill's token and a cycle that the limit
cuts off do not count. Draft noise `none` ranks candidates by the draft distribution, as EAGLE-2 does; `shared`
by draft logits / T plus the very Gumbel noise that the target will use at that position.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from . import generate, heads, hf, report, stream, tree
from .draft import OnePassDrafter, drafter
from .rows import Rows, read

LOOK_AHEAD = 8  # tokens written past the limit, so that a tree can be judged near it


@dataclass
class Text:
    """Prompts with the target's continuations at one temperature."""

    temperature: float
    prompt: int
    count: int
    rows: Rows  # L = prompt + count + LOOK_AHEAD tokens
    noise: torch.Tensor  # [B, count + LOOK_AHEAD, V]


def prompts(data: Path, kind: str, count: int, length: int) -> torch.Tensor:
    """[count, length] windows spread evenly over the held-out text; of dialogues, the beginnings of as many."""
    if stream.text_length(data):
        return stream.held_rows(data, kind, count, length)
    held = torch.from_numpy(stream.tokens(data, kind, "held").astype("int64"))
    step = (len(held) - length) // count
    return torch.stack([held[i * step:i * step + length] for i in range(count)])


@torch.no_grad()
def write(target, prompt: torch.Tensor, count: int, temperature: float, seed: int) -> Text:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(prompt), count + LOOK_AHEAD, target.config.vocab_size)
    noise = generate.gumbel(shape, generator) if temperature > 0 else torch.zeros(1).expand(shape)
    tokens = generate.continue_text(target, prompt, shape[1], temperature, noise)
    return Text(temperature, prompt.shape[1], count, read(target, tokens), noise)


def scorer(text: Text, draft_noise: str):
    """Log confidences of draft logits [B,K,V] for the token at `position` [B]."""
    rows = torch.arange(len(text.rows.tokens))

    def score(logits: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        if draft_noise == "shared" and text.temperature > 0:
            index = (position - text.prompt).clamp(max=text.noise.shape[1] - 1)
            logits = logits / text.temperature + text.noise[rows, index][:, None]
        return logits.log_softmax(-1)

    return score


@torch.no_grad()
def cycles(drafter, text: Text, draft_noise: str, grow) -> list[list[int]]:
    """Tokens emitted by each whole cycle of each sequence. `grow(drafter, r, score)` makes the tree of a cycle."""
    drafter.prepare(text.rows)
    score = scorer(text, draft_noise)
    last = text.prompt + text.count - 1
    r = torch.full((len(text.rows.tokens),), text.prompt)  # the prefill has emitted this one
    out = [[] for _ in range(len(r))]
    while bool((r < last).any()):
        emitted = tree.walk(grow(drafter, r, score), text.rows.tokens, r) + 1
        for index, (position, number) in enumerate(zip(r.tolist(), emitted.tolist())):
            if position < last and position + number <= last:
                out[index].append(number)
        r = (r + emitted).clamp(max=last)
    return out


def repeated(text: Text, n: int = 4) -> float:
    """Share of n-grams of the continuations that occurred before in the same continuation."""
    again = total = 0
    for row in text.rows.tokens[:, text.prompt:text.prompt + text.count].tolist():
        grams = [tuple(row[i:i + n]) for i in range(len(row) - n + 1)]
        again += len(grams) - len(set(grams))
        total += len(grams)
    return again / total


def mean(lists: list[list[int]]) -> float:
    flat = [number for numbers in lists for number in numbers]
    return sum(flat) / max(1, len(flat))


def by_depth(lists: list[list[int]], depth: int) -> list[float]:
    """Share of the cycles that accept the draft at depth 1, 2, ... among those that accepted the one above it."""
    flat = [number for numbers in lists for number in numbers]
    reached = [sum(n > d for n in flat) for d in range(depth + 1)]
    return [round(below / max(1, above), 3) for above, below in zip(reached, reached[1:])]


def combinations(temperature: float, drafters: dict, quick: bool):
    """(drafter, draft noise, tree) worth measuring at a temperature."""
    noises = ["none", "shared"] if temperature > 0 else ["none"]
    for name, one in drafters.items():
        for shape in ["eagle2"] if quick else ["chain", "eagle2"]:
            for noise in ["none"] if name == "target" else noises:
                yield name, noise, shape
        if isinstance(one, OnePassDrafter) and not quick:
            yield name, "none", "backbone"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure tau of drafters on held-out text.")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--head", type=Path, action="append", required=True,
                        help="folder of a head or of a small model; may be repeated")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=100, help="number of prompts of each kind")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--continuation", type=int, default=64)
    parser.add_argument("--temperatures", default="0,0.7,1")
    parser.add_argument("--quick", action="store_true", help="EAGLE-2 trees only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the numbers here too")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    target = hf.load(args.target)
    drafters = {folder.name: drafter(target, heads.load(folder)) for folder in args.head}
    drafters["target"] = drafter(target, target)
    kinds = stream.kinds(args.data)
    prompt = torch.cat([prompts(args.data, kind, args.prompts, args.prompt_tokens) for kind in kinds])
    each = len(prompt) // len(kinds)
    results = []
    bar = report.Progress("evaluate")
    print(f"| T | policy | drafter | draft noise | tau | {' | '.join(kinds)} | first token | repeated 4-grams |")
    print("|---|---|---|---|---|---|---|" + "---|" * len(kinds))
    for temperature in [float(t) for t in args.temperatures.split(",")]:
        text = write(target, prompt, args.continuation, temperature, args.seed)
        share = repeated(text)
        for name, noise, shape in combinations(temperature, drafters, args.quick):
            bar.show(len(results) / (16 * len(drafters)), f"T={temperature:g} {shape} {name} {noise}")
            numbers = cycles(drafters[name], text, noise, tree.GROWN[shape])
            flat = [n for row in numbers for n in row]
            row = {"temperature": temperature, "policy": shape, "drafter": name, "draft_noise": noise,
                   "tau": mean(numbers), "cycles": len(flat),
                   **{f"tau_{kind}": mean(numbers[i * each:(i + 1) * each]) for i, kind in enumerate(kinds)},
                   "first_accepted": sum(n > 1 for n in flat) / max(1, len(flat)),
                   "accepted_at_depth": by_depth(numbers, 7), "repeated_4grams": share}
            results.append(row)
            print(f"| {temperature:g} | {shape} | {name} | {noise} | {row['tau']:.2f} "
                  f"| {' | '.join(format(row[f'tau_{kind}'], '.2f') for kind in kinds)} | {row['first_accepted']:.2f} | {share:.2f} |", flush=True)
    bar.close()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
