"""EAGLE-2's draft tree, grown for many sequences at once, and the walk that accepts a path of it.

With k = 1 the tree is a chain. Nodes are in level order, so a stable sort by value alone gives the house order:
value down, then depth up, then index up.
"""

from dataclasses import dataclass

import torch


@dataclass
class TreePolicy:
    name: str
    k: int      # children drawn from a node, and nodes expanded per level
    depth: int  # levels after the first
    keep: int   # nodes sent to the target


CHAIN = TreePolicy("chain", k=1, depth=4, keep=5)
EAGLE2 = TreePolicy("eagle2", k=10, depth=5, keep=59)


@dataclass
class Tree:
    tokens: torch.Tensor  # [B,N]
    parents: torch.Tensor  # [B,N] node index, -1 = the newest committed token
    kept: torch.Tensor  # [B,N] bool
    levels: int


def take(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """x [B,K,...] at rows [B,M] -> [B,M,...]."""
    return x[torch.arange(len(x))[:, None], rows]


def chain(drafter, r: torch.Tensor, score) -> Tree:
    return grow(drafter, r, score, CHAIN)


def eagle2(drafter, r: torch.Tensor, score) -> Tree:
    return grow(drafter, r, score, EAGLE2)


def grow(drafter, r: torch.Tensor, score, policy: TreePolicy) -> Tree:
    """`score(logits [B,K,V], position [B])` gives log confidences for the token at that position."""
    k, b, deepest = policy.k, len(r), min(policy.depth, drafter.levels - 1)
    hidden = drafter.begin(r)[:, None]
    first = score(drafter.logits(hidden), r + 1)[:, 0].topk(k)
    tokens, values, parents = [first.indices], [first.values], [torch.full((b, k), -1)]
    frontier = torch.arange(k).expand(b, k)
    frontier_tokens, frontier_values = first.indices, first.values
    parent_hidden = hidden.expand(b, k, -1)
    ancestors = torch.zeros(b, k, 0, dtype=torch.bool)
    own = torch.eye(k, dtype=torch.bool).expand(b, k, k)
    for depth in range(1, deepest + 1):
        ancestors = torch.cat((ancestors, own), dim=-1)
        hidden = drafter.expand(frontier_tokens, parent_hidden, depth, ancestors)
        children = score(drafter.logits(hidden), r + depth + 1).topk(k)
        child_tokens = children.indices.flatten(1)
        child_values = (frontier_values[:, :, None] + children.values).flatten(1)
        offset = sum(t.shape[1] for t in tokens)
        tokens.append(child_tokens)
        values.append(child_values)
        parents.append(frontier[:, :, None].expand(b, k, k).flatten(1))
        best = child_values.topk(k).indices
        rows = best // k
        frontier = best + offset
        frontier_tokens, frontier_values = child_tokens.gather(1, best), child_values.gather(1, best)
        parent_hidden, ancestors = take(hidden, rows), take(ancestors, rows)
    all_values = torch.cat(values, dim=1)
    order = all_values.sort(dim=1, descending=True, stable=True).indices[:, :policy.keep]
    kept = torch.zeros_like(all_values, dtype=torch.bool).scatter_(1, order, True)
    return Tree(torch.cat(tokens, dim=1), torch.cat(parents, dim=1), kept, deepest + 1)


def backbone(drafter, r: torch.Tensor, score, k: int = 10, levels: int = 7) -> Tree:
    """FastEagle's tree: k children at every level, all below the likeliest node of the level above."""
    b, levels = len(r), min(levels, drafter.levels)
    hidden = drafter.begin(r)[:, None]
    tokens, parents = [], []
    ancestors = torch.zeros(b, 1, 0, dtype=torch.bool)
    for level in range(levels):
        if level:
            ancestors = torch.cat((ancestors, torch.ones(b, 1, 1, dtype=torch.bool)), dim=-1)
            hidden = drafter.expand(tokens[-1][:, :1], hidden, level, ancestors)
        tokens.append(score(drafter.logits(hidden), r + level + 1)[:, 0].topk(k).indices)
        parents.append(torch.full((b, k), (level - 1) * k if level else -1))
    kept = torch.ones(b, levels * k, dtype=torch.bool)
    return Tree(torch.cat(tokens, dim=1), torch.cat(parents, dim=1), kept, levels)


GROWN = {"chain": chain, "eagle2": eagle2, "backbone": backbone}


def walk(tree: Tree, text: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    """How many drafted tokens [B] agree with text [B,L] after index r [B]."""
    node = torch.full_like(r, -1)
    alive = torch.ones_like(r, dtype=torch.bool)
    accepted = torch.zeros_like(r)
    rows = torch.arange(len(r))
    for depth in range(1, tree.levels + 1):
        wanted = text[rows, (r + depth).clamp(max=text.shape[1] - 1)]
        match = tree.kept & (tree.parents == node[:, None]) & (tree.tokens == wanted[:, None])
        alive = alive & match.any(dim=1)
        accepted += alive
        node = match.float().argmax(dim=1)
    return accepted
