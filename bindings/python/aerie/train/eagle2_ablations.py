"""EAGLE-2 without value, without reranking and without both, and how well confidences are calibrated.

    python3 -m aerie.train.eagle2_ablations --target models/target --head models/eagle --data data --json eagle2-ablations.json

The ablations of the EAGLE-2 paper (section 5.3), at temperature 0 and, where the text does not run in circles and
confidences mean what they say, at 1 with draft noise `none`: "value" is the product of confidences on a node's
path, otherwise the confidence of the node alone decides; without reranking, the nodes that the expansion chose at each
level are verified, in the same number.
"""

import argparse
import json
from pathlib import Path

import torch

from . import evaluate, heads, hf, stream, tree
from .draft import drafter

LEVELS, K, KEEP = 6, 10, 59
BINS = 10


def connected(scores: torch.Tensor, parents: torch.Tensor, keep: int) -> torch.Tensor:
    """The best `keep` nodes of each row whose parents are kept: a confidence may exceed its parent's."""
    kept = torch.zeros_like(scores, dtype=torch.bool)
    for b in range(len(scores)):
        order = scores[b].sort(descending=True, stable=True).indices.tolist()
        chosen, waiting = set(), []
        for node in order:
            waiting.append(node)
            progress = True
            while progress and len(chosen) < keep:
                progress = False
                for candidate in waiting:
                    if parents[b, candidate].item() in chosen or parents[b, candidate].item() < 0:
                        chosen.add(candidate)
                        waiting.remove(candidate)
                        progress = True
                        break
            if len(chosen) >= keep:
                break
        kept[b, list(chosen)] = True
    return kept


def grow(one, r: torch.Tensor, score, value: bool, rerank: bool) -> tree.Tree:
    b = len(r)
    hidden = one.begin(r)[:, None]
    first = score(one.logits(hidden), r + 1)[:, 0].topk(K)
    tokens, values, own, parents = [first.indices], [first.values], [first.values], [torch.full((b, K), -1)]
    expanded = [torch.arange(K).expand(b, K)]
    frontier, frontier_tokens, frontier_values = expanded[0], first.indices, first.values
    parent_hidden = hidden.expand(b, K, -1)
    ancestors, eye = torch.zeros(b, K, 0, dtype=torch.bool), torch.eye(K, dtype=torch.bool).expand(b, K, K)
    for depth in range(1, LEVELS):
        ancestors = torch.cat((ancestors, eye), dim=-1)
        hidden = one.expand(frontier_tokens, parent_hidden, depth, ancestors)
        children = score(one.logits(hidden), r + depth + 1).topk(K)
        child_tokens, child_own = children.indices.flatten(1), children.values.flatten(1)
        child_values = (frontier_values[:, :, None] + children.values).flatten(1)
        offset = sum(t.shape[1] for t in tokens)
        for all_of, new in ((tokens, child_tokens), (values, child_values), (own, child_own),
                            (parents, frontier[:, :, None].expand(b, K, K).flatten(1))):
            all_of.append(new)
        best = (child_values if value else child_own).topk(K).indices
        frontier = best + offset
        expanded.append(frontier)
        frontier_tokens, frontier_values = child_tokens.gather(1, best), child_values.gather(1, best)
        rows = best // K
        parent_hidden, ancestors = tree.take(hidden, rows), tree.take(ancestors, rows)
    scores, parents = torch.cat(values if value else own, dim=1), torch.cat(parents, dim=1)
    if rerank:
        kept = connected(scores, parents, KEEP)
    else:
        kept = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, torch.cat(expanded, dim=1)[:, :KEEP], True)
    return tree.Tree(torch.cat(tokens, dim=1), parents, kept, LEVELS)


@torch.no_grad()
def calibration(one, text: evaluate.Text) -> list[list[float]]:
    """[mean confidence, share that came true, count] by tenths of confidence: ten candidates after each token."""
    one.prepare(text.rows)
    score = evaluate.scorer(text, "none")
    sums = torch.zeros(BINS, 3, dtype=torch.float64)
    for position in range(text.prompt, text.prompt + text.count - 1):
        r = torch.full((len(text.rows.tokens),), position)
        best = score(one.logits(one.begin(r)[:, None]), r + 1)[:, 0].topk(K)
        confidence = best.values.exp().double().flatten()
        hit = (best.indices == text.rows.tokens[:, position + 1, None]).double().flatten()
        bins = (confidence * BINS).long().clamp(max=BINS - 1)
        for column, x in enumerate((confidence, hit, torch.ones_like(hit))):
            sums[:, column].scatter_add_(0, bins, x)
    return [[round(c / n, 4), round(h / n, 4), int(n)] for c, h, n in sums.tolist() if n > 0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Ablations of EAGLE-2's tree, and calibration.")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--head", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=24, help="of each kind")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    target = hf.load(args.target)
    one = drafter(target, heads.load(args.head))
    prompt = torch.cat([evaluate.prompts(args.data, kind, args.prompts, 64) for kind in stream.KINDS])
    variants = {"EAGLE-2": (True, True), "without value": (False, True),
                "without reranking": (True, False), "without both": (False, False)}
    taus, calibrations, repeats = {name: [] for name in variants}, {}, []
    for temperature in (0.0, 1.0):
        text = evaluate.write(target, prompt, 64, temperature, 1)
        repeats.append(f"{100 * evaluate.repeated(text):.0f} %")
        calibrations[f"{temperature:g}"] = calibration(one, text)
        for name, (value, rerank) in variants.items():
            def shape(d, r, score, value=value, rerank=rerank):
                return grow(d, r, score, value, rerank)

            taus[name].append(round(evaluate.mean(evaluate.cycles(one, text, "none", shape)), 3))
            print(f"{temperature:g}", name, taus[name][-1], flush=True)
    args.json.write_text(json.dumps({
        "title": "EAGLE-2: value and reranking",
        "text": f"PyTorch twin, EAGLE head, draft noise none, {2 * args.prompts} held-out prompts (half novels, half Python), {KEEP} "
                f"drafted nodes each. Repeated 4-grams: {repeats[0]} at temperature 0, {repeats[1]} at 1.",
        "header": ["tree", "τ, temperature 0", "τ, temperature 1"],
        "rows": [[name, *values] for name, values in taus.items()], "calibration": calibrations}, indent=1) + "\n")


if __name__ == "__main__":
    main()
